"""Reorders from and to formats with gaps and offsets, the function for them, and refusals."""

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.isa.vectors import f32_level
from asmdnn.primitives.reorder.plan import WAYS
from tests.primitives.conv_case import layout
from tests.primitives.tensors import bits, holding, read

# Of 4 dims, whatever they mean: oihw is nchw.
FORMATS = (
    "nchw", "nhwc", "chwn", "nChw8c", "nChw16c", "hwio", "ihwo", "OIhw8i16o", "OIhw16i16o", "OIhw8i8o", "Oihw4o",
    "ABcd4b16a4b", "nhwc~3", "nchw~1", "nChw16c+5", "nwhc+1",
)  # fmt: skip
DIMS = ((1, 3, 17, 33), (33, 1, 3, 17), (17, 33, 1, 3), (3, 17, 33, 1))


def reorder_desc(dims: tuple[int, ...], src: str, dst: str) -> dnn.Reorder:
    return dnn.Reorder(layout(dims, src), layout(dims, dst))


def check(desc: dnn.Reorder, threads: int = 1) -> None:
    engine = dnn.Engine(threads=threads)
    pd = dnn.primitive_desc(desc, engine=engine)
    assert pd.implementation in {f"{way}:{f32_level(engine.isa)}" for way in WAYS}
    pd.plan.check()
    values = np.arange(1, 1 + desc.src.nelems(), dtype=np.uint32).view(np.float32).reshape(desc.src.dims)
    values.flat[:1] = np.nan  # bits are copied, whatever they are
    src, dst = holding(desc.src, values), holding(desc.dst, None)
    before = bits(src.array).copy()
    dnn.Primitive(pd).execute(src=src, dst=dst)
    assert np.array_equal(bits(read(dst)), bits(values))
    assert np.array_equal(bits(src.array), before)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("gap", FORMATS[-4:])
@pytest.mark.parametrize("tag", FORMATS[:-4:4])
def test_gaps_and_offsets(tag: str, gap: str) -> None:
    dims = DIMS[FORMATS.index(gap) % len(DIMS)]
    check(reorder_desc(dims, tag, gap))
    check(reorder_desc(dims, gap, tag))


@pytest.mark.slow
@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dims", [*DIMS, (16, 16, 8, 8), (2, 64, 5, 1), (1, 1, 1, 1)], ids=str)
@pytest.mark.parametrize("src", FORMATS)
def test_every_pair_with_every_shape(src: str, dims: tuple[int, ...]) -> None:
    for dst in FORMATS:
        check(reorder_desc(dims, src, dst), threads=2)


@pytest.mark.isa("avx2")
def test_a_source_that_repeats_elements() -> None:
    broadcast = dnn.MemoryDesc((3, 20, 5, 4), dnn.f32, strides=(0, 1, 0, 20))
    dst = dnn.MemoryDesc((3, 20, 5, 4), dnn.f32, "nChw8c")
    pd = dnn.primitive_desc(dnn.Reorder(broadcast, dst))
    pd.plan.check()
    row = np.arange(80, dtype=np.float32).reshape(4, 20)
    result = holding(dst, None)
    dnn.Primitive(pd).execute(src=dnn.Memory(broadcast, row), dst=result)
    assert np.array_equal(read(result), np.broadcast_to(row.T[None, :, None, :], (3, 20, 5, 4)))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dims", [(0, 3, 4, 4), (2, 0, 1, 1)], ids=str)
def test_nothing_to_do(dims: tuple[int, ...]) -> None:
    src, dst = (dnn.MemoryDesc(dims, dnn.f32, tag) for tag in ("nchw", "nChw8c"))
    assert dnn.reorder(dnn.Memory(src), dst).numpy().shape == dims


@pytest.mark.isa("avx2")
def test_the_function_makes_or_fills_a_memory() -> None:
    values = np.arange(2 * 9 * 3 * 3, dtype=np.float32).reshape(2, 9, 3, 3)
    plain, blocked = (dnn.MemoryDesc(values.shape, dnn.f32, tag) for tag in ("nchw", "nChw8c"))
    made = dnn.reorder(dnn.Memory(plain, values), blocked)
    assert made.desc == blocked
    assert np.array_equal(made.numpy(), values)
    back = dnn.Memory(plain)
    assert dnn.reorder(made, back) is back
    assert np.array_equal(back.numpy(), values)
    with pytest.raises(dnn.InvalidArguments, match="src must be a Memory, not ndarray"):
        dnn.reorder(values, blocked)  # type: ignore[arg-type]


PLAIN = dnn.MemoryDesc((2, 48, 3, 3), dnn.f32, "nchw")
OVERLAPPING = dnn.MemoryDesc((2, 48, 3, 3), dnn.f32, strides=(9, 9, 3, 1))


@pytest.mark.parametrize(
    ("src", "dst", "attr", "reason"),
    [
        (PLAIN, PLAIN, dnn.Attr([dnn.Eltwise("relu")]), "post-ops of a reorder can be a single Sum"),
        (PLAIN, PLAIN, dnn.Attr([dnn.Sum(), dnn.Sum()]), "can be a single Sum"),
        (PLAIN, PLAIN, dnn.Attr(scales={"weights": 0}), "no weights to scale"),
        (PLAIN, PLAIN, dnn.Attr(scales={"src": 16}), "the mask 16, which is for more than 4 dims"),
        (PLAIN, PLAIN, dnn.Attr(scales={"src": 1, "dst": 2}), "masks 1 and 2: they must agree"),
        (PLAIN, PLAIN, dnn.Attr(zero_points={"dst": 2}), "zero points can only be common"),
        (PLAIN, OVERLAPPING, dnn.Attr(), "elements of dst overlap"),
    ],
)  # fmt: skip
def test_refusals(src: dnn.MemoryDesc, dst: dnn.MemoryDesc, attr: dnn.Attr, reason: str) -> None:
    desc = dnn.Reorder(src, dst)
    answers = dnn.implementations(desc, attr)
    level = f32_level(dnn.Engine().isa)
    assert [x.implementation for x in answers] == [f"{way}:{level}" for way in (*WAYS, "nibbles+reorder")]
    for refusal in answers[: len(WAYS)]:
        assert isinstance(refusal, dnn.Refusal) and reason in refusal.reason, refusal
    with pytest.raises(dnn.Unimplemented, match=reason):
        dnn.primitive_desc(desc, attr)


@pytest.mark.parametrize(
    ("src", "dst", "message"),
    [
        (PLAIN, dnn.MemoryDesc((2, 48, 3, 4), dnn.f32, "nchw"), r"dst has dims .* src has .* equal"),
        (PLAIN, dnn.MemoryDesc(PLAIN.dims, dnn.f32, "any"), "dst has the format any"),
        (dnn.MemoryDesc(PLAIN.dims, dnn.f32, "any"), PLAIN, "src has the format any"),
        ("nchw", PLAIN, "src must be a MemoryDesc"),
    ],
)
def test_bad_descriptions(src: dnn.MemoryDesc, dst: dnn.MemoryDesc, message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        dnn.Reorder(src, dst)
