"""Element-wise kernels with as many zmm registers in turn as on Zen 5: which they are, and what they compute."""

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.corpus.elementwise import PARAMETERS
from asmdnn.generators.functions.eltwise.algorithms import ALGORITHMS
from asmdnn.planning.tuning import DEFAULT
from asmdnn.primitives.elementwise.eltwise import BACKWARD_ALGS, USE_DST
from asmdnn.records import replace
from tests.support import functions
from tests.support.plans import emulate_plan
from tests.support.slopes import slope
from tests.support.tuning import with_numbers

ZEN5 = dnn.Engine(isa="avx512_core", threads=1, machine="zen5")
STREAMING = replace(ZEN5, tuning=with_numbers(ZEN5.tuning, "elementwise", streaming_bytes=1))
IN_L2, BEYOND_L3 = (64, 1024), (4, 1 << 20)
LENGTH = 2 * 16 * 8 + 3 * 16 + 5  # two turns of 8 vectors, three vectors, and a tail


def planned(alg: str, dims: tuple[int, ...], engine: dnn.Engine) -> dnn.PrimitiveDesc:
    desc = dnn.MemoryDesc(dims, dnn.f32, "ab")
    request = dnn.EltwiseForward(dnn.PropKind.forward_inference, alg, desc, desc, *PARAMETERS.get(alg, (0.0, 0.0)))
    return dnn.primitive_desc(request, engine=engine)


def turns(pd: dnn.PrimitiveDesc) -> set[tuple[int, bool]]:
    return {(spec.interleaved, spec.streaming) for spec in pd.plan.specs}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("alg", "dims", "wanted"),
    [
        ("square", IN_L2, (8, False)), ("tanh", IN_L2, (8, False)), ("square", BEYOND_L3, (4, True)),
        ("tanh", BEYOND_L3, (8, True)), ("tanh", (64, 8), (6, False)),
    ],
)  # fmt: skip
def test_vectors_in_turn(alg: str, dims: tuple[int, int], wanted: tuple[int, bool]) -> None:
    """Short functions past the caches have fewer; rows of 8 have ymm registers, which have as many as ever."""
    dst = dnn.MemoryDesc(dims, dnn.f32, "ab")
    apart = dnn.Memory.from_array(np.zeros((64, 24), np.float32)[:, :8]).desc
    src = apart if apart.dims == dims else dst
    forward = dnn.PropKind.forward_inference
    for engine, turn in ((ZEN5, wanted[0]), (replace(ZEN5, isa="avx2"), 6), (replace(ZEN5, tuning=DEFAULT), 6)):
        pd = dnn.primitive_desc(dnn.EltwiseForward(forward, alg, src, dst), engine=engine)
        assert turns(pd) == {(turn, wanted[1])}
        pd.plan.check()


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("engine", [ZEN5, STREAMING], ids=["near", "streaming"])
@pytest.mark.parametrize("alg", ALGORITHMS)
def test_forward(alg: str, engine: dnn.Engine) -> None:
    pd = planned(alg, (1, LENGTH), engine)
    assert turns(pd) <= ({(8, False)} if engine is ZEN5 else {(8, True), (4, True)})
    pd.plan.check()
    x = np.random.default_rng(3).uniform(0.1, 2, (1, LENGTH)).astype(np.float32)
    memories = {"src": dnn.Memory.from_array(x), "dst": dnn.Memory(pd.plan.tensors["dst"])}
    emulate_plan(pd.plan, memories)
    wanted = functions.forward(alg, x.astype(np.float64), *PARAMETERS.get(alg, (0.0, 0.0)))
    np.testing.assert_allclose(memories["dst"].numpy(), wanted, 1e-6, 1e-6)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("alg", [alg for alg in BACKWARD_ALGS if not alg.endswith(USE_DST)])
def test_backward(alg: str) -> None:
    desc, parameters = dnn.MemoryDesc((1, LENGTH), dnn.f32, "ab"), PARAMETERS.get(alg, (0.0, 0.0))
    pd = dnn.primitive_desc(dnn.EltwiseBackward(alg, desc, desc, desc, *parameters), engine=ZEN5)
    assert turns(pd) == {(8, False)}
    pd.plan.check()
    random = np.random.default_rng(4)
    x, gradient = (random.uniform(0.1, 2, (1, LENGTH)).astype(np.float32) for _ in range(2))
    memories = {"src": dnn.Memory.from_array(x), "diff_dst": dnn.Memory.from_array(gradient)}
    memories["diff_src"] = dnn.Memory(desc)
    emulate_plan(pd.plan, memories)
    wanted = gradient * slope(alg, x.astype(np.float64), *parameters)
    np.testing.assert_allclose(memories["diff_src"].numpy(), wanted, 1e-4, 1e-5)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("dtype", [dnn.f32, dnn.bf16])
def test_two_tensors_and_post_ops(dtype: dnn.DataType) -> None:
    desc = dnn.MemoryDesc((1, LENGTH), dtype, "ab")
    attr = dnn.Attr([dnn.Sum(0.5), dnn.Eltwise("tanh"), dnn.Binary("mul", dnn.MemoryDesc((1, LENGTH), dnn.f32, "ab"))])
    pd = dnn.primitive_desc(dnn.BinaryForward("add", desc, desc, desc), attr, ZEN5)
    assert turns(pd) == {(8, False)}
    pd.plan.check()
    random = np.random.default_rng(5)
    a, b, old, last = (random.integers(-8, 8, (1, LENGTH)).astype(np.float32) / 8 for _ in range(4))
    given = {"src0": a, "src1": b, "dst": old}
    memories = {name: dnn.reorder(dnn.Memory.from_array(x), desc) for name, x in given.items()}
    memories["binary_2"] = dnn.Memory.from_array(last)
    emulate_plan(pd.plan, memories)
    found = dnn.reorder(memories["dst"], dnn.MemoryDesc((1, LENGTH), dnn.f32, "ab")).numpy()
    wanted = np.tanh((a + b + 0.5 * old).astype(np.float64)) * last
    np.testing.assert_allclose(found, wanted, *((1e-6, 1e-6) if dtype == dnn.f32 else (2**-8, 2**-126)))
