"""What the library holds: bounded, counted, and let go of."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.memory_use import LIMITED
from asmdnn.ops.calls import calls
from asmdnn.primitives.core.implementation import plans
from asmdnn.runtime.caches import Cache
from asmdnn.runtime.execution import programs
from asmdnn.runtime.scratch import ScratchPool, scratch_pool
from tests.support.python import python
from tests.support.together import at_once

pytestmark = pytest.mark.isa("avx2")


@pytest.fixture(autouse=True)
def cleared() -> Iterator[None]:
    limits = {name: cache.limit_bytes for name, cache in LIMITED.items()}
    dnn.clear_caches()
    yield
    dnn.set_memory_limits(**limits)
    dnn.clear_caches()


@dataclass(eq=False)
class Item:
    kept_bytes: int
    used: bool = False


# The cache


def test_what_was_used_stays() -> None:
    cache: Cache[int, Item] = Cache(100)
    for i in range(10):
        cache.put(i, Item(10))
    assert cache.held_bytes == 100
    for i in (0, 3):
        cache.get(i)
    cache.put(10, Item(10))
    assert cache.held_bytes == 70
    assert {0, 3, 10} <= set(cache.entries)


def test_what_exceeds_the_limit_is_not_kept() -> None:
    cache: Cache[int, Item] = Cache(100)
    item = Item(101)
    assert cache.put(0, item) is item
    assert cache.entries == {}
    cache.put(1, Item(60))
    cache.limit(50)
    assert cache.held_bytes == 0


def test_the_first_of_equal_keys_is_kept() -> None:
    cache: Cache[int, Item] = Cache(100)
    first = cache.put(0, Item(10))
    assert cache.put(0, Item(10)) is first
    assert cache.held_bytes == 10


def test_a_cache_that_many_threads_fill_stays_within_its_limit() -> None:
    cache: Cache[int, Item] = Cache(1000)

    def work(seed: int) -> None:
        for i in range(3000):
            if cache.get((i * 7 + seed) % 500) is None:
                cache.put((i * 7 + seed) % 500, Item(10))

    at_once(work)
    cache.put(-1, Item(10))
    cache.shrink(cache.limit_bytes)
    assert cache.held_bytes <= 1000


# Scratchpads


def test_one_scratchpad_serves_one_call_after_another() -> None:
    pool = ScratchPool(1 << 20)
    for size in (100, 5000, 200, 70_000):
        pad = pool.take(size)
        assert pad.size_bytes >= size
        assert pad.address % 64 == 0
        pool.give(pad)
    assert (pool.idle_count, pool.idle_bytes) == (1, 70_000)


def test_calls_at_one_time_have_their_own() -> None:
    pool = ScratchPool(1000)
    pads = [pool.take(400) for _ in range(3)]
    assert len({pad.address for pad in pads}) == 3
    assert (pool.busy_count, pool.busy_bytes) == (3, 1200)
    for pad in pads:
        pool.give(pad)
    assert (pool.idle_count, pool.idle_bytes) == (2, 800), "the limit"
    pool.give(pool.take(2000))
    assert pool.idle_bytes <= 1000


def product(m: int, threads: int = 1) -> dnn.Primitive:
    """A product that packs its weights, so that it has a scratchpad."""
    desc = dnn.MatMul(
        dnn.MemoryDesc((m, 30), dnn.f32, "ab"),
        dnn.MemoryDesc((30, 40), dnn.f32, "ba"),
        dnn.MemoryDesc((m, 40), dnn.f32, "ab"),
    )
    return dnn.Primitive(dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx2", threads=threads, l2_bytes=512 << 10)))


def run(primitive: dnn.Primitive) -> None:
    memories = {name: dnn.Memory(desc) for name, desc in primitive.pd.plan.tensors.items()}
    memories["src"].array[...] = 2
    memories["weights"].array[...] = 3
    primitive.execute(None, **memories)
    assert (memories["dst"].array == 180).all()
    memories["dst"].array[...] = 0
    primitive.bind(**memories)()
    assert (memories["dst"].array == 180).all()


def test_eighty_batch_sizes_share_a_scratchpad() -> None:
    gc.collect()
    others = dnn.memory_report().busy  # of bound networks that other tests hold
    primitives = [product(m) for m in range(20, 100)]
    sizes = [primitive.pd.scratchpad_bytes for primitive in primitives]
    assert min(sizes) > 0
    for primitive in primitives:
        run(primitive)
    report = dnn.memory_report()
    assert (report.scratchpads.count, report.scratchpads.held_bytes) == (1, max(sizes))
    assert report.busy == others


def test_a_pool_without_room_computes_the_same() -> None:
    dnn.set_memory_limits(scratchpads=0)
    run(product(20))
    assert scratch_pool.idle_bytes == 0


# Reports and limits


def test_caches_are_cleared_and_primitives_stay() -> None:
    gc.unfreeze()  # what tests before this one have left must be able to go
    gc.collect()
    others = dnn.memory_report().primitives.count  # that other tests hold
    primitive = product(25)
    run(primitive)
    dnn.ops.matmul(np.ones((3, 4), np.float32), np.ones((4, 5), np.float32))
    full = dnn.memory_report()
    assert full.plans.count >= 2
    assert full.calls.count == 1
    assert full.code.held_bytes >= 4096
    dnn.clear_caches()
    gc.collect()
    left = dnn.memory_report()
    assert (left.plans.count, left.programs.count, left.calls.count, left.scratchpads.count) == (0, 0, 0, 0)
    assert left.primitives.count == others + 1
    assert 0 < left.code.held_bytes < full.code.held_bytes
    run(primitive)
    del primitive
    dnn.clear_caches()
    gc.collect()
    assert dnn.memory_report().primitives.count == others


def test_the_report_prints_as_a_table() -> None:
    lines = str(dnn.memory_report()).splitlines()
    assert lines[0].split() == ["count", "bytes", "limit"]
    names = [line.split()[0] for line in lines[1:]]
    assert names == ["plans", "programs", "primitives", "calls", "networks", "scratchpads", "busy", "code", "packs"]


def test_limits_hold() -> None:
    dnn.set_memory_limits(plans=100_000, programs=50_000, calls=20_000)
    for m in range(1, 60):
        dnn.ops.matmul(np.ones((m, 4), np.float32), np.ones((4, 5), np.float32))
    report = dnn.memory_report()
    for holding, limit in ((report.plans, 100_000), (report.programs, 50_000), (report.calls, 20_000)):
        assert holding.limit_bytes == limit
        assert 0 < holding.held_bytes <= limit


def test_what_is_held_counts_what_it_holds() -> None:
    """Else a cache within its limit holds any number of plans that others have let go."""
    dnn.ops.matmul(np.ones((300, 400), np.float32), np.ones((400, 500), np.float32))
    (answer,), (program,), (call,) = (cache.entries.values() for cache in (plans, programs, calls))
    assert program.plan is answer.plan
    assert answer.plan.nbytes < answer.plan.kept_bytes < program.kept_bytes < call.kept_bytes


def test_the_variable_says_what_nobody_has_set(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Cache[int, Item] = Cache(100, "plans")
    pool = ScratchPool(name="scratchpads")
    monkeypatch.setenv("ASMDNN_MEMORY_LIMITS", "plans:3K, Scratchpads:1G")
    assert (made.limit_bytes, pool.limit_bytes, Cache(100, "calls").limit_bytes) == (3 << 10, 1 << 30, 100)
    monkeypatch.setenv("ASMDNN_MEMORY_LIMITS", "plans:0")
    assert (made.limit_bytes, pool.limit_bytes) == (0, 512 << 20)
    made.limit(7)
    assert made.limit_bytes == 7, "what the program says goes before it"


@pytest.mark.parametrize(
    ("value", "message"),
    [("plans", "plans= is not a size"), ("plans:much", "is not a size"), ("pads:1M", "there is no limit 'pads': use")],
)
def test_a_limit_that_means_nothing_costs_one_warning(
    value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: Cache[int, Item] = Cache(100, "plans")
    monkeypatch.setenv("ASMDNN_MEMORY_LIMITS", value)
    with pytest.warns(RuntimeWarning, match=message) as caught:
        assert [made.limit_bytes for _ in range(3)] == [100] * 3
    assert len(caught) == 1


@pytest.mark.parametrize("limits", [{"plans": -1}, {"plans": 1.0}, {"plans": True}, {"nothing": 1}, {"calls": None}])
def test_limits_that_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(dnn.InvalidArguments, match=r"number of bytes, an integer of at least 0, not|no limit"):
        dnn.set_memory_limits(**limits)


MANY = """
import gc, sys
import asmdnn as dnn

count, plans_bytes = map(int, sys.argv[1:])
dnn.set_memory_limits(plans=plans_bytes, programs=plans_bytes)

def rss_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def make(i):
    m, n, k = 1 + i % 40, 1 + i // 40 % 25 * 3, 1 + i // 1000
    a, b, c = (dnn.MemoryDesc(dims, dnn.f32, "ab") for dims in ((m, k), (k, n), (m, n)))
    return dnn.Primitive(dnn.primitive_desc(dnn.MatMul(a, b, c), engine=engine))

engine = dnn.Engine(isa="avx2", threads=1, l2_bytes=512 << 10)
make(0)
before = rss_bytes()
for i in range(count):
    make(i)
gc.collect()
print(rss_bytes() - before)
"""


@pytest.mark.parametrize(
    ("count", "kept", "most"),
    [(1_000, 2 << 20, 30 << 20), pytest.param(20_000, 64 << 20, 160 << 20, marks=pytest.mark.slow)],
)
def test_many_primitives(count: int, kept: int, most: int) -> None:
    """Resident memory that primitives of so many shapes leave after, with these limits of plans and programs each."""
    assert int(python(MANY, count, kept, seconds=900)) < most
