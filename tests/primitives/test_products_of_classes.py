"""Random products as every class of CPU plans them: proven, and right where the level can be executed.

Distances of rows decide much: whether rows of src share the sets of L1, whether weights are packed and by whom, and
groups of columns by the size of L2.  All of that differs between classes, and most CPUs that test are of one.
"""

import random
from collections.abc import Iterator

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.planning.coverage import PlanError
from asmdnn.planning.machine import MACHINES
from tests.primitives.tensors import holding, read

ROWS = (1, 5, 14, 16, 20, 33, 48, 64, 100, 130, 197, 300, 513, 700)
DEPTHS = (64, 100, 512, 768, 1000, 1024, 2048, 3072)
COLUMNS = (10, 40, 200, 488, 512, 600, 1000, 1024, 1280)
L2_BYTES = (256 << 10, 512 << 10, 1 << 20, 2 << 20)
MOST_ELEMENTS = 3 << 20  # of an operand: the check of a plan lists what is written
EXECUTED = (
    # The last group of columns has so few that alone it would copy no src: a first tile of 6 rows instead of 14.
    ("zen4", 1 << 20, (300, 2048, 1000), "ab"),
    ("skylake_sp", 1 << 20, (400, 2048, 520), "ab"),
    ("zen3", 1 << 20, (513, 2048, 512), "ab"),
    ("sapphire_rapids", 256 << 10, (700, 3072, 600), "ab"),  # a group of columns is a panel
    ("zen4", 1 << 20, (64, 1024, 600), "any"),
)


def sample(seed: int, count: int) -> Iterator[tuple[str, str, int, tuple[int, int, int], str, str, dnn.DataType]]:
    """Classes, levels, sizes of L2, dims, formats of src and weights, types."""
    seeded = random.Random(seed)
    while count:
        machine = seeded.choice(sorted(MACHINES))
        isa = seeded.choice(MACHINES[machine].isas).name
        dims = seeded.choice(ROWS), seeded.choice(DEPTHS), seeded.choice(COLUMNS)
        tags = seeded.choice(("ab", "ab", "ba")), seeded.choice(("ab", "ab", "any", "ba"))
        dtype = seeded.choice((dnn.f32, dnn.f32, dnn.bf16))
        if max(dims[0] * dims[1], dims[1] * dims[2]) <= MOST_ELEMENTS:
            yield machine, isa, seeded.choice(L2_BYTES), dims, *tags, dtype
            count -= 1


def planned(
    machine: str, isa: str, l2_bytes: int, dims: tuple[int, int, int], tags: tuple[str, str], dtype: dnn.DataType
) -> dnn.PrimitiveDesc:
    (m, k, n), (src, weights) = dims, tags
    engine = dnn.Engine(isa=isa, machine=machine, threads=1, l2_bytes=l2_bytes)
    operands = dnn.MemoryDesc((m, k), dtype, src), dnn.MemoryDesc((k, n), dtype, weights)
    return dnn.primitive_desc(dnn.MatMul(*operands, dnn.MemoryDesc((m, n), dnn.f32, "ab")), engine=engine)


def check(seed: int, count: int) -> None:
    ways = set()
    for machine, isa, l2_bytes, dims, src, weights, dtype in sample(seed, count):
        pd = planned(machine, isa, l2_bytes, dims, (src, weights), dtype)
        ways.add(pd.implementation.partition(":")[0])
        try:
            pd.plan.check()
        except PlanError as error:
            pytest.fail(f"{machine} {isa} {l2_bytes} {dims} {src} {weights} {dtype}: {pd.implementation}: {error}")
    assert len(ways) >= 6, ways


@pytest.mark.parametrize("seed", range(4))
def test_plans_are_proven(seed: int) -> None:
    check(seed, 25)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_plans_are_proven(seed: int) -> None:
    check(seed, 200)


@pytest.mark.isa("avx512_core")
@pytest.mark.parametrize(("machine", "l2_bytes", "dims", "weights"), EXECUTED)
def test_groups_of_columns_share_one_copy_of_src(
    machine: str, l2_bytes: int, dims: tuple[int, int, int], weights: str
) -> None:
    m, k, n = dims
    pd = planned(machine, "avx512_core", l2_bytes, dims, ("ab", weights), dnn.f32)
    pd.plan.check()
    rng = np.random.default_rng(7)
    a, b = rng.integers(-3, 4, (m, k)).astype(np.float32), rng.integers(-3, 4, (k, n)).astype(np.float32)
    given = {"src": holding(pd.src_desc, a), "weights": holding(pd.weights_desc, b), "dst": dnn.Memory(pd.dst_desc)}
    dnn.Primitive(pd).execute(**given)
    np.testing.assert_array_equal(read(given["dst"]), a @ b, pd.implementation)
