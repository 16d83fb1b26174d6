"""The specs of gradients of maxima: tails, cells and vectors at a time, kinds of places, types, sums that go on."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels, rounded
from asmdnn.generators.pooling.maxima_gradient import CellPixel, MaximaGradientSpec, WindowPlace
from asmdnn.types import F32_BYTES


def maxima_gradients(isa: str) -> Iterator[MaximaGradientSpec]:
    lanes = LANES[isa]
    for elements in (1, lanes - 1, lanes, 2 * lanes + 3, 5 * lanes):
        pixel = elements + 1
        positions = tuple(WindowPlace(at * pixel, 8 - at) for at in (0, 1, 7))
        one, two = (CellPixel(0, 0, positions),), (CellPixel(0, 0, positions[1:]), CellPixel(1, pixel, positions))
        for of_cell in (one, two):
            cell = F32_BYTES * pixel * (1 + len(of_cell))
            shape = (isa, 5, elements, cell, pixel, of_cell)
            yield MaximaGradientSpec(*shape)
            yield MaximaGradientSpec(*shape, ("f32", "f32", "s32"), numbered=2)
        yield MaximaGradientSpec(*shape, accumulates=True)
        for kind in ("bf16", "f16"):
            narrow = (isa, 3, elements, cell // 2, pixel, two)
            yield MaximaGradientSpec(*narrow, (kind, kind, "u8"))
            yield MaximaGradientSpec(*narrow, (kind, "f32", "s32"), numbered=3, accumulates=True)
    nothing, many = CellPixel(0, 0, ()), tuple(WindowPlace(-3 * lanes * n, 255 - n) for n in range(30))
    yield MaximaGradientSpec(isa, 3, lanes, 2 * F32_BYTES * lanes, lanes, (nothing,), streaming=True)
    yield MaximaGradientSpec(isa, 1, lanes, F32_BYTES * lanes, 0, (CellPixel(0, 0, many),), kinds=("f32", "bf16", "u8"))
    six = tuple(CellPixel(n, n * lanes, many[n : n + 2]) for n in range(6))
    yield MaximaGradientSpec(isa, 2, lanes, 7 * F32_BYTES * lanes, lanes, six)


FAMILIES = {
    **of_levels("pool", maxima_gradients=maxima_gradients),
    "maxima-rounded": rounded(maxima_gradients),
}
