"""The specs of gradients of maxima: tails, cells and vectors at a time, kinds of places, types, sums that go on."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels, rounded
from asmdnn.generators.pooling.maxima_gradient import CellPixel, MaximaGradientSpec, WindowPlace
from asmdnn.records import replace
from asmdnn.types import F32_BYTES


def maxima_gradients(isa: str) -> Iterator[MaximaGradientSpec]:
    lanes = LANES[isa]
    for elements in (1, lanes - 1, lanes, 2 * lanes + 3, 5 * lanes):
        pixel = elements + 1
        positions = tuple(WindowPlace(at * pixel, 8 - at) for at in (0, 1, 7))
        one, two = (CellPixel(0, 0, positions),), (CellPixel(0, 0, positions[1:]), CellPixel(1, pixel, positions))
        for of_cell in (one, two):
            cell = F32_BYTES * pixel * (1 + len(of_cell))
            whole = MaximaGradientSpec(isa=isa, cells=5, elements=elements, cell_bytes=cell, step=pixel, pixels=of_cell)
            yield whole
            yield replace(whole, kinds=("f32", "f32", "s32"), numbered=2)
        yield replace(whole, accumulates=True)
        yield replace(whole, ahead=3 * pixel)
        for kind in ("bf16", "f16"):
            narrow = replace(whole, cells=3, cell_bytes=cell // 2)
            yield replace(narrow, kinds=(kind, kind, "u8"))
            yield replace(narrow, kinds=(kind, "f32", "s32"), numbered=3, accumulates=True)
    nothing, many = CellPixel(0, 0, ()), tuple(WindowPlace(-3 * lanes * n, 255 - n) for n in range(30))
    yield MaximaGradientSpec(
        isa=isa, cells=3, elements=lanes, cell_bytes=2 * F32_BYTES * lanes, step=lanes, pixels=(nothing,),
        streaming=True,
    )  # fmt: skip
    yield MaximaGradientSpec(
        isa=isa, cells=1, elements=lanes, cell_bytes=F32_BYTES * lanes, step=0, pixels=(CellPixel(0, 0, many),),
        kinds=("f32", "bf16", "u8"),
    )  # fmt: skip
    yield MaximaGradientSpec(
        isa=isa, cells=3, elements=lanes, cell_bytes=F32_BYTES * lanes, step=lanes, pixels=(CellPixel(0, 0, many[:2]),),
        streaming=True, ahead=lanes,
    )  # fmt: skip
    six = tuple(CellPixel(n, n * lanes, many[n : n + 2]) for n in range(6))
    yield MaximaGradientSpec(isa=isa, cells=2, elements=lanes, cell_bytes=7 * F32_BYTES * lanes, step=lanes, pixels=six)


FAMILIES = {
    **of_levels("pool", maxima_gradients=maxima_gradients),
    "maxima-rounded": rounded(maxima_gradients),
}
