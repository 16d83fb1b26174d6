"""Plans for gradients of depthwise weights: for each vector of channels, chunk by chunk, the rows of the kernel."""

from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np

from asmdnn.generators.dot.depthwise_weights import ARGUMENTS, ColumnRun, DepthwiseWeightsSpec, most_positions
from asmdnn.isa.dot import F32, dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.cuts import balanced
from asmdnn.planning.phase import MOST_CYCLES, Int64, Phase, View, records_of
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.description import ConvolutionDesc
from asmdnn.primitives.convolution.direct import make_geometry
from asmdnn.primitives.convolution.geometry import ConvGeometry, image_layout
from asmdnn.primitives.convolution_backward.description import BackwardWeights
from asmdnn.primitives.convolution_backward.weights import check, convolution_of, renamed
from asmdnn.primitives.convolution_backward.weights_tiles import (
    CALL_CYCLES,
    CHUNK_BYTES,
    LEAST_CHUNKS,
    LEAST_SHARES,
    TAPS,
    Records,
)
from asmdnn.primitives.convolution_backward.weights_units import (
    RUN,
    PanelRow,
    PixelChunk,
    chunks_of,
    offsets_of_rows,
    segments,
)
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.products.matrices import dense_matrix
from asmdnn.primitives.products.partial import PARTIAL, sum_of_rows
from asmdnn.primitives.products.plan import multiply
from asmdnn.primitives.products.target import target_of
from asmdnn.primitives.reduction.bias import with_bias
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.records import dataclass
from asmdnn.types import f32

NAME = "depthwise"
POSITION_CYCLES = 4  # a sum comes together and is stored


def plans(desc: BackwardWeights, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plan for a depthwise convolution; nothing for others."""
    p, names = convolution_of(desc)
    if p.groups == 1 or not p.groups == p.src.dims[1] == p.dst.dims[1]:
        return
    engine = at_level(engine, dot_level(F32, engine.isa))
    try:
        check(desc, attr)
        yield with_bias(renamed(planned(p, engine), names), desc.diff_bias, engine)
    except Refused as reason:
        yield Refusal(f"{NAME}:{engine.isa}", str(reason))


def planned(p: ConvolutionDesc, engine: Engine) -> Plan:
    """Between reorders of what rows cannot read or write.  Raises Refused."""
    lanes = lanes_of(engine.isa)
    own = {name: own_format(tensor, lanes) for name, tensor in (("src", p.src), ("dst", p.dst))}
    inner = rows(p.with_formats(own), engine)
    given = {name: tensor for name, tensor in p.tensors().items() if not tensor.is_any}
    return between_reorders(inner, given, engine.tuning, isa=engine.isa)


def own_format(tensor: MemoryDesc, lanes: int) -> MemoryDesc:
    """As it is, if whole vectors of channels can be read; else blocked, where rows of a vector lie together."""
    layout = None if tensor.is_any else image_layout(tensor)
    whole = tensor.padded_dims[1] % lanes == 0
    if layout is not None and whole and layout.is_dense and layout.block % lanes == 0:
        return tensor
    return MemoryDesc(tensor.dims, f32, f"aBx{lanes}b")


@dataclass(frozen=True, slots=True)
class DepthwiseJob:
    """chunks: of an image, in ranges whose sums are computed apart.  images: of a phase.  sets: of positions of the
    last axis, as many as a kernel takes."""

    g: ConvGeometry
    isa: str
    channels: int
    chunks: tuple[tuple[PixelChunk, ...], ...]
    images: int
    sets: tuple[range, ...]

    @property
    def vectors(self) -> int:
        return -(-self.channels // lanes_of(self.isa))

    @property
    def vector_bytes(self) -> int:
        """Of a row of weights: a vector of channels at a position."""
        return f32.size_bytes * lanes_of(self.isa)

    @property
    def weights_bytes(self) -> int:
        return self.vectors * self.g.positions * self.vector_bytes


def rows(p: ConvolutionDesc, engine: Engine) -> Plan:
    """The plan for tensors that rows read, into weights blocked by the vector."""
    src, dst, lanes = image_layout(p.src), image_layout(p.dst), lanes_of(engine.isa)
    assert src is not None and dst is not None
    g = make_geometry(p, src, dst)
    job = job_of(g, engine.isa, p.src.dims[1])
    letters = "bcdef"[: p.weights.ndims - 1]
    weights = MemoryDesc(p.weights.dims, f32, f"A{letters}{lanes}a")
    assembly = Assembly(engine.tuning, engine.isa)
    parts = len(job.chunks)
    sums = assembly.room(PARTIAL, parts * job.weights_bytes) if parts > 1 else "weights"
    words: list[Int64] = []
    specs: dict[DepthwiseWeightsSpec, int] = {}
    first = records(job, specs, words, accumulate=False)
    more = records(job, specs, words, accumulate=True) if g.mb > job.images else first
    for n in range(0, max(1, g.mb), job.images):
        made, cycles, groups = first if n == 0 else more
        places = (n * g.src.image_bytes, n * g.dst.image_bytes, 0, 0)
        arguments = tuple(View(name, at) for name, at in zip(("src", "dst", sums, TAPS), places, strict=True))
        assembly.add([Phase(tuple(specs), arguments, made, cycles, groups=groups, continues=n > 0)])
    assembly.constants[TAPS] = np.concatenate(words)
    if parts > 1:
        size = job.weights_bytes // f32.size_bytes
        total = sum_of_rows(assembly, dense_matrix(sums, size), parts, size, dense_matrix("weights", size))
        multiply(assembly, total, target_of(engine))
    return assembly.plan(f"{NAME}:{engine.isa}", {"src": p.src, "weights": weights, "dst": p.dst}, ("weights",))


def job_of(g: ConvGeometry, isa: str, channels: int) -> DepthwiseJob:
    """Chunks whose source and diff_dst L1 holds for all rows of the kernel; in ranges where there are few vectors."""
    vector_bytes = f32.size_bytes * lanes_of(isa)
    pixels = max(RUN, CHUNK_BYTES // (vector_bytes * (1 + min(2, g.axes[-1].s) ** 2)))
    chunks = chunks_of(g, pixels)
    fit = pixels // max(1, g.rows * g.width)
    images = max((n for n in range(1, min(fit, g.mb) + 1) if g.mb % n == 0), default=1)
    vectors = -(-channels // lanes_of(isa))
    parts = min(max(1, len(chunks) // LEAST_CHUNKS), -(-LEAST_SHARES // vectors))
    ends = np.linspace(0, len(chunks), parts + 1).astype(int).tolist()
    begin, sets = 0, []
    for count in balanced(g.axes[-1].k, most_positions(isa)):
        sets.append(range(begin, begin + count))
        begin += count
    ranges = tuple(tuple(chunks[low:high]) for low, high in pairwise(ends))
    return DepthwiseJob(g, isa, channels, ranges, images, tuple(sets))


def records(job: DepthwiseJob, specs: dict[DepthwiseWeightsSpec, int], words: list[Int64], accumulate: bool) -> Records:
    """Records, their costs, and where groups begin: one for each vector of channels and range of chunks."""
    g, lanes = job.g, lanes_of(job.isa)
    outer = list(product(*(range(axis.k) for axis in g.axes[:-1])))
    offsets, kernels, cycles, begins = [], [], [], [0]
    for part, chunks in enumerate(job.chunks):
        calls = [
            call(
                job,
                specs,
                words,
                outer=(position, index * g.axes[-1].k),
                positions=of_set,
                chunk=chunk,
                accumulate=accumulate or i > 0,
            )
            for i, chunk in enumerate(chunks)
            for index, position in enumerate(outer)
            for of_set in job.sets
        ]
        table, places, costs = (np.array(column) for column in zip(*calls, strict=True))
        for vector in range(job.vectors):
            at = part * job.weights_bytes + vector * g.positions * job.vector_bytes
            channel = vector * lanes
            offsets.append(places + np.array((g.src.channel(channel), g.dst.channel(channel), at, 0)))
            kernels.append(table)
            cycles.append(costs)
            begins.append(begins[-1] + len(table))
    found = records_of(ARGUMENTS, dict(zip(ARGUMENTS, np.concatenate(offsets).T, strict=True)), np.concatenate(kernels))
    return found, np.concatenate(cycles).astype(np.int32), np.array(begins, np.int64)


def call(
    job: DepthwiseJob,
    specs: dict[DepthwiseWeightsSpec, int],
    words: list[Int64],
    outer: tuple[tuple[int, ...], int],
    positions: range,
    chunk: PixelChunk,
    accumulate: bool,
) -> tuple[int, Int64, int]:
    """(kernel, offsets, cycles) for a position of the outer axes, some of the last axis, and a chunk."""
    g, axis = job.g, job.g.axes[-1]
    lines = offsets_of_rows(g, outer[0], chunk.rows)
    images = np.arange(job.images)[:, None, None] * np.array((g.src.image_bytes, g.dst.image_bytes))
    lines = (images + lines).reshape(-1, 2)
    found = segments(g, tuple(PanelRow(0, s) for s in positions), chunk)
    places = tuple((s * axis.d - axis.p) * g.src.pixel_bytes for s in positions)
    spec = DepthwiseWeightsSpec(
        job.isa,
        places,
        tuple(ColumnRun(numbers, begin, end - begin) for numbers, begin, end in found),
        src_step=axis.s * g.src.pixel_bytes,
        dst_step=g.dst.pixel_bytes,
        weights_step=job.vector_bytes,
        accumulate=accumulate,
    )
    start = sum(map(len, words))
    words.append(np.concatenate((np.array((len(lines),)), lines.ravel())))
    offsets = np.array((g.src.start_bytes, g.dst.start_bytes, (outer[1] + positions[0]) * job.vector_bytes, 8 * start))
    pixels = len(lines) * sum((end - begin) * (1 + len(numbers)) for numbers, begin, end in found)
    return (
        specs.setdefault(spec, len(specs)),
        offsets,
        min(CALL_CYCLES + POSITION_CYCLES * len(positions) + pixels, MOST_CYCLES),
    )
