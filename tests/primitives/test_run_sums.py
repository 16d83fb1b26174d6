"""Products of f16 whose sums may be f16: who gets them, results of whole plans on an emulated CPU, and why not."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.dot.matmul import UNROLL, MatmulTileSpec
from asmdnn.isa.dot import F16
from asmdnn.isa.dot_runs import RUN_GROUPS
from asmdnn.isa.levels import isa_of
from asmdnn.types import AccumulationMode
from tests.support.drawing import RANDOM
from tests.support.plans import emulate_plan

LEVEL = "avx512_core_fp16"
LEVELS = pytest.mark.parametrize("level", [LEVEL, "avx512_core_amx"])
HALF_STEP, DENORMAL = 2.0**-11, 2.0**-24
SHAPES = ((1, 1, 1), (1, 2, 40), (3, 17, 33), (7, 129, 31), (20, 300, 64), (2, 1025, 16), (37, 40, 5))
Request = dnn.MatMul | dnn.InnerProductForward


def engine(isa: str = LEVEL, **more: Any) -> dnn.Engine:
    return dnn.Engine(isa=isa_of(isa).name, threads=1, machine="sapphire_rapids", **more)


def product(sizes: tuple[int, int, int], dst: dnn.DataType = dnn.f16, weights: str = "any") -> dnn.MatMul:
    m, k, n = sizes
    src, result = dnn.MemoryDesc((m, k), dnn.f16, "ab"), dnn.MemoryDesc((m, n), dst, "ab")
    return dnn.MatMul(src, dnn.MemoryDesc((k, n), dnn.f16, weights), result)


def planned(desc: Request, mode: AccumulationMode, isa: str = LEVEL, **more: Any) -> dnn.PrimitiveDesc:
    pd = dnn.primitive_desc(desc, dnn.Attr(accumulation_mode=mode, **more), engine(isa))
    pd.plan.check()
    return pd


def sums_f16(pd: dnn.PrimitiveDesc) -> bool:
    """Whether all tiles do so."""
    tiles = [spec.tile.types for spec in pd.plan.specs if isinstance(spec, MatmulTileSpec)]
    return F16 in tiles and {*tiles} <= {F16}


def run(pd: dnn.PrimitiveDesc, **arrays: Any) -> Any:
    tensors = pd.plan.tensors
    memories = {name: dnn.Memory.from_numpy(array, tensors[name]) for name, array in arrays.items()}
    memories["dst"] = dnn.Memory(tensors["dst"])
    emulate_plan(pd.plan, memories)
    return np.float64(memories["dst"].numpy())


def drawn(*dims: int) -> Any:
    return RANDOM.uniform(-1, 1, dims).astype(np.float16)


def bound(src: Any, weights: Any, dst: dnn.DataType) -> Any:
    """Of runs of pairs, whose sums are half a step off, or half a denormal; f32 adds less than one of these; of dst."""
    src, weights = np.float64(src), np.float64(weights)
    terms, size = min(-(-src.shape[1] // 2), RUN_GROUPS + UNROLL), np.abs(src) @ np.abs(weights)
    error = size * (terms + 1) * HALF_STEP / (1 - terms * HALF_STEP) + src.shape[1] * DENORMAL
    return error + (np.abs(src @ weights) + error) * HALF_STEP * (dst == dnn.f16)


@pytest.mark.parametrize(("mode", "is_f16"), [
    ("strict", False), ("relaxed", False), ("f32", False), ("any", True), ("f16", True),
])  # fmt: skip
@LEVELS
def test_who_gets_them(mode: AccumulationMode, is_f16: bool, level: str) -> None:
    """Rounding in memory is all that "relaxed" allows."""
    assert sums_f16(planned(product((33, 300, 70)), mode, level)) == is_f16
    layer = dnn.InnerProductForward(
        dnn.MemoryDesc((9, 8, 3, 3), dnn.f16, "acdb"), dnn.MemoryDesc((16, 8, 3, 3), dnn.f16, "any"),
        dnn.MemoryDesc((9, 16), dnn.f16, "ab"),
    )  # fmt: skip
    assert sums_f16(planned(layer, mode, level)) == is_f16


@pytest.mark.parametrize("isa", ["avx2", "avx512_core", "avx512_core_bf16"])
def test_levels_without_them(isa: str) -> None:
    strict, free = (planned(product((33, 300, 70)), mode, isa) for mode in ("strict", "any"))
    assert strict.plan.specs == free.plan.specs
    with pytest.raises(dnn.Unimplemented, match="accumulation_mode is f16, but sums are f32 here: use any"):
        planned(product((33, 300, 70)), "f16", isa)


def test_other_types_have_none() -> None:
    desc = dnn.MatMul(*(dnn.MemoryDesc(dims, dnn.bf16, "any") for dims in ((4, 8), (8, 16), (4, 16))))
    with pytest.raises(dnn.Unimplemented, match="accumulation_mode is f16, but sums are f32 here: use any"):
        planned(desc, "f16")


def test_few_rows_do_not_wait_for_a_copy_of_weights() -> None:
    """Who asks for f16 gets it; in panels weights need no copy."""
    assert not sums_f16(planned(product((1, 300, 70), weights="ab"), "any"))
    assert sums_f16(planned(product((1, 300, 70), weights="ab"), "f16"))
    assert sums_f16(planned(product((64, 300, 70), weights="ab"), "any"))
    packed = planned(product((1, 300, 70)), "any").weights_desc
    assert packed is not None and packed.tag == "BA32b2a"
    assert sums_f16(planned(product((1, 300, 70), weights=packed.tag), "any"))
    widened = planned(product((1, 300, 70)), "strict").weights_desc
    assert widened is not None and not sums_f16(planned(product((64, 300, 70), weights=str(widened.tag)), "any"))


def test_batches_with_equal_bits_are_summed_in_f32() -> None:
    """A run ends where a range of k does, which depends on the rows."""
    equal = dnn.Attr(accumulation_mode="any", deterministic="batch")
    assert not sums_f16(dnn.primitive_desc(product((33, 300, 70)), equal, engine()))
    with pytest.raises(dnn.Unimplemented, match="accumulation_mode is f16, but sums are f32 here: use any"):
        planned(product((33, 300, 70)), "f16", deterministic="batch")


@pytest.mark.parametrize("weights", ["any", "ab", "ba"])
@pytest.mark.parametrize("sizes", SHAPES, ids=str)
@pytest.mark.parametrize("dst", [dnn.f16, dnn.f32], ids=str)
def test_results(sizes: tuple[int, int, int], dst: dnn.DataType, weights: str) -> None:
    m, k, n = sizes
    pd = planned(product(sizes, dst, weights), "f16")
    assert sums_f16(pd)
    src, factors = drawn(m, k), drawn(k, n)
    found, wanted = run(pd, src=src, weights=factors), src.astype(np.float64) @ factors.astype(np.float64)
    assert (np.abs(found - wanted) <= bound(src, factors, dst)).all()


def in_runs(src: Any, weights: Any) -> Any:
    """The same sums, by numpy: of even and of odd k in f16, each product added with one rounding; of runs in f32."""
    groups = -(-len(src) // 2)
    rounds = groups // UNROLL if groups >= 2 * UNROLL else 0
    ends = [*range(RUN_GROUPS, (rounds - 1) * UNROLL + 1, RUN_GROUPS), groups]
    total = np.zeros(weights.shape[1], np.float32)
    for begin, end in zip([0, *ends], ends, strict=False):
        even, odd = np.zeros((2, weights.shape[1]), np.float16)
        for k in range(2 * begin, min(2 * end, len(src))):
            term = np.float64(src[k]) * np.float64(weights[k])  # exact, and so is the sum before it is rounded
            if k % 2:
                odd = (term + odd).astype(np.float16)
            else:
                even = (term + even).astype(np.float16)
        total = np.float32(even) + np.float32(odd) + total
    return total


@pytest.mark.parametrize("k", [1, 2, 15, 31, 33, 127, 128, 129, 144, 145, 289, 1025])
def test_bits(k: int) -> None:
    """Of one tile, with all of k."""
    src, weights = drawn(2, k), drawn(k, 18)
    found = run(planned(product((2, k, 18), dnn.f32), "f16"), src=src, weights=weights)
    np.testing.assert_array_equal(found, [in_runs(row, weights) for row in src])


def test_denormals_are_numbers() -> None:
    """2^-24 is the least; eight of them are no normal f16, either."""
    src, weights = np.full((1, 8), 2.0**-12, np.float16), np.full((8, 16), 2.0**-12, np.float16)
    assert (run(planned(product((1, 8, 16)), "f16"), src=src, weights=weights) == 2.0**-21).all()


@pytest.mark.parametrize("sizes", SHAPES, ids=str)
def test_small_integers_are_exact(sizes: tuple[int, int, int]) -> None:
    """Sums of a run stay below 2048, those of all runs below 2^24."""
    m, k, n = sizes
    src, factors = (RANDOM.integers(-3, 3, dims, endpoint=True).astype(np.float16) for dims in ((m, k), (k, n)))
    found = run(planned(product(sizes, dnn.f32), "f16"), src=src, weights=factors)
    np.testing.assert_array_equal(found, src.astype(np.float64) @ factors.astype(np.float64))


def test_bias_and_post_ops_come_in_f32() -> None:
    """A sum that f16 has not: 4097, and twice that as f32."""
    desc = product((2, 4, 16), dnn.f32)
    desc = dnn.MatMul(desc.src, desc.weights, desc.dst, dnn.MemoryDesc((1, 16), dnn.f32, "ab"))
    pd = planned(desc, "any", post_ops=[dnn.Eltwise("linear", 2.0, 0.0)])
    assert sums_f16(pd)
    found = run(
        pd, src=np.ones((2, 4), np.float16), weights=np.full((4, 16), 256, np.float16),
        bias=np.full((1, 16), 3073, np.float32),
    )  # fmt: skip
    assert (found == 2 * (3073 + 1024)).all()


@pytest.mark.parametrize(("k", "factor", "wanted"), [(64, 2048, np.inf), (4096, 256, 4096 * 256)])
def test_a_run_overflows_as_f16_and_all_of_them_do_not(k: int, factor: int, wanted: float) -> None:
    src, weights = np.ones((1, k), np.float16), np.full((k, 16), factor, np.float16)
    assert (run(planned(product((1, k, 16), dnn.f32), "f16"), src=src, weights=weights) == wanted).all()
