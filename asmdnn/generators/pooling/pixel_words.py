"""The words of an image that kernels of pixels read, so that their code knows neither its size nor its distances.

How often the loops outside of a row come, and how far pointers move after each; how often a whole tile of pixels comes
in a row; then what the window is: where its rows begin, if it is unrolled and they are few, or how it is walked.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod

from asmdnn.generators.pooling.window import PixelLoop, Taps, offsets
from asmdnn.isa.formula import bits_of

WORD_BYTES = 8
TILES = "tiles"  # of pixels in a row
DIVISOR = "divisor"  # of the sum of a window that is walked: an f32, twice
MOST_ROWS = 4  # of a window: each has a pointer
UNROLLED = 64  # positions of a window; of more loops go through it
TWICE = 2**32 + 1
ANY = 0  # what is a word, where it stands for all of its values


def image_words(
    loops: Sequence[PixelLoop], window: Sequence[Taps], pixels: int, divisor: int, is_mean: bool
) -> dict[str, int]:
    """By name, in order."""
    found: dict[str, int] = {}
    for level, (loop, inner) in enumerate(pairwise(loops)):
        found[times_of(level)] = loop.times
        found[src_step(level)] = loop.src_bytes - inner.times * inner.src_bytes
        found[dst_step(level)] = loop.dst_bytes - inner.times * inner.dst_bytes
    if loops[-1].times >= pixels:
        found[TILES] = loops[-1].times // pixels
    if is_walked(window):
        for level, (axis, inside) in enumerate(pairwise(window)):
            found |= {
                positions_of(level): axis.positions,
                axis_step(level): axis.bytes - inside.positions * inside.bytes,
            }
        found[positions_of(len(window) - 1)] = window[-1].positions
        return found | ({DIVISOR: bits_of(float(divisor)) * TWICE} if is_mean else {})
    return found | {row_of(number): at for number, at in further_rows(window)}


def further_rows(window: Sequence[Taps]) -> Iterator[tuple[int, int]]:
    """(number, byte offset) of the rows of a window after its first one, if they are words."""
    *outer, columns = window
    count = prod(window_sizes(outer))
    are_words = columns.positions and 1 < count <= MOST_ROWS and not is_walked(window)
    return enumerate(offsets(outer)[1:] if are_words else (), 1)


def is_walked(window: Sequence[Taps]) -> bool:
    return prod(window_sizes(window)) > UNROLLED


def window_sizes(window: Sequence[Taps]) -> list[int]:
    return [taps.positions for taps in window]


def loops_in_code(loops: Sequence[PixelLoop], pixels: int) -> tuple[PixelLoop, ...]:
    """The loops without what is words: how many there are, and whether the last one has tiles, and the rest."""
    *outer, row = loops
    left = row.times % pixels + (pixels if row.times >= pixels else 0)
    return (*[PixelLoop(ANY, ANY, ANY) for _ in outer], row._replace(times=left))


def window_in_code(window: Sequence[Taps]) -> tuple[Taps, ...]:
    """The window without what is words."""
    *outer, columns = window
    if is_walked(window):
        return (*[Taps(UNROLLED + 1, ANY) for _ in outer], Taps(UNROLLED + 1, columns.bytes))
    are_words = any(True for _ in further_rows(window))
    return (*[Taps(taps.positions, ANY if are_words else taps.bytes) for taps in outer], columns)


def times_of(level: int) -> str:
    """Of a loop."""
    return f"times {level}"


def src_step(level: int) -> str:
    """Bytes from the end of the loop inside to the next step of this one."""
    return f"src {level}"


def dst_step(level: int) -> str:
    return f"dst {level}"


def positions_of(level: int) -> str:
    """Of a window along an axis."""
    return f"positions {level}"


def axis_step(level: int) -> str:
    """Bytes from the end of the axis inside to the next position of this one."""
    return f"axis {level}"


def row_of(number: int) -> str:
    """Bytes from the first row of a window to this one."""
    return f"row {number}"
