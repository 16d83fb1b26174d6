"""The arena as a picture: time from left to right, bytes from bottom to top, a box for each value."""

from collections.abc import Iterator, Sequence
from html import escape

from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.page.model import ArenaBox, boxes_of, moments_of

WIDTH, HEIGHT, LEFT, BELOW = 1400.0, 460.0, 84.0, 30.0
TICK = 36  # between two numbers on the axis, at least
GRID = 4  # lines of bytes above the axis
GOLDEN_ANGLE = 137.508  # neighbours in time get colours that are far apart


def arena_picture(segment: CompiledSegment) -> Iterator[str]:
    """An inline SVG; nothing for a network that keeps no values."""
    size, moments = segment.layout.arena_bytes, moments_of(segment)
    if not size:
        return
    across, up = (WIDTH - LEFT) / moments[-1], (HEIGHT - BELOW) / size
    yield f'<svg class="arena" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="values in the arena">'
    yield from axes(size, moments, across, up)
    for box in boxes_of(segment):
        yield drawn(box, size, across, up)
    yield "</svg>"


def axes(size: int, moments: Sequence[int], across: float, up: float) -> Iterator[str]:
    """Bytes at the left, numbers of primitives below."""
    for line in range(GRID + 1):
        share = size * line / GRID
        y = (size - share) * up
        yield f'<path class="grid" d="M{LEFT:g} {y:.1f}H{WIDTH:g}"/>'
        yield f'<text class="axis" x="{LEFT - 6:g}" y="{min(max(y + 4, 13), HEIGHT - BELOW):.1f}" text-anchor="end">'
        yield f"{in_units(share)}</text>"
    free = LEFT
    for step, moment in enumerate(moments[:-1]):
        x = LEFT + moment * across
        if x >= free:
            yield f'<text class="axis" x="{x:.1f}" y="{HEIGHT - 12:g}">{step}</text>'
            free = x + TICK


def drawn(box: ArenaBox, size: int, across: float, up: float) -> str:
    """A box with its words, which show when the pointer is on it."""
    words = f"{box.name}: {in_units(box.size)} at byte {box.offset:,}, times {box.first} to {box.last}"
    x, width = LEFT + box.first * across, (box.last - box.first + 1) * across
    y, height = (size - box.offset - box.size) * up, max(box.size * up, 0.6)
    hue = round(210 + box.step * GOLDEN_ANGLE) % 360
    place = f'x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}"'
    return f'<rect class="v" style="--h:{hue}" data-step="{box.step}" {place}><title>{escape(words)}</title></rect>'


def in_units(size: float) -> str:
    """Bytes in a unit that leaves few digits."""
    for unit, one in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= one:
            return f"{size / one:.3g} {unit}"
    return f"{size:.0f} B"
