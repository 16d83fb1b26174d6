"""The records of a shuffle, in one of three ways: which kernels, on which bytes.

src and dst have one layout, so an element of dst and its origin differ in the offset along the axis alone.  All other
offsets, the *positions*, are the same in both, and fall into runs of equal distance.

    units     the axis lies together in runs of a vector's part (nhwc, nChw8c, nChw16c): vectors are permuted
    rows      positions lie together (nchw): rows of bytes are copied
    elements  any layout: elements are moved one by one
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

import numpy as np

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.move.permute import PermuteSpec
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.generators.move.shuffle import ARGUMENTS, ShuffleSpec
from asmdnn.generators.move.shuffle_body import Tile
from asmdnn.generators.move.shuffle_elements import ElementsSpec
from asmdnn.generators.move.shuffle_network import DWORD_BYTES
from asmdnn.isa.vectors import NARROWEST, f32_level, f32_widths, vector_bytes
from asmdnn.memory import MemoryDesc
from asmdnn.planning.loops import digits, merge, pieces_of
from asmdnn.planning.move_tuning import MoveTuning
from asmdnn.planning.phase import Int64, Phase, views
from asmdnn.planning.refusal import Refused
from asmdnn.planning.rounds import in_loops, without_barrier
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.shuffle.permutes import permute_kernels
from asmdnn.primitives.shuffle.positions import Runs, chunks, positions_of, runs_of, unit_of
from asmdnn.primitives.shuffle.streaming import fills_lines, streaming_rows, with_streaming
from asmdnn.primitives.shuffle.tiles import ShuffledAxis, parts_of, tiles_of
from asmdnn.records import dataclass, replace

FEW_SOURCES = 2  # of a unit: one permutation of two registers makes it

Kernel = ShuffleSpec | PermuteSpec | RowsSpec | ElementsSpec
Placed = Sequence[tuple[ShuffleSpec | PermuteSpec, int, int]]  # with places in src and dst


class Records:
    """Collects kernels and records."""

    def __init__(self, size_bytes: int, tuning: MoveTuning, isa: str) -> None:
        self.tuning, self.isa = tuning, isa
        self.streaming = size_bytes >= tuning.shuffle_streaming_bytes
        self.specs: dict[KernelSpec, int] = {}
        self.records: list[tuple[int, int, int]] = []
        self.cycles: list[int] = []

    def add(self, spec: Kernel, src: int, dst: int, size_bytes: int) -> None:
        if isinstance(spec, RowsSpec):
            spec = self.rows(spec)
        elif self.streaming:
            spec = with_streaming(spec)
        self.records.append((self.specs.setdefault(spec, len(self.specs)), src, dst))
        self.cycles.append(self.tuning.call_cycles + size_bytes // self.tuning.bytes_per_cycle)

    def rows(self, spec: RowsSpec) -> RowsSpec:
        """For the level that takes fewest instructions, the lower one of two; streaming goes first."""
        levels = [replace(spec, isa=isa) for isa in f32_widths(self.isa)]
        found = [streaming_rows(each) for each in levels] if self.streaming else levels
        return min(found, key=lambda each: (not each.streaming, cost_of(each, self.tuning)))

    def phase(self) -> Phase:
        records = np.array(self.records, np.int64).reshape(-1, 1 + len(ARGUMENTS))
        return Phase(tuple(self.specs), views(ARGUMENTS), records, np.array(self.cycles, np.int32))


@dataclass(frozen=True, slots=True)
class ShuffledDim:
    """A dim of a tensor, whose indices in dst are a matrix of so many rows."""

    desc: MemoryDesc
    dim: int
    rows: int

    def axis(self, step: int) -> ShuffledAxis:
        """Where its elements are, beside positions that are so far apart."""
        size, extent = self.desc.dtype.size_bytes, self.desc.dims[self.dim]
        offsets = size * self.desc.dim_offsets(self.dim)
        unit_bytes, run_bytes = unit_of(offsets, extent, size, step)
        return ShuffledAxis(size, unit_bytes, extent, self.rows, tuple(offsets.tolist()), run_bytes)


def schedule(way: str, shuffled: ShuffledDim, tuning: Tuning, isa: str) -> list[Phase]:
    """Kernels and records, in one of WAYS.

    isa: the level that kernels may need.  Raises Refused for a layout that the way is not for.
    """
    desc = shuffled.desc
    if prod(desc.dims) > tuning.moves.many_positions * desc.dims[shuffled.dim] and not desc.has_padding:
        return in_rounds(way, shuffled, tuning, isa)
    out = Records(desc.size_bytes, tuning.moves, isa)
    if 0 not in desc.dims:
        positions = desc.dtype.size_bytes * positions_of(desc, shuffled.dim)
        step, runs = runs_of(positions)
        axis = shuffled.axis(step)
        WAYS[way](out, axis, step, runs)
        written = axis.offsets if way == "units" else axis.offsets[: axis.size]
        fill_padding(out, desc, positions, np.array(written, np.int64))
    return [out.phase()]


def in_rounds(way: str, shuffled: ShuffledDim, tuning: Tuning, isa: str) -> list[Phase]:
    """Of a tensor without padding and of many positions: records for some neighbours, again and again."""
    desc, phases, together = shuffled.desc, list[Phase](), tuning.moves.round_positions
    size = desc.dtype.size_bytes
    others = [list(pieces_of(n, n, [digits(desc, d)] * 2)) for d, n in enumerate(desc.dims) if d != shuffled.dim]
    for pieces in product(*others):
        start = size * (desc.offset0 + sum(piece.src for piece in pieces))
        *outer, inner = merge([x for piece in pieces for x in piece.loops])
        step = size * inner.src
        axis = shuffled.axis(step)
        around = [(x.extent, (size * x.src,) * len(ARGUMENTS)) for x in outer]
        count, rest = divmod(inner.extent, together)
        for begin, length, times in ((0, together, count), (count * together, rest, 1)):
            if length and times:
                out = Records(desc.size_bytes, tuning.moves, isa)
                WAYS[way](out, axis, step, [(start + begin * step, length)])
                loops = [*around, (times, (together * step,) * len(ARGUMENTS))]
                one = out.phase()
                made = in_loops(one.kernels, one.arguments, one.records, one.cycles, loops, tuning.phases)
                phases += without_barrier(made) if phases else made
    return phases


def by_units(out: Records, axis: ShuffledAxis, step: int, runs: Runs) -> None:
    """All units of a dense axis in one kernel; of a blocked one, as many as fill whole blocks of dst; with padding.
    Raises Refused."""
    if not axis.unit_bytes:
        raise Refused("elements along the axis do not lie together in units of 16 bytes, or in small ones side by side")
    units = unit_kernels(axis, step, out.tuning)
    vectors = [permute_kernels(isa, axis, step, out.tuning.permuted_units) for isa in f32_widths(out.isa)]
    kernels = cheapest(out, axis, units, vectors, step)
    together = pixels_of(kernels[0][0], step)  # that the kernels take as one
    for start, count in runs:
        whole = count // together
        add_pixels(out, kernels, start, whole, together * step)
        add_pixels(out, units, start + whole * together * step, count % together, step)


def add_pixels(out: Records, kernels: Placed, start: int, count: int, step: int) -> None:
    """Records of so many pixels, or of as many groups of pixels that kernels take as one."""
    written, fewest = max(spec.stored_bytes for spec, _, _ in kernels), out.tuning.fewest_pixels
    most = max(fewest, out.tuning.record_bytes // written // fewest * fewest)
    for begin, some in chunks([(start, count)], step, most):
        for spec, src, dst in kernels:
            out.add(replace(spec, pixels=some), begin + src, begin + dst, some * written)


def cheapest(out: Records, axis: ShuffledAxis, units: Placed, vectors: Sequence[Placed], step: int) -> Placed:
    """The kernels that take fewest instructions for a pixel: by units of 16 bytes, or by permuted vectors, of which
    none may fit; those that stream go first where they are to."""
    tuning = out.tuning
    wide = [(replace(spec, isa=f32_level(out.isa)), src, dst) for spec, src, dst in units]
    permuted = 1.0 if axis.is_dense else tuning.blocked_permute_cost
    choices = [(units, 1.0), (wide, 1.0), *((each, permuted) for each in vectors)]

    def cost(choice: tuple[Placed, float]) -> tuple[bool, float]:
        kernels, share = choice
        counted = replace(tuning, wide_cost=wide_cost(axis, kernels, tuning, out.streaming))
        cached = out.streaming and not all(fills_lines(spec) for spec, _, _ in kernels)
        costs = (cost_of(spec, counted) / (spec.pixels_together * pixels_of(spec, step)) for spec, _, _ in kernels)
        return cached, share * sum(costs)

    return min((each for each in choices if each[0]), key=cost)[0]


def wide_cost(axis: ShuffledAxis, kernels: Placed, tuning: MoveTuning, is_far: bool) -> float:
    """What kernels with zmm registers cost, in those with ymm registers: units of dwords more if they come from several
    places, or from blocks that are read again for others of dst, far away, when L1 holds them no longer."""
    many = axis.rereads or max(spec.sources for spec, _, _ in kernels) > FEW_SOURCES
    if not many or axis.element_bytes != DWORD_BYTES:
        return tuning.wide_shuffle_cost
    return tuning.wide_shuffle_cost * tuning.many_sources_cost * (tuning.far_sources_cost if is_far else 1.0)


def cost_of(spec: ShuffleSpec | PermuteSpec | RowsSpec, tuning: MoveTuning) -> float:
    """In instructions on ymm registers; of as many pixels as a vector has room for."""
    if spec.vector_bytes > vector_bytes(NARROWEST):
        return spec.operations * tuning.wide_cost
    permutations = spec.permutations if isinstance(spec, PermuteSpec) else 0
    return spec.operations + permutations * (tuning.permute_cost - 1)


def pixels_of(spec: ShuffleSpec | PermuteSpec, step: int) -> int:
    """How many pixels, so many bytes apart, the kernel counts as one."""
    return spec.pixel_bytes // step if isinstance(spec, PermuteSpec) and step else 1


def unit_kernels(axis: ShuffledAxis, step: int, tuning: MoveTuning) -> list[tuple[ShuffleSpec, int, int]]:
    tiles = tiles_of(axis, tuning)
    together = len(tiles) if axis.is_dense else max(1, axis.run_bytes // axis.unit_bytes)
    return [kernel_of(axis, step, tiles[i : i + together]) for i in range(0, len(tiles), together)]


def kernel_of(axis: ShuffledAxis, step: int, tiles: list[Tile]) -> tuple[ShuffleSpec, int, int]:
    """The kernel of some tiles for one pixel, and where in the axis its pointers point."""
    parts = parts_of(tiles)
    src, dst = min(part.src for part in parts), min(part.dst for part in parts)
    moved = tuple(replace(part, src=part.src - src, dst=part.dst - dst) for part in parts)
    return (
        ShuffleSpec(
            isa=NARROWEST,
            element_bytes=axis.element_bytes,
            unit_bytes=axis.unit_bytes,
            pixels=1,
            pixel_bytes=step or axis.unit_bytes,
            parts=moved,
        ),
        src,
        dst,
    )


def by_rows(out: Records, axis: ShuffledAxis, step: int, runs: Runs) -> None:
    """One record for some rows at equal distances, which run along the longer side of the matrix.  Raises Refused."""
    size, tuning = axis.element_bytes, out.tuning
    if step != size:
        raise Refused(f"elements that move alike are {step} bytes apart" if step else "each element moves on its own")
    for start, count in chunks(runs, size, tuning.row_bytes // size):
        row_bytes = count * size
        for first, rows, dst_step in stretches(axis, max(1, tuning.record_bytes // row_bytes)):
            origin = axis.origin(first)
            src_step = axis.origin(first + dst_step) - origin if rows > 1 else 0
            step = axis.offsets[first + dst_step] - axis.offsets[first] if rows > 1 else 0
            spec = RowsSpec(
                isa=NARROWEST, rows=rows, row_bytes=row_bytes, src_step=src_step, dst_step=step,
                unrolled_bytes=tuning.unrolled_bytes,
            )  # fmt: skip
            out.add(spec, start + origin, start + axis.offsets[first], rows * row_bytes)


def stretches(axis: ShuffledAxis, most: int) -> Iterator[tuple[int, int, int]]:
    """(first, count, step) of elements of dst: along its rows or its columns; one by one if offsets are irregular."""
    if len(set(np.diff(axis.offsets).tolist())) > 1:
        yield from ((c, 1, 0) for c in range(axis.size))
        return
    by_columns = axis.rows >= axis.columns
    along, across = (axis.rows, axis.columns) if by_columns else (axis.columns, axis.rows)
    step, jump = (axis.columns, 1) if by_columns else (1, axis.columns)
    for first in range(0, along, most):
        for other in range(across):
            yield other * jump + first * step, min(most, along - first), step


def by_elements(out: Records, axis: ShuffledAxis, step: int, runs: Runs) -> None:
    size, most = axis.element_bytes, out.tuning.shuffle_moves
    for first in range(0, axis.size, most):
        moves = [(axis.origin(c), axis.offsets[c]) for c in range(first, min(first + most, axis.size))]
        src, dst = min(s for s, _ in moves), min(d for _, d in moves)
        based_moves = tuple((s - src, d - dst) for s, d in moves)
        for start, count in chunks(runs, step, most):
            spec = ElementsSpec(isa=NARROWEST, element_bytes=size, count=count, step=step, moves=based_moves)
            out.add(spec, start + src, start + dst, count * len(moves) * out.tuning.bytes_per_cycle)


WAYS = {"units": by_units, "rows": by_rows, "elements": by_elements}  # best first


def fill_padding(out: Records, desc: MemoryDesc, positions: Int64, covered: Int64) -> None:
    """Zeros for all padding of dst that is not among `covered` offsets of the axis at the positions."""
    if not desc.has_padding:
        return
    size = desc.dtype.size_bytes
    rest = np.zeros(desc.size_bytes // size + 2, bool)  # with an element before the first and after the last
    rest[1 + desc.offsets(with_padding=True)] = True
    rest[1 + np.add.outer(positions, covered) // size] = False
    edges = np.flatnonzero(rest[1:] != rest[:-1]).reshape(-1, 2).tolist()
    runs = [(size * begin, end - begin) for begin, end in edges]
    for start, count in chunks(runs, size, out.tuning.row_bytes // size):
        out.add(
            RowsSpec(isa=NARROWEST, rows=1, row_bytes=count * size, src_step=0, dst_step=0, zero=True),
            0,
            start,
            count * size,
        )
