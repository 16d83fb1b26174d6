"""A description takes the propagation kinds that it computes, and no other."""

from dataclasses import fields, replace
from typing import Any

import pytest

import asmdnn as dnn
from asmdnn.primitives.core.registry import kinds
from tests.primitives.test_cache_sizes import DESCRIPTIONS

FORWARD = {dnn.PropKind.forward_training, dnn.PropKind.forward_inference}
X = dnn.MemoryDesc((2, 4, 3, 3), dnn.f32, "abcd")


def has_kind(kind: type) -> bool:
    return "prop_kind" in {field.name for field in fields(kind)}


KNOWN: dict[Any, set[dnn.PropKind]] = {
    dnn.ConvolutionForward(src=X, weights=dnn.MemoryDesc((4, 4, 1, 1), dnn.f32, "abcd"), dst=X): FORWARD,
    dnn.InnerProductForward(X, X, dnn.MemoryDesc((2, 2), dnn.f32, "ab")): FORWARD,
    dnn.EltwiseForward(dnn.PropKind.forward_inference, "relu", X, X): FORWARD,
    dnn.Shuffle(X, X, axis=1, group_size=2): {*FORWARD, dnn.PropKind.backward_data},
}


KNOWN |= {desc: FORWARD for desc in DESCRIPTIONS if has_kind(type(desc)) and type(desc) not in map(type, KNOWN)}


def test_every_description_that_has_one_is_here() -> None:
    assert {type(desc) for desc in KNOWN} == set(filter(has_kind, kinds()))


@pytest.mark.parametrize("desc", KNOWN, ids=lambda desc: type(desc).__name__)
def test_what_is_not_computed_is_refused(desc: Any) -> None:
    for kind in dnn.PropKind:
        if kind in KNOWN[desc]:
            assert replace(desc, prop_kind=kind).prop_kind == kind
        else:
            with pytest.raises(dnn.InvalidArguments, match=rf"prop_kind must be .*, not <PropKind\.{kind.value}"):
                replace(desc, prop_kind=kind)


@pytest.mark.parametrize("desc", KNOWN, ids=lambda desc: type(desc).__name__)
@pytest.mark.parametrize("kind", ["forward_inference", "backward_data", 0, None, dnn.Algorithm.convolution_auto])
def test_what_is_no_prop_kind_is_refused(desc: Any, kind: object) -> None:
    with pytest.raises(dnn.InvalidArguments, match=r"prop_kind must be PropKind\.forward_training or .*, not "):
        replace(desc, prop_kind=kind)
