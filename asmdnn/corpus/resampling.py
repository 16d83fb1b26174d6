"""The specs of resampling: taps of no, one and several axes; tails and groups of channels; loops; streaming; dense
rows: shorter than a vector, ending in the middle of one, in loops of vectors; taps of rows, of columns, of both;
post-ops; rows that become shorter, from two vectors and more, and from one for each result; bits that are moved."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels, rounded
from asmdnn.generators.functions.postops import EltwiseOp, PostOp, ReluOp
from asmdnn.generators.functions.resample import ResampleSpec, ResampleStep
from asmdnn.generators.functions.resample_columns import Column, Pick, first_result
from asmdnn.generators.functions.resample_rows import ResampleRowsSpec
from asmdnn.generators.functions.resample_rows_typed import TypedResampleRowsSpec
from asmdnn.generators.functions.resample_typed import TypedResampleSpec
from asmdnn.isa.elements import size_of

CHAIN: tuple[PostOp, ...] = (EltwiseOp("linear", 2.0, -1.0, 1.0), ReluOp(0.5))


def taps(isa: str) -> Iterator[ResampleSpec]:
    lanes = LANES[isa]
    for elements in (1, lanes, 4 * lanes + 3, 9 * lanes):
        pixel = 4 * elements
        row = 7 * pixel
        two, four = (0, pixel), (0, pixel, 2 * pixel, 2 * pixel)
        for found in ((two,), ((0, row), two), ((0,), (0,)), ((0, 4 * row), (0, row), two), ((0, row), (0,))):
            yield ResampleSpec(
                isa=isa, loops=(ResampleStep(3, pixel, 2 * pixel, 16),), taps=found, elements=elements, together=2,
                dst_pixel_bytes=pixel,
            )  # fmt: skip
        if elements < 4 * lanes:
            cubic = (0, 0, row, 2 * row)
            yield ResampleSpec(
                isa=isa, loops=(ResampleStep(2, 9 * row, row, 0), ResampleStep(2, pixel, pixel, 16)),
                taps=(cubic, four), elements=elements, together=1, dst_pixel_bytes=0,
            )  # fmt: skip
    yield ResampleSpec(
        isa=isa, loops=(ResampleStep(3, 0, 4 * lanes, 8),), taps=((0, 64 * lanes), (0, 4 * lanes)), elements=lanes,
        together=1, dst_pixel_bytes=0, streaming=True,
    )  # fmt: skip
    pixel = 4 * lanes + 12
    for last in ((0,), (0, pixel)):
        loops = (ResampleStep(2, pixel, 2 * pixel, 8 * len(last)),)
        yield ResampleSpec(
            isa=isa, loops=loops, taps=((0, 9 * pixel), last), elements=lanes + 3, together=2, dst_pixel_bytes=pixel,
            chain=CHAIN,
        )  # fmt: skip


def typed(isa: str) -> Iterator[TypedResampleSpec]:
    """Every type on either side; weights of no, one and both axes; groups of channels, and a tail."""
    lanes = LANES[isa]
    pairs = (("u8", "u8"), ("s8", "f32"), ("bf16", "bf16"), ("f16", "f16"), ("f32", "s8"), ("s32", "bf16"))
    for i, (src, dst) in enumerate(pairs):
        for elements in (lanes, 4 * lanes + 3):
            pixel, result = size_of(src) * elements, size_of(dst) * elements
            two, row = (0, pixel), 7 * pixel
            found = (((0, row), two), (two,), ((0, row), (0,)))[i % 3]
            loops = (ResampleStep(3, pixel, 2 * result, 8 * len(found[-1])),)
            chain: tuple[PostOp, ...] = (ReluOp(0.5),) if i == 2 else ()
            yield TypedResampleSpec(
                isa=isa, loops=loops, taps=found, elements=elements, together=2, dst_pixel_bytes=result, chain=chain,
                types=(src, dst),
            )  # fmt: skip


def columns(width: int, results: int, taps: int, lanes: int, size: int = 4) -> tuple[Column, ...]:
    """Neighbours of every result's place in a row."""
    found = []
    for vector in range(-(-results // lanes)):
        first = first_result(vector, results, lanes)
        picks = []
        for tap in range(taps):
            places = [min(o * width // results + tap, width - 1) for o in range(first, min(results, first + lanes))]
            begin = min(places[0], max(0, width - lanes))
            picks.append(Pick(size * begin, (*(at - begin for at in places), *[0] * (lanes - len(places)))))
        found.append(tuple(picks))
    return tuple(found)


def rows(isa: str) -> Iterator[ResampleRowsSpec]:
    lanes = LANES[isa]
    for width, results in ((3, 5), (lanes - 1, 2 * lanes), (lanes, lanes), (lanes + 3, 3 * lanes - 1)):
        src, dst = 4 * width, 4 * results
        for across, along in (((0,), 1), ((0, src), 1), ((0, src), 2), ((0, src, 2 * src, 2 * src), 4)):
            loops = (
                ResampleStep(2, 5 * src, 6 * dst, 0),
                ResampleStep(2, src, 2 * dst, 8 * len(across) * (len(across) > 1)),
            )
            yield ResampleRowsSpec(
                isa=isa, loops=loops, taps=across, columns=columns(width, results, along, lanes), width=width,
                results=results, together=2, dst_row_bytes=dst,
            )  # fmt: skip
        if width == lanes:
            made = columns(width, results, 2, lanes)
            for across in ((0,), (0, 8 * src)):
                yield ResampleRowsSpec(
                    isa=isa, loops=(ResampleStep(1, 0, 0, 0),), taps=across, columns=made, width=width, results=results,
                    together=2, dst_row_bytes=dst, chain=CHAIN,
                )  # fmt: skip
    width, results = 9 * lanes, 18 * lanes
    for along, streaming in ((1, True), (2, False)):
        made = columns(width, results, along, lanes)
        yield ResampleRowsSpec(
            isa=isa, loops=(ResampleStep(2, 4 * width, 4 * results, 0),), taps=(0,), columns=made, width=width,
            results=results, together=1, dst_row_bytes=0, streaming=streaming,
        )  # fmt: skip


def shorter(isa: str) -> Iterator[ResampleRowsSpec]:
    """Of two, three and as many vectors of src as results; in a loop of vectors that are made alike."""
    lanes = LANES[isa]
    few, many = (lanes * (lanes + 2), lanes), (27 * lanes, 18 * lanes)
    for width, results in ((2 * lanes - 3, lanes + 1), (5 * lanes, 2 * lanes + 3), few, many):
        for across, along in (((0,), 1), ((0, 4 * width), 2)):
            yield ResampleRowsSpec(
                isa=isa, loops=(ResampleStep(2, 8 * width, 4 * results, 8 * (along > 1)),), taps=across,
                columns=columns(width, results, along, lanes), width=width, results=results, together=1,
                dst_row_bytes=0, chain=CHAIN if results == lanes else (),
            )  # fmt: skip


def typed_rows(isa: str) -> Iterator[TypedResampleRowsSpec]:
    """Every type on either side; no, one and both weights; tails, from two vectors, post-ops."""
    lanes = LANES[isa]
    pairs = (("u8", "u8"), ("s8", "f32"), ("bf16", "bf16"), ("f16", "f16"), ("f32", "s8"), ("s32", "bf16"))
    for i, (src, dst) in enumerate(pairs):
        for width, results in ((5, 3), (3 * lanes, lanes + 2)):
            row, made = size_of(src) * width, size_of(dst) * results
            across, along = (((0,), 2), ((0, row), 1), ((0, row), 2))[i % 3]
            weights = 8 * len(across) * (len(across) > 1)
            yield TypedResampleRowsSpec(
                isa=isa, loops=(ResampleStep(2, 2 * row, 2 * made, weights),), taps=across,
                columns=columns(width, results, along, lanes, size_of(src)), width=width, results=results, together=2,
                dst_row_bytes=made, chain=(ReluOp(0.5),) if i == 2 else (), types=(src, dst),
            )  # fmt: skip


def bits(isa: str) -> Iterator[TypedResampleRowsSpec]:
    lanes = LANES[isa]
    short, long = ((3, 5), (lanes - 1, 2 * lanes)), ((3 * lanes, lanes + 2), (9 * lanes, 18 * lanes))
    for size in (1, 2):
        for width, results in (*short, (lanes + 3, 3 * lanes - 1), *long):
            yield TypedResampleRowsSpec(
                isa=isa, loops=(ResampleStep(2, size * width, 2 * size * results, 0),), taps=(0,),
                columns=columns(width, results, 1, lanes, size), width=width, results=results, together=2,
                dst_row_bytes=size * results, types=(f"b{8 * size}",) * 2,
            )  # fmt: skip


FAMILIES = {
    **of_levels("resample", taps=taps, rows=rows, typed=typed, shorter=shorter, typed_rows=typed_rows, bits=bits),
    "resample-rounded": rounded(typed),
}
