"""Which rows lanes of a depthwise convolution take, and which pixels meet which positions; see depthwise.py."""

from collections.abc import Iterator, Sequence
from typing import Any

from asmdnn.generators.dot.grouped_shape import Uses
from asmdnn.generators.dot.row_cuts import Band
from asmdnn.isa.assembler import Register
from asmdnn.records import dataclass

Factors = list[list[Register]]  # of each output row, weights of a column of the kernel


@dataclass(frozen=True, slots=True)
class RowsOfLanes:
    """The rows of a window, and for every output row those of the kernel, whose bytes a lane has; None: no row."""

    src: tuple[int | None, ...]
    kernel: tuple[tuple[int | None, ...], ...]

    @property
    def are_a_row_apart(self) -> bool:
        """Whether the second output row's are the first one's, a row further down."""
        first, second = self.kernel
        return second == (None, *first[:-1]) and first[-1] is None

    def having(self, of_rows: Sequence[Any]) -> list[Any]:
        """Of what is given for every output row, those to which a lane adds something."""
        return [x for x, rows in zip(of_rows, self.kernel, strict=False) if rows.count(None) < len(rows)]

    def pairs(self, factors: Factors) -> list[tuple[list[Register], tuple[int | None, ...]]]:
        """The weights of these, with their rows of the kernel."""
        return list(zip(self.having(factors), self.having(self.kernel), strict=True))


def rows_of_lanes(bands: Sequence[Band], size: int) -> Iterator[RowsOfLanes]:
    """All that output rows read which lie a kernel row apart, as many rows at a time as a lane takes."""
    reach = [range(j + band.first, j + band.first + band.count) for j, band in enumerate(bands)]
    ends = [rows for rows in reach if rows]
    low, high = min(rows.start for rows in ends), max(rows.stop for rows in ends)
    for first in range(low, high, size):
        lane = range(first, first + size)
        kernel = tuple(tuple(r - j if r in rows else None for r in lane) for j, rows in enumerate(reach))
        yield RowsOfLanes(tuple(r if r < high else None for r in lane), kernel)


def alike(uses: Uses) -> dict[tuple[int, ...], list[int]]:
    """The pixels that each set of kernel positions of a row reaches."""
    of_pixel: dict[int, list[int]] = {}
    for pairs in uses.values():
        for pixel, k in pairs:
            of_pixel.setdefault(pixel, []).append(k)
    found: dict[tuple[int, ...], list[int]] = {}
    for pixel, positions in of_pixel.items():
        found.setdefault(tuple(positions), []).append(pixel)
    return found


def balanced(total: int, most: int) -> list[int]:
    """`total` as a sum of the fewest numbers up to `most`, which differ by at most one."""
    count = -(-total // most)
    return [total // count + (i < total % count) for i in range(count)]
