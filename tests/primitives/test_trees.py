"""Sums over decision trees against their definition, whose arithmetic is that of the kernels: bits are equal."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.forests import forest_of
from asmdnn.definitions.trees import tree_ensemble, tree_ensemble_error
from asmdnn.errors import InvalidArguments
from asmdnn.forests import Forest
from asmdnn.generators.trees.walk import COLUMNS, WALKS, TreeWalkSpec
from asmdnn.primitives.tree_ensemble.description import list_of, padded
from asmdnn.primitives.tree_ensemble.packing import packed
from asmdnn.records import replace

ROWS = (1, 5, 8, 9, 21)


def rows_of(random: np.random.Generator, rows: int, features: int) -> Any:
    strange = np.float32([-1.5, -0.0, 0.0, 0.5, np.nan, -np.nan, np.inf, -np.inf, 1e-45])
    x = random.normal(size=(rows, features)).astype(np.float32)
    return np.where(random.random(x.shape) < 0.5, random.choice(strange, x.shape), x)


def run(
    x: Any, forest: Forest, base: Any, aggregate: Any, threads: int = 1, isa: Any = "avx2"
) -> tuple[Any, dnn.PrimitiveDesc]:
    """By the first way, and that; all that take it leave the same bits."""
    tables = packed(forest, x.shape[1], len(base), aggregate)
    arrays = {"src": x, "nodes": tables.nodes, "order": tables.order, "base": base}
    if tables.values is not None:
        arrays["values"] = tables.values
    memories = {name: dnn.Memory.from_array(array) for name, array in arrays.items()}
    dst = np.full((len(x), len(base)), np.nan, np.float32)
    memories["dst"] = dnn.Memory.from_array(dst)
    descs: dict[str, Any] = {"values": None} | {name: memory.desc for name, memory in memories.items()}
    desc = dnn.TreeEnsemble(**descs, trees=tables.trees, aggregate=aggregate, mirrored=tables.mirrored)
    answers = dnn.implementations(desc, engine=dnn.Engine(isa=isa, threads=threads))
    first, *others = (x for x in answers if isinstance(x, dnn.PrimitiveDesc))
    first.plan.check()
    dnn.Primitive(first).execute(**memories)
    found = dst.copy()
    for pd in others:
        dst.fill(np.nan)
        pd.plan.check()
        dnn.Primitive(pd).execute(**memories)
        np.testing.assert_array_equal(dst, found, pd.implementation)
    return found, first


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("aggregate", ["sum", "min", "max"])
@pytest.mark.parametrize(("columns", "single"), [(1, True), (3, True), (1, False), (3, False), (8, False), (19, False)])
def test_trees_are_their_definition(columns: int, single: bool, aggregate: str) -> None:
    random = np.random.default_rng(columns)
    for rows in ROWS:
        depths = random.integers(0, 7, int(random.integers(1, 20))).tolist()
        features = int(random.integers(1, 20))
        forest = forest_of(random, depths, features, columns, single=single)
        x, base = rows_of(random, rows, features), random.normal(size=columns).astype(np.float32)
        found, pd = run(x, forest, base, aggregate)
        by_rows = rows >= WALKS and (columns <= COLUMNS or single)
        assert pd.implementation == ("rows:avx2" if by_rows else "trees:avx2")
        np.testing.assert_array_equal(found, tree_ensemble(x, forest, base, aggregate))
        wide = replace(forest, values=forest.values.astype(np.float64))
        with np.errstate(invalid="ignore"):
            exact = tree_ensemble(x.astype(np.float64), wide, base.astype(np.float64), aggregate)
            error = np.abs(found - exact)[np.isfinite(exact)]
        assert (error <= tree_ensemble_error(x, forest, base, aggregate)[np.isfinite(exact)]).all()


@pytest.mark.isa("avx2")
def test_bits_depend_neither_on_threads_nor_on_other_rows() -> None:
    random = np.random.default_rng(7)
    forest = forest_of(random, [6] * 40, 30, 1, single=True)
    x, base = rows_of(random, 203, 30), np.float32([0.25])
    found, pd = run(x, forest, base, "sum", threads=2)
    np.testing.assert_array_equal(found, run(x, forest, base, "sum")[0])
    np.testing.assert_array_equal(found[5:6], run(x[5:6], forest, base, "sum")[0])
    specs = {spec.name.partition("_sum")[0] for spec in pd.plan.specs}
    assert {"trees_rows", "trees_trees"} <= specs


@pytest.mark.isa("avx2")
def test_whatever_tables_hold_a_call_ends_inside_of_them() -> None:
    """Random words: what comes out is anything."""
    random = np.random.default_rng(3)
    for rows in (1, 9):
        arrays = {
            "src": rows_of(random, rows, 5), "nodes": random.integers(-(2**31), 2**31, 64).astype(np.int32),
            "order": random.integers(-(2**31), 2**31, (1, list_of(9))).astype(np.int32),
            "base": np.zeros(1, np.float32), "dst": np.zeros((rows, 1), np.float32),
        }  # fmt: skip
        memories = {name: dnn.Memory.from_array(array) for name, array in arrays.items()}
        descs: dict[str, Any] = {name: memory.desc for name, memory in memories.items()}
        desc = dnn.TreeEnsemble(**descs, values=None, trees=9)
        dnn.Primitive(dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx2", threads=1))).execute(**memories)


@pytest.mark.parametrize(
    ("isa", "columns", "kinds"),
    [
        pytest.param("avx2", 9, {"trees": 9}, marks=pytest.mark.isa("avx2")),
        pytest.param("avx2", 120, {"trees": 8}, marks=pytest.mark.isa("avx2")),
        pytest.param("avx512_core", 9, {"rows": 9, "trees": 9}, marks=pytest.mark.isa("avx512_core")),
        pytest.param("avx512_core", 24, {"rows": 24, "trees": 24}, marks=pytest.mark.isa("avx512_core")),
        pytest.param("avx512_core", 25, {"trees": 25}, marks=pytest.mark.isa("avx512_core")),
        pytest.param("avx512_core", 240, {"trees": 240}, marks=pytest.mark.isa("avx512_core")),
    ],
)
def test_a_walk_gives_to_as_many_columns_as_registers_hold(isa: Any, columns: int, kinds: dict[str, int]) -> None:
    """kinds: of walks, with the columns of the last one; bits are those of walks for each eight."""
    random = np.random.default_rng(columns)
    forest = forest_of(random, random.integers(0, 7, 19).tolist(), 5, columns, single=False)
    x, base = rows_of(random, 21, 5), random.normal(size=columns).astype(np.float32)
    for aggregate in ("sum", "min"):
        found, pd = run(x, forest, base, aggregate, isa=isa)
        walks = [spec for spec in pd.plan.specs if isinstance(spec, TreeWalkSpec)]
        assert {spec.along: spec.columns for spec in walks} == kinds
        np.testing.assert_array_equal(found, tree_ensemble(x, forest, base, aggregate))


def test_a_way_that_reads_nodes_more_often_says_so() -> None:
    def reasons(rows: int, columns: int) -> list[str]:
        random = np.random.default_rng(0)
        tables = packed(forest_of(random, [3] * 9, 5, columns, single=False), 5, columns, "sum")
        places = {name: dnn.MemoryDesc(dims, dnn.f32, "ab"[: len(dims)]) for name, dims in (
            ("src", (rows, 5)), ("base", (columns,)), ("dst", (rows, columns)))}  # fmt: skip
        given = {"nodes": tables.nodes, "order": tables.order, "values": tables.values}
        descs: dict[str, Any] = places | {name: dnn.Memory.from_array(x).desc for name, x in given.items()}
        desc = dnn.TreeEnsemble(**descs, trees=9, mirrored=tables.mirrored)
        answers = dnn.implementations(desc, engine=dnn.Engine(isa="avx2", threads=1))
        names = [x.implementation.partition(":")[0] for x in answers]
        assert names == ["rows", "trees", "reorder+rows", "reorder+trees"]
        return [x.reason for x in answers[:2] if isinstance(x, dnn.Refusal)]

    assert reasons(9, 8) == []
    assert reasons(1, 8) == ["src has 1 row, 8 go down a tree together"]
    assert reasons(9, 9) == ["9 columns take 2 walks of 8 rows, 1 walk of 8 trees"]


STUMP = Forest(
    np.float32([0, np.nan, np.nan]), *(np.int32(x) for x in ([0, 0, 0], [1, 0, 1], [0, 0, 1], [0], [1], [0])),
    np.float32([[1], [2]]),
)  # fmt: skip
WRONG = {
    "it has 1 to 1048576": {"roots": np.int32([])},
    "roots must begin with 0": {"roots": np.int32([1])},
    "features must be from 0 to 3": {"features": np.int32([4, 0, 0])},
    "lefts must lie after their node": {"lefts": np.int32([2, 0, 1])},
    "lefts must be at odd distances": {
        "lefts": np.int32([2, 0, 1, 2]), "thresholds": np.float32([0, *[np.nan] * 3]), "features": np.int32([0] * 4),
        "leaves": np.int32([0, 0, 1, 0]),
    },
    "leaves must be rows of values, from 0 to 1": {"leaves": np.int32([0, 0, 2])},
    "targets must be columns from 0 to 0": {"targets": np.int32([1])},
    "depths must be from 0 to 8191": {"depths": np.int32([8192])},
}  # fmt: skip


@pytest.mark.parametrize("said", WRONG)
def test_what_is_no_forest_is_said(said: str) -> None:
    assert packed(STUMP, 2, 1).trees == 1
    with pytest.raises(InvalidArguments, match=said):
        packed(replace(STUMP, **WRONG[said]), 2, 1)


F, S = dnn.f32, dnn.s32
GOOD: dict[str, Any] = {
    "src": dnn.MemoryDesc((4, 2), F, "ab"), "nodes": dnn.MemoryDesc((16,), S, "a"),
    "order": dnn.MemoryDesc((1, 16), S, "ab"), "values": None, "base": dnn.MemoryDesc((1,), F, "a"),
    "dst": dnn.MemoryDesc((4, 1), F, "ab"), "trees": 3,
}  # fmt: skip
BAD = {
    "trees must be an integer from 1": {"trees": 0},
    "aggregate must be one of sum, min, max|aggregate": {"aggregate": "mean"},
    "nodes is f32, it must be s32": {"nodes": dnn.MemoryDesc((16,), F, "a")},
    "nodes has dims \\(12,\\), it must be a power of two": {"nodes": dnn.MemoryDesc((12,), S, "a")},
    "order has dims \\(1, 8\\), they must be \\(1, 16\\)": {"order": dnn.MemoryDesc((1, 8), S, "ab")},
    "src has dims \\(8,\\), they must be rows": {"src": dnn.MemoryDesc((8,), F, "a")},
    "dst has dims \\(4, 2\\), they must be \\(4, 1\\)": {"dst": dnn.MemoryDesc((4, 2), F, "ab")},
    "values has dims \\(1, 3, 8\\), they must be \\(1, a power": {"values": dnn.MemoryDesc((1, 3, 8), F, "abc")},
    "base has dims \\(1, 1\\), it must be a row": {"base": dnn.MemoryDesc((1, 1), F, "ab")},
}


@pytest.mark.parametrize("said", BAD)
def test_what_is_no_description_is_said(said: str) -> None:
    assert dnn.TreeEnsemble(**GOOD).words == padded(8)
    with pytest.raises(InvalidArguments, match=said):
        dnn.TreeEnsemble(**(GOOD | BAD[said]))
