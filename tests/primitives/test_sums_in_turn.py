"""Products of one tile with few accumulators: steps of k take several sums in turn, which are added up in the end."""

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.dot.matmul import MatmulTileSpec
from tests.primitives.tensors import holding, read
from tests.primitives.typed_conv import HALF_ULP, numbers, random_numbers, stored

UNIT_ROUNDOFF = 2.0**-24


def product(m: int, k: int, n: int, dtype: dnn.DataType = dnn.f32, *batch: int) -> dnn.MatMul:
    src = dnn.MemoryDesc((*batch, m, k), dtype, "abc"[: 2 + len(batch)])
    dst = dnn.MemoryDesc((*batch, m, n), dnn.f32, "abc"[: 2 + len(batch)])
    return dnn.MatMul(src, dnn.MemoryDesc((*batch, k, n), dtype, "any"), dst)


def planned(desc: dnn.MatMul, isa: str, deterministic: bool | str = False) -> dnn.PrimitiveDesc:
    engine = dnn.Engine(isa=isa, threads=1, machine="zen5", deterministic=deterministic)
    pd = dnn.primitive_desc(desc, engine=engine)
    pd.plan.check()
    return pd


def sums_of(pd: dnn.PrimitiveDesc) -> set[int]:
    return {spec.tile.sums for spec in pd.plan.specs if isinstance(spec, MatmulTileSpec)}


@pytest.mark.parametrize(
    ("desc", "isa", "sums"),
    [
        (product(1, 3136, 10), "avx512_core", 8),
        (product(1, 3136, 20), "avx512_core", 4),
        (product(3, 3136, 16), "avx512_core", 2),
        (product(5, 3136, 16), "avx512_core", 1),  # wait for nothing
        (product(1, 3136, 10), "avx2", 4),
        (product(1, 100, 10), "avx512_core", 1),  # too short
        (product(1, 3136, 10, dnn.bf16), "avx512_core_bf16", 8),
        (product(1, 300, 16, dnn.f32, 3), "avx512_core", 1),  # matrices wait for their own sums only
    ],
    ids=["one row", "two vectors", "three rows", "five rows", "avx2", "few steps", "bf16", "batch"],
)
def test_turns(desc: dnn.MatMul, isa: str, sums: int) -> None:
    assert sums_of(planned(desc, isa)) == {sums}


def test_rows_that_are_to_have_equal_bits_have_one_sum() -> None:
    """Their number decides how many take turns."""
    for m in (1, 2, 4, 64):
        assert sums_of(planned(product(m, 3136, 10), "avx512_core", "batch")) <= {1}
    assert not planned(product(1, 3136, 10), "avx512_core").any_batch
    assert planned(product(8, 3136, 10), "avx512_core").any_batch


@pytest.mark.parametrize("sizes", [(1, 3136, 10), (1, 777, 31), (2, 515, 16), (3, 1001, 7), (4, 260, 16)], ids=str)
@pytest.mark.parametrize("dtype", [dnn.f32, dnn.bf16, dnn.u8], ids=str)
def test_results(planned_isa: str, dtype: dnn.DataType, sizes: tuple[int, int, int]) -> None:
    """Within gamma(k) times the sum of absolute products; of bytes they are exact."""
    m, k, n = sizes
    random = np.random.default_rng(k)
    others = dnn.s8 if dtype == dnn.u8 else dtype
    src, dst = dnn.MemoryDesc((m, k), dtype, "ab"), dnn.MemoryDesc((m, n), dnn.f32, "ab")
    pd = planned(dnn.MatMul(src, dnn.MemoryDesc((k, n), others, "any"), dst), planned_isa)
    x, w = random_numbers(random, (m, k), dtype), random_numbers(random, (k, n), others)
    given = {
        name: holding(pd.plan.tensors[name], stored(values, pd.plan.tensors[name].dtype))
        for name, values in (("src", x), ("weights", w))
    }
    result = dnn.Memory(pd.dst_desc)
    dnn.Primitive(pd).execute(**given, dst=result)
    wanted, sizes_of_terms = (np.matmul(*pair, dtype=np.float64) for pair in ((x, w), (np.abs(x), np.abs(w))))
    terms = (k + 1) * UNIT_ROUNDOFF
    bound = terms / (1 - terms) * sizes_of_terms + HALF_ULP[dnn.f32] * np.abs(wanted)
    assert (np.abs(numbers(read(result), dnn.f32) - wanted) <= bound).all()
