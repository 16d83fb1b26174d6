"""Random products as every class of CPU plans them: proven, and right where the level can be executed.

Distances of rows decide much: whether rows of src share the sets of L1, whether weights are packed and by whom, and
groups of columns by the size of L2.  All of that differs between classes, and most CPUs that test are of one.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import PlanError
from asmdnn.planning.machine import MACHINES
from tests.primitives.tensors import holding, read

ROWS = (1, 5, 14, 16, 20, 33, 48, 64, 100, 130, 197, 300, 513, 700)
DEPTHS = (64, 100, 512, 768, 1000, 1024, 2048, 3072)
COLUMNS = (10, 40, 200, 488, 512, 600, 1000, 1024, 1280)
L2_BYTES = (256 << 10, 512 << 10, 1 << 20, 2 << 20)
MOST_ELEMENTS = 3 << 20  # of an operand: the check of a plan lists what is written


@dataclass(frozen=True)
class Asked:
    """A product of (batch,) m x k and k x n, for a level of a class."""

    machine: str
    isa: str
    l2_bytes: int
    dims: tuple[int, int, int]
    src: str = "ab"
    weights: str = "ab"
    dtype: dnn.DataType = dnn.f32
    batch: tuple[int, ...] = ()

    @property
    def elements(self) -> int:
        m, k, n = self.dims
        return prod(self.batch) * max(m * k, k * n)

    def plan(self) -> dnn.PrimitiveDesc:
        (m, k, n), b = self.dims, self.batch
        engine = dnn.Engine(isa=self.isa, machine=self.machine, threads=1, l2_bytes=self.l2_bytes)
        tags = [{"ab": "abc", "ba": "acb"}.get(tag, tag) if b else tag for tag in (self.src, self.weights, "ab")]
        given = dnn.MemoryDesc((*b, m, k), self.dtype, tags[0]), dnn.MemoryDesc((*b, k, n), self.dtype, tags[1])
        sums = dnn.s32 if self.dtype == dnn.s8 else dnn.f32
        return dnn.primitive_desc(dnn.MatMul(*given, dnn.MemoryDesc((*b, m, n), sums, tags[2])), engine=engine)


def sample(seed: int, count: int) -> Iterator[Asked]:
    seeded = random.Random(seed)
    while count:
        machine = seeded.choice(sorted(MACHINES))
        asked = Asked(
            machine=machine,
            isa=seeded.choice(MACHINES[machine].isas).name,
            l2_bytes=seeded.choice(L2_BYTES),
            dims=(seeded.choice(ROWS), seeded.choice(DEPTHS), seeded.choice(COLUMNS)),
            src=seeded.choice(("ab", "ab", "ba")),
            weights=seeded.choice(("ab", "ab", "any", "ba")),
            dtype=seeded.choice((dnn.f32, dnn.f32, dnn.bf16, dnn.s8)),
            batch=seeded.choice(((), (), (), (3,), (12,))),
        )
        if asked.elements <= MOST_ELEMENTS:
            yield asked
            count -= 1


def check(seed: int, count: int) -> None:
    ways = set()
    for asked in sample(seed, count):
        pd = asked.plan()
        ways.add(pd.implementation.partition(":")[0])
        try:
            pd.plan.check()
        except PlanError as error:
            pytest.fail(f"{asked}: {pd.implementation}: {error}")
    assert len(ways) >= 6, ways


EXECUTED = (
    # The last group of columns has so few that alone it would copy no src: a first tile of 6 rows instead of 14.
    Asked("zen4", "avx512_core", 1 << 20, (300, 2048, 1000)),
    Asked("skylake_sp", "avx512_core", 1 << 20, (400, 2048, 520)),
    Asked("zen3", "avx512_core", 1 << 20, (513, 2048, 512)),
    Asked("sapphire_rapids", "avx512_core", 256 << 10, (700, 3072, 600)),  # a group of columns is a panel
    Asked("zen4", "avx512_core", 1 << 20, (64, 1024, 600), weights="any"),
)


@pytest.mark.parametrize("seed", range(4))
def test_plans_are_proven(seed: int) -> None:
    check(seed, 25)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_plans_are_proven(seed: int) -> None:
    check(seed, 200)


@pytest.mark.isa("avx512_core")
@pytest.mark.parametrize("asked", EXECUTED, ids=lambda asked: f"{asked.machine}-{asked.dims}")
def test_groups_of_columns_share_one_copy_of_src(asked: Asked) -> None:
    m, k, n = asked.dims
    pd = asked.plan()
    pd.plan.check()
    rng = np.random.default_rng(7)
    a, b = rng.integers(-3, 4, (m, k)).astype(np.float32), rng.integers(-3, 4, (k, n)).astype(np.float32)
    given = {"src": holding(pd.src_desc, a), "weights": holding(pd.weights_desc, b), "dst": dnn.Memory(pd.dst_desc)}
    dnn.Primitive(pd).execute(**given)
    np.testing.assert_array_equal(read(given["dst"]), a @ b, pd.implementation)


@pytest.mark.parametrize("isa", ["avx2", "avx512_core", "avx512_core_vnni"])
def test_matrices_that_pack_share_what_starts_their_sums(isa: str) -> None:
    pd = Asked("zen4", isa, 1 << 20, (5, 100, 1000), weights="ab", dtype=dnn.s8, batch=(12,)).plan()
    pd.plan.check()
    assert "one_by_one+pack_blocks" in pd.implementation


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("rows", [1, 2, 3, 4])
@pytest.mark.parametrize("depth", [64, 301])
def test_few_rows_of_bytes_in_batches(rows: int, depth: int) -> None:
    """Words that are made of src are multiplied with panels: whole rows of weights are not widened."""
    asked = Asked("zen4", "avx2", 1 << 20, (rows, depth, 200), dtype=dnn.s8, batch=(9,))
    pd = asked.plan()
    pd.plan.check()
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-128, 128, dims).astype(np.int8) for dims in ((9, rows, depth), (9, depth, 200)))
    given = {"src": holding(pd.src_desc, a), "weights": holding(pd.weights_desc, b), "dst": dnn.Memory(pd.dst_desc)}
    dnn.Primitive(pd).execute(**given)
    np.testing.assert_array_equal(read(given["dst"]), a.astype(np.int32) @ b.astype(np.int32), pd.implementation)
