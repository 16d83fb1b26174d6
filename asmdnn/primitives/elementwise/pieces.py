"""How element-wise work is cut: the rows that are dense in dst, the padding behind them, and pieces for records."""

from collections.abc import Iterable, Iterator, Sequence
from math import prod

from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import lanes_of, narrowed
from asmdnn.memory import MemoryDesc
from asmdnn.planning.loops import NEAR_STEP, Box, Loop, boxes, cut_loop
from asmdnn.planning.move_tuning import ElementwiseTuning
from asmdnn.types import F32_BYTES

LONGEST_PADDED = 64  # elements of a row of blocks
MANY_ROWS = 32  # threads share whole rows equally if there are so many


def read_along(tensors: Iterable[MemoryDesc]) -> list[Box] | None:
    """The boxes of the tensors; None if a row that is dense in dst is neither dense nor a single number elsewhere."""
    nests = boxes(list(tensors))
    return nests if all(max(along_dst(box).strides) <= 1 for box in nests) else None


def along_dst(box: Box) -> Loop:
    """The loop whose elements are dense in dst; a single element if there is none."""
    return next((loop for loop in box.loops if loop.dst == 1), Loop(1, (1,) * len(box.starts)))


def with_zeros(nests: Sequence[Box], isa: str) -> Iterator[tuple[Box, int]]:
    """Boxes, with how many elements of padding behind their rows kernels make 0, in whole vectors; other padding is a
    box of its own."""
    taken: set[Box] = set()
    found = {}
    for box in nests:
        row = along_dst(box)
        for rest in nests if row.extent < LONGEST_PADDED and not box.padding else ():
            zeros = along_dst(rest)
            whole = (row.extent + zeros.extent) % lanes_of(narrowed(isa, row.extent + zeros.extent)) == 0
            if rest.padding and whole and rest.dst == box.dst + row.extent and around(rest, zeros) == around(box, row):
                found[box] = zeros.extent
                taken.add(rest)
    for box in nests:
        if box not in taken:
            yield box, found.get(box, 0)


def around(box: Box, row: Loop) -> list[tuple[int, int]]:
    """The other loops, as dst has them."""
    return [(loop.extent, loop.dst) for loop in box.loops if loop is not row]


def cut(box: Box, along: Loop, tuning: ElementwiseTuning) -> Iterator[tuple[Box, Loop, Loop]]:
    """Boxes of which one loop is a row and one its repetition, short enough for a record; the others make records."""
    elements, again = row_elements(box, along, tuning)
    several = max(1, tuning.record_elements // max(1, min(elements, along.extent)))  # pieces of a row go together
    for piece, row in cut_loop(box, along, elements):
        others = [loop for loop in piece.loops if loop is not row and max(loop.strides) <= NEAR_STEP]
        rows = repetition(others, row, tuning.least_elements) if others else Loop(1, (0,) * len(row.strides))
        rows = again or rows
        most = several
        if any(stride not in (0, row.extent * along) for stride, along in zip(rows.strides, row.strides, strict=True)):
            most = min(tuning.most_rows, several)  # rows apart, whose footprint is listed row by row
        for part, some in cut_loop(piece, rows, most):
            yield part, row, some


def row_elements(box: Box, along: Loop, tuning: ElementwiseTuning) -> tuple[int, Loop | None]:
    """Of a record, at most; and where what is the same in all rows would not stay in L1, the loop over these rows."""
    others = [loop for loop in box.loops if loop is not along and loop.extent > 1 and max(loop.strides) <= NEAR_STEP]
    rows = repetition(others, along, tuning.least_elements) if others else along
    alike = sum(step != 0 == below for step, below in zip(along.strides, rows.strides, strict=True))
    if F32_BYTES * alike * min(along.extent, tuning.record_elements) <= tuning.repeated_bytes:
        many = prod(loop.extent for loop in box.loops if loop is not along) >= MANY_ROWS
        return tuning.whole_row if many and along.extent <= tuning.whole_row else tuning.record_elements, None
    most = tuning.repeated_bytes // (F32_BYTES * alike * LINE_BYTES) * LINE_BYTES
    return max(tuning.least_elements, most), rows


def repetition(others: Sequence[Loop], row: Loop, least_elements: int) -> Loop:
    """The loop that repeats a row: the nearest in dst, unless it comes to few elements; then one that has more."""
    return max(others, key=lambda x: (min(x.extent * row.extent, least_elements), -x.dst))
