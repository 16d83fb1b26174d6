"""The specs of resampling: taps of no, one and several axes; tails and groups of channels; loops; streaming."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.resample import ResampleSpec, Step


def taps(isa: str) -> Iterator[ResampleSpec]:
    lanes = LANES[isa]
    for elements in (1, lanes, 4 * lanes + 3, 9 * lanes):
        pixel = 4 * elements
        row = 7 * pixel
        two, four = (0, pixel), (0, pixel, 2 * pixel, 2 * pixel)
        for found in ((two,), ((0, row), two), ((0,), (0,)), ((0, 4 * row), (0, row), two), ((0, row), (0,))):
            yield ResampleSpec(isa, (Step(3, pixel, 2 * pixel, 16),), found, elements, 2, pixel)
        if elements < 4 * lanes:
            cubic = (0, 0, row, 2 * row)
            yield ResampleSpec(
                isa, (Step(2, 9 * row, row, 0), Step(2, pixel, pixel, 16)), (cubic, four), elements, 1, 0
            )
    yield ResampleSpec(isa, (Step(3, 0, 4 * lanes, 8),), ((0, 64 * lanes), (0, 4 * lanes)), lanes, 1, 0, True)


FAMILIES = of_levels("resample", taps=taps)
