"""The calls of kernels that sum gradients of weights along rows: tiles of planes and positions, blocks of rows."""

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from asmdnn.generators.dot.plane_weights import UNROLLED, PlaneWeightsSpec, fits, sets_of
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.cuts import balanced, between
from asmdnn.planning.phase import MOST_CYCLES, Int64
from asmdnn.primitives.convolution.description import ConvolutionDesc
from asmdnn.primitives.convolution_backward.planes_rows import SourceRows
from asmdnn.primitives.convolution_backward.weights_tiles import CALL_CYCLES, LEAST_SHARES
from asmdnn.records import dataclass
from asmdnn.types import f32

BLOCK_BYTES = 32 << 10  # of diff_dst and a plane of src: in L1
LOAD_CYCLES = 0.75  # of a vector that mostly lies in two lines
LATENCY_CYCLES = 4  # of a multiply-add
SUM_CYCLES = 2  # a sum is read and written


@dataclass(frozen=True, slots=True)
class TileSizes:
    """Of a group: output channels, and positions of the kernel in input channels, into tiles.

    positions: of one channel if `together` is 1, else of so many channels all.
    """

    outputs: tuple[int, ...]
    positions: tuple[int, ...]
    together: int


@dataclass(frozen=True, slots=True)
class PlanesJob:
    """dst: where diff_dst begins and its distances, in bytes.  images: of a phase."""

    p: ConvolutionDesc
    isa: str
    source: SourceRows
    images: int
    cut: TileSizes

    @property
    def into(self) -> int:
        """Input channels of a group."""
        return self.p.src.dims[1] // self.p.groups

    @property
    def out(self) -> int:
        return self.p.dst.dims[1] // self.p.groups

    @property
    def output_bytes(self) -> int:
        """Of the sums of an output channel."""
        return self.into * prod(self.p.kernel) * f32.size_bytes * lanes_of(self.isa)

    @property
    def weights_bytes(self) -> int:
        return self.p.dst.dims[1] * self.output_bytes

    @property
    def dst_strides(self) -> tuple[int, ...]:
        return tuple(f32.size_bytes * stride for stride in self.p.dst.strides)


def cut_of(into: int, out: int, positions: int, isa: str) -> TileSizes:
    """That of the fewest cycles for a vector of pixels, by the shape alone."""
    outputs = {tuple(balanced(out, size)) for size in range(1, out + 1)}
    of_channel = [(tuple(balanced(positions, size)), 1) for size in range(1, positions + 1)]
    of_several = [((n * positions,), n) for n in range(2, into + 1) if fits(isa, 1, n * positions)]
    cuts = [TileSizes(o, t, n) for o, (t, n) in product(outputs, (*dict.fromkeys(of_channel), *of_several))]
    return min(
        (cut for cut in cuts if fits(isa, max(cut.outputs), max(cut.positions))),
        key=lambda cut: (vector_cycles(cut, into, isa), len(cut.outputs), len(cut.positions)),
    )


def vector_cycles(cut: TileSizes, into: int, isa: str) -> float:
    """Of all tiles of a group, for a vector of pixels."""
    channels = -(-into // cut.together)
    return channels * sum(tile_cycles(o, t, isa) for o, t in product(cut.outputs, cut.positions))


def tile_cycles(outputs: int, positions: int, isa: str) -> float:
    """Of a vector of pixels: multiplies, or loads, or the latency of sums."""
    waits = LATENCY_CYCLES / sets_of(isa, outputs, positions)
    return max(outputs * positions / 2, LOAD_CYCLES * (outputs + positions), waits)


Tile = tuple[int, int, int, int]  # the first output channel of a group and their number, the first sum and their number


def tiles_of(job: PlanesJob) -> list[Tile]:
    """Those that read the same plane of src one after the other."""
    kernel, found = prod(job.p.kernel), list[Tile]()
    for channel in range(0, job.into, job.cut.together):
        many = min(job.cut.together, job.into - channel)
        at = channel * kernel
        for count in job.cut.positions if job.cut.together == 1 else (many * kernel,):
            first = 0
            for outputs in job.cut.outputs:
                found.append((first, outputs, at, count))
                first += outputs
            at += count
    return found


Block = tuple[int, Int64]  # columns, and int64[rows, 2]: where rows of src and diff_dst begin


def blocks_of(job: PlanesJob) -> Iterator[Block]:
    """Of the images of a phase."""
    most = max(1, BLOCK_BYTES // (f32.size_bytes * (job.out + job.cut.together)))
    rows, width = rows_of(job)
    images = np.arange(job.images)[:, None, None] * np.array((job.source.image_bytes, job.dst_strides[0]))
    step = UNROLLED * lanes_of(job.isa)
    widths = [width] if width <= most else [min(step * n, width) for n in balanced(-(-width // step), most // step)]
    begin, pieces = 0, dict[int, list[int]]()
    for columns in widths:
        columns = min(columns, width - begin)
        pieces.setdefault(columns, []).append(begin)
        begin += columns
    for columns, begins in pieces.items():
        along = np.array(begins)[:, None] * f32.size_bytes
        taps = (images[:, :, None] + rows[None, :, None] + along).reshape(-1, 2)
        at = 0
        for count in balanced(len(taps), max(1, most // columns)):
            yield columns, taps[at : at + count]
            at += count


def rows_of(job: PlanesJob) -> tuple[Int64, int]:
    """int64[rows, 2] of an image, and their width: all as one where they touch."""
    p, element = job.p, f32.size_bytes
    *lines, width = p.dst.dims[2:]
    of_dst = job.dst_strides[2:]
    touch = prod(p.kernel) == 1 and all(
        step == element * prod(p.dst.dims[3 + axis :])
        for steps in (job.source.steps, of_dst[:-1])
        for axis, step in enumerate(steps)
    )
    if touch or not lines:
        return np.zeros((1, 2), np.int64), prod(lines) * width
    places = np.indices(lines).reshape(len(lines), prod(lines))
    steps = np.array((job.source.steps, of_dst[:-1]), np.int64).reshape(2, len(lines))
    return (steps @ places).T.reshape(-1, 2), width


class SumRecords(NamedTuple):
    """What a phase has, and lists of taps."""

    kernels: tuple[PlaneWeightsSpec, ...]
    records: Int64
    cycles: npt.NDArray[np.int32]
    groups: Int64
    words: Int64


def records(job: PlanesJob, parts: int, accumulate: bool) -> SumRecords:
    """Groups of records: every block of a part, for some tiles of a group of channels."""
    blocks = list(blocks_of(job))
    lists = [np.concatenate((np.array((len(taps),)), taps.ravel())) for _, taps in blocks]
    starts = 8 * np.cumsum([0, *map(len, lists)])
    ends = np.linspace(0, len(blocks), parts + 1).astype(int).tolist()
    tiles, specs = tiles_of(job), dict[PlaneWeightsSpec, int]()
    sets = between(balanced(len(tiles), -(-len(tiles) // -(-LEAST_SHARES // (parts * job.p.groups)))), len(tiles), 1)
    made, cycles, begins = [], [], [0]
    for part, group, (begin, end) in product(range(parts), range(job.p.groups), sets):
        for number in range(ends[part], ends[part + 1]):
            columns, taps = blocks[number]
            for tile in tiles[begin:end]:
                spec, (src, dst, sums) = call(job, tile, group, columns, accumulate or number > ends[part])
                kernel = specs.setdefault(spec, len(specs))
                made.append((kernel, src, dst, sums + part * job.weights_bytes, starts[number]))
                cycles.append(cycles_of(spec, len(taps)))
        begins.append(len(made))
    costs = np.array(cycles, np.int32)
    return SumRecords(tuple(specs), np.array(made, np.int64), costs, np.array(begins), np.concatenate(lists))


Offsets = tuple[int, int, int]  # of src, diff_dst, weights


def call(job: PlanesJob, tile: Tile, group: int, columns: int, accumulate: bool) -> tuple[PlaneWeightsSpec, Offsets]:
    """The kernel, and offsets of its arguments but for the taps."""
    (first, outputs, at, count), kernel = tile, prod(job.p.kernel)
    source, element = job.source, f32.size_bytes
    places = [n // kernel * source.channel_bytes + source.positions[n % kernel] for n in range(at, at + count)]
    spec = PlaneWeightsSpec(
        isa=job.isa, outputs=outputs, plane_step=job.dst_strides[1], positions=tuple(x - places[0] for x in places),
        columns=columns, output_step=job.output_bytes, accumulate=accumulate,
    )  # fmt: skip
    output = group * job.out + first
    src = source.start_bytes + group * job.into * source.channel_bytes + places[0]
    dst = element * job.p.dst.offset0 + output * job.dst_strides[1]
    return spec, (src, dst, output * job.output_bytes + at * element * lanes_of(job.isa))


def cycles_of(spec: PlaneWeightsSpec, rows: int) -> int:
    vectors = -(-spec.columns // lanes_of(spec.isa))
    of_tile = tile_cycles(spec.outputs, len(spec.positions), spec.isa)
    cost = CALL_CYCLES + SUM_CYCLES * spec.outputs * len(spec.positions) + rows * vectors * of_tile
    return min(int(cost), MOST_CYCLES)
