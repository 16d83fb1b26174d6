"""What a primitive is made of has a pickle and copies; what is of this process says where it comes from again."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.support.drawing import RANDOM

pytestmark = pytest.mark.isa("avx2")
DESC = dnn.MemoryDesc((4, 6), dnn.f32, "ab")
SOFTMAX = dnn.SoftmaxForward(prop_kind=dnn.PropKind.forward_inference, alg="accurate", src=DESC, dst=DESC, axis=1)


def planned() -> dnn.PrimitiveDesc:
    return dnn.primitive_desc(SOFTMAX, dnn.Attr(["relu"]), dnn.Engine(isa="avx2", threads=2))


def memories() -> dict[str, dnn.Memory]:
    x = RANDOM.standard_normal((4, 6)).astype(np.float32)
    return {"src": dnn.Memory.from_array(x), "dst": dnn.Memory.from_array(np.zeros_like(x))}


ELSEWHERE = "has no pickle: pickle its desc, attr and engine, and describe it again where it is needed, or write a pack"
OF_THIS_PROCESS: dict[str, tuple[Callable[[], Any], str]] = {
    "descriptor": (planned, f"a PrimitiveDesc {ELSEWHERE}"),
    "primitive": (lambda: dnn.Primitive(planned()), f"a Primitive {ELSEWHERE}"),
    "plan": (lambda: planned().plan, "a Plan has no pickle: pickle the description"),
    "call": (lambda: dnn.Primitive(planned()).bind(**memories()), "a bound call has no pickle: bind it again"),
}


@pytest.mark.parametrize("name", OF_THIS_PROCESS)
def test_what_is_of_this_process(name: str) -> None:
    make, message = OF_THIS_PROCESS[name]
    for value in (make(), {"inside": [make()]}):
        with pytest.raises(dnn.InvalidArguments, match=message):
            pickle.dumps(value)


def test_copies_are_the_same() -> None:
    pd = planned()
    for value in (pd, dnn.Primitive(pd)):
        assert copy.copy(value) is value
        assert copy.deepcopy([value])[0] is value


def test_what_it_is_made_of() -> None:
    """The way out that the sentence names: the same plan, and the same bits."""
    pd = planned()
    other = dnn.primitive_desc(*pickle.loads(pickle.dumps((pd.desc, pd.attr, pd.engine))))
    assert pd.plan.calls_as(other.plan)
    tensors: Any = memories()
    dnn.Primitive(pd).execute(**tensors)
    wanted = tensors["dst"].array.copy()
    tensors["dst"].array[...] = np.nan
    dnn.Primitive(other).execute(**tensors)
    assert np.array_equal(tensors["dst"].array, wanted)
