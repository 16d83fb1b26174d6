"""Integers through every implementation of every kind: where arithmetic is exact, or rounds once, all bits are equal.

The answers are those of the drivers of asmdnn bench, in float64 by numpy.  Here they bear no tolerance: a mean is the
exact sum, divided and rounded once, however a plan cuts the sum.
"""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.driver import AnyCase, TensorData
from asmdnn.bench.rank import every_plan
from asmdnn.bench.values import decoded, joined, rounded
from tests.conformance.kinds import cases, with_section
from tests.primitives.every_kind import Array, engine, integers


def whole(name: str, array: Array) -> Array:
    """Small integers instead of f32 numbers; what else there is are integers already."""
    if array.dtype != np.float32 or np.isnan(array).any():
        return array
    return integers(name, dnn.MemoryDesc(array.shape, dnn.f32, "abcdef"[: array.ndim])).astype(np.float32)


def computed(pd: dnn.PrimitiveDesc, arrays: dict[str, Array]) -> Array:
    """All results, one after the other."""
    memories = {name: dnn.Memory.from_numpy(arrays[name], desc) for name, desc in pd.plan.tensors.items()}
    dnn.Primitive(pd).execute(**memories)
    return joined([decoded(memories[n].numpy(), memories[n].desc.dtype) for n in pd.plan.outputs])


def check(case: AnyCase, isa: str, candidates: bool) -> int:
    """How many plans were run."""
    work = case.driver.work(case)
    desc, attr = work.describe()
    data: Any = work.data(True)
    if not work.exactness[0]:
        data = TensorData({name: whole(name, array) for name, array in data.arrays.items()}, exact=True)
    values, plans = work.answer(data).values, plans_of(desc, attr, isa, candidates)
    for name, plan in plans:
        found = computed(dnn.PrimitiveDesc(desc, attr, engine(isa), plan), data.arrays)
        wanted = rounded(values, dnn.f32) if found.dtype == np.float32 else values
        wrong = found != wanted
        at = np.unravel_index(int(wrong.argmax()), wrong.shape)
        assert not wrong.any(), f"{case} by {name}: {found[at]:.9g} instead of {wanted[at]:.9g} at {at}"
    return len(plans)


def plans_of(desc: Any, attr: dnn.Attr, isa: str, candidates: bool) -> list[tuple[str, Any]]:
    """Those of all implementations, or all that planners choose from, too."""
    if candidates:
        return list(every_plan(desc, attr, engine(isa)))
    answers = dnn.implementations(desc, attr, engine(isa))
    return [(a.implementation, a.plan) for a in answers if isinstance(a, dnn.PrimitiveDesc)]


@pytest.mark.parametrize("kind", with_section("exact"))
def test_every_implementation(isa: str, kind: str) -> None:
    for case in cases(kind, "exact"):
        assert check(case, isa, candidates=False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", with_section("exact"))
def test_every_candidate(isa: str, kind: str) -> None:
    for case in cases(kind, "exact"):
        assert check(case, isa, candidates=True)
