"""Recurrent layers of bf16 and f16: every cell and direction, pairs and widened, against the reference in float64."""

from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.ops.recurrent import packed_formats
from tests.primitives.recurrent_case import (
    AVX2,
    CELLS,
    DIRECTIONS,
    answer,
    check,
    compute,
    data_of,
    describe,
    memories_of,
    numbers_of,
    of_type,
    typed,
)
from tests.support.plans import emulate_plan

PAIRS = dnn.Engine(isa="avx512_core_bf16", machine="zen4", threads=2, l2_bytes=1 << 20)
SLOW_PAIRS = dnn.Engine(isa="avx512_core_bf16", machine="sapphire_rapids", threads=2, l2_bytes=1 << 20)
LENGTHS = (3, 1, 4, 2)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dtype", [dnn.bf16, dnn.f16])
@pytest.mark.parametrize("kind", CELLS)
def test_widened(kind: type, dtype: dnn.DataType) -> None:
    """Rows are f32 inside, weights stay as they are, and results are rounded once."""
    for direction in DIRECTIONS:
        desc = typed(describe(kind, (3, 4, 5, 21), 2, direction), dtype, dtype)
        check(desc)
        plan = dnn.primitive_desc(desc, engine=AVX2).plan
        assert plan.implementation == "reorder+floats:avx2"
        assert plan.tensors["weights_iter"].dtype == dtype
        assert any(f"recurrent_f32{dtype}f32_" in kernel.name for phase in plan.phases for kernel in phase.kernels)


@pytest.mark.isa("avx512_core_bf16")
@pytest.mark.parametrize("kind", CELLS)
def test_pairs(kind: type) -> None:
    """VDPBF16PS, with rows and channels of any number; steps hand on bf16."""
    for direction in DIRECTIONS:
        check(typed(describe(kind, (3, 4, 5, 21), 2, direction), dnn.bf16, dnn.bf16), PAIRS)
    for n, hidden in ((1, 1), (1, 40), (3, 16), (7, 33)):
        desc = typed(describe(kind, (3, n, 4, hidden), states=n > 1), dnn.bf16, dnn.bf16)
        check(desc, PAIRS)
        plan = dnn.primitive_desc(desc, engine=PAIRS).plan
        assert plan.implementation == "pairs:avx512_core_bf16"
        assert any("recurrent_bf16bf16f32_" in kernel.name for phase in plan.phases for kernel in phase.kernels)


@pytest.mark.isa("avx512_core_bf16")
@pytest.mark.parametrize("projection", [0, 5])
def test_lstm_with_everything(projection: int) -> None:
    desc = describe(dnn.LSTMForward, (3, 4, 6, 9), 2, peephole=True, projection=projection)
    check(typed(desc, dnn.bf16, dnn.bf16), PAIRS)
    check(typed(desc, dnn.bf16, dnn.bf16, dnn.bf16), SLOW_PAIRS)


@pytest.mark.isa("avx512_core_bf16")
@pytest.mark.parametrize("kind", CELLS)
def test_sequences_of_different_lengths(kind: type) -> None:
    desc = typed(describe(kind, (5, 4, 6, 11), lengths=LENGTHS), dnn.bf16, dnn.bf16)
    for engine in (PAIRS, SLOW_PAIRS):
        found = check(desc, engine)
        for step in range(5):
            assert not found["dst_layer"][step, np.array(LENGTHS) <= step].any()


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("engine", [PAIRS, replace(AVX2, isa="avx512_core")], ids=["pairs", "widened"])
def test_emulated(kind: type, engine: dnn.Engine) -> None:
    desc = typed(describe(kind, (2, 3, 5, 17)), dnn.bf16, dnn.bf16)
    data = data_of(desc)
    plan = dnn.primitive_desc(desc, engine=engine).plan
    memories = memories_of(plan.tensors, data)
    emulate_plan(plan, memories)
    for name, wanted in answer(desc, data).items():
        assert (np.abs(numbers_of(memories[name]) - wanted.value) <= wanted.bound).all(), name


def test_classes_that_multiply_pairs_slowly_widen() -> None:
    desc = typed(describe(dnn.LSTMForward, (3, 4, 5, 21)), dnn.bf16, dnn.bf16)
    assert dnn.primitive_desc(desc, engine=SLOW_PAIRS).implementation == "reorder+floats:avx512_core"
    training = replace(desc, prop_kind=dnn.PropKind.forward_training)  # whose workspace is f32
    assert dnn.primitive_desc(training, engine=PAIRS).implementation == "reorder+floats:avx512_core"
    mixed = replace(desc, dst_layer=of_type(desc.dst_layer, dnn.f32))
    assert dnn.primitive_desc(mixed, engine=PAIRS).implementation == "reorder+floats:avx512_core"


@pytest.mark.isa("avx512_core_bf16")
@pytest.mark.parametrize("kind", CELLS)
def test_every_number_of_threads_gives_the_same_bits(kind: type) -> None:
    desc = typed(describe(kind, (6, 9, 40, 72), 2, DIRECTIONS[2]), dnn.bf16, dnn.bf16)
    data = data_of(desc)
    first, *others = (compute(desc, data, replace(PAIRS, threads=threads))["dst_layer"] for threads in (1, 2, 3))
    for other in others:
        np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"weights_iter": dnn.f32}, "weights_iter is f32, weights_layer bf16: all weights have one type"),
        ({"weights_layer": dnn.u8, "weights_iter": dnn.u8}, "weights_layer is u8, only f32, bf16, f16"),
        ({"src_layer": dnn.s32}, "src_layer is s32, only f32, bf16, f16 are implemented"),
    ],
)
def test_refusals(change: dict[str, dnn.DataType], says: str) -> None:
    desc = typed(describe(dnn.GRUForward, (4, 2, 6, 19)), dnn.bf16, dnn.bf16)
    other = desc.with_formats({name: of_type(getattr(desc, name), dtype) for name, dtype in change.items()})
    with pytest.raises(dnn.Unimplemented, match=says):
        dnn.primitive_desc(other, engine=AVX2)


@pytest.mark.emulated("avx512_core_bf16")
@pytest.mark.parametrize("kind", CELLS)
def test_f32_that_may_be_rounded(kind: type) -> None:
    """The result is that of the same layer of bf16, whose arguments were rounded before."""
    desc = describe(kind, (2, 3, 5, 9))
    rounded, attr = typed(desc, dnn.bf16, dnn.bf16), dnn.Attr(fpmath_mode="bf16")
    given, found = data_of(rounded), []
    for each, word in ((desc, "bf16+pairs"), (rounded, "pairs")):
        pd = dnn.primitive_desc(each, attr, PAIRS)
        assert pd.implementation == f"{word}:avx512_core_bf16"
        memories = memories_of(pd.plan.tensors, given)
        emulate_plan(pd.plan, memories)
        found.append(numbers_of(memories["dst_layer"]))
    assert np.array_equal(*found)
    assert "floats" in dnn.primitive_desc(desc, attr, SLOW_PAIRS).implementation
    free = {name: dnn.MemoryDesc(t.dims, dnn.f32, "any") for name, t in desc.tensors().items() if "weights" in name}
    assert dnn.primitive_desc(desc.with_formats(free), attr, PAIRS).plan.tensors["weights_iter"].dtype == dnn.bf16


@pytest.mark.emulated("avx512_core_bf16")
def test_weights_that_are_rounded_as_they_are_packed() -> None:
    """In the format of a layer that may round; what it computes are the bits of weights that it packs itself."""
    desc = describe(dnn.LSTMForward, (2, 3, 5, 9))
    given, attr = data_of(desc), dnn.Attr(fpmath_mode="bf16")
    weights = {name: given[name] for name in ("weights_layer", "weights_iter")}
    formats, found = packed_formats(type(desc), weights, PAIRS, attr), []
    assert {formats[name].dtype for name in weights} == {dnn.bf16}
    assert {d.dtype for d in packed_formats(type(desc), weights, SLOW_PAIRS, attr).values()} == {dnn.f32}
    for of_weights in ({}, {name: formats[name] for name in weights}):
        pd = dnn.primitive_desc(desc.with_formats(of_weights), attr, PAIRS)
        assert pd.implementation == "bf16+pairs:avx512_core_bf16"
        memories = memories_of(pd.plan.tensors, given)
        for name in of_weights:
            memories[name] = dnn.PackedWeights(weights[name], formats[name], AVX2, name=name).memory
        emulate_plan(pd.plan, memories)
        found.append(numbers_of(memories["dst_layer"]))
    assert np.array_equal(*found)


@pytest.mark.isa("avx2")
def test_packed_arrays_that_may_be_rounded() -> None:
    """Where nothing multiplies pairs, they stay f32."""
    x, dims = np.ones((2, 3, 4), np.float32), {"weights_layer": (1, 1, 4, 1, 5), "weights_iter": (1, 1, 5, 1, 5)}
    weights = {name: np.full(shape, 0.3, np.float32) for name, shape in dims.items()}
    packed = dnn.ops.pack_recurrent("rnn", weights, AVX2, fpmath_mode="bf16")
    assert packed["weights_iter"].desc.dtype == dnn.f32
    found = dnn.ops.rnn(x, packed, fpmath_mode="bf16", engine=AVX2)[0]
    assert np.array_equal(found, dnn.ops.rnn(x, weights, engine=AVX2)[0])
    with pytest.raises(dnn.InvalidArguments, match="fpmath_mode"):
        dnn.ops.pack_recurrent("rnn", weights, AVX2, fpmath_mode="bf17")  # type: ignore[arg-type]
    with pytest.raises(dnn.InvalidArguments, match="weights is of f32, but desc of s8"):
        dnn.PackedWeights(weights["weights_iter"], dnn.MemoryDesc(dims["weights_iter"], dnn.s8, "abcde"))


@pytest.mark.isa("avx2")
def test_arrays_that_may_be_rounded() -> None:
    """A permission: where nothing multiplies pairs, the numbers are those without it."""
    x, dims = np.ones((2, 3, 4), np.float32), {"weights_layer": (1, 1, 4, 1, 5), "weights_iter": (1, 1, 5, 1, 5)}
    weights = {name: np.full(shape, 0.3, np.float32) for name, shape in dims.items()}
    strict, free = (dnn.ops.rnn(x, weights, fpmath_mode=mode, engine=AVX2) for mode in ("strict", "bf16"))  # type: ignore[arg-type]
    assert np.array_equal(strict[0], free[0])
    with pytest.raises(dnn.InvalidArguments, match="fpmath_mode"):
        dnn.ops.rnn(x, weights, fpmath_mode="bf17")  # type: ignore[arg-type]
