"""What sums of tiles start from where src has a zero point: minus the zero point times the weights that a pixel meets.

    start[pixel, o] = -zero_point * sum over c and the kernel positions that reach pixel of weights[o, c, position]

A raster has zeros around images, which would have to be the zero point: it is known in the call alone, and need not be
a number of src's type.  So each set of positions has a start of its own, and the pixels that meet the same, which are
boxes, get copies of it.  Modulo 2^32, as all sums of bytes.
"""

from collections.abc import Sequence
from itertools import groupby, product
from typing import NamedTuple

import numpy as np

from asmdnn.generators.dot.starts import ARGUMENTS, StartsSpec
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.cuts import balanced
from asmdnn.planning.phase import Phase, View, records_of
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.description import ConvolutionDesc
from asmdnn.primitives.convolution.starts import MOST_VECTORS, SETS, ZERO_POINTS, begins
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.products.matrices import Matrix
from asmdnn.primitives.reorder.compensation import add_compensation, compensation_desc
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.types import s32

SUMS, ROWS, STARTS, MAP = "sums of weights", "sums by position", "starts of sets", "starts of pixels"


class PixelBox(NamedTuple):
    """Neighbouring pixels, and the numbers of the kernel positions that reach all of them."""

    begins: tuple[int, ...]
    sizes: tuple[int, ...]
    positions: tuple[int, ...]


def boxes_of(axes: Sequence[Axis]) -> list[PixelBox]:
    """All pixels, those of one box beside each other."""
    kernel = tuple(axis.all_positions.size for axis in axes)
    found = []
    for runs in product(*map(runs_of, axes)):
        places = np.meshgrid(*(np.array(at, np.int64) for _, _, at in runs), indexing="ij")
        numbers = np.ravel_multi_index(tuple(x.ravel() for x in places), kernel).tolist()
        found.append(PixelBox(tuple(x[0] for x in runs), tuple(x[1] for x in runs), tuple(numbers)))
    return found


def runs_of(axis: Axis) -> list[tuple[int, int, Sequence[int]]]:
    """Outputs that the same positions reach: the first, how many, and the numbers of these positions."""
    of, first = axis.all_positions, 0
    found: list[tuple[int, int, Sequence[int]]] = []
    for (low, high), run in groupby(axis.reach(np.arange(axis.o)).tolist()):
        count = len(list(run))
        found.append((first, count, [of.first + x * of.step for x in range(low, high)]))
        first += count
    return found


def add_starts(assembly: Assembly, desc: ConvolutionDesc, axes: Sequence[Axis], engine: Engine) -> Matrix:
    """Adds the phases that compute them; returns where they are, a row for each pixel of an image."""
    boxes, isa = boxes_of(axes), f32_level(engine.isa)
    channels, positions = desc.dst.dims[1], int(np.prod(desc.kernel))
    by_position = MemoryDesc((positions, channels), s32, f"aB{lanes_of(isa)}b")
    add_rows(assembly, desc, by_position)
    row_bytes = by_position.size_bytes // positions
    add_sets(assembly, boxes, row_bytes, isa)
    outputs = tuple(axis.o for axis in axes)
    dims = (*outputs, channels)
    whole = MemoryDesc(dims, s32, LETTERS[: len(dims)])
    assembly.scratch[MAP] = whole.size_bytes
    for number, box in enumerate(boxes):
        place = whole.submemory((*box.sizes, channels), (*box.begins, 0))
        start = number * row_bytes // s32.size_bytes
        once = MemoryDesc(place.dims, s32, strides=(*[0] * len(axes), 1), offset0=start)
        add_reorder(assembly, Reordering(STARTS, once, MAP, place))
    *steps, row, column = whole.strides_bytes
    group = [channels // desc.groups * column] * desc.has_groups
    return Matrix(MAP, 0, (*group, 0, *steps), row, column, s32)


def add_rows(assembly: Assembly, desc: ConvolutionDesc, by_position: MemoryDesc) -> None:
    """Minus the sums over input channels, a row of all output channels for each kernel position."""
    weights, into = desc.weights, 1 + desc.has_groups
    mask = (1 << weights.ndims) - 1 - (1 << into)
    sums = compensation_desc(weights, mask)
    assembly.scratch |= {SUMS: sums.size_bytes, ROWS: by_position.size_bytes}
    add_compensation(assembly, weights, mask, (View("weights"), View(SUMS)), factor=1)
    positions, channels = by_position.dims
    turned = MemoryDesc((positions, channels), s32, strides=(1, positions))
    add_reorder(assembly, Reordering(SUMS, turned, ROWS, by_position))


def add_sets(assembly: Assembly, boxes: Sequence[PixelBox], row_bytes: int, isa: str) -> None:
    """The start of each box: the zero point times the sum of its positions' rows."""
    lists = [np.array((len(box.positions), *(at * row_bytes for at in box.positions))) for box in boxes]
    sets = assembly.constant(SETS, np.concatenate(lists))
    assembly.scratch[STARTS] = len(boxes) * row_bytes
    lanes = lanes_of(isa)
    vectors = np.array(balanced(row_bytes // s32.size_bytes // lanes, MOST_VECTORS))
    numbers = {count: number for number, count in enumerate(sorted({*vectors.tolist()}))}
    of_box, call = (x.ravel() for x in np.indices((len(boxes), len(vectors))))
    first = s32.size_bytes * lanes * np.cumsum([0, *vectors[:-1]])[call]
    columns = {"sums": first, "rows": begins(lists)[of_box], "starts": of_box * row_bytes + first}
    records = records_of(ARGUMENTS, columns, np.array([numbers[x] for x in vectors.tolist()])[call])
    specs = tuple(StartsSpec(isa=isa, vectors=x, shift=0, has_zero_point=True, negated=True) for x in numbers)
    length = np.array([len(box.positions) for box in boxes])
    cycles = assembly.tuning.moves.call_cycles + length[of_box] * vectors[call]
    views = (View(ROWS), View(sets), View(ZERO_POINTS), View(STARTS))
    assembly.add([Phase(specs, views, records, cycles.astype(np.int32))])
