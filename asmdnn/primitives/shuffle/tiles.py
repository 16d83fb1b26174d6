"""Which units of dst a shuffle builds together, for an axis whose elements lie together in runs of 16 bytes or more.

The axis of dst is a matrix of `rows` x `columns`, that of src its transpose.  Units that share windows of src should be
in one tile: a few whole rows of src (interleave), of dst (deinterleave), or a square of both.
"""

from bisect import bisect_left, bisect_right
from itertools import chain

from asmdnn.generators.move.shuffle_body import Part, Tile
from asmdnn.generators.move.shuffle_network import DWORD_BYTES, ZERO
from asmdnn.planning.move_tuning import MoveTuning
from asmdnn.records import dataclass, replace

MOST_UNITS = 8  # of one tile; an unpack of as many fits the registers


@dataclass(frozen=True, slots=True)
class ShuffledAxis:
    """Where the elements of the shuffled axis are.

    offsets: bytes from the first one, padding included.  run_bytes: of each run of elements that lie together;
    unit_bytes: of what kernels move at a time, 0 where none lie together.
    """

    element_bytes: int
    unit_bytes: int
    size: int
    rows: int
    offsets: tuple[int, ...]
    run_bytes: int

    @property
    def columns(self) -> int:
        return self.size // self.rows

    @property
    def lanes(self) -> int:
        return self.unit_bytes // self.element_bytes

    @property
    def is_dense(self) -> bool:
        """One run without padding: units may then start at every element."""
        return self.run_bytes == self.size * self.element_bytes

    @property
    def rereads(self) -> bool:
        """Whether blocks of dst that come from the same block of src are no neighbours: its rows are longer."""
        return not self.is_dense and self.columns * self.element_bytes > self.run_bytes

    def origin(self, c: int) -> int:
        """The place in src of dst's element c, or ZERO if it is padding."""
        if c >= self.size:
            return ZERO
        row, column = divmod(c, self.columns)
        return self.offsets[column * self.rows + row]


def tiles_of(axis: ShuffledAxis, tuning: MoveTuning) -> list[Tile]:
    """Tiles that together write all of the axis, padding included."""
    groups = dst_rows(axis) if goes_by_rows(axis, tuning) else dst_in_order(axis, tuning.few_shuffle_rows)
    if not axis.is_dense:
        done = set(chain.from_iterable(groups))
        rest = [c for c in range(0, len(axis.offsets), axis.lanes) if c not in done]
        groups += [rest[i : i + MOST_UNITS] for i in range(0, len(rest), MOST_UNITS)]
    return [tile_of(axis, starts) for starts in groups]


def goes_by_rows(axis: ShuffledAxis, tuning: MoveTuning) -> bool:
    """Whether units are taken from within rows of dst: they are long, and units may start where rows do.

    Units that do not divide a row overlap, so the row must be long enough.  With 8 rows and more, elements of 1 or 2
    bytes pay for that earlier, because then rows are unpacked.
    """
    if axis.columns % axis.lanes == 0:
        return True
    unpacked = axis.element_bytes < DWORD_BYTES and axis.rows >= MOST_UNITS
    units = tuning.row_units if not unpacked else 1 if axis.rows > MOST_UNITS else tuning.unpacked_row_units
    return axis.is_dense and axis.columns >= units * axis.lanes


def dst_rows(axis: ShuffledAxis) -> list[list[int]]:
    """Tiles of the same unit of some rows of dst; the last unit of a row may overlap the one before it.

    If a row is two units, of both: then dst is written in order.
    """
    count = axis.rows if axis.rows <= MOST_UNITS else min(MOST_UNITS, axis.lanes)
    if axis.columns == 2 * axis.lanes:
        count = MOST_UNITS // 2
        starts = overlapped(axis.rows, count) if axis.is_dense and axis.rows >= count else range(0, axis.rows, count)
        return [[c * axis.lanes for c in range(2 * first, 2 * min(first + count, axis.rows))] for first in starts]
    return [
        [row * axis.columns + column for row in range(first, min(first + count, axis.rows))]
        for column in overlapped(axis.columns, axis.lanes)
        for first in range(0, axis.rows, count)
    ]


def dst_in_order(axis: ShuffledAxis, few_rows: int) -> list[list[int]]:
    """Tiles of units that follow one another, as many as dst has columns if these are few: then src is read in rows.

    If dst has few rows instead, tiles of units that come from the same place, one from each row.
    """
    if axis.is_dense:
        count = axis.columns * axis.lanes
        starts = overlapped(axis.size, count) if axis.size >= count else [0]
        return [overlapped_from(start, min(count, axis.size), axis.lanes) for start in starts]
    units = list(range(0, axis.size, axis.lanes))
    count = axis.columns
    if count > few_rows:
        count = min(axis.rows, MOST_UNITS)
        units.sort(key=axis.origin)
    return [units[i : i + count] for i in range(0, len(units), count)]


def overlapped(size: int, step: int) -> list[int]:
    """Starts of pieces of `step` that cover `size` >= step, the last one moved back to fit."""
    return sorted({min(start, size - step) for start in range(0, size, step)})


def overlapped_from(start: int, size: int, step: int) -> list[int]:
    return [start + at for at in overlapped(size, step)]


def tile_of(axis: ShuffledAxis, starts: list[int]) -> Tile:
    """The units of dst that begin at the elements `starts`, from the fewest windows."""
    origins = [[axis.origin(c + i) for i in range(axis.lanes)] for c in starts]
    windows: list[int] = []
    for at in sorted({origin for unit in origins for origin in unit} - {ZERO}):
        if not windows or at >= windows[-1] + axis.unit_bytes:
            windows.append(min(at, run_end(axis, at) - axis.unit_bytes))
    lanes = []
    for unit in origins:
        found = []
        for origin in unit:
            window = bisect_right(windows, origin) - 1
            found.append(ZERO if origin == ZERO else window * axis.unit_bytes + origin - windows[window])
        lanes.append(tuple(found))
    return Tile(tuple(windows), tuple(axis.offsets[c] for c in starts), tuple(lanes))


def run_end(axis: ShuffledAxis, at: int) -> int:
    """Where the run of elements ends that holds the element at byte `at`."""
    index, length = bisect_left(axis.offsets, at), axis.run_bytes // axis.element_bytes
    return axis.offsets[index - index % length] + axis.run_bytes


def parts_of(tiles: list[Tile]) -> tuple[Part, ...]:
    """The tiles in order, each stretch of equal ones at equal distances as one part."""
    parts: list[Part] = []
    for tile in tiles:
        part = based(tile)
        last = parts[-1] if parts else None
        if last and last.tile == part.tile:
            before = last.count - 1
            src_step = part.src - last.src - before * last.src_step
            dst_step = part.dst - last.dst - before * last.dst_step
            if not before or (src_step, dst_step) == (last.src_step, last.dst_step):
                parts[-1] = replace(last, count=last.count + 1, src_step=src_step, dst_step=dst_step)
                continue
        parts.append(part)
    return tuple(parts)


def based(tile: Tile) -> Part:
    """The tile with displacements from its lowest window and unit, and where these are."""
    src, dst = min(tile.windows, default=0), min(tile.dst)
    return Part(Tile(tuple(w - src for w in tile.windows), tuple(d - dst for d in tile.dst), tile.lanes), src, dst)
