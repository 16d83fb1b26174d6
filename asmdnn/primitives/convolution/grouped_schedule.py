"""The plan of rows of a grouped convolution: bands of rows, segments of a row, and a record for each chunk of rows and
vector of channels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import gcd
from typing import NamedTuple

import numpy as np

from asmdnn.generators.dot.conv import LINE_BYTES
from asmdnn.generators.dot.grouped import GroupedRowsSpec
from asmdnn.generators.dot.grouped_shape import ARGUMENTS, MOST_PIXELS, REGISTERS, Band, GroupedRows, Segment
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.cuts import balanced, ranges_of
from asmdnn.planning.phase import Int64, Phase, records_of, views
from asmdnn.planning.rounds import in_loops
from asmdnn.primitives.attributes.chain import Chain
from asmdnn.primitives.convolution.geometry import Axis, ConvGeometry
from asmdnn.primitives.convolution.operands import TileOperand
from asmdnn.primitives.convolution.streaming import is_streaming
from asmdnn.primitives.convolution.tiles import reach
from asmdnn.primitives.engine import Engine

LONGEST_KERNEL = 64  # of a row: all positions are in the code
MOST_MULTIPLIES = 640  # of a segment's kernel row, all inputs of a group: code of 4 KiB
LEAST_PIXELS = 8  # of a segment: their multiplies are under way together
L1_WAYS, L1_WAY_BYTES = 8, 4096
TAIL_REGISTERS = {"avx2": 1, "avx512_core": 0}


@dataclass(frozen=True, slots=True)
class RowChunk:
    """Output rows [begin, end) of an image, cut into bands."""

    begin: int
    end: int
    bands: tuple[Band, ...]


class VectorRun(NamedTuple):
    """`vectors` of `channels` channels each, from vector `first` on, that one call takes."""

    first: int
    vectors: int
    channels: int


@dataclass(frozen=True, slots=True)
class RowKernels:
    """What kernels of rows have in common.

    spec: bands, segments, channels and what is done with sums follow.  vectors: of channels a call, where tensors have
    them side by side.  sources: of every vector of dst's channels the first channel of src that it reads.  in_turn:
    whether all channels of some rows come before the next rows, as they read the same.
    """

    spec: GroupedRows
    vectors: int
    sources: tuple[int, ...]
    in_turn: bool = False

    @property
    def cycles(self) -> float:
        """Of a kernel position of a pixel, for a vector of channels."""
        return self.spec.group / 2


def schedule_rows(
    tensors: Mapping[str, MemoryDesc],
    operands: Mapping[str, TileOperand],
    g: ConvGeometry,
    of: RowKernels,
    chain: Chain,
    engine: Engine,
) -> list[Phase]:
    """The phases for resolved tensors, those of the chain among them."""
    tuning, lanes, vectors = engine.tuning, lanes_of(engine.isa), of.vectors
    spec = replace(
        of.spec,
        bias="bias" in tensors and not chain.adds_bias,
        post_ops=chain.on_registers({operand: place.operand for operand, place in operands.items()}),
        streaming=is_streaming(tensors["dst"], g.dst, lanes, lanes, chain, tuning.convolution),
    )
    placed = {f"operand {i}": place for i, place in enumerate(operands.values())}  # a bias may be one, too
    full, rest = divmod(g.oc, lanes)
    runs = [VectorRun(v, vectors, lanes) for v in range(0, full, vectors)] + [VectorRun(full, 1, rest)] * bool(rest)
    by = tuning.convolution
    cost = max(g.positions * of.cycles, by.grouped_pixel_cycles)
    chunks = cut_rows(g, by.grouped_cycles / (cost * vectors * g.width))
    kinds = tuple(dict.fromkeys(run[1:] for run in runs))
    bands = tuple(dict.fromkeys(chunk.bands for chunk in chunks))
    places = [bands.index(chunk.bands) for chunk in chunks]
    shapes = [[shaped(spec, g, each, *kind) for each in bands] for kind in kinds]
    specs: dict[GroupedRows, int] = {}
    calls = []
    for planes, depths in planes_of(g.axes[0]).items():
        numbers = [[specs.setdefault(replace(each, planes=planes), len(specs)) for each in some] for some in shapes]
        kernels = np.array(numbers)[[kinds.index(run[1:]) for run in runs]]
        calls.append(calls_of(kernels[:, places], runs, chunks, depths, of.in_turn))
    kernel, first, together, z, plane, begin, end = np.concatenate(calls).T
    cycles = tuning.phases.call_cycles + (end - begin) * g.width * together * cost
    records = offsets_of(g, np.stack((kernel, first, z, plane, begin), 1), of, placed)
    moves = {"src": g.src.image_bytes, "dst": g.dst.image_bytes}
    moves |= {operand: place.layout.image_bytes for operand, place in placed.items()}
    images = (g.mb, tuple(moves.get(argument, 0) for argument in (*ARGUMENTS, *placed)))
    arguments = views([argument if argument in tensors else "" for argument in (*ARGUMENTS, *operands)])
    return in_loops(tuple(specs), arguments, records, cycles.astype(np.int32), [images], tuning.phases)


def calls_of(
    kernels: Int64,
    runs: Sequence[VectorRun],
    chunks: Sequence[RowChunk],
    depths: Sequence[tuple[int, int]],
    in_turn: bool,
) -> Int64:
    """Rows (kernel, first vector of channels, how many, output plane, first plane of the kernel, first output row, end)
    of every run, chunk and plane; kernels: int64[runs, chunks].

    RowKernels of planes come in turn, as they share src; in_turn: all runs of one before the next.
    """
    run, chunk, depth = np.indices((len(runs), len(chunks), len(depths)))
    if in_turn:
        run, chunk, depth = (each.transpose(1, 2, 0) for each in (run, chunk, depth))
    columns = (
        kernels[run, chunk],
        *np.array([run[:2] for run in runs]).T[:, run],
        *np.array(depths).T[:, depth],
        *np.array([(chunk.begin, chunk.end) for chunk in chunks]).T[:, chunk],
    )
    return np.stack([column.ravel() for column in columns], 1)


def base_spec(g: ConvGeometry, tensors: Mapping[str, MemoryDesc], group: int, isa: str) -> GroupedRowsSpec:
    """What all kernels have in common; bands, segments and channels follow."""
    weights = tensors["weights"]
    spatial = tensors["dst"].ndims - 2
    input_bytes, *steps = (4 * stride for stride in weights.strides[-1 - spatial :])
    kernel_row_bytes = steps[-2] if spatial > 1 else 0
    (deep, down, across), src, dst = g.axes, g.src, g.dst
    return GroupedRowsSpec(
        isa=isa,
        vectors=1,
        abreast=1,
        channels=lanes_of(isa),
        group=group,
        kernel=across.k,
        stride=across.s,
        dilation=across.d,
        padding=across.p,
        bands=(),
        segments=(),
        src_pixel_bytes=src.pixel_bytes,
        src_row_bytes=down.s * src.axis_bytes[1],
        src_tap_bytes=down.d * src.axis_bytes[1],
        dst_pixel_bytes=dst.pixel_bytes,
        dst_row_bytes=dst.axis_bytes[1],
        weights_row_bytes=kernel_row_bytes,
        weights_input_bytes=input_bytes,
        weights_vector_bytes=4 * weights.strides[0],
        src_whole=tensors["src"].padded_dims[1] % lanes_of(isa) == 0,
        dst_whole=tensors["dst"].padded_dims[1] % lanes_of(isa) == 0,
        src_plane_bytes=deep.d * src.axis_bytes[0] * (deep.k > 1),
        weights_plane_bytes=steps[0] if spatial > 2 and deep.k > 1 else 0,
    )


def shaped(spec: GroupedRows, g: ConvGeometry, bands: tuple[Band, ...], vectors: int, channels: int) -> GroupedRows:
    """The kernel of a chunk of rows, cut into these bands, and some vectors of channels."""
    lanes = lanes_of(spec.isa)
    most = most_pixels(spec, channels)
    abreast = LINE_BYTES // (4 * lanes)
    if abreast == 1 or vectors % abreast or lines_stay(g, min(most, g.width)):
        abreast = 1
    segments = cut_columns(g.axes[-1], most // abreast)
    return replace(spec, vectors=vectors, abreast=abreast, channels=channels, bands=bands, segments=segments)


def most_pixels(spec: GroupedRows, channels: int) -> int:
    """Of a segment, for a vector with so many channels."""
    tail = TAIL_REGISTERS[spec.isa] * (channels < lanes_of(spec.isa))
    most = min(MOST_PIXELS[spec.isa], REGISTERS[spec.isa] - tail - spec.held - 1)
    return min(most, max(LEAST_PIXELS, MOST_MULTIPLIES // (spec.kernel * spec.group)))


def lines_stay(g: ConvGeometry, pixels: int) -> bool:
    """Whether the source lines of a segment stay in half of L1 until the next vector of channels needs them.

    Pixels a power of two apart share a few sets.  Measured on Zen 3, 3x3, 512 channels last at 14x14: 68 us a vector
    at a time, 34 us with the two vectors of a line abreast; but 14.7 against 16.5 us with 960 channels at 7x7.
    """
    deep, down, across = g.axes
    columns = (pixels - 1) * across.s + (across.k - 1) * across.d + 1
    return 2 * columns * down.k * deep.k <= L1_WAYS * L1_WAY_BYTES // gcd(L1_WAY_BYTES, g.src.pixel_bytes)


def cut_columns(axis: Axis, pixels: int) -> tuple[Segment, ...]:
    """A row in segments of at most so many pixels, equal ones as one."""
    found, x = [], 0
    for size in balanced(axis.o, pixels):
        first = x * axis.s - axis.p
        extent = (size - 1) * axis.s + (axis.k - 1) * axis.d + 1
        low = min(extent, max(0, -first))
        found.append(Segment(size, low, max(low, min(extent, axis.i - first))))
        x += size
    return tuple(replace(segment, times=len(list(same))) for segment, same in groupby(found))


def cut_rows(g: ConvGeometry, most: float) -> list[RowChunk]:
    """Rows in chunks of at most so many, or one."""
    axis = g.axes[1]
    low, high = reach(axis).T.tolist()
    found = []
    for begin, end in ranges_of(axis.o, max(1, int(most)), 1):
        kernel_rows = [(low[y], high[y] - low[y]) if high[y] > low[y] else (0, 0) for y in range(begin, end)]
        bands = tuple(Band(len(list(same)), *kernel) for kernel, same in groupby(kernel_rows))
        found.append(RowChunk(begin, end, bands))
    return found


def planes_of(axis: Axis) -> dict[int, list[tuple[int, int]]]:
    """By how many planes of the kernel reach it, the planes of dst, each with the first plane of the kernel."""
    found: dict[int, list[tuple[int, int]]] = {}
    for z, (low, high) in enumerate(reach(axis).tolist()):
        found.setdefault(high - low, []).append((z, low if high > low else 0))
    return found


def offsets_of(g: ConvGeometry, rows: Int64, of: RowKernels, operands: Mapping[str, TileOperand]) -> Int64:
    """Records of the first image, of rows (kernel, first vector of channels, output plane, first plane of the kernel,
    first output row)."""
    kernel, vector, z, plane, row = rows.T
    channel, (deep, down, _) = lanes_of(of.spec.isa) * vector, g.axes
    first_row, first_plane = row * down.s - down.p, z * deep.s - deep.p + plane * deep.d
    read = np.array(of.sources)[vector]
    channels = ((g.src, read), (g.dst, channel))
    src, dst = (side.channels(of_side) for side, of_side in channels)
    columns = {
        "src": g.src.start_bytes + src + first_plane * g.src.axis_bytes[0] + first_row * g.src.axis_bytes[1],
        "weights": vector * of.spec.weights_vector_bytes + plane * of.spec.weights_plane_bytes,
        "bias": 4 * channel,
        "dst": g.dst.start_bytes + dst + z * g.dst.axis_bytes[0] + row * g.dst.axis_bytes[1],
    }
    image = np.zeros(1, np.int64)
    for name, place in operands.items():
        columns[name] = place.of_pixels(image, (z * down.o + row) * g.width) + place.of_channels(channel)
    return records_of((*ARGUMENTS, *operands), columns, kernel)
