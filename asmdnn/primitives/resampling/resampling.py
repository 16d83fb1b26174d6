"""The plan of a resampling: a kernel for each run of results in a row whose taps have one pattern."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np

from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.resample import ResampleSpec, Step
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.calls import phases_of
from asmdnn.planning.machine import machine_of
from asmdnn.planning.phase import Int64, Phase, View, views
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import post_ops_of
from asmdnn.primitives.elementwise.behind import with_pass_behind
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.formats import of_type
from asmdnn.primitives.implementation import implementation
from asmdnn.primitives.pooling.pooling import channels_are_dense, format_like, rows_are_dense
from asmdnn.primitives.pooling.schedule import MAX_OFFSET, Planes, planes_of
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.resampling.description import ResamplingForward
from asmdnn.primitives.resampling.rows import DenseRows
from asmdnn.primitives.resampling.taps import ResampleRun, ResampleTap, pattern, runs_of
from asmdnn.primitives.words import in_words
from asmdnn.types import f32

NAME = "resample"
LINE_ELEMENTS = 16


@implementation(NAME, f32_level)
def plan(desc: ResamplingForward, attr: Attr, engine: Engine) -> Plan:
    """Plan a resampling.  Raises Refused, and InvalidArguments for post-ops that do not fit dst."""
    if attr.quantizes:
        raise Refused("scales and zero points are not implemented")
    src = format_like(desc.dst, desc.src)
    passed = {"src": src, "dst": format_like(src, desc.dst)}
    if passed["dst"].may_overlap:
        raise Refused("elements of dst overlap")
    chain = post_ops_of(attr)
    operands = chain.operands(passed["dst"])
    if operands or chain.reads_dst or (chain.links and passed["dst"].padded_dims != passed["dst"].dims):
        first = between(desc, passed | {"dst": of_type(passed["dst"], f32)}, (), engine)
        return with_pass_behind(NAME, first, {**passed, **operands}, attr, engine)
    return moved_whole(desc, passed, attr, engine) or between(desc, passed, chain.on_registers({}), engine)


def moved_whole(desc: ResamplingForward, passed: dict[str, MemoryDesc], attr: Attr, engine: Engine) -> Plan | None:
    """Nearest elements of any one type where channels are dense, in words of them; None for all else."""
    src, dst = passed["src"], passed["dst"]
    if desc.alg != "nearest" or attr.post_ops or src.dtype != dst.dtype or src.dtype == f32:
        return None
    words = {"src": in_words(src), "dst": in_words(dst)}
    if words["src"] is None or words["dst"] is None or not channels_are_dense(words["src"], words["dst"]):
        return None
    return replace(resampled(desc, words["src"], words["dst"], (), engine), tensors=passed)


def between(desc: ResamplingForward, passed: dict[str, MemoryDesc], chain: tuple[PostOp, ...], engine: Engine) -> Plan:
    """Kernels for layouts that they address, reorders around them for all others."""
    tensors = {name: of_type(tensor, f32) for name, tensor in passed.items()}
    if not channels_are_dense(tensors["src"], tensors["dst"]):
        if rows_are_dense(tensors["src"], tensors["dst"]) and 0 not in desc.dst.dims:
            made = resampled_by_rows(desc, tensors["src"], tensors["dst"], chain, engine)
            if made:
                return between_reorders(made, passed, engine.tuning, isa=engine.isa)
        tensors = {name: MemoryDesc(tensor.dims, f32, "axb") for name, tensor in passed.items()}
    made = resampled(desc, tensors["src"], tensors["dst"], chain, engine)
    return between_reorders(made, passed, engine.tuning, isa=engine.isa)


def resampled_by_rows(
    desc: ResamplingForward, src: MemoryDesc, dst: MemoryDesc, chain: tuple[PostOp, ...], engine: Engine
) -> Plan | None:
    """For tensors with dense rows; None where there would be much code."""
    isa = f32_level(engine.isa)
    axes = [desc.taps(axis) for axis in range(src.ndims - 2)]
    record_cycles = engine.tuning.resampling.record_cycles
    maker = DenseRows(isa, planes_of(src, dst, True), axes, streams(dst, engine), record_cycles, chain)
    calls, assembly = maker.calls(), Assembly(engine.tuning, engine.isa)
    if calls is None:
        return None
    assembly.constants = maker.constants()
    buffers = (name if name in assembly.constants else "" for name in ("weights", "factors"))
    assembly.add(phases_of(calls, views(("src", "dst", *buffers)), engine.tuning.phases, along_dst=True))
    return assembly.plan(f"{NAME}:{isa}", {"src": src, "dst": dst}, ("dst",))


def streams(dst: MemoryDesc, engine: Engine) -> bool:
    """Whether dst goes past the caches."""
    return engine.tuning.resampling.streaming_share * dst.size_bytes > machine_of(engine.machine).caches.l3_bytes


def resampled(
    desc: ResamplingForward, src: MemoryDesc, dst: MemoryDesc, chain: tuple[PostOp, ...], engine: Engine
) -> Plan:
    """For tensors with dense channels."""
    isa = f32_level(engine.isa)
    name, tensors, assembly = f"{NAME}:{isa}", {"src": src, "dst": dst}, Assembly(engine.tuning, engine.isa)
    if not prod(dst.dims):
        return assembly.plan(name, tensors, ("dst",))
    axes = [desc.taps(axis) for axis in range(src.ndims - 2)]
    record_cycles = engine.tuning.resampling.record_cycles
    maker = ResampledRows(isa, planes_of(src, dst, False), axes, streams(dst, engine), record_cycles, chain)
    buffers = []
    for axis, taps in enumerate(axes):
        several = len(taps[0].indices) > 1
        buffers.append(f"weights{axis}" if several else "")
        if several:
            assembly.constants[f"weights{axis}"] = words_of([tap.weights for tap in taps])
    assembly.add([maker.phase(views(("src", "dst", *buffers)), engine.tuning.phases.call_cycles)])
    return assembly.plan(name, tensors, ("dst",))


def words_of(weights: Sequence[Sequence[float]]) -> Int64:
    """f32 numbers as int64 words."""
    flat = np.array(weights, np.float32).ravel()
    return np.pad(flat, (0, flat.size % 2)).view(np.int64)


class ResampledRows:
    """The records of all rows of dst, by the runs of the last axis."""

    def __init__(
        self,
        isa: str,
        planes: Planes,
        axes: Sequence[Sequence[ResampleTap]],
        streams: bool,
        record_cycles: int,
        chain: tuple[PostOp, ...] = (),
    ) -> None:
        self.isa, self.planes, self.axes, self.chain = isa, planes, axes, chain
        self.runs, self.elements = runs_of(axes[-1]), planes.src.block
        self.record_cycles = record_cycles
        lanes, pixel = lanes_of(isa), planes.dst.pixel_bytes
        lines = self.elements % LINE_ELEMENTS == 0 or pixel == 4 * self.elements  # are written at once
        dense = max((run.groups * run.together for run in self.runs if run.step in (0, run.together)), default=0)
        in_order = 2 * dense >= len(axes[-1])  # else pieces of a row, and of lines, are written one after the other
        self.streams = streams and lines and in_order and self.elements % lanes == 0 and pixel % (4 * lanes) == 0

    def phase(self, arguments: tuple[View, ...], call_cycles: int) -> Phase:
        """All records, in the order of dst.  Raises Refused."""
        index: dict[ResampleSpec, int] = {}
        rows, cycles = [], []
        for outer in product(*(range(len(taps)) for taps in self.axes[:-1])):
            for run in self.runs:
                at = (*outer, run.output)
                chosen = [taps[o] for o, taps in zip(at, self.axes, strict=True)]
                for count, planes in self.plane_groups(run):
                    number = index.setdefault(self.spec(chosen, run, count), len(index))
                    block = np.zeros((len(planes), 1 + len(arguments)), np.int64)
                    block[:, 0], block[:, 1:3] = number, planes + self.start(chosen, at)
                    block[:, 3:] = [self.weights_at(axis, o) for axis, o in enumerate(at)]
                    rows.append(block)
                    cycles.append(np.full(len(planes), call_cycles + count * self.cost(run, chosen), np.int32))
        together, costs = np.concatenate(rows), np.concatenate(cycles)
        order = np.argsort(together[:, 2], kind="stable")
        return Phase(tuple(index), arguments, np.ascontiguousarray(together[order]), costs[order])

    def weights_at(self, axis: int, o: int) -> int:
        """The byte offset of a result's weights."""
        count = len(self.axes[axis][0].indices)
        return 4 * o * count if count > 1 else 0

    def cost(self, run: ResampleRun, chosen: Sequence[ResampleTap]) -> int:
        """Cycles of a run in one plane."""
        taps = prod(len(tap.indices) for tap in chosen)
        return run.groups * (6 + -(-self.elements // lanes_of(self.isa)) * (1 + taps + run.together))

    def plane_groups(self, run: ResampleRun) -> list[tuple[int, Int64]]:
        """(how many planes a record takes, int64[n, 2]: where each record's first one is in src and dst)."""
        loops = self.planes.loops()
        most = max(
            1, self.record_cycles // (run.groups * (6 + 3 * run.together * -(-self.elements // lanes_of(self.isa))))
        )
        starts = np.zeros((1, 2), np.int64)
        for loop in loops[:-1]:
            starts = (starts[:, None] + np.arange(loop.times)[:, None] * np.array(loop[1:])).reshape(-1, 2)
        inner = loops[-1]
        count = min(most, inner.times)
        whole, rest = divmod(inner.times, count)
        step = np.array(inner[1:], np.int64)
        groups = [(count, (starts[:, None] + np.arange(whole)[:, None] * count * step).reshape(-1, 2))]
        return groups + ([(rest, starts + whole * count * step)] if rest else [])

    def spec(self, chosen: Sequence[ResampleTap], run: ResampleRun, count: int) -> ResampleSpec:
        """The kernel of a run in so many planes.  Raises Refused where steps exceed what code can say."""
        planes, plane = self.planes, self.planes.loops()[-1]
        src_pixel, dst_pixel = planes.src.pixel_bytes, planes.dst.pixel_bytes
        weights = self.weights_at(-1, run.step)
        loops = [Step(run.groups, run.moves * src_pixel, run.step * dst_pixel, weights)]
        if count > 1:
            loops.insert(0, Step(count, plane.src_bytes, plane.dst_bytes, 0))
        steps = zip(chosen, planes.src.axis_bytes, strict=True)
        taps = tuple(tuple(i * at for i in pattern(tap)) for tap, at in steps)
        reach = max(abs(step) * loop.times for loop in loops for step in loop[1:3])
        if max(reach, *(abs(i) for each in taps for i in each)) > MAX_OFFSET // 2:
            raise Refused("a plane spans more than 1 GiB")
        made = self.elements, run.together, dst_pixel, self.streams, self.chain
        return ResampleSpec(self.isa, tuple(loops), taps, *made)

    def start(self, chosen: Sequence[ResampleTap], at: Sequence[int]) -> tuple[int, int]:
        """What a run's first pixel is made of, and where it lies, in the first plane."""
        src = zip(chosen, self.planes.src.axis_bytes, strict=True)
        dst = zip(at, self.planes.dst.axis_bytes, strict=True)
        return (
            self.planes.src.start_bytes + sum(tap.indices[0] * step for tap, step in src),
            self.planes.dst.start_bytes + sum(o * step for o, step in dst),
        )
