"""The plan of rows of a grouped convolution: bands of rows, segments of a row, and a record for each chunk of rows and
vector of channels."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from asmdnn.generators.dot.grouped_shape import ARGUMENTS, BIAS, GroupedRows
from asmdnn.isa.lines import LINE_BYTES, lines_that_stay
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Int64, Phase, records_of, views
from asmdnn.planning.rounds import Loop, in_loops, without_barrier
from asmdnn.primitives.convolution.ends import TileEnds
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.operands import TileOperand
from asmdnn.primitives.convolution.row_pieces import ChunkRounds, RowChunk, planes_of, row_pieces
from asmdnn.primitives.convolution.row_segments import counted_columns, cut_columns
from asmdnn.primitives.convolution.row_specs import SHAPES, RowSpecs
from asmdnn.primitives.convolution.starts import ZERO_POINTS
from asmdnn.primitives.convolution.streaming import in_lines, in_runs, is_far
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass, replace
from asmdnn.types import f32

LONGEST_KERNEL = 64  # of a row: all positions are in the code
L1_WAYS = 8
LEAST_ABREAST = 3  # pixels of each of several vectors, which share what is loaded
LEAST_LINES = 32  # of pixels that L1 holds, so that prefetched ones stay


class VectorRun(NamedTuple):
    """`vectors` of `channels` channels each, from vector `first` on, that one call takes."""

    first: int
    vectors: int
    channels: int


@dataclass(frozen=True, slots=True)
class RowKernels:
    """The row kernels of a convolution.

    spec: bands, segments, channels and what is done with sums follow.  vectors: of channels a call, where tensors have
    them side by side.  sources: of every vector of dst's channels the first channel of src that it reads.  in_turn:
    whether all channels of some rows come before the next rows, as they read the same.  weights_bytes: where the first
    kernel position is.
    """

    spec: GroupedRows
    vectors: int
    sources: tuple[int, ...]
    in_turn: bool = False
    weights_bytes: int = 0

    @property
    def cycles(self) -> float:
        """Of a kernel position of a pixel, for a vector of channels."""
        return self.spec.position_cycles


def schedule_rows(
    tensors: Mapping[str, MemoryDesc],
    parts: Sequence[tuple[ConvGeometry, RowKernels]],
    ends: TileEnds,
    engine: Engine,
) -> tuple[list[Phase], Mapping[str, Int64]]:
    """The phases for resolved tensors, those of the chain among them, and constants that the kernels read; parts of dst
    take turns, row by row."""
    tuning, placed = engine.tuning, ends.places
    common: dict[str, Any] = {
        "bias": ends.starts_from_bias(tensors),
        "post_ops": ends.post_ops,
        "operand_types": ends.types,
        "dst_type": tensors["dst"].dtype,
        # streaming where it goes in runs or lines, of elements that fill lanes
        "streaming": tensors["dst"].dtype.size_bytes == f32.size_bytes
        and is_far(tensors["dst"], ends.chain, tuning.convolution),
        "rows_ahead": rows_ahead(parts[0][0], tensors, engine),
    }
    ready = [(g, replace(of, spec=replace(of.spec, **common))) for g, of in parts]
    specs = RowSpecs()
    made = []
    for pieces in zip(*(pieces_of(g, of, engine) for g, of in ready), strict=True):
        calls = [calls_of_part(g, of, each, specs, engine) for (g, of), each in zip(ready, pieces, strict=True)]
        records = [offsets_of(g, some, of, placed, specs) for (g, of), some in zip(ready, calls, strict=True)]
        made.append((np.concatenate(calls), np.concatenate(records), loops_of(parts[0][0], pieces[0], placed)))
    constants = specs.constants()
    passed = [argument if argument in {*tensors, *constants} else "" for argument in (*ARGUMENTS, *ends.operands)]
    passed[BIAS] = passed[BIAS] if common["bias"] else ZERO_POINTS * (ZERO_POINTS in tensors)
    arguments = views(passed)
    phases: list[Phase] = []
    for all_calls, all_records, loops in made:
        if len(parts) > 1:
            order = np.lexsort((all_calls[:, 4], all_calls[:, 2], all_calls[:, 1]))
            all_calls, all_records = all_calls[order], all_records[order]
        cycles = all_calls[:, 5].astype(np.int32)
        some_phases = in_loops(tuple(specs.numbers), arguments, all_records, cycles, loops, tuning.phases)
        phases += without_barrier(some_phases) if phases else some_phases
    return phases, constants


def rows_ahead(g: ConvGeometry, tensors: Mapping[str, MemoryDesc], engine: Engine) -> int:
    """Rows of src from a window to the one below it, where src and dst come from so far that windows would wait for
    their lines, a few of each pixel, and windows have these rows after all others.  A window of one position reads no
    row twice, so that rows of any length may come ahead."""
    (deep, down, _), tuning = g.axes, engine.tuning.convolution
    touched = tensors["src"].size_bytes + tensors["dst"].size_bytes
    is_far = touched >= tuning.rows_ahead_l2 * engine.l2_bytes * engine.threads
    is_far &= g.positions == 1 or down.s * g.src.axis_bytes[1] <= tuning.rows_ahead_bytes
    return down.s if is_far and g.src.pixel_bytes > 2 * LINE_BYTES and down.d == deep.k == 1 else 0


def loops_of(g: ConvGeometry, piece: ChunkRounds, operands: Mapping[str, TileOperand]) -> list[Loop]:
    """The loops over images and over the rounds of a piece of rows, with the distance that every argument advances."""
    down = piece.rows * g.axes[1].s * g.src.axis_bytes[1], piece.rows * g.dst.axis_bytes[1]
    layouts = {name: place.layout for name, place in operands.items()}
    images = {"src": g.src.image_bytes, "dst": g.dst.image_bytes}
    images |= {name: layout.image_bytes for name, layout in layouts.items()}
    rows = {"src": down[0], "dst": down[1]}
    rows |= {name: piece.rows * g.width * layout.pixel_bytes for name, layout in layouts.items()}
    steps = [tuple(moves.get(name, 0) for name in (*ARGUMENTS, *operands)) for moves in (images, rows)]
    return [(g.mb, steps[0]), (piece.times, steps[1])]


def pieces_of(g: ConvGeometry, of: RowKernels, engine: Engine) -> Sequence[ChunkRounds]:
    """All rows of an image, in chunks for one record each."""
    tuning = engine.tuning.convolution
    records = -(-g.oc // (lanes_of(engine.isa) * of.vectors)) * g.axes[0].o  # of a chunk of rows
    size = tuning.grouped_cycles / (pixel_cycles(g, of, engine) * of.vectors * g.width)
    return row_pieces(g.axes[1], max(1, int(size)), tuning.written_out // records, of.spec.together)


def pixel_cycles(g: ConvGeometry, of: RowKernels, engine: Engine) -> float:
    """Expected of a pixel of dst, for a vector of channels."""
    return max(g.positions * of.cycles, engine.tuning.convolution.grouped_pixel_cycles)


def calls_of_part(g: ConvGeometry, of: RowKernels, piece: ChunkRounds, specs: RowSpecs, engine: Engine) -> Int64:
    """Rows (kernel, first vector of channels, output plane, first plane of the kernel, first output row, cycles) of all
    calls of some rows of an image; kernels that are new join `specs`."""
    tuning, lanes, spec, vectors = engine.tuning, lanes_of(engine.isa), of.spec, of.vectors
    full, rest = divmod(g.oc, lanes)
    runs = [VectorRun(v, vectors, lanes) for v in range(0, full, vectors)]
    kinds, kind_of_run = [(vectors, lanes)] * bool(runs), [0] * len(runs)
    if rest:
        kind_of_run.append(len(kinds))
        kinds.append((1, rest))
        runs.append(VectorRun(full, 1, rest))
    chunks = piece.chunks
    bands = tuple(dict.fromkeys(chunk.bands for chunk in chunks))
    places = [bands.index(chunk.bands) for chunk in chunks]
    whole = [shaped(spec, g, kind, engine) for kind in kinds]
    calls = []
    for planes, depths in planes_of(g.axes[0]).items():
        shapes = [[replace(of_kind, bands=each, planes=planes) for each in bands] for of_kind in whole]
        numbers = np.array([[specs.number(each) for each in some] for some in shapes])
        calls.append(calls_of(numbers[kind_of_run][:, places], runs, chunks, depths, of.in_turn))
    every = np.concatenate(calls)
    together, begin, end = every[:, [2, 5, 6]].T
    cycles = tuning.phases.call_cycles + (end - begin) * g.width * together * pixel_cycles(g, of, engine)
    found: Int64 = every[:, [0, 1, 3, 4, 5, 5]]
    found[:, 5] = cycles
    return found


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
    found = np.empty((len(runs), len(chunks), len(depths), 7), np.int64)
    found[..., 0] = kernels[:, :, None]
    found[..., 1:3] = np.array([run[:2] for run in runs])[:, None, None]
    found[..., 3:5] = np.array(depths)
    found[..., 5:] = np.array([(chunk.begin, chunk.end) for chunk in chunks])[:, None]
    return (found.transpose(1, 2, 0, 3) if in_turn else found).reshape(-1, found.shape[3])


def shaped(spec: GroupedRows, g: ConvGeometry, kind: tuple[int, int], engine: Engine) -> GroupedRows:
    """The kernel of a chunk of rows, but for its bands; kind: how many vectors of channels, and channels of one."""
    vectors, channels = kind
    most = spec.most_pixels(channels, g.width)
    abreast = vectors_abreast(spec, g, vectors, most, engine)
    lanes = lanes_of(spec.isa)
    streaming = spec.streaming and (in_runs(g.dst, lanes, lanes) or in_lines(g.dst, abreast * lanes))
    # Where lines push each other out of L1, those that are visited twice come from L2 again, beside prefetched ones.
    stays = lines_that_stay(g.src.pixel_bytes, L1_WAYS) >= LEAST_LINES
    visited_once = abreast * lanes * g.src.element_bytes >= LINE_BYTES
    ahead = spec.rows_ahead if stays or visited_once else 0
    spec = replace(spec, vectors=vectors, abreast=abreast, channels=channels, streaming=streaming, rows_ahead=ahead)
    axis, pixels = g.axes[-1], most // abreast
    if spec.is_in_code:
        return replace(spec, segments=cut_columns(axis, pixels))
    segments, overlap = counted_columns(axis, pixels, spec.may_compute_again)
    return replace(spec, segments=segments, overlap=overlap)


def vectors_abreast(spec: GroupedRows, g: ConvGeometry, vectors: int, most: int, engine: Engine) -> int:
    """Of `vectors` side by side, those that are computed at a time, of as many fewer pixels.

    An image that comes from beyond L2 comes in longer runs.  Measured on Zen 3, 3x3, 1, 2 and 4 vectors abreast: 128
    channels at 147x147 3.2, 2.9 and 1.1 ms; 32 at 224x224 0.53, 0.34 and 0.34 ms; 728 at 38x38 0.31 ms each; but 5x5,
    with room for two pixels of four vectors, 192 channels at 95x95, stride 2, 0.44, 0.61 and 0.72 ms.

    A line is that of the wider tensor.  As f32 in scratch, 512 channels of bf16 at 14x14 by 13x13 took a Zen 5 with
    AVX2 430 us by the four vectors of a line of dst, and one pixel of each; by two and three pixels 234.
    """
    if not spec.may_be_abreast:
        return 1
    line = LINE_BYTES // (max(g.src.element_bytes, g.dst.element_bytes) * lanes_of(spec.isa))
    while line > 1 and most // line < LEAST_ABREAST:
        line //= 2
    if spec.rows_ahead and g.positions == 1 and vectors % line == 0:
        return line  # which comes ahead whole: 480 channels of bf16, groups of 16, 64x64, 4 images: 0.96 ms, not 1.2
    image_bytes = g.src.element_bytes * g.steps * g.src_pixels
    if spec.group == 1 and image_bytes > engine.tuning.convolution.far_image * engine.l2_bytes:
        for abreast in (2 * line, line):
            if vectors % abreast == 0 and most // abreast >= spec.kernel:
                return abreast
    return 1 if vectors % line or lines_stay(g, min(most, g.width)) else line


def lines_stay(g: ConvGeometry, pixels: int) -> bool:
    """Whether the source lines of a segment stay in half of L1 until the next vector of channels needs them.

    Pixels a power of two apart share a few sets.  Measured on Zen 3, 3x3, 512 channels last at 14x14: 68 us a vector
    at a time, 34 us with the two vectors of a line abreast; but 14.7 against 16.5 us with 960 channels at 7x7.
    """
    deep, down, across = g.axes
    columns = (pixels - 1) * across.s + (across.k - 1) * across.d + 1
    return 2 * columns * down.k * deep.k <= lines_that_stay(g.src.pixel_bytes, L1_WAYS)


def offsets_of(
    g: ConvGeometry, calls: Int64, of: RowKernels, operands: Mapping[str, TileOperand], specs: RowSpecs
) -> Int64:
    """Records of the first image, of what `calls_of_part` says."""
    kernel, vector, z, plane, row, _ = calls.T
    channel, (deep, down, _) = lanes_of(of.spec.isa) * vector, g.axes
    first_row, first_plane = row * down.s - down.p, z * deep.s - deep.p + plane * deep.d
    read = np.array(of.sources)[vector]
    channels = ((g.src, read), (g.dst, channel))
    src, dst = (side.channels(of_side) for side, of_side in channels)
    columns = {
        "src": g.src.start_bytes + src + first_plane * g.src.axis_bytes[0] + first_row * g.src.axis_bytes[1],
        "weights": of.weights_bytes + vector * of.spec.weights_vector_bytes + plane * of.spec.weights_plane_bytes,
        "bias": g.types.sums.size_bytes * channel * of.spec.bias,
        SHAPES: specs.starts_of(kernel),
        "dst": g.dst.start_bytes + dst + z * g.dst.axis_bytes[0] + row * g.dst.axis_bytes[1],
    }
    image = np.zeros(1, np.int64)
    for name, place in operands.items():
        columns[name] = place.of_pixels(image, (z * down.o + row) * g.width) + place.of_channels(channel)
    return records_of((*ARGUMENTS, *operands), columns, kernel)
