"""Into what the rows of an image are cut: bands of rows that kernel rows reach alike, segments of pixels of a row."""

from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class Band:
    """`rows` output rows that the kernel rows [first, first + count) reach; without any, they are bias alone."""

    rows: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Segment:
    """`pixels` output pixels of a row, `times` such pieces one after another.

    Of the source columns, counted from the first one that the first pixel's window has, those of [low, high) are
    inside the image.  is_counted: `times` is no part of the code, but a number that it reads.
    """

    pixels: int
    low: int
    high: int
    times: int = 1
    is_counted: bool = False
