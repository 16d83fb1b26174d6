"""Matrix products: layouts, batches, biases and starts against numpy in float64, by the implementation meant."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import asmdnn as dnn
from tests.primitives.guarded import check_at_pages, guarded_tensors
from tests.primitives.matmul_case import (
    MatmulCase,
    check,
    expected,
    layout,
    make_data,
    planned,
    run,
)
from tests.primitives.tensors import assert_within, filling, read
from tests.support.together import at_once

C = MatmulCase
# A case, and the implementation that has to take it under AVX2.
NAMED = [
    (C((5, 7), (7, 9)), "tiles"),
    (C((1, 1), (1, 1)), "tiles"),
    (C((16, 64), (64, 40), ("row", "any", "row"), "n", ("relu",)), "tiles"),
    (C((3, 20), (20, 33), ("col", "any", "gap"), "m", ("sum:0.5",)), "tiles"),
    (C((30, 40), (40, 66), ("col", "any", "row"), "mn"), "pack_src+tiles"),
    (C((30, 33), (33, 20), ("row", "col", "row"), "1", ("relu:0.25", "sum")), "pack_weights+tiles"),
    (C((30, 40), (40, 256), ("row", "row", "row"), "n", ("sum", "relu")), "packing_tiles+tiles"),
    (C((13, 300), (300, 160), ("row", "row", "row"), "n", ("sum:0.5", "relu")), "tiles"),
    (C((1000, 2), (2, 100), ("row", "row", "row"), "n"), "outer"),
    (C((13, 24), (24, 18), ("row", "row", "col"), "n", ("relu",)), "swap+pack_weights+tiles"),
    (C((13, 24), (24, 18), ("row", "any", "col"), "m", ("sum",)), "pack_dst+tiles+unpack_dst"),
    (C((13, 24), (24, 18), ("far", "far", "far"), "m"), "pack_weights+tiles+unpack_dst"),
    (C((13, 24), (24, 18), ("off", "off", "off"), "n"), "tiles"),
    (C((1, 300), (300, 140), ("row", "row", "row"), "n", ("relu",)), "rows"),
    (C((1, 16000), (16000, 16), ("row", "any", "row"), "n", ("sum",)), "split_k"),
    (C((1, 160003), (160003, 7), ("gap", "col", "row")), "pack_weights+split_k"),
    (C((2, 3, 4, 5), (2, 3, 5, 6)), "tiles"),
    (C((4, 1, 3, 5), (1, 3, 5, 6), ("row", "row", "row"), "bmn"), "tiles"),
    (C((2, 3, 4, 5), (1, 1, 5, 6), ("row", "any", "row"), "n"), "tiles"),
    (C((7, 1, 5), (1, 5, 9), ("row", "panels", "row"), "b"), "tiles"),
    (C((3, 20, 70), (3, 70, 33), ("gap", "any", "gap"), "m"), "tiles"),
    (C((300, 8, 8), (300, 8, 8), ("row", "row", "row"), "n"), "tiles"),
    (C((21, 16, 16), (21, 16, 16), ("row", "col", "col")), "swap+pack_weights+tiles"),
    (C((21, 16, 16), (21, 16, 16), ("row", "any", "col"), "n", ("relu",)), "tiles+unpack_dst"),
    (C((4, 13, 24), (1, 24, 18), ("col", "row", "col"), "n", ("sum", "relu")), "swap+tiles"),
    (C((300, 40), (40, 1), ("col", "row", "row"), "m", ("sum:0.5",)), "swap+rows"),
    (C((700, 64), (64, 1), ("col", "row", "row"), "1", ("relu",)), "swap+rows"),
    (C((1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4), (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 5)), "tiles"),
    (C((50, 600), (600, 40), ("row", "any", "row"), "n", ("sum", "relu"), 1 << 15), "tiles"),
    (C((110, 70), (70, 600), ("row", "row", "row"), "n", ("relu",), 1 << 14), "packing_tiles+tiles"),
    (C((2, 300), (300, 260), ("row", "row", "gap"), "mn", ("sum:0.5", "relu")), "rows"),
    (C((3, 130), (130, 1100), ("col", "gap", "row"), "n"), "pack_src+rows"),
    (C((4, 1000), (1000, 131), ("gap", "row", "row"), "m", ("relu",)), "rows"),
    (C((31, 300), (300, 700), ("row", "row", "row"), "n", ("sum:0.5", "relu")), "pack_blocks+tiles"),
    (C((40, 530), (530, 261), ("col", "gap", "gap"), "mn"), "pack_src+pack_blocks+tiles"),
    (C((21, 130), (130, 1), ("gap", "row", "row"), "m", ("sum", "relu")), "dots"),
    (C((30, 300), (300, 1), ("row", "any", "row"), "1"), "dots"),
    (C((31, 12), (12, 1), ("row", "row", "gap"), "m", ("relu",)), "dots"),
    (C((1, 16003), (16003, 1), ("gap", "row", "row"), "n", ("relu",)), "dots"),
    (C((21, 3, 49), (21, 49, 1), ("row", "row", "row")), "one_by_one+dots"),
    (C((1, 200), (200, 19), ("row", "col", "row"), "n", ("relu:0.25",)), "dots"),
    (C((3, 40), (40, 30), ("gap", "col", "gap"), "n"), "dots"),
    (C((5, 2, 70), (5, 70, 19), ("row", "col", "gap"), "bn", ("sum", "relu")), "one_by_one+dots"),
    (C((2, 3, 1, 300), (2, 3, 300, 140), ("gap", "row", "row"), "bm", ("relu",)), "one_by_one+rows"),
    (C((21, 16, 16), (21, 16, 16), ("row", "col", "row"), "n", ("relu",), 8 << 10), "one_by_one+pack_weights+tiles"),
    (C((20, 8), (8, 131), ("col", "row", "gap"), "m"), "outer"),
    (C((33, 6), (6, 150), ("gap", "any", "row"), "mn"), "outer"),
    (C((3, 50, 5), (3, 5, 130), ("off", "row", "off"), "1"), "outer"),
    (C((17, 8), (8, 1024), ("row", "row", "row"), "n"), "pack_weights+outer"),
    (C((1024, 7), (7, 128), ("col", "row", "row")), "pack_src+outer"),
]
EMPTY = [
    C((0, 3), (3, 4)),
    C((3, 4), (4, 0), ("row", "any", "row")),
    C((3, 0), (0, 4), ("row", "row", "row"), "n", ("relu",)),
    C((0, 2, 3), (0, 3, 4)),
    C((2, 3, 0), (2, 0, 20), ("row", "any", "col")),
]
CASES = [case for case, _ in NAMED]


@pytest.mark.parametrize(("case", "name"), NAMED, ids=str)
def test_results(isa: str, case: MatmulCase, name: str) -> None:
    pd = check(case, isa)
    if isa == "avx2":
        assert pd.implementation == f"{name}:avx2"


@pytest.mark.parametrize("case", [*CASES, *EMPTY], ids=str)
def test_plans_of_every_level_are_proven(planned_isa: str, case: MatmulCase) -> None:
    planned(case, planned_isa)


SIZES = st.sampled_from((1, 2, 3, 5, 6, 7, 8, 9, 13, 16, 17, 24, 33, 48, 65))
PLAIN = st.sampled_from(("row", "col", "gap", "far", "off"))


@st.composite
def cases(draw: st.DrawFn) -> MatmulCase:
    m, n, k = (draw(SIZES) for _ in range(3))
    pairs = draw(st.lists(st.sampled_from(((1, 1), (2, 2), (3, 1), (1, 3), (4, 4))), max_size=3))
    weights = draw(st.one_of(PLAIN, st.sampled_from(("any", "panels"))))
    layouts = (draw(st.one_of(PLAIN, st.just("any"))), weights, draw(st.one_of(PLAIN, st.just("any"))))
    ops = st.sampled_from(("relu", "relu:0.5", "sum", "sum:0.5"))
    chain = tuple(draw(st.lists(ops, max_size=3)))
    bias = draw(st.sampled_from(("-", "1", "n", "m", "mn", "bmn", "b")))
    batch = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    l2_bytes = draw(st.sampled_from((0, 1 << 13)))
    return MatmulCase((*batch[0], m, k), (*batch[1], k, n), layouts, bias, chain, l2_bytes)


@pytest.mark.isa("avx2")
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases())
def test_any_shape_and_layout(case: MatmulCase) -> None:
    check(case, "avx2")


@pytest.mark.slow
@pytest.mark.isa("avx2")
@settings(max_examples=3000, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases())
def test_many_shapes_and_layouts(case: MatmulCase) -> None:
    check(case, "avx2")


LARGE = [
    C((65, 300), (300, 500), ("row", "any", "row"), "n", ("relu",)),
    C((65, 300), (300, 512), ("row", "row", "row"), "n", ("sum",)),
    C((1, 3000), (3000, 300), ("row", "row", "row")),
    C((1, 30000), (30000, 16), ("row", "any", "row")),
    C((400, 16, 16), (400, 16, 16)),
    C((200, 64), (64, 130), ("col", "col", "col"), "mn"),
    C((2000, 200), (200, 1), ("gap", "row", "row"), "m"),
    C((900, 6), (6, 1000), ("col", "row", "row"), "n"),
]


@pytest.mark.parametrize("case", LARGE, ids=str)
def test_there_is_work_for_every_thread(planned_isa: str, case: MatmulCase) -> None:
    for threads in (2, 3, 5):
        pd = dnn.primitive_desc(case.desc(), case.attr(), case.engine(planned_isa, threads))
        assert pd.plan.parts(threads) == threads


@pytest.mark.parametrize("case", LARGE, ids=str)
def test_every_thread_count_gives_the_same_bytes(isa: str, case: MatmulCase) -> None:
    alone = planned(case, isa)
    data = make_data(alone, integers=False)
    wanted = run(dnn.Primitive(alone), data).tobytes()
    for threads in (2, 3, 5):
        pd = dnn.primitive_desc(case.desc(), case.attr(), case.engine(isa, threads))
        assert run(dnn.Primitive(pd), data).tobytes() == wanted


@pytest.mark.parametrize("case", [*CASES, *EMPTY], ids=str)
@pytest.mark.one_in(3)
def test_guard_pages(isa: str, case: MatmulCase) -> None:
    """Every tensor ends, then starts, at an unmapped page; inputs are read-only."""
    pd = planned(case, isa)
    primitive, data = dnn.Primitive(pd), make_data(pd, integers=True)
    given = {name: array for name, array in data.items() if name not in pd.plan.outputs or pd.attr.reads_dst()}

    def guarded(at_end: bool) -> None:
        memories = guarded_tensors(pd.plan, at_end, filling(given))
        primitive.execute(**memories)
        assert_within(read(memories["dst"]), expected(case, data)[0], 0.0)

    check_at_pages(guarded)


def test_not_a_number_passes(isa: str) -> None:
    """relu keeps it, and no other row or column gets it."""
    case = C((30, 40), (40, 256), ("row", "row", "row"), "n", ("relu",))
    pd = planned(case, isa)
    data = make_data(pd, integers=True)
    data["src"][3, 5] = np.nan
    result = run(dnn.Primitive(pd), data)
    assert np.isnan(result[3]).all()
    assert not np.isnan(np.delete(result, 3, 0)).any()


def test_concurrent_executes(isa: str) -> None:
    """One primitive with scratch, from four threads at once."""
    case = C((40, 60), (60, 256), ("row", "row", "row"), "n", ("relu",))
    pd = planned(case, isa)
    primitive = dnn.Primitive(pd)
    wrong: list[int] = []

    def work(seed: int) -> None:
        data = make_data(pd, integers=True, seed=seed)
        for _ in range(20):
            if not np.array_equal(run(primitive, data), expected(case, data)[0]):
                wrong.append(seed)

    at_once(work)
    assert wrong == []


def f32(dims: tuple[int, ...]) -> dnn.MemoryDesc:
    return layout(dims, "row")


@pytest.mark.parametrize(
    ("src", "weights", "dst", "bias", "message"),
    [
        ((2, 3), (4, 5), (2, 5), None, "weights has 4 rows, src has 3 columns"),
        ((2, 3), (3, 5), (3, 5), None, "dst has 3 rows, src has 2"),
        ((2, 3), (3, 5), (2, 4), None, "dst has 4 columns, weights has 5"),
        ((2, 3), (3, 5), (2, 5), (2, 4), r"bias has dims\[1\] of 4"),
        ((2, 3), (3, 5), (2, 5), (5,), "bias has 1 dim"),
        ((2, 2, 3), (3, 3, 5), (2, 2, 5), None, r"weights has dims\[0\] of 3, src of 2"),
        ((2, 2, 3), (1, 3, 5), (3, 2, 5), None, r"dst has dims\[0\] of 3"),
        ((2, 2, 3), (3, 5), (2, 2, 5), None, "weights has 2 dims"),
        ((3,), (3,), (3,), None, "src has 1 dim"),
    ],
)
def test_shapes_that_do_not_fit(
    src: tuple[int, ...], weights: tuple[int, ...], dst: tuple[int, ...], bias: tuple[int, ...] | None, message: str
) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        dnn.MatMul(f32(src), f32(weights), f32(dst), None if bias is None else f32(bias))


def test_what_is_no_tensor() -> None:
    with pytest.raises(dnn.InvalidArguments, match="src must be a MemoryDesc"):
        dnn.MatMul((2, 3), f32((3, 4)), f32((2, 4)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dst", "message"),
    [
        (dnn.MemoryDesc((2, 4), dnn.f32, strides=(1, 1)), "elements of dst overlap"),
    ],
    ids=str,
)
def test_refusals_say_why(planned_isa: str, dst: dnn.MemoryDesc, message: str) -> None:
    with pytest.raises(dnn.Unimplemented, match=message):
        dnn.primitive_desc(dnn.MatMul(f32((2, 3)), f32((3, 4)), dst), engine=dnn.Engine(isa=planned_isa))


def test_dst_may_not_overlap_src(isa: str) -> None:
    pd = dnn.primitive_desc(dnn.MatMul(f32((4, 4)), f32((4, 4)), f32((4, 4))), engine=dnn.Engine(isa=isa))
    buffer = np.zeros(40, np.float32)
    src, dst = dnn.Memory(f32((4, 4)), buffer[:16]), dnn.Memory(f32((4, 4)), buffer[12:28])
    with pytest.raises(dnn.InvalidArguments, match="dst overlaps src"):
        dnn.Primitive(pd).execute(src=src, weights=dnn.Memory(f32((4, 4))), dst=dst)


def test_rows_that_alias_are_copied(isa: str) -> None:
    """Where all rows of src share the sets of L1, and many columns read them."""
    for m, k, n, packs in (
        (64, 1024, 512, True),
        (64, 1040, 512, False),
        (15, 1024, 512, False),
        (64, 1024, 64, False),
    ):
        pd = planned(MatmulCase((m, k), (k, n)), isa)
        assert ("copying_tiles" in pd.implementation or "pack_src" in pd.implementation) is packs, pd.implementation
    check(MatmulCase((49, 1024), (1024, 513), bias="n"), isa, threads=2)
    with_panels = MatmulCase((49, 1024), (1024, 513), ("row", "any", "row"), bias="n")
    assert planned(with_panels, isa).implementation == f"copying_tiles+tiles:{isa}"
    check(with_panels, isa, threads=2)
    huge = dnn.MatMul(*(dnn.MemoryDesc(dims, dnn.f32, "ab") for dims in ((1 << 15, 1024), (1024, 512), (1 << 15, 512))))
    assert "copying_tiles" not in dnn.primitive_desc(huge, engine=dnn.Engine(isa=isa)).implementation


@pytest.mark.parametrize(
    ("m", "k", "n", "along"),
    [
        (384, 64, 3072, True),
        (1000, 192, 1536, True),
        (2000, 16, 2000, True),
        (128, 64, 3072, False),
        (384, 1000, 4096, False),
    ],
)
def test_a_large_dst_is_written_along_its_rows(m: int, k: int, n: int, along: bool) -> None:
    """Where weights are few enough to be read for each tile of rows: columns would touch a page for each row."""
    src, weights, dst = (dnn.MemoryDesc(dims, dnn.f32, "any") for dims in ((m, k), (k, n), (m, n)))
    engine = dnn.Engine(isa="avx2", threads=1, l2_bytes=512 << 10, machine="zen3")
    plan = dnn.primitive_desc(dnn.MatMul(src, weights, dst), engine=engine).plan
    phase = plan.phases[0]
    at = phase.records[: n // 16, 1 + [view.buffer for view in phase.arguments].index("dst")]
    assert plan.implementation == "tiles:avx2"
    assert bool((np.diff(at) == 64).all()) == along
