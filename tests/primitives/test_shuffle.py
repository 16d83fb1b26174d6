"""Shuffles of every type, layout and axis: exact, padding zero, gaps untouched, plans proven; guard pages; refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asmdnn as dnn
from asmdnn.definitions.moves import shuffled as moved
from asmdnn.isa.vectors import f32_level
from asmdnn.types import IsaName
from tests.primitives.raw import Bits, elements_of, fill

FORWARD, BACKWARD = dnn.PropKind.forward_inference, dnn.PropKind.backward_data
TYPES = {t.name: t for t in (dnn.f32, dnn.s32, dnn.s8, dnn.u8, dnn.bf16, dnn.f16)}
UNITS = ("f32", "bf16", "u8")  # a type of every size
TAGS = (
    "nchw", "nhwc", "chwn", "nChw8c", "nChw16c", "aBcd4b", "aBcd2b", "aBcd32b", "aBcd24b", "NChw16n16c",
    "ABcd4a16b4b", "aBCd8b8c", "wnhc",
)  # fmt: skip
PROBLEMS = (
    ((2, 12, 3, 1), 1, (2, 3, 4, 6)),
    ((1, 51, 1, 7), 1, (3, 17)),
    ((3, 240, 1, 1), 1, (3, 8, 30, 80)),
    ((1, 480, 7, 7), 1, (3, 60, 240)),
    ((2, 36, 5, 8), 3, (2, 4)),
    ((18, 5, 2, 3), 0, (3,)),
    ((2, 17, 6, 2), 2, (2,)),
    ((1, 360, 1, 1), 1, (12, 15, 18)),
)
SLOW_PROBLEMS = (
    ((2, 240, 28, 28), 1, (1, 2, 3, 4, 8, 16, 30, 80, 240)),
    ((1, 136, 7, 7), 1, (2, 8, 17, 34)),
    ((1, 1024, 1, 3), 1, (2, 32, 64)),
)


def shuffled(values: Bits, desc: dnn.Shuffle) -> Bits:
    rows = desc.group_size if desc.prop_kind == BACKWARD else values.shape[desc.axis] // desc.group_size
    return moved(values, desc.axis, rows)


def make(dims: tuple[int, ...], dtype: dnn.DataType, tag: str, axis: int, g: int, kind: dnn.PropKind) -> dnn.Shuffle:
    desc = dnn.MemoryDesc(dims, dtype, tag)
    return dnn.Shuffle(desc, desc, axis, g, kind)


def values_for(desc: dnn.MemoryDesc) -> Bits:
    kind = {1: np.uint8, 2: np.uint16, 4: np.uint32}[desc.dtype.size_bytes]
    return np.random.default_rng(1).integers(1, np.iinfo(kind).max, desc.dims, kind, endpoint=True)


def prepared(desc: dnn.Shuffle, threads: int = 1) -> dnn.Primitive:
    engine = dnn.Engine(threads=threads)
    pd = dnn.primitive_desc(desc, engine=engine)
    assert pd.implementation in {f"{way}:{f32_level(engine.isa)}" for way in ("units", "rows", "elements")}
    pd.plan.check()
    return dnn.Primitive(pd)


def run(primitive: dnn.Primitive, src: dnn.Memory, dst: dnn.Memory) -> None:
    """Execute and compare every byte."""
    desc = primitive.pd.desc
    assert isinstance(desc, dnn.Shuffle)
    values = values_for(desc.src)
    fill(src, values)
    fill(dst, None)
    primitive.execute(src=src, dst=dst)
    assert np.array_equal(elements_of(dst), shuffled(values, desc))


def check(desc: dnn.Shuffle, threads: int = 1) -> None:
    run(prepared(desc, threads), dnn.Memory(desc.src), dnn.Memory(desc.dst))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("dtype", UNITS)
@pytest.mark.one_in(2)
def test_every_layout(dtype: str, tag: str) -> None:
    """Every problem; all of its groups with one type of each layout, with the others one in turn."""
    place = UNITS.index(dtype) + TAGS.index(tag)
    for number, (dims, axis, groups) in enumerate(PROBLEMS):
        one = (place + number) % len(groups)
        for i, g in enumerate(groups):
            if place % len(UNITS) == 0 or i == one:
                check(make(dims, TYPES[dtype], tag, axis, g, (FORWARD, BACKWARD)[i % 2]))


@pytest.mark.slow
@pytest.mark.isa("avx2")
@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("dtype", UNITS)
def test_every_group_of_every_layout(dtype: str, tag: str) -> None:
    for dims, axis, groups in PROBLEMS:
        for g in groups:
            for kind in (FORWARD, BACKWARD):
                check(make(dims, TYPES[dtype], tag, axis, g, kind))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    "tags", [("nchw", "nhwc"), ("nhwc", "nChw16c"), ("aBcd24b", "nchw"), ("chwn", "aBcd4b")], ids=str
)
@pytest.mark.parametrize("dtype", UNITS)
def test_formats_that_differ(dtype: str, tags: tuple[str, str]) -> None:
    for dims, axis, groups in PROBLEMS[:4]:
        src, dst = (dnn.MemoryDesc(dims, TYPES[dtype], tag) for tag in tags)
        for kind, threads in ((FORWARD, 1), (BACKWARD, 2)):
            desc = dnn.Shuffle(src, dst, axis, groups[0], kind)
            engine = dnn.Engine(threads=threads)
            pd = dnn.primitive_desc(desc, engine=engine)
            assert pd.implementation.startswith("reorder+") == (src != dst)
            pd.plan.check()
            run(dnn.Primitive(pd), dnn.Memory(src), dnn.Memory(dst))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    ("tag", "dtype", "ways"),
    [
        ("nhwc", dnn.f32, ("units", "elements")),
        ("nChw8c", dnn.u8, ("units", "elements")),
        ("aBcd24b", dnn.bf16, ("units", "elements")),
        ("nchw", dnn.f32, ("rows", "elements")),
        ("aBcd2b", dnn.u8, ("elements",)),
        ("nChw8c", dnn.bf16, ("units", "elements")),
    ],
    ids=str,
)
def test_every_way(tag: str, dtype: dnn.DataType, ways: tuple[str, ...]) -> None:
    """Of a layout all that are for it move the same bytes, the first is taken, and the others say why not."""
    desc = make((2, 42, 3, 5), dtype, tag, 1, 6, FORWARD)
    found = dnn.implementations(desc, engine=dnn.Engine(threads=1))
    plans = [pd for pd in found if isinstance(pd, dnn.PrimitiveDesc)]
    assert tuple(pd.implementation.split(":")[0] for pd in plans) == ways
    for pd in plans:
        pd.plan.check()
        run(dnn.Primitive(pd), dnn.Memory(desc.src), dnn.Memory(desc.dst))
    refused = {
        answer.implementation.split(":")[0]: answer.reason for answer in found if isinstance(answer, dnn.Refusal)
    }
    assert refused.keys() == {*("units", "rows"), *(f"reorder+{way}" for way in ("units", "rows", "elements"))} - {
        *ways
    }
    assert "units" not in refused or "do not lie together in units" in refused["units"]
    assert "rows" not in refused or "elements that move alike are" in refused["rows"]


@pytest.mark.slow
@pytest.mark.isa("avx2")
@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("dtype", TYPES)
def test_every_layout_of_every_type(dtype: str, tag: str) -> None:
    for dims, axis, groups in PROBLEMS + SLOW_PROBLEMS:
        for g in groups:
            for kind in (FORWARD, BACKWARD):
                check(make(dims, TYPES[dtype], tag, axis, g, kind), threads=2)


@st.composite
def shuffles(draw: st.DrawFn) -> dnn.Shuffle:
    ndims = draw(st.integers(1, 4))
    dims = [draw(st.sampled_from((1, 2, 3, 8, 9))) for _ in range(ndims)]
    axis = draw(st.integers(0, ndims - 1))
    g = draw(st.integers(1, 9))
    dims[axis] = g * draw(st.integers(1, 20))
    letters = "abcd"[:ndims]
    blocks = draw(st.lists(st.tuples(st.sampled_from(letters), st.sampled_from((2, 3, 4, 8, 16))), max_size=2))
    blocked = {letter for letter, _ in blocks}
    outer = "".join(c.upper() if c in blocked else c for c in draw(st.permutations(letters)))
    tag = outer + "".join(f"{size}{c}" for c, size in blocks)
    desc = dnn.MemoryDesc(dims, draw(st.sampled_from(list(TYPES.values()))), tag, offset0=draw(st.sampled_from((0, 3))))
    return dnn.Shuffle(desc, desc, axis, g, draw(st.sampled_from((dnn.PropKind.forward_training, FORWARD, BACKWARD))))


@pytest.mark.isa("avx2")
@settings(max_examples=100, deadline=None, derandomize=True)
@given(shuffles())
def test_formats_that_nobody_uses(desc: dnn.Shuffle) -> None:
    check(desc)


@pytest.mark.slow
@pytest.mark.isa("avx2")
@settings(max_examples=3000, deadline=None, derandomize=True)
@given(shuffles())
def test_many_formats_that_nobody_uses(desc: dnn.Shuffle) -> None:
    check(desc)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("strides", [(2000, 1, 300, 50), (1000, 25, 5, 1), (1, 3, 200, 1000)], ids=str)
def test_gaps_between_elements_stay(strides: tuple[int, ...]) -> None:
    for dtype in (dnn.f32, dnn.bf16, dnn.u8):
        desc = dnn.MemoryDesc((2, 36, 4, 5), dtype, strides=strides)
        shuffle = dnn.Shuffle(desc, desc, 1, 4)
        if desc.may_overlap:
            assert "overlap" in str(dnn.implementations(shuffle)[0])
        else:
            check(shuffle)


@pytest.mark.isa("avx2")
def test_backward_undoes_forward() -> None:
    x = np.arange(2 * 24 * 5, dtype=np.float32)
    desc = dnn.MemoryDesc((2, 24, 5), dnn.f32, "abc")
    src, there, back = dnn.Memory(desc, x), dnn.Memory(desc), dnn.Memory(desc)
    prepared(dnn.Shuffle(desc, desc, 1, 3)).execute(src=src, dst=there)
    prepared(dnn.Shuffle(desc, desc, 1, 3, BACKWARD)).execute(src=there, dst=back)
    assert not np.array_equal(there.array, x)
    assert np.array_equal(back.array, x)


@pytest.mark.isa("avx2")
def test_shufflenet_mixes_its_groups() -> None:
    """Three groups of four channels: dst takes the first of each, then the second of each."""
    desc = dnn.MemoryDesc((1, 12), dnn.u8, "ab")
    src, dst = dnn.Memory(desc, np.frombuffer(b"abcdefghijkl", np.uint8)), dnn.Memory(desc)
    prepared(dnn.Shuffle(desc, desc, 1, group_size=12 // 3)).execute(src=src, dst=dst)
    assert dst.array.tobytes() == b"aeibfjcgkdhl"


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", [FORWARD, BACKWARD])
@pytest.mark.parametrize("tag", ["nchw", "nhwc", "nChw8c"])
def test_dst_of_format_any_takes_that_of_src(tag: str, kind: dnn.PropKind) -> None:
    src = dnn.MemoryDesc((2, 12, 3, 4), dnn.f32, tag)
    primitive = prepared(dnn.Shuffle(src, dnn.MemoryDesc(src.dims, dnn.f32, "any"), 1, 3, kind))
    assert primitive.pd.dst_desc == primitive.pd.src_desc == src
    given, found = dnn.Memory.from_numpy(values_for(src).view(np.float32), src), dnn.Memory(src)
    primitive.execute(src=given, dst=found)
    wanted = shuffled(values_for(src), dnn.Shuffle(src, src, 1, 3, kind))
    assert np.array_equal(found.numpy().view(np.uint32), wanted)


@pytest.mark.isa("avx2")
def test_dst_of_format_any_is_plain_where_elements_of_src_overlap() -> None:
    src = dnn.MemoryDesc((2, 12), dnn.f32, strides=(0, 1))
    pd = dnn.primitive_desc(dnn.Shuffle(src, dnn.MemoryDesc((2, 12), dnn.f32, "any"), 1, 3))
    assert pd.dst_desc == dnn.MemoryDesc((2, 12), dnn.f32, "ab")


PLAIN = dnn.MemoryDesc((2, 48, 3, 3), dnn.f32, "nchw")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"src": "nchw"}, "src must be a MemoryDesc"),
        ({"src": dnn.MemoryDesc(PLAIN.dims, dnn.f32, "any")}, "src has the format any, .*: dst alone may have any"),
        ({"dst": dnn.MemoryDesc(PLAIN.dims, dnn.s32, "nchw")}, "keeps dims and type"),
        ({"dst": dnn.MemoryDesc((2, 12, 3, 3), dnn.f32, "nchw")}, "keeps dims and type"),
        ({"axis": 4}, "axis is 4, src has 4 dims: use -4 to 3"),
        ({"axis": True}, "axis must be an integer"),
        ({"group_size": 5}, "group_size is 5, it must divide axis 1 of 48"),
        ({"group_size": 0}, "group_size is 0"),
        ({"group_size": 2.0}, "group_size must be an integer"),
        ({"prop_kind": "forward"}, "prop_kind must be PropKind.forward_training or "),
    ],
)
def test_bad_descriptions(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"src": PLAIN, "dst": PLAIN, "axis": 1, "group_size": 3} | change
    with pytest.raises(dnn.InvalidArguments, match=message):
        dnn.Shuffle(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
@pytest.mark.parametrize(("pixels", "streams"), [(49, False), (51, False), (64, True)])
def test_large_results_stream_where_every_store_is_aligned(isa: IsaName, pixels: int, streams: bool) -> None:
    """49 pixels of 16 bytes leave the blocks after the first at places that no vector is aligned to."""
    desc = dnn.MemoryDesc((500, 464, pixels), dnn.bf16, "aBc8b")
    plan = dnn.primitive_desc(dnn.Shuffle(desc, desc, 1, 2), engine=dnn.Engine(isa=isa, threads=1)).plan
    assert {spec.streaming for phase in plan.phases for spec in phase.kernels} == {streams}


def test_an_axis_may_count_from_the_end() -> None:
    assert dnn.Shuffle(PLAIN, PLAIN, -3, 4) == dnn.Shuffle(PLAIN, PLAIN, 1, 4)
    refusals = dnn.implementations(dnn.Shuffle(PLAIN, PLAIN, 1, 4), dnn.Attr([dnn.Sum()]))
    assert all("no post-ops" in str(refusal) for refusal in refusals)
