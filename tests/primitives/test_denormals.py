"""Subnormal numbers are zeros where convolutions and products multiply, and stay what they are elsewhere."""

import os

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments
from asmdnn.jit.native import ffi
from asmdnn.runtime.execution import ExecutablePlan, NativeCall
from tests.abi.trampoline import MXCSR, MXCSR_CONTROL, call_with_known_registers
from tests.support.native import Kernel

TINY = np.float32(1e-40)  # subnormal
HUGE = np.float32(2.0**100)  # times TINY some 1e-10, well above the least normal number
THREADS = [1, 2, 3]


def filled(desc: dnn.MemoryDesc, value: float) -> dnn.Memory:
    memory = dnn.Memory(desc)
    memory.array[...] = value
    return memory


def product(threads: int, denormals: str | None, values: dict[str, float]) -> np.ndarray:
    """A product of 48 steps of k of constant matrices, large enough for a team."""
    m, n, k = 96, 64, 48
    descs = {
        name: dnn.MemoryDesc(dims, dnn.f32, "ab")
        for name, dims in {"src": (m, k), "weights": (k, n), "dst": (m, n), "bias": (1, n)}.items()
    }
    attr = dnn.Attr(denormals=denormals)
    pd = dnn.primitive_desc(dnn.MatMul(**descs), attr, dnn.Engine(threads=threads))
    memories = {name: filled(desc, values.get(name, 0.0)) for name, desc in pd.plan.tensors.items()}
    dnn.Primitive(pd).execute(**memories)
    return memories["dst"].array.copy()


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ({"src": HUGE, "weights": TINY}, 48 * float(HUGE) * float(TINY)),
        ({"src": TINY, "weights": HUGE}, 48 * float(HUGE) * float(TINY)),
        ({"bias": TINY}, float(TINY)),
    ],
    ids=["weights", "src", "bias"],
)
def test_each_operand_of_a_product(isa: str, threads: int, values: dict[str, float], kept: float) -> None:
    for denormals in (None, "flush"):
        assert (product(threads, denormals, values) == 0).all()
    result = product(threads, "keep", values)
    np.testing.assert_allclose(result, kept, rtol=48 * 2.0**-23)


@pytest.mark.parametrize("threads", THREADS)
def test_results(isa: str, threads: int) -> None:
    """Normal operands whose product is subnormal."""
    values = {"src": 2.0**-70, "weights": 2.0**-70}
    assert (product(threads, None, values) == 0).all()
    assert (product(threads, "keep", values) == np.float32(48 * 2.0**-140)).all()


@pytest.mark.parametrize("denormals", [None, "flush", "keep"])
def test_maps_and_copies(isa: str, denormals: str | None) -> None:
    """Maps keep by default; copies always do."""
    attr, engine = dnn.Attr(denormals=denormals), dnn.Engine(threads=2)
    desc = dnn.MemoryDesc((64, 64), dnn.f32, "ab")
    pd = dnn.primitive_desc(dnn.BinaryForward("add", desc, desc, desc), attr, engine)
    memories = {name: filled(tensor, TINY) for name, tensor in pd.plan.tensors.items()}
    dnn.Primitive(pd).execute(**memories)
    assert (memories["dst"].array == (0 if denormals == "flush" else TINY + TINY)).all()
    back = dnn.MemoryDesc((64, 64), dnn.f32, "ba")
    copied = {"src": filled(desc, TINY), "dst": dnn.Memory(back)}
    dnn.Primitive(dnn.primitive_desc(dnn.Reorder(desc, back), attr, engine)).execute(**copied)
    assert (copied["dst"].array == TINY).all()


def bound(denormals: str) -> NativeCall:
    desc = dnn.MemoryDesc((4, 4), dnn.f32, "ab")
    plan = dnn.primitive_desc(dnn.MatMul(desc, desc, desc), dnn.Attr(denormals=denormals)).plan
    memories = {name: filled(desc, 1.0) for name in plan.tensors}
    call = ExecutablePlan(plan, threads=1).prepare()
    call.bind([memory.address for memory in memories.values()], keep=memories)
    return call


@pytest.mark.parametrize("denormals", ["flush", "keep"])
def test_the_callers_mode_is_put_back(isa: str, denormals: str) -> None:
    """Entered under another rounding, with subnormals flushed by somebody else; in a child, too."""
    call = bound(denormals)
    executor = Kernel.__new__(Kernel)
    executor.address = int(ffi.cast("intptr_t", call._program.entry))
    context = int(ffi.cast("intptr_t", call.context))

    def is_put_back() -> bool:
        return call_with_known_registers(executor, context).mxcsr & MXCSR_CONTROL == MXCSR & MXCSR_CONTROL

    assert is_put_back()
    child = os.fork()
    if not child:
        os._exit(0 if is_put_back() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_what_it_may_be() -> None:
    with pytest.raises(InvalidArguments, match="denormals must be 'flush', 'keep' or None for the default, not 'zero'"):
        dnn.Attr(denormals="zero")
