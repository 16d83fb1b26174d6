"""Products with a few vectors, as columns of weights or rows of src, whose sums lie along k."""

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.dot.dots import columns_at_once
from asmdnn.isa.dot import F32, dot_level
from tests.primitives.matmul_case import MACHINE, MatmulCase, check, make_data, planned, run
from tests.primitives.tensors import holding, read
from tests.primitives.typed_case import TypedCase, at_levels
from tests.primitives.typed_case import check as typed_check
from tests.support.tuning import with_numbers

C = MatmulCase
COLUMNS = [
    C((30, 70), (70, 2), ("row", "any", "row")),
    C((9, 8), (8, 2), ("gap", "col", "row"), "n", ("relu",)),
    C((1500, 21), (21, 2), ("row", "row", "row"), "n", ("sum:0.5", "relu:0.25")),
    C((2, 33, 40), (1, 40, 4), ("row", "any", "row"), "1"),
    C((700, 33), (33, 4), ("gap", "row", "row"), "n"),
    C((1030, 17), (17, 3), ("off", "off", "row"), "-", ("relu",)),
    C((1, 96), (96, 1), ("row", "row", "row"), "mn", ("relu",)),
    C((3, 100), (100, 1), ("gap", "row", "row"), "n"),
    C((7, 64), (64, 3), ("row", "col", "row"), "n", ("sum",)),
    C((2, 64), (64, 2), ("row", "col", "row")),
    C((512, 64), (64, 4), ("row", "col", "row"), "mn", ("sum",)),
]
ROWS = [
    C((2, 64), (64, 40), ("row", "col", "row")),
    C((4, 40), (40, 30), ("gap", "col", "gap"), "n", ("relu",)),
    C((3, 200), (200, 19), ("row", "col", "row"), "mn", ("sum",)),
    C((4, 33), (33, 1100), ("row", "col", "col"), "m"),
]
ELSEWHERE = [
    C((100, 64), (64, 3), ("row", "row", "gap")),  # rows of dst cannot be joined
    C((100, 64), (64, 3), ("row", "row", "row"), "m"),  # nor numbers that each row has of its own
    C((100, 64), (64, 9), ("row", "col", "row")),  # too many
    C((7, 12), (12, 3), ("row", "col", "row")),  # too few elements
    C((7, 64), (64, 3), ("row", "row", "row")),  # too few rows for a copy
    C((100, 7), (7, 3), ("row", "col", "row")),  # too short ones
]


@pytest.mark.parametrize("case", [*COLUMNS, *ROWS], ids=str)
def test_few_vectors_are_dots(isa: str, case: MatmulCase) -> None:
    assert "dots" in check(case, isa).implementation.partition(":")[0].split("+")


@at_levels(("avx2", "avx512_core_vnni", "avx512_core_bf16"))
@pytest.mark.parametrize(
    "types", ["f32:f32:f32", "bf16:bf16:f32", "bf16:bf16:bf16", "u8:s8:s32", "s8:s8:s32", "s8:s8:f32"]
)
def test_more_rows_of_transposed_weights(level: str, types: str) -> None:
    """Where that was measured to be faster than packing them: in groups of rows, and in ranges of k that L1 holds, each
    of which adds to what the ones before have left."""
    if "bf16" in types and level != "avx512_core_bf16":
        return
    base = dnn.Engine(isa=level, machine=MACHINE).tuning
    tuning = with_numbers(base, "products", dot_row_bytes=8, dot_near_bytes=2 << 10, dot_elements=2000)
    for m, n, k in ((11, 70, 777), (9, 33, 2050), (3, 130, 1500)):
        pd = typed_check(TypedCase(m, n, k, types, "ba", tuning=tuning), level)
        assert "dots" in pd.implementation
        assert any("_acc_" in spec.name for spec in pd.plan.specs)


@pytest.mark.parametrize("case", ELSEWHERE, ids=str)
def test_what_is_left_to_tiles(isa: str, case: MatmulCase) -> None:
    assert "dots" not in check(case, isa).implementation


def test_the_most_columns(isa: str) -> None:
    """Every number of them that registers hold; of rows some more, in parts."""
    most = columns_at_once(F32, dot_level(F32, isa))
    for n in range(2, most + 1):
        for m in (21, 23):
            assert "dots" in check(C((m, 50), (50, n)), isa).implementation
            assert "dots" in check(C((m, 50), (50, n), ("row", "row", "row"), "n", ("sum",)), isa).implementation
            assert "dots" in check(C((n, 50), (50, m), ("row", "col", "row"), "n", ("sum",)), isa).implementation
    assert "dots" not in check(C((21, 50), (50, most + 1)), isa).implementation


@pytest.mark.parametrize("case", COLUMNS[2:5], ids=str)
def test_threads_do_not_change_a_bit(isa: str, case: MatmulCase) -> None:
    data = make_data(planned(case, isa), integers=False)
    every = {run(dnn.Primitive(planned(case, isa, threads)), data).tobytes() for threads in (1, 2, 3, 7)}
    assert len(every) == 1


def test_operands_of_post_ops(isa: str) -> None:
    """Numbers by column and whole tensors, beside a bias by column: rows of them are joined, too."""
    m, n, k = 1100, 4, 20
    src, weights, dst, row = (dnn.MemoryDesc(dims, dnn.f32, "ab") for dims in ((m, k), (k, n), (m, n), (1, n)))
    attr = dnn.Attr([dnn.Binary("mul", row), dnn.Binary("add", dst)])
    desc = dnn.MatMul(src, weights, dst, bias=row)
    pd = dnn.primitive_desc(desc, attr, dnn.Engine(isa=isa, threads=1, machine=MACHINE))
    assert pd.implementation.startswith("pack_weights+dots+repeat:")
    pd.plan.check()
    random = np.random.default_rng(0)
    given = {name: random.integers(-3, 4, tensor.dims).astype(np.float32) for name, tensor in pd.plan.tensors.items()}
    memories = {name: holding(tensor, given[name]) for name, tensor in pd.plan.tensors.items()}
    dnn.Primitive(pd).execute(**memories)
    by_column, whole = (x for name, x in given.items() if name not in ("src", "weights", "dst", "bias"))
    wanted = (given["src"] @ given["weights"] + given["bias"]) * by_column + whole
    assert np.array_equal(read(memories["dst"]), wanted)


@pytest.mark.parametrize("level", [pytest.param("avx512_core_bf16", marks=pytest.mark.isa("avx512_core_bf16"))])
@pytest.mark.parametrize("types", ["bf16:bf16:f32", "bf16:bf16:bf16"])
def test_pairs_of_bf16(level: str, types: str) -> None:
    for m, n, weights in ((40, 3, "ab"), (300, 8, "any"), (33, 2, "ba"), (3, 40, "ba"), (8, 33, "ba")):
        pd = TypedCase(m, n, 75, types, weights, bias="f32")
        assert "dots" in typed_check(pd, level).implementation


@pytest.mark.parametrize("level", [pytest.param(x, marks=pytest.mark.isa(x)) for x in ("avx2", "avx512_core_vnni")])
def test_few_rows_of_bytes(level: str) -> None:
    """As many at once as registers hold; sums are exact."""
    for m in (2, 3):
        assert "dots" in typed_check(TypedCase(m, 40, 75, "u8:s8:s32", "ba"), level).implementation


@at_levels(("avx2", "avx512_core_vnni"))
def test_the_shift_of_s8_is_undone(level: str) -> None:
    """By the kernel, which multiplies each row of weights with it, too: nothing sums columns in front.  A zero point
    needs these sums all the same."""
    for m, k in ((1, 301), (2, 64), (3, 1000)):
        for types, extreme in (("s8:s8:s32", True), ("s8:s8:u8", False), ("s8:s8:f32", False)):
            pd = typed_check(TypedCase(m, 131, k, types, "ba", extreme=extreme), level)
            assert pd.implementation == f"dots:{level}"
        other = typed_check(TypedCase(m, 131, k, "s8:s8:s32", "ba", zero_points=(5, None)), level)
        assert ("dots" in other.implementation) == (level == "avx2")


def test_inner_products(isa: str) -> None:
    """Weights that are `any` are rows of channels, as positions of src lie."""
    engine = dnn.Engine(isa=isa, threads=1, machine=MACHINE)
    for oc, dims, tag in ((1, (100, 40), "ab"), (4, (33, 12, 3, 5), "acdb"), (2, (50, 9, 4), "abc")):
        src = dnn.MemoryDesc(dims, dnn.f32, tag)
        weights, dst = dnn.MemoryDesc((oc, *dims[1:]), dnn.f32, "any"), dnn.MemoryDesc((dims[0], oc), dnn.f32, "ab")
        pd = dnn.primitive_desc(
            dnn.InnerProductForward(src, weights, dst, dnn.MemoryDesc((oc,), dnn.f32, "a")), engine=engine
        )
        assert pd.implementation.startswith("dots")
        random = np.random.default_rng(0)
        given = {name: random.integers(-3, 4, x.dims).astype(np.float32) for name, x in pd.plan.tensors.items()}
        memories = {name: holding(tensor, given[name]) for name, tensor in pd.plan.tensors.items()}
        dnn.Primitive(pd).execute(**memories)
        wanted = given["src"].reshape(dims[0], -1) @ given["weights"].reshape(oc, -1).T + given["bias"]
        assert np.array_equal(read(memories["dst"]), wanted)
