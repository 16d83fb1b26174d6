"""Resampling of all algorithms, coordinates and layouts, against sparse matrices; types; torch; bad input."""

from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.resampling import resampled
from asmdnn.planning.tuning import DEFAULT
from asmdnn.primitives.resampling.description import Coordinates, ResamplingAlgorithm
from tests.support.plans import emulate_plan, proved_desc
from tests.support.tuning import tuned, with_numbers

COORDINATES: tuple[Coordinates, ...] = ("half_pixel", "align_corners", "asymmetric")
SIZES: tuple[Any, ...] = (
    ((5, 7), (10, 14)),
    ((5, 7), (13, 9)),
    ((4, 9), (2, 3)),
    ((6,), (18,)),
    ((3, 4, 5), (6, 8, 5)),
)
TAGS = ("ab{}", "a{}b", "aB{}8b", "aB{}16b")


def numbers(*dims: int) -> Any:
    return np.random.default_rng(0).uniform(-1, 1, dims).astype(np.float32)


def tagged(tag: str, axes: int) -> str:
    return tag.format("cde"[:axes])


def expected(alg: str, x: Any, sizes: Any, coordinates: str) -> Any:
    factors = tuple(made / size for made, size in zip(sizes, x.shape[2:], strict=True))
    return resampled(x.astype(np.float64), alg, sizes, factors, coordinates)[0]


def described(alg: ResamplingAlgorithm, dims: Any, sizes: Any, tag: str, coordinates: Coordinates) -> Any:
    src, dst = (dnn.MemoryDesc(n, dnn.f32, tagged(tag, len(sizes))) for n in (dims, (*dims[:2], *sizes)))
    return dnn.ResamplingForward(alg, src, dst, (), coordinates)


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("alg", ["nearest", "linear", "cubic"])
def test_layouts(isa: str, alg: ResamplingAlgorithm, tag: str) -> None:
    for inner, outer in SIZES if alg != "cubic" else SIZES[:-1]:
        for coordinates in COORDINATES:
            x = numbers(2, 19, *inner)
            desc = described(alg, x.shape, outer, tag, coordinates)
            pd = proved_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
            assert pd.implementation == f"{'rows' if tag == TAGS[0] else 'channels'}:{isa}"
            dst = dnn.Memory(desc.dst)
            dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, desc.src), dst=dst)
            assert np.abs(dst.numpy() - expected(alg, x, outer, coordinates)).max() <= 40 * 2.0**-24
            assert dst.padding_is_zero()


SHORTER: tuple[Any, ...] = (
    ((56,), (33,)), ((4, 112), (3, 80)), ((6, 300), (2, 31)), ((3, 100), (5, 8)), ((5, 40, 20), (2, 7, 13)),
    ((2, 17), (3, 16)), ((2, 96), (1, 64)), ((3, 200), (2, 4)),
)  # fmt: skip


@pytest.mark.parametrize("alg", ["nearest", "linear", "cubic"])
def test_rows_that_become_shorter(isa: str, alg: ResamplingAlgorithm) -> None:
    """Made of two vectors of src and more, up to one for each result; vectors that go back to end with the row."""
    for inner, outer in SHORTER:
        if alg == "cubic" and len(inner) > 2:
            continue
        for coordinates in COORDINATES:
            x = numbers(2, 3, *inner)
            desc = described(alg, x.shape, outer, TAGS[0], coordinates)
            pd = proved_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
            assert pd.implementation == f"rows:{isa}"
            dst = dnn.Memory(desc.dst)
            dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, desc.src), dst=dst)
            assert np.abs(dst.numpy() - expected(alg, x, outer, coordinates)).max() <= 40 * 2.0**-24


def test_rows_of_much_code_are_reordered(isa: str) -> None:
    """Neither size is a multiple of the other, so that no vector of results is made as the one before."""
    desc = described("cubic", (1, 2, 4, 4000), (5, 3001), TAGS[0], "half_pixel")
    assert dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa)).implementation == f"reorder+channels:{isa}"


@pytest.mark.parametrize("dtype", [dnn.bf16, dnn.f16, dnn.u8, dnn.s8, dnn.s32], ids=str)
def test_rows_of_other_types_are_moved(isa: str, dtype: dnn.DataType) -> None:
    """Bit by bit: NaN of all kinds, and integers that f32 has not.  Lines of several rows of dst, tails, and loops."""
    for inner, outer in (*SHORTER, ((5, 7), (10, 14)), ((3, 20), (3, 50)), ((2, 160), (4, 320))):
        size = (2, 3, *inner)
        x = np.random.default_rng(5).integers(0, 256, (*size, dtype.size_bytes), np.uint8).view(dtype.numpy)[..., 0]
        src, dst = (dnn.MemoryDesc(n, dtype, tagged(TAGS[0], len(inner))) for n in (size, (2, 3, *outer)))
        desc = dnn.ResamplingForward("nearest", src, dst)
        pd = proved_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
        assert pd.implementation == f"rows:{isa}"
        found = dnn.Memory(dst)
        dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, src), dst=found)
        places = np.ix_(*(range(n) for n in size[:2]), *(desc.taps(axis).indices[:, 0] for axis in range(len(inner))))
        bits = f"u{dtype.size_bytes}"
        assert np.array_equal(found.numpy().view(bits), x[places].view(bits))


@pytest.mark.parametrize("dtype", [dnn.bf16, dnn.f16, dnn.u8, dnn.s8, dnn.s32], ids=str)
def test_rows_of_other_types_are_those_of_f32_rounded(isa: str, dtype: dnn.DataType) -> None:
    """Bit by bit, with post-ops too; AVX2 rounds all but f16 in a pass."""
    attr = dnn.Attr([dnn.Eltwise("linear", 1.5, -3.0)])
    for inner, outer in (*SHORTER, ((5, 7), (10, 14)), ((2, 160), (4, 320))):
        dims = [(2, 3, *sizes) for sizes in (inner, outer)]
        x = dnn.Memory.from_array(np.random.default_rng(5).integers(0, 100, dims[0]).astype(np.float32))
        made = []
        for kind in (dtype, dnn.f32):
            src, dst = (dnn.MemoryDesc(n, kind, tagged(TAGS[0], len(inner))) for n in dims)
            desc = dnn.ResamplingForward("linear", src, dst)
            pd = proved_desc(desc, attr=attr, engine=dnn.Engine(isa=isa, threads=2))
            in_one = kind in (dnn.f32, dnn.f16) or isa != "avx2"
            assert pd.implementation == f"{'' if in_one else 'reorder+'}rows:{isa}"
            memory = dnn.Memory(dst)
            dnn.Primitive(pd).execute(src=dnn.reorder(x, src), dst=memory)
            made.append(memory)
        assert np.array_equal(made[0].numpy(), dnn.reorder(made[1], made[0].desc).numpy())


@pytest.mark.parametrize("rounding", ["floor", "ceil"])
def test_corners_at_elements_are_these(rounding: Any) -> None:
    """Places that are whole numbers have no element on either side, in kernels and in the definition."""
    for size, made in ((348, 357), (82, 16), (49, 99), (26, 51)):
        src, dst = (dnn.MemoryDesc((1, 1, n), dnn.f32, "abc") for n in (size, made))
        taps = dnn.ResamplingForward("nearest", src, dst, (), "align_corners", rounding).taps(0)
        round_up = rounding == "ceil"
        exact = [-(-o * (size - 1) // (made - 1)) if round_up else o * (size - 1) // (made - 1) for o in range(made)]
        assert taps.indices[:, 0].tolist() == exact
        x = np.arange(size, dtype=np.float64).reshape(1, 1, size)
        assert resampled(x, "nearest", (made,), (made / size,), "align_corners", rounding)[0].ravel().tolist() == exact


@pytest.mark.parametrize("dtype", [dnn.f32, dnn.bf16, dnn.u8], ids=str)
@pytest.mark.parametrize(
    ("dims", "sizes", "tag"),
    [((2, 19, 9, 40), (3, 10), "abdc"), ((1, 3, 90, 8), (30, 4), "abdc"), ((1, 2, 4, 6, 40), (2, 3, 8), "abedc")],
)
def test_elements_at_one_distance_are_copied(isa: str, dims: Any, sizes: Any, tag: str, dtype: dnn.DataType) -> None:
    """Of tensors of which neither channels nor rows are dense.  No others are read, and none is converted."""
    x = np.random.default_rng(3).integers(0, 100, dims).astype(dtype.numpy)
    src, dst = (dnn.MemoryDesc(n, dtype, tag) for n in (dims, (*dims[:2], *sizes)))
    pd = proved_desc(dnn.ResamplingForward("nearest", src, dst), engine=dnn.Engine(isa=isa, threads=2))
    assert pd.implementation == f"strided:{isa}"
    found = dnn.Memory(dst)
    dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, src), dst=found)
    factors = (size // made for size, made in zip(dims[2:], sizes, strict=True))
    assert np.array_equal(found.numpy(), x[(..., *(slice(n // 2, None, n) for n in factors))])


@pytest.mark.parametrize("rounding", ["round_prefer_ceil", "floor"])
def test_halves_are_halves(rounding: Any) -> None:
    """(o + 1/2) I / O, which a quotient of sizes that was rounded would bring to one side or the other."""
    for size, made in ((30, 33), (33, 19), (60, 33), (54, 37), (50, 7), (28, 9)):
        desc = dnn.ResamplingForward(
            "nearest", dnn.MemoryDesc((1, 1, size), dnn.f32, "abc"), dnn.MemoryDesc((1, 1, made), dnn.f32, "abc"),
            rounding=rounding,
        )  # fmt: skip
        exact = [Fraction(2 * o + 1, 2) * size / made for o in range(made)]
        wanted = [max(0, min(size - 1, floor(x if rounding != "floor" else x - Fraction(1, 2)))) for x in exact]
        assert desc.taps(0).indices[:, 0].tolist() == wanted


@pytest.mark.parametrize("dims", [(1, 300, 3, 5), (3, 2, 200, 9), (2, 2, 1, 100)])
def test_records_of_several_planes_and_of_parts_of_one(isa: str, dims: Any) -> None:
    for alg in ("nearest", "linear"):
        x, outer = numbers(*dims), (3 * dims[2], 2 * dims[3])
        desc = described(alg, x.shape, outer, TAGS[0], "half_pixel")  # type: ignore[arg-type]
        pd = proved_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
        assert pd.implementation == f"rows:{isa}"
        dst = dnn.Memory(desc.dst)
        dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, desc.src), dst=dst)
        assert np.abs(dst.numpy() - expected(alg, x, outer, "half_pixel")).max() <= 40 * 2.0**-24


def test_neighbours_share_what_they_are_made_of() -> None:
    """Pairs of a doubled row, with its ends; and large results past the caches."""
    engine = dnn.Engine(isa="avx2", threads=1, machine="zen3")
    plan = dnn.primitive_desc(described("linear", (1, 64, 8, 8), (16, 16), TAGS[1], "half_pixel"), engine=engine).plan
    assert {spec.together for spec in plan.specs} == {2, 3}  # type: ignore[attr-defined]
    large = described("nearest", (4, 64, 112, 112), (224, 224), TAGS[2], "half_pixel")
    assert all(spec.streaming for spec in dnn.primitive_desc(large, engine=engine).plan.specs)  # type: ignore[attr-defined]
    rows = described("nearest", (4, 64, 112, 112), (224, 224), TAGS[0], "half_pixel")
    assert all(spec.streaming for spec in dnn.primitive_desc(rows, engine=engine).plan.specs)  # type: ignore[attr-defined]
    uneven = described("linear", (1, 24, 65, 65), (513, 513), TAGS[2], "half_pixel")
    assert not any(spec.streaming for spec in dnn.primitive_desc(uneven, engine=engine).plan.specs)  # type: ignore[attr-defined]


@pytest.mark.parametrize("alg", ["nearest", "linear"])
@pytest.mark.parametrize("tag", TAGS[1:])
def test_pieces_of_rows_past_the_caches(isa: str, alg: ResamplingAlgorithm, tag: str) -> None:
    """Rows of 13 results of 6 elements have several patterns; a class says whether their pieces stream."""
    x = numbers(2, 32, 5, 6)
    desc = described(alg, x.shape, (9, 13), tag, "half_pixel")
    for streams in (False, True):
        with tuned("resampling", streaming_share=1 << 40, pieces_stream=streams):
            pd = proved_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
        assert {spec.streaming for spec in pd.plan.specs} == {streams}  # type: ignore[attr-defined]
        dst = dnn.Memory(desc.dst)
        dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, desc.src), dst=dst)
        assert np.abs(dst.numpy() - expected(alg, x, (9, 13), "half_pixel")).max() <= 40 * 2.0**-24


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize(("alg", "tag", "dtype"), [("linear", TAGS[2], dnn.f32), ("nearest", TAGS[3], dnn.f16)])
def test_pixels_of_half_a_vector_take_narrow_kernels(alg: ResamplingAlgorithm, tag: str, dtype: dnn.DataType) -> None:
    x = numbers(2, 16, 5, 6).astype(dtype.numpy)
    src, dst = (dnn.MemoryDesc((2, 16, *n), dtype, tagged(tag, 2)) for n in ((5, 6), (10, 12)))
    pd = proved_desc(dnn.ResamplingForward(alg, src, dst), engine=dnn.Engine(isa="avx512_core", threads=1))
    assert {spec.isa for spec in pd.plan.specs} == {"avx2"}
    memories = {"src": dnn.Memory.from_numpy(x, src), "dst": dnn.Memory(dst)}
    emulate_plan(pd.plan, memories)
    found = memories["dst"].numpy().astype(np.float64)
    np.testing.assert_allclose(found, expected(alg, x, (10, 12), "half_pixel"), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [dnn.s8, dnn.u8, dnn.bf16, dnn.f16, dnn.s32], ids=str)
@pytest.mark.parametrize("tag", TAGS[1:])
def test_nearest_elements_of_any_type_are_moved_as_words(isa: str, dtype: dnn.DataType, tag: str) -> None:
    """Where channels are dense and words are channels of one pixel; else by reorders."""
    for channels in (40, 5):
        x = np.random.default_rng(2).integers(0, 100, (2, channels, 5, 6)).astype(dtype.numpy)
        src, dst = (dnn.MemoryDesc((2, channels, *n), dtype, tagged(tag, 2)) for n in ((5, 6), (10, 9)))
        pd = proved_desc(dnn.ResamplingForward("nearest", src, dst), engine=dnn.Engine(isa=isa, threads=2))
        is_odd = channels == 5 and tag == TAGS[1] and dtype.size_bytes < 4
        assert pd.implementation == ("reorder+channels" if is_odd else "words") + f":{isa}"
        found = dnn.Memory(dst)
        dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, src), dst=found)
        columns = np.minimum(5, np.floor((np.arange(9) + 0.5) * 6 / 9).astype(int))
        assert np.array_equal(found.numpy(), x.repeat(2, 2)[..., columns]) and found.padding_is_zero()


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("alg", ["nearest", "linear"])
def test_post_ops(isa: str, alg: ResamplingAlgorithm, tag: str) -> None:
    """On registers; after, where they read tensors or dst has padding, which stays zero."""
    x, factor, old = numbers(1, 19, 5, 9), numbers(1, 19, 1, 1), numbers(1, 19, 10, 18)
    desc = described(alg, x.shape, (10, 18), tag, "half_pixel")
    plain = expected(alg, x, (10, 18), "half_pixel")
    halved = 0.5 * plain + 1
    tensor = dnn.MemoryDesc(factor.shape, dnn.f32, "abcd")
    chains: Any = (
        ([dnn.Eltwise("linear", 0.5, 1.0), dnn.Eltwise("relu")], {}, np.maximum(halved, 0)),
        ([dnn.Sum(0.5), dnn.Binary("mul", tensor)], {"binary_1": factor}, (plain + 0.5 * old) * factor),
    )
    for ops, operands, wanted in chains:
        pd = proved_desc(desc, attr=dnn.Attr(ops), engine=dnn.Engine(isa=isa))
        in_registers = not operands and "B" not in tag
        assert len(pd.plan.phases) == (1 if in_registers else 2)
        assert pd.implementation == f"{'rows' if tag == TAGS[0] else 'channels'}:{isa}"
        dst = dnn.Memory.from_numpy(old, desc.dst)
        memories = {name: dnn.Memory.from_numpy(array, tensor) for name, array in operands.items()}
        dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, desc.src), dst=dst, **memories)
        assert np.abs(dst.numpy() - wanted).max() <= 40 * 2.0**-24
        assert dst.padding_is_zero()


@pytest.mark.parametrize("dtype", [dnn.s8, dnn.u8, dnn.f16], ids=str)
def test_types(isa: str, dtype: dnn.DataType) -> None:
    x = np.random.default_rng(1).integers(0, 100, (1, 3, 4, 4)).astype(dtype.numpy)
    src, dst = (dnn.MemoryDesc((1, 3, n, n), dtype, "acdb") for n in (4, 8))
    result = dnn.Memory(dst)
    pd = dnn.primitive_desc(dnn.ResamplingForward("nearest", src, dst), engine=dnn.Engine(isa=isa))
    dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, src), dst=result)
    assert np.array_equal(result.numpy(), x.repeat(2, 2).repeat(2, 3))


@pytest.mark.parametrize("alg", ["linear", "cubic"])
@pytest.mark.parametrize(
    ("sdt", "ddt"), [(dnn.u8, dnn.u8), (dnn.bf16, dnn.bf16), (dnn.f16, dnn.s8), (dnn.s32, dnn.f32)]
)
def test_channels_of_other_types_are_converted_in_registers(
    isa: str, alg: ResamplingAlgorithm, sdt: dnn.DataType, ddt: dnn.DataType
) -> None:
    """To the bits of conversions in front of f32 kernels and after them, in one phase."""
    for channels, tag in ((40, "acdb"), (21, "acdb"), (20, "aBcd8b")):
        x = np.random.default_rng(3).integers(0, 100, (2, channels, 5, 6)).astype(np.float32)
        plain, large = (dnn.MemoryDesc((2, channels, *n), dnn.f32, tag) for n in ((5, 6), (10, 9)))
        src, dst = (dnn.MemoryDesc(d.dims, t, tag) for d, t in ((plain, sdt), (large, ddt)))
        results = []
        for far_bytes, phases in ((1, 1), (1 << 30, 1 + (sdt != dnn.f32) + (ddt != dnn.f32))):
            with tuned("moves", streaming_bytes=far_bytes):
                engine = dnn.Engine(isa=isa, threads=2)
                pd = proved_desc(dnn.ResamplingForward(alg, src, dst), engine=engine)
            if isa == "avx2":
                assert len(pd.plan.phases) == (1 if {sdt, ddt} <= {dnn.f32, dnn.f16} else phases)
            found = dnn.Memory(dst)
            dnn.Primitive(pd).execute(src=dnn.reorder(dnn.Memory.from_numpy(x, plain), src), dst=found)
            assert found.padding_is_zero()
            results.append(dnn.reorder(found, large).numpy())
        np.testing.assert_array_equal(*results)


def test_post_ops_in_another_type(isa: str) -> None:
    """Which compute in f32, and are rounded once."""
    x = np.random.default_rng(1).integers(0, 100, (1, 19, 4, 4)).astype(np.int8)
    src, dst = (dnn.MemoryDesc((1, 19, n, n), dnn.s8, "aBcd8b") for n in (4, 8))
    half = dnn.Attr([dnn.Eltwise("linear", 0.5), dnn.Sum(0.5)])
    pd = proved_desc(dnn.ResamplingForward("nearest", src, dst), half, dnn.Engine(isa=isa))
    result = dnn.Memory.from_numpy(np.full(dst.dims, 3, np.int8), dst)
    dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, src), dst=result)
    assert np.array_equal(result.numpy(), np.rint(0.5 * x + 1.5).astype(np.int8).repeat(2, 2).repeat(2, 3))
    assert result.padding_is_zero()


def test_arrays(isa: str) -> None:
    x = numbers(2, 3, 4, 6)
    found = [dnn.ops.resize(x, factor=2, engine=dnn.Engine(isa=isa, threads=n)) for n in (1, 2, 3)]
    assert all(np.array_equal(y, x.repeat(2, 2).repeat(2, 3)) for y in found)
    assert dnn.ops.resize(x, (3, 3), mode="linear").shape == (2, 3, 3, 3)
    assert dnn.ops.resize(x, factor=(1.5, 0.5), mode="cubic").shape == (2, 3, 6, 3)
    assert dnn.ops.resize(x[:0], 5).shape == (0, 3, 5, 5)


def test_torch(isa: str) -> None:
    torch = pytest.importorskip("torch", reason="not compared with torch: pip install '.[torch]'")
    x, engine = numbers(2, 3, 7, 9), dnn.Engine(isa=isa)
    resize = torch.nn.functional.interpolate
    for size in ((14, 18), (10, 5)):
        wanted = resize(torch.from_numpy(x), size, mode="nearest").numpy()
        assert np.array_equal(
            dnn.ops.resize(x, size, coordinates="asymmetric", rounding="floor", engine=engine), wanted
        )
        for ours, theirs in (("linear", "bilinear"), ("cubic", "bicubic")):
            for corners in (False, True):
                wanted = resize(torch.from_numpy(x), size, mode=theirs, align_corners=corners).numpy()
                coordinates = "align_corners" if corners else "half_pixel"
                found = dnn.ops.resize(x, size, mode=ours, coordinates=coordinates, engine=engine)  # type: ignore[arg-type]
                np.testing.assert_allclose(found, wanted, 1e-4, 1e-4)


def test_bad_input() -> None:
    src, dst = dnn.MemoryDesc((1, 2, 4, 4), dnn.f32, "abcd"), dnn.MemoryDesc((1, 2, 8, 8), dnn.f32, "abcd")
    for arguments, says in (
        (("area", src, dst), "must be one of nearest, linear, cubic"),
        (("linear", src, dst, (), "pixel"), "must be one of half_pixel"),
        (("linear", src, dst, (), "half_pixel", "up"), "must be one of round_prefer_floor"),
        (("linear", src, None), "dst must be a MemoryDesc"),
        (("linear", src, dnn.MemoryDesc((1, 3, 8, 8), dnn.f32, "abcd")), "images and channels must be src's"),
        (("linear", dnn.MemoryDesc((1, 2, 0, 4), dnn.f32, "abcd"), dst), "it has no elements"),
        (("linear", src, dst, (2.0,)), "factors must be 2 numbers"),
        (("linear", src, dst, (2.0, 0.0)), "factors must be above 0"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.ResamplingForward(*arguments)  # type: ignore[arg-type]
    volume = dnn.MemoryDesc((1, 2, 3, 3, 3), dnn.f32, "abcde")
    with pytest.raises(dnn.InvalidArguments, match="one or two spatial axes"):
        dnn.ResamplingForward("cubic", volume, volume)
    x = numbers(1, 2, 4, 4)
    for more, says in (({}, "exactly one"), ({"factor": (1, 2, 3)}, "factor must be"), ({"size": 0}, "size must be")):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.ops.resize(x, **more)  # type: ignore[arg-type]
    with pytest.raises(dnn.Unimplemented, match="scales and zero points are not implemented"):
        dnn.primitive_desc(dnn.ResamplingForward("linear", src, dst), dnn.Attr(scales={"dst": 0}))


@pytest.mark.parametrize("alg", ["nearest", "linear", "cubic"])
def test_rounds(isa: str, alg: ResamplingAlgorithm) -> None:
    """As if few records were many: the same bits."""
    for tag in TAGS[1:]:
        x, results = numbers(3, 19, 5, 6), []
        desc = described(alg, x.shape, (9, 13), tag, "half_pixel")
        for most in (1 << 14, 1):
            with tuned("phases", written_out=most, round_records=3), tuned("resampling", channels_cycles=1):
                pd = proved_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
            dst = dnn.Memory(desc.dst)
            dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, desc.src), dst=dst)
            results.append((pd.plan.phases, dst.array))
        assert any(phase.repeats for phase in results[1][0]) and np.array_equal(results[0][1], results[1][1])


def test_a_large_batch_of_large_planes_is_planned() -> None:
    src, dst = (dnn.MemoryDesc((200, 210, n, n), dnn.f32, "acdb") for n in (65, 513))
    plan = dnn.primitive_desc(dnn.ResamplingForward("linear", src, dst), engine=dnn.Engine(isa="avx2")).plan
    assert sum(len(phase.records) for phase in plan.phases) < 1 << 14 < sum(phase.count for phase in plan.phases)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize(
    ("alg", "row", "level"),
    [("linear", 20, "avx2"), ("linear", 30, "avx512_core"), ("linear", 16, "avx512_core"),
     ("linear", 40, "avx512_core"), ("nearest", 20, "avx512_core")],
)  # fmt: skip
def test_rows_that_end_in_a_half_empty_register(alg: ResamplingAlgorithm, row: int, level: str) -> None:
    """A class may want ymm registers for such rows if they are short; what is only copied is not worth it."""
    tuning = with_numbers(DEFAULT, "resampling", wide_row=40)
    dims, sizes = (1, 3, 5, row // 2), (10, row)
    engine = dnn.Engine(isa="avx512_core", threads=1, tuning=tuning)
    pd = proved_desc(described(alg, dims, sizes, "ab{}", "half_pixel"), engine=engine)
    assert pd.implementation == "rows:avx512_core"
    assert {spec.isa for spec in pd.plan.specs} == {level}
    x = numbers(*dims)
    memories = {"src": dnn.Memory.from_array(x), "dst": dnn.Memory(pd.dst_desc)}
    emulate_plan(pd.plan, memories)
    np.testing.assert_allclose(memories["dst"].numpy(), expected(alg, x, sizes, "half_pixel"), rtol=0, atol=1e-6)
