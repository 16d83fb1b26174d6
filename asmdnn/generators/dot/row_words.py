"""The words of an image that kernels of rows read, so that their code knows neither its size nor its bands.

In front numbers of post-ops, distances and how often segments come, then the words of every band, then 0 in the place
of a band's rows.  What the code of a spec has no use for is left out.
"""

from collections.abc import Iterator
from functools import cache

from asmdnn.generators.dot.grouped_shape import GroupedRows
from asmdnn.generators.dot.row_cuts import Band
from asmdnn.generators.functions.numbers import words_of_numbers

WORD_BYTES = 8
ROW_OF_SRC, ROW_OF_DST = "row of src", "row of dst"  # bytes from the end a row's last pixel to the next row's first
BACK_IN_SRC, BACK_IN_DST = "back in src", "back in dst"  # bytes from the end the first segment back to the second one
NUMBERS = "numbers"  # of post-ops, as instructions read them; which word follows
TIMES = "times"  # of a segment that is counted; its number follows
TAP_OF_SRC = "tap of src"  # bytes from the last input of a kernel row to the first one of the next
INPUT_OF_SRC = "input of src"  # bytes from an input to the next one
ROWS = "rows"  # of dst in a band
KERNEL_ROWS = "kernel rows"  # that are inside
CUT_ROWS = "cut kernel rows"  # of these, where lanes have less in such a row
FIRST_OF_SRC, FIRST_OF_WEIGHTS = "first of src", "first of weights"  # bytes from the band before's first kernel row
PLANE_OF_SRC, PLANE_OF_WEIGHTS = "plane of src", "plane of weights"  # bytes from the end the last one to the next plane


def words_of_rows(spec: GroupedRows) -> Iterator[int]:
    """All of them."""
    yield from words_in_front(spec).values()
    before = 0
    for band in spec.bands:
        yield from words_of_band(spec, band, before).values()
        before = band.first
    yield 0


def words_in_front(spec: GroupedRows) -> dict[str, int]:
    """By name, in order.  The distance of inputs is read in a stretch of code that kernels of other segments copy, so
    its place depends on none."""
    step, between = spec.stride * spec.src_pixel_bytes, spec.input_step_bytes
    numbers = words_of_numbers(spec.numbers, spec.isa) if spec.numbers else ()
    found = dict(zip(numbered(NUMBERS, len(numbers)), numbers, strict=True))
    found |= {} if between is None else {INPUT_OF_SRC: between}
    found[ROW_OF_SRC] = spec.src_row_bytes - spec.width * step
    found[ROW_OF_DST] = spec.dst_row_bytes - spec.width * spec.dst_pixel_bytes
    if len(spec.segments) > 1:
        found |= {BACK_IN_SRC: spec.overlap * step, BACK_IN_DST: spec.overlap * spec.dst_pixel_bytes}
    found |= {f"{TIMES} {i}": segment.times for i, segment in enumerate(spec.segments) if segment.is_counted}
    if multiplies(spec):
        found[TAP_OF_SRC] = spec.src_tap_bytes - (spec.parts - 1) * (between or 0)
    return found


@cache
def numbered(word: str, count: int) -> tuple[str, ...]:
    """The names of so many words."""
    return tuple(f"{word} {i}" for i in range(count))


def words_of_band(spec: GroupedRows, band: Band, before: int = 0) -> dict[str, int]:
    """By name, in order; the band before's first kernel row is `before`."""
    found = {ROWS: band.rows}
    if multiplies(spec):
        rows = band.first - before
        found |= {FIRST_OF_SRC: rows * spec.src_tap_bytes, FIRST_OF_WEIGHTS: rows * spec.weights_row_bytes}
        cut = spec.cut_rows(band)
        found[KERNEL_ROWS] = band.count - (cut or 0)
        found |= {} if cut is None else {CUT_ROWS: cut}
    if multiplies(spec) and spec.planes > 1:
        found[PLANE_OF_SRC] = spec.src_plane_bytes - band.count * spec.src_tap_bytes
        found[PLANE_OF_WEIGHTS] = spec.weights_plane_bytes - band.count * spec.weights_row_bytes
    return found


def multiplies(spec: GroupedRows) -> bool:
    """Whether any window reaches into the image."""
    return bool(spec.planes) and any(segment.low < segment.high for segment in spec.segments)
