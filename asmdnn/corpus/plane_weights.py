"""The specs of gradients of weights whose lanes are pixels: what waits in registers, sets of sums, rows."""

from collections.abc import Iterator

from asmdnn.corpus.conv import of_levels
from asmdnn.generators.dot.plane_weights import UNROLLED, PlaneWeightsSpec, fits
from asmdnn.isa.vectors import lanes_of

PLANE, OUTPUT = 640, 512  # bytes from one to the next


def spec_of(isa: str, outputs: int, positions: int, columns: int, accumulate: bool = False) -> PlaneWeightsSpec:
    """Positions of a row: neighbours, and from the fourth on those of the next plane."""
    places = tuple(PLANE * (n // 3) + 4 * (n % 3) for n in range(positions))
    return PlaneWeightsSpec(
        isa=isa, outputs=outputs, plane_step=PLANE, positions=places, columns=columns, output_step=OUTPUT,
        accumulate=accumulate,
    )  # fmt: skip


def tiles(isa: str) -> Iterator[PlaneWeightsSpec]:
    """One sum and several, those of as many planes or positions as registers hold."""
    most = max(n for n in range(1, 64) if fits(isa, 1, n))
    for outputs, positions in ((1, 1), (1, 2), (2, 1), (1, most), (most, 1), (2, 3), (3, 2), (3, 3)):
        for accumulate in (False, True):
            yield spec_of(isa, outputs, positions, 2 * lanes_of(isa) + 3, accumulate)


def rows(isa: str) -> Iterator[PlaneWeightsSpec]:
    """Less than a vector, whole ones, loops over several with and without vectors and lanes that are left."""
    lanes, loop = lanes_of(isa), UNROLLED * lanes_of(isa)
    for columns in (1, lanes - 1, lanes, 3 * lanes, loop, loop + lanes, 2 * loop, 2 * loop + 5, 2 * loop + lanes + 1):
        yield spec_of(isa, 2, 3, columns)
    yield spec_of(isa, 1, 1, 2 * loop + 5)


FAMILIES = of_levels("plane-weights", tiles=tiles, rows=rows)
