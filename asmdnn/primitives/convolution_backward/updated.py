"""Gradients of weights with post-ops, such as an optimizer's update: a gradient is never in memory as a whole.

A group of records makes the gradients of some input channels by a panel of output channels.  Tiles sum them, as rows
of the panel; then they become row-major, and the post-ops read them, all in scratch that each thread has of its own.
Tiles prefetch what post-ops read beside: these would wait for memory, while tiles compute.  A group is small enough
that all of that stays in L2.  On a Zen 4 a 3x3 gradient of 512 by 512 channels, 7x7, took 3.22 ms with its update
without prefetches, 2.86 ms with them, and 3.76 ms as two passes.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from asmdnn.generators.dot.conv_shape import ARGUMENTS, blocks_of
from asmdnn.generators.functions.postops import EltwiseOp
from asmdnn.isa.dot import F32, f32_dot_level
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import NOTHING, View, records_of
from asmdnn.planning.plan import Plan, alike
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.planning.steps import StepRecords, add_each, steps_of
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.attributes.chain import further_of
from asmdnn.primitives.attributes.post_ops import AnyPostOp, Sum, with_tensors
from asmdnn.primitives.convolution.direct import make_geometry
from asmdnn.primitives.convolution.geometry import image_layout
from asmdnn.primitives.convolution.taps import TAP_CHANNELS, weights_rows
from asmdnn.primitives.convolution_backward.description import ConvolutionBackwardWeights
from asmdnn.primitives.convolution_backward.weights import (
    check,
    convolution_of,
    own_result,
    own_source,
    picks_pixels,
    vectors_of,
)
from asmdnn.primitives.convolution_backward.weights_tiles import TAPS, Tables, TilesJob, job_of, of_unit
from asmdnn.primitives.convolution_backward.weights_units import (
    GradientPanels,
    PixelChunk,
    RowUnit,
    chunks_of,
    offsets_of_rows,
    runs,
    segments,
    units_of,
)
from asmdnn.primitives.convolution_backward.winograd import plan as winograd
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.reorder.schedule import reorder_phases
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.records import dataclass, replace
from asmdnn.types import f32

NAME, UPDATED = "updated", "diff_weights"
SUMS, GRADIENT = "sums of tiles", "gradient"  # scratch of each thread
LINEAR = EltwiseOp("linear", 1.0, -0.0, 1.0)
L2_SHARE = 12  # of L2: the sums of a group; twice as large, 1x1 of 2048 channels took 6% longer, 3x3 2% less
MOST_LINES = 8  # that a tap prefetches


def plans(desc: ConvolutionBackwardWeights, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plan, where there are post-ops."""
    if not attr.post_ops:
        return
    engine = at_level(engine, f32_dot_level(engine.isa))
    try:
        yield plan(desc, attr, engine)
    except Refused as reason:
        yield Refusal(f"{NAME}:{engine.isa}", str(reason))


def plan(desc: ConvolutionBackwardWeights, attr: Attr, engine: Engine) -> Plan:
    """Plan `desc`.  Raises Refused."""
    check(desc, NO_ATTR)
    if attr.changed(post_ops=()) != NO_ATTR:
        raise Refused("post-ops of a gradient of weights are implemented without other attributes")
    weights = desc.diff_weights
    if desc.diff_bias or weights != row_major(weights.dims, weights) or desc.forward().has_groups:
        raise Refused("post-ops of a gradient of weights are implemented for plain ones without groups and diff_bias")
    tensors = operands_of(desc, attr)
    full = [name for name, tensor in tensors.items() if tensor == desc.diff_weights]
    if (1 + len(full)) * desc.diff_weights.size_bytes <= engine.l2_bytes:
        raise Refused("what is updated stays in L2, where a pass of its own finds it")
    if any(isinstance(answer, Plan) for answer in winograd.plans(desc, NO_ATTR, engine)):
        raise Refused("Winograd's algorithm is expected to be faster, and has no post-ops")
    inner = UpdatedGradient.of(desc, engine)
    made = inner.plan(attr, tensors, full)
    given = {name: getattr(desc, name) for name in ("src", "diff_dst") if not getattr(desc, name).is_any}
    return between_reorders(made, given, engine.tuning, isa=engine.isa)


def operands_of(desc: ConvolutionBackwardWeights, attr: Attr) -> dict[str, MemoryDesc]:
    """What post-ops read, by argument: tensors as diff_weights are, and numbers.  Raises Refused for others."""
    found = attr.tensors()
    ones = (1,) * desc.diff_weights.ndims
    if any(isinstance(op, Sum) for op in attr.post_ops):
        raise Refused("a sum after a gradient of weights is not implemented")
    for name, tensor in found.items():
        if tensor != desc.diff_weights and (tensor.dims != ones or tensor.dtype != f32 or tensor.is_any):
            raise Refused(f"{name} is {tensor}, it must be one number, or as diff_weights are")
    return found


def number_of(tensor: MemoryDesc) -> MemoryDesc:
    """A tensor of one element as one of two dims."""
    return MemoryDesc((1, 1), tensor.dtype, "ab", offset0=tensor.offset0)


@dataclass(frozen=True, eq=False)
class UpdatedGradient:
    """src, dst: as tiles read them.  channels: input channels of a group."""

    engine: Engine
    src: MemoryDesc
    dst: MemoryDesc
    weights: MemoryDesc
    job: TilesJob
    channels: int

    @classmethod
    def of(cls, desc: ConvolutionBackwardWeights, engine: Engine) -> "UpdatedGradient":
        """Raises Refused."""
        p, _ = convolution_of(desc)
        lanes = lanes_of(engine.isa)
        if picks_pixels(p):
            raise Refused("pixels apart from one another are copied first")
        p = p.with_formats({"src": own_source(p, lanes), "dst": own_result(p, lanes)})
        src, dst, blocks = image_layout(p.src), image_layout(p.dst), blocks_of(F32, engine.isa)
        assert src is not None and dst is not None
        g, vectors = make_geometry(p, src, dst).flattened(), vectors_of(p, lanes, blocks)
        job = job_of(g, GradientPanels(vectors, weights_rows(g.ic, 1), lanes), engine.isa, blocks[vectors])
        if g.mb != job.images or len(job.ranges) > 1 or not g.rows * g.width:
            raise Refused("images are summed in several phases")
        if g.ic % TAP_CHANNELS or g.oc % (vectors * lanes) or vectors * lanes % p.dst.blocks[1]:
            raise Refused(f"{g.oc} by {g.ic} channels are no whole panels of whole tiles")
        if job.rows == job.panels.rows or g.axes[-1].k == 1:  # else tiles have rows of several positions
            job = replace(job, panels=GradientPanels(vectors, 1, lanes, by_channel=True))
        row_bytes = job.panels.row_bytes * g.positions
        sizes = [n for n in range(TAP_CHANNELS, g.ic + 1, TAP_CHANNELS) if not (g.ic % n or n % p.src.blocks[1])]
        fits = [n for n in sizes if n * row_bytes <= engine.l2_bytes // L2_SHARE]
        if not sizes:
            raise Refused(f"blocks of src do not divide its {g.ic} channels")
        return cls(engine, p.src, p.dst, desc.diff_weights, job, max(fits, default=min(sizes)))

    @property
    def columns(self) -> int:
        """Of a panel: output channels."""
        return self.job.panels.vectors * self.job.panels.lanes

    @property
    def run(self) -> int:
        """The elements of an output channel that a group makes."""
        return self.channels * self.job.g.positions

    def plan(self, attr: Attr, tensors: Mapping[str, MemoryDesc], full: Sequence[str]) -> Plan:
        """tensors: that post-ops read; full: those as diff_weights are."""
        g, assembly = self.job.g, Assembly(self.engine.tuning, self.engine.isa)
        tables = Tables(self.job.isa)
        further = further_of(attr, UPDATED)
        steps = [*self.tiles(tables, full), *self.transposed(), *self.updated(attr)]
        assembly.constants[TAPS] = np.concatenate(tables.words)
        row_bytes = f32.size_bytes * self.run
        rest = g.ic // self.channels
        moves = {
            "src": (0, g.src.channel(self.channels)),
            "diff_dst": (g.dst.channel(self.columns), 0),
            **dict.fromkeys((UPDATED, *further, *full), (self.columns * rest * row_bytes, row_bytes)),
        }
        own = dict.fromkeys((SUMS, GRADIENT), self.columns * row_bytes)
        add_each(assembly, steps, moves, (g.oc // self.columns, rest), own)
        asked = {"src": self.src, UPDATED: self.weights, "diff_dst": self.dst}
        every = {**asked, **dict.fromkeys(further, self.weights), **tensors}
        name = f"{NAME}:{self.engine.isa}"
        outputs = UPDATED, *further
        in_place = tuple(pair for output in outputs for pair in alike(every, full, output))
        return assembly.plan(name, every, outputs, in_place)

    def tiles(self, tables: Tables, full: Sequence[str]) -> Iterator[StepRecords]:
        """The tiles of a group, each of which prefetches at most a row of what is read in the end."""
        job, g = self.job, self.job.g
        units = units_of(replace(g, ic=self.channels), job.panels, job.rows)
        calls = [(i, chunk, unit) for i, chunk in enumerate(chunks_of(g, job.pixels)) for unit in units]
        rows = [(name, row) for name in full for row in range(self.columns)]
        of_tensor: dict[str, list[tuple[int, np.ndarray, int]]] = {}
        specs = Tables(job.isa)
        for j, (i, chunk, unit) in enumerate(calls):
            first, following = (n * len(rows) // len(calls) for n in (j, j + 1))
            name, row = rows[min(first, len(rows) - 1)] if rows else ("", 0)
            lines = self.lines(unit, chunk) if following > first else 0
            for kernel, place, cost in of_unit(job, tables, unit, chunk, i > 0, self.columns):
                spec = replace([*tables.specs][kernel], prefetch_lines=lines)
                at = place.copy()
                at[ARGUMENTS.index("prefetched")] = f32.size_bytes * row * g.ic * g.positions
                of_tensor.setdefault(name, []).append((specs.kernel(spec), at, cost))
        for name, made in of_tensor.items():
            kernels, places, costs = (np.array(column) for column in zip(*made, strict=True))
            records = records_of(ARGUMENTS, dict(zip(ARGUMENTS, places.T, strict=True)), kernels)
            views = {"src": "src", "weights": "diff_dst", "dst": SUMS, "taps": TAPS, "prefetched": name}
            of = tuple(View(views[x]) if views.get(x) else NOTHING for x in ARGUMENTS)
            yield StepRecords(tuple(specs.specs), records, costs.astype(np.int64), of)

    def lines(self, unit: RowUnit, chunk: PixelChunk) -> int:
        """That each tap of a tile prefetches of a row."""
        g = self.job.g
        lines = self.job.images * len(offsets_of_rows(g, unit.outer, chunk.rows))
        along = [times for _, begin, end in segments(g, unit.rows, chunk) for _, times, _ in runs(end - begin)]
        taps = lines * sum(along)
        return min(MOST_LINES, -(-f32.size_bytes * self.run // (LINE_BYTES * taps))) if taps else 0

    def transposed(self) -> list[StepRecords]:
        """The sums of a group as rows of output channels."""
        dims, rows = (self.columns, self.channels, self.job.g.positions), self.job.panels.rows
        tag = f"Abc{self.columns}a" if self.job.panels.by_channel else f"ABc{rows}b{self.columns}a"
        src, dst = MemoryDesc(dims, f32, tag), MemoryDesc(dims, f32, "abc")
        made = reorder_phases(src, dst, (SUMS, GRADIENT), self.engine.tuning, isa=self.engine.isa)
        tensors = {SUMS: src, GRADIENT: dst}
        return steps_of(Plan("", tuple(made), tensors, {}, {}, (GRADIENT,)), {})

    def updated(self, attr: Attr) -> list[StepRecords]:
        """The post-ops of a group."""
        dims = self.columns, self.run
        part = MemoryDesc(dims, f32, strides=(self.job.g.ic * self.job.g.positions, 1))

        def moved(op: AnyPostOp) -> AnyPostOp:
            return with_tensors(op, [part if x == self.weights else number_of(x) for x in op.tensors.values()])

        after = Attr([moved(op) for op in attr.post_ops])
        src = MemoryDesc(dims, f32, "ab")
        made = schedule(Request("update", (GRADIENT, src), (UPDATED, part), {}, lambda _: LINEAR), after, self.engine)
        return steps_of(made, {})
