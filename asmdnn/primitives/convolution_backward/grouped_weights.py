"""Plans for gradients of weights of groups with few channels, depthwise ones first of all: for each vector of
channels, chunk by chunk, the rows of the kernel.

src and diff_dst are read as f32, bf16 or f16, if both are of one type; weights are sums of f32.
"""

from collections.abc import Iterator
from itertools import chain, pairwise

import numpy as np

from asmdnn.generators.dot.grouped_weights import ARGUMENTS, GroupedWeightsSpec
from asmdnn.generators.dot.sums_in_registers import most_positions
from asmdnn.isa.dot import F32, dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.cuts import balanced
from asmdnn.planning.phase import Int64, Phase, View, records_of
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.description import ConvolutionDesc
from asmdnn.primitives.convolution.direct import make_geometry
from asmdnn.primitives.convolution.geometry import ConvGeometry, image_layout
from asmdnn.primitives.convolution.grouped import name_of, weights_desc
from asmdnn.primitives.convolution_backward.description import BackwardWeights
from asmdnn.primitives.convolution_backward.grouped_calls import GroupedJob, calls, line_runs
from asmdnn.primitives.convolution_backward.weights import check, convolution_of, renamed
from asmdnn.primitives.convolution_backward.weights_tiles import (
    CHUNK_BYTES,
    LEAST_CHUNKS,
    LEAST_SHARES,
    TAPS,
    Records,
)
from asmdnn.primitives.convolution_backward.weights_units import RUN, chunks_of
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.core.widening import fast_pairs
from asmdnn.primitives.products.matrices import dense_matrix
from asmdnn.primitives.products.partial import PARTIAL, sum_of_rows
from asmdnn.primitives.products.plan import multiply
from asmdnn.primitives.products.target import target_of
from asmdnn.primitives.reduction.bias import with_bias
from asmdnn.primitives.reorder.copies import Reordering, add_reorder, between_reorders
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.records import replace
from asmdnn.types import f32

VECTORS = "gradients in vectors"  # scratch


def plans(desc: BackwardWeights, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plan for groups that share a vector; nothing for others."""
    p, names = convolution_of(desc)
    if p.groups == 1 or p.src.dtype != p.dst.dtype:
        return
    engine = at_level(engine, dot_level(fast_pairs((p.src.dtype,), engine) or F32, engine.isa))
    try:
        check(desc, attr, halves=True)
        check_group(p, lanes_of(engine.isa))
        yield with_bias(renamed(planned(p, engine), names), desc.diff_bias, engine)
    except Refused as reason:
        yield Refusal(f"{name_of(p)}:{engine.isa}", str(reason))


def check_group(p: ConvolutionDesc, lanes: int) -> None:
    """Raise Refused unless groups fill a vector, of f32 one or several."""
    into, out = p.src.dims[1] // p.groups, p.dst.dims[1] // p.groups
    most = lanes if p.src.dtype == f32 else lanes // 2
    if into != out or into > most or into & into - 1:
        raise Refused(f"groups have {into} channels in and {out} out, it takes as many, a power of two up to {most}")


def planned(p: ConvolutionDesc, engine: Engine) -> Plan:
    """Between reorders of what rows cannot read or write.  Raises Refused."""
    lanes = lanes_of(engine.isa)
    plain = overlaps(p, lanes)
    own = {
        name: of_rows(tensor) if plain else own_format(tensor, lanes)
        for name, tensor in (("src", p.src), ("dst", p.dst))
    }
    inner = rows(p.with_formats(own), engine)
    given = {
        name: of_type(inner.tensors[name], tensor.dtype) if tensor.is_any else tensor
        for name, tensor in p.tensors().items()
    }
    return between_reorders(inner, given, engine.tuning, isa=engine.isa)


def own_format(tensor: MemoryDesc, lanes: int) -> MemoryDesc:
    """As it is, if whole vectors of channels can be read; else blocked, where rows of a vector lie together."""
    layout = None if tensor.is_any else image_layout(tensor)
    whole = tensor.padded_dims[1] % lanes == 0
    if layout is not None and whole and layout.is_dense and layout.block % lanes == 0:
        return tensor
    return MemoryDesc(tensor.dims, tensor.dtype, f"aBx{lanes}b")


def overlaps(p: ConvolutionDesc, lanes: int) -> bool:
    """Whether channels are last and fill no whole vectors, of which the last one then ends where they do."""
    given = [tensor for tensor in (p.src, p.dst) if not tensor.is_any]
    channels = p.src.dims[1]
    return channels % lanes > 0 and channels > lanes and bool(given) and all(map(has_rows, given))


def has_rows(tensor: MemoryDesc) -> bool:
    """Whether all channels of a pixel are contiguous."""
    layout = image_layout(tensor)
    return layout is not None and layout.is_dense and layout.block == tensor.dims[1]


def of_rows(tensor: MemoryDesc) -> MemoryDesc:
    return MemoryDesc(tensor.dims, tensor.dtype, "axb") if tensor.is_any else tensor


def rows(p: ConvolutionDesc, engine: Engine) -> Plan:
    """The plan for tensors that rows read, into weights blocked by the vector, or plain ones if vectors overlap."""
    src, dst, lanes = image_layout(p.src), image_layout(p.dst), lanes_of(engine.isa)
    assert src is not None and dst is not None
    g = replace(make_geometry(p, src, dst), src=src)  # a channel is one, not as many as are multiplied at once
    job = job_of(g, p, engine)
    weights = weights_desc(MemoryDesc(p.weights.dims, f32, "any"), job.group, lanes)
    assembly = Assembly(engine.tuning, engine.isa)
    parts = len(job.chunks)
    whole = assembly.room(VECTORS, job.weights_bytes) if job.overlaps else "weights"
    sums = assembly.room(PARTIAL, parts * job.weights_bytes) if parts > 1 else whole
    words: list[Int64] = []
    specs: dict[GroupedWeightsSpec, int] = {}
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
        total = sum_of_rows(assembly, dense_matrix(sums, size), parts, size, dense_matrix(whole, size))
        multiply(assembly, total, target_of(engine))
    if job.overlaps:
        weights = MemoryDesc(p.weights.dims, f32, LETTERS[: p.weights.ndims])
        add_apart(assembly, job)
    return assembly.plan(f"{name_of(p)}:{engine.isa}", {"src": p.src, "weights": weights, "dst": p.dst}, ("weights",))


def add_apart(assembly: Assembly, job: GroupedJob) -> None:
    """Weights row by row, from vectors of which the last one begins with channels of the one before."""
    lanes, inputs, positions = lanes_of(job.isa), job.group, job.g.positions
    last, rest = job.vectors - 1, job.channels % lanes
    from_vectors, to_rows = (inputs * positions * lanes, 1, positions * lanes, lanes), inputs * positions
    for vectors, taken, skipped in ((last, lanes, 0), (1, rest, lanes - rest)):
        first = 0 if vectors == last and not skipped else last
        dims = (vectors, taken, inputs, positions)
        src = MemoryDesc(dims, f32, strides=from_vectors, offset0=first * from_vectors[0] + skipped)
        dst = MemoryDesc(dims, f32, strides=(lanes * to_rows, to_rows, positions, 1), offset0=first * lanes * to_rows)
        add_reorder(assembly, Reordering(VECTORS, src, "weights", dst))


def job_of(g: ConvGeometry, p: ConvolutionDesc, engine: Engine) -> GroupedJob:
    """Chunks whose source and diff_dst L1 holds for all rows of the kernel; in ranges where there are few vectors."""
    isa, dtype, (_, channels, *_) = engine.isa, p.src.dtype, p.src.dims
    group, vector_bytes = channels // p.groups, dtype.size_bytes * lanes_of(isa)
    pixels = max(RUN, CHUNK_BYTES // (vector_bytes * (1 + min(2, g.axes[-1].s) ** 2)))
    chunks = chunks_of(g, pixels)
    fit = pixels // max(1, g.rows * g.width)
    images = max((n for n in range(1, min(fit, g.mb) + 1) if g.mb % n == 0), default=1)
    vectors = -(-channels // lanes_of(isa))
    parts = min(max(1, len(chunks) // LEAST_CHUNKS), -(-LEAST_SHARES // vectors))
    ends = np.linspace(0, len(chunks), parts + 1).astype(int).tolist()
    begin, sets = 0, []
    for count in balanced(g.axes[-1].k, most_positions(isa, dtype, group)):
        sets.append(range(begin, begin + count))
        begin += count
    ranges = tuple(tuple(chunks[low:high]) for low, high in pairwise(ends))
    return GroupedJob(
        g, isa, dtype, channels, group,
        chunks=ranges, images=images, sets=tuple(sets), beyond_l2=p.src.size_bytes > engine.l2_bytes,
        overlaps=overlaps(p, lanes_of(isa)),
    )  # fmt: skip


def records(job: GroupedJob, specs: dict[GroupedWeightsSpec, int], words: list[Int64], accumulate: bool) -> Records:
    """Records, their costs, and where groups begin: one for each vector of channels and range of chunks."""
    g, lanes = job.g, lanes_of(job.isa)
    offsets, kernels, cycles, begins = [], [], [], [0]
    for part, chunks in enumerate(job.chunks):
        found = [
            calls(job, specs, words, run, positions=of_set, chunk=chunk, accumulate=accumulate or i > 0)
            for i, chunk in enumerate(chunks)
            for run in line_runs(job, chunk.rows)
            for of_set in job.sets
        ]
        table, places, costs = (np.array(column) for column in zip(*chain(*found), strict=True))
        for vector in range(job.vectors):
            at = part * job.weights_bytes + vector * job.group * job.input_bytes
            channel = min(vector * lanes, job.channels - lanes) if job.overlaps else vector * lanes
            offsets.append(places + np.array((g.src.channel(channel), g.dst.channel(channel), at, 0)))
            kernels.append(table)
            cycles.append(costs)
            begins.append(begins[-1] + len(table))
    made = records_of(ARGUMENTS, dict(zip(ARGUMENTS, np.concatenate(offsets).T, strict=True)), np.concatenate(kernels))
    return made, np.concatenate(cycles).astype(np.int32), np.array(begins, np.int64)
