"""Padding of dst that the kernels of real elements write with them, so that lines are written once."""

from collections.abc import Iterable, Sequence

from asmdnn.planning.loops import DST, Box, Loop, merge
from asmdnn.primitives.reorder.blocks import Blocks
from asmdnn.primitives.reorder.shape import NO_ZEROS, SINGLE, Zeros


def with_zeros(maker: Blocks, found: Sequence[Box]) -> list[tuple[Box, Zeros]]:
    """The boxes, and what padding their kernels take.

    That is padding after all rows of a transpose, over the same other loops, and short enough to be unrolled;
    padding after the columns of rows that are interleaved; and after each of short rows that touch in src.
    """
    if maker.style.few_sizes or not any(x.padding for x in found):
        return [(box, NO_ZEROS) for box in found]
    real, padding = [x for x in found if not x.padding], joined([x for x in found if x.padding], maker.sizes[1])
    result = []
    for box in real:
        rows = zero_rows(maker, box, padding)
        columns = zero_columns(maker, box, rows, padding)
        ends = 0 if rows or columns else zero_ends(maker, box, padding)
        result.append((box, Zeros(rows, columns, ends)))
    return [*result, *((box, NO_ZEROS) for box in padding)]


def zero_rows(maker: Blocks, box: Box, padding: list[Box]) -> int:
    """How many rows of zeros follow, whose padding is taken away."""
    shape = maker.shape(box, Zeros(rows=1))
    most = maker.most_zeros(shape)
    if most <= 0:
        return 0
    begin = box.dst + shape.rows.extent * shape.rows.dst
    return taken(padding, begin, others_of(box, shape.rows, shape.inner), maker.sizes[1], shape.rows.dst, most)


def zero_columns(maker: Blocks, box: Box, rows: int, padding: list[Box]) -> int:
    """How many columns of zeros follow rows that are interleaved, with their zeros; their padding is taken away."""
    shape = maker.shape(box, Zeros(rows, columns=1))
    if not shape.interleaves:
        return 0
    step = shape.columns.dst
    most = shape.most_columns(maker.sizes[1]) - shape.columns.extent
    others = others_of(box, shape.rows, shape.inner, shape.columns)
    return taken(padding, box.dst + shape.columns.extent * step, others, maker.sizes[1], step, most)


def zero_ends(maker: Blocks, box: Box, padding: list[Box]) -> int:
    """How many elements of zeros follow each short row, as many as its kernel stores; their padding is taken away."""
    count, columns = maker.ends(box), maker.shape(box).columns
    begin, size = box.dst + columns.extent * columns.dst, maker.sizes[1]
    return taken(padding, begin, others_of(box, columns), size, size, count, least=count) if count else 0


def taken(padding: list[Box], begin: int, outer: list[Loop], size: int, unit: int, most: int, *, least: int = 1) -> int:
    """How many units of padding begin there, in every step of the loops: from `least` up to `most`, or 0."""
    steps = sorted((x.extent, x.dst) for x in merge([Loop(x.extent, (0, x.dst)) for x in outer]))
    for box in padding:
        count = zeros_of(box, steps, size, unit) if box.dst == begin else 0
        if least <= count <= most:
            padding.remove(box)
            return count
    return 0


def others_of(box: Box, *own: Loop) -> list[Loop]:
    """The loops that padding shares with what it follows."""
    return [x for x in box.loops if not any(x is each for each in own)]


def zeros_of(padding: Box, outer: list[tuple[int, int]], size: int, unit: int) -> int:
    """How many units the padding has in every step of the loops `outer`; 0 if it has others than these."""
    dense = dense_of(padding, size)
    rest = sorted((x.extent, x.dst) for x in merge([Loop(x.extent, (0, x.dst)) for x in others_of(padding, dense)]))
    return dense.extent * size // unit if rest == outer and dense.extent * size % unit == 0 else 0


def joined(padding: Iterable[Box], size: int) -> list[Box]:
    """The same bytes in fewer boxes: one goes on where the dense loop of another ends, over the same other loops."""
    found: list[Box] = []
    for box in sorted(padding, key=lambda x: x.dst):
        dense = dense_of(box, size)
        others = others_of(box, dense)
        for i, before in enumerate(found):
            first = dense_of(before, size)
            if before.dst + first.extent * size == box.dst and others_of(before, first) == others:
                strides = tuple(size if t == DST else 0 for t in range(len(box.starts)))
                loops = merge([*others, Loop(first.extent + dense.extent, strides)])
                found[i] = Box(before.starts, tuple(loops), padding=True)
                break
        else:
            found.append(box)
    return found


def dense_of(padding: Box, size: int) -> Loop:
    return next((x for x in padding.loops if x.dst == size), SINGLE)
