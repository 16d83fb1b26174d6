"""How many rows a strip has, and whether strips are faster than one convolution after the other, in expected cycles.

Both multiply the same, but for the rows at the edges of strips, which are computed again for every strip.  What differs
is how far tensors travel: the middle one goes beyond L2 and comes back unless it fits, of strips only where a strip of
it does not fit; src comes again for every panel of channels where a strip of it does not stay in L2 meanwhile.
"""

from collections.abc import Iterator
from math import prod

from asmdnn.planning.plan import Plan
from asmdnn.primitives.convolution.pairs.pair import Pair
from asmdnn.primitives.convolution.pairs.parts import ROWS, strips_of
from asmdnn.primitives.core.engine import Engine

KIB = 1024
FLOAT_BYTES = 4


def heights(rows: int) -> Iterator[int]:
    """Of strips, to consider: all rows, and ever smaller shares of them."""
    strips = 1
    while strips <= rows:
        yield -(-rows // strips)
        strips += max(1, strips // 2)


def strips_cycles(pair: Pair, plans: tuple[Plan, Plan], panel: int, rows: int, engine: Engine) -> float:
    """In strips of so many rows of dst; plans: of both convolutions as they are."""
    images, channels, src_rows, *across = pair.second.src.dims
    strips = strips_of(pair.second, rows)
    row_bytes = FLOAT_BYTES * prod(across)
    highest = max(strip.src_rows for strip in strips)
    middle = highest * row_bytes * min(panel, channels)
    source = highest * row_bytes * pair.first.src.dims[1]
    computed = sum(strip.src_rows for strip in strips)
    room = engine.l2_bytes * engine.tuning.pairs.strip_share
    panels = -(-channels // panel)
    read = computed * row_bytes * pair.first.src.dims[1] * (1 if middle + source <= room else panels)
    spilled = 2 * computed * row_bytes * channels if middle > room else 0
    calls = len(strips) * panels * images * engine.tuning.phases.call_cycles
    first, second = (plan.cycles for plan in plans)
    return first * computed / src_rows + second + calls + far_cycles(images * read, images * spilled, engine)


def phases_cycles(pair: Pair, plans: tuple[Plan, Plan], engine: Engine) -> float:
    """One after the other."""
    images, channels, *pixels = pair.second.src.dims
    plane = FLOAT_BYTES * images * prod(pixels)
    room = engine.l2_bytes * engine.tuning.pairs.strip_share
    spilled = 2 * plane * channels if plane * channels > room else 0
    return sum(plan.cycles for plan in plans) + far_cycles(plane * pair.first.src.dims[1], spilled, engine)


def may_gain(pair: Pair, engine: Engine) -> bool:
    """Whether strips may cost less, whatever the plans are: they save nothing but ways beyond L2, of what does not fit,
    if they compute no fewer rows."""
    middle, src_rows = FLOAT_BYTES * prod(pair.second.src.dims), pair.second.src.dims[ROWS]
    every = (strips_of(pair.second, rows) for rows in heights(pair.second.dst.dims[ROWS]))
    fewer = any(sum(strip.src_rows for strip in strips) < src_rows for strips in every)
    return fewer or middle > engine.l2_bytes * engine.tuning.pairs.strip_share


def far_cycles(read: int, spilled: int, engine: Engine) -> float:
    """For so many bytes of src, and of the middle, from beyond L2."""
    tuning = engine.tuning.pairs
    return (read * tuning.source_kib_cycles + spilled * tuning.middle_kib_cycles) / KIB


def best_height(pair: Pair, plans: tuple[Plan, Plan], panel: int, engine: Engine) -> tuple[int, float]:
    """The rows of a strip, and what it is expected to cost."""
    images, channels, rows, *_ = pair.second.dst.dims
    groups = {height: images * -(-channels // panel) * -(-rows // height) for height in heights(rows)}
    least = engine.tuning.pairs.least_groups
    considered = [height for height, count in groups.items() if count >= least] or [min(groups)]
    cost = {rows: strips_cycles(pair, plans, panel, rows, engine) for rows in considered}
    best = min(cost, key=lambda rows: cost[rows])
    return best, cost[best]
