"""What a network consists of, as text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from asmdnn.errors import counted
from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.cuts import CountOf
from asmdnn.network.descriptors import layout_of
from asmdnn.network.joining.barriers import barriers
from asmdnn.network.narrow.storage import IN_F32, Precision
from asmdnn.network.segments import GraphSegment
from asmdnn.network.static import StaticGraph
from asmdnn.network.step_list import NetworkStep

IN_NUMPY = "numpy"  # in the place of an implementation


class TimedStep(NamedTuple):
    """A primitive, or nodes that numpy computes, of which no cycles are expected.  size_bytes: of its arguments."""

    label: str
    implementation: str
    cycles: int = 0
    size_bytes: int = 0


def explanation(
    graph: StaticGraph, segments: Sequence[GraphSegment | CompiledSegment], refused: Mapping[str, str]
) -> str:
    """A line for each primitive: operators, implementation, formats, expected cycles; then totals."""
    outputs = [name for name in graph.outputs if type(name) is not CountOf]
    lines = [f"inputs   {listing(graph, graph.inputs)}", f"outputs  {listing(graph, outputs)}"]
    for segment in segments:
        if isinstance(segment, CompiledSegment):
            lines += native_lines(segment)
        else:
            lines += [f"  numpy  {group.label}: {refused[group.label]}" for group in segment.groups]
    return "\n".join(lines)


def listing(graph: StaticGraph, names: Iterable[str]) -> str:
    """Names of inputs or outputs with their dims."""
    dims = {name: graph.shape(graph.outputs.get(name, name)) for name in names}
    return ", ".join(f"{name} {'x'.join(map(str, shape)) or 'scalar'}" for name, shape in dims.items())


def precision_line(precision: Precision, segments: Sequence[GraphSegment | CompiledSegment]) -> str:
    """What a word that allows fewer bits has changed, "" of f32."""
    if precision.word == IN_F32.word:
        return ""
    used = [segment.segment.storage for segment in segments if isinstance(segment, CompiledSegment)]
    counts = [
        f"{count} {what}"
        for what, count in (
            ("products multiply fewer bits", sum(len(one.products) for one in used)),
            ("products keep their weights so", sum(len(one.weights) for one in used)),
            ("values are stored so", sum(len(one.values) for one in used)),
        )
        if count
    ]
    return f"  precision {precision.word}: {', '.join(counts) or 'nothing is expected to gain by it, all is f32'}"


def native_lines(segment: CompiledSegment) -> list[str]:
    """Of a native segment."""
    lines = [step_line(number, step) for number, step in enumerate(segment.steps)]
    plan, layout = segment.plan, segment.layout
    values = sum(segment.joined.plan.scratch_bytes[name] for name in layout.arena)
    reorders = sum(step.is_reorder for step in segment.steps)
    stand, every = barriers(segment.steps, plan.phases)
    lines.append(
        f"  {len(segment.steps)} primitives, {reorders} of them reorders, {len(plan.phases)} phases, "
        f"{stand} of {every} barriers, {len(plan.specs)} kernels, {plan.cycles} cycles expected"
    )
    way, changed = segment.way, counted(len(segment.way.changes), "result")
    lines.append(
        f"  formats of {changed} chosen otherwise than each by itself, "
        f"{way.cycles} cycles instead of {way.by_themselves}"
    )
    lines.append(
        f"  arena {layout.arena_bytes} bytes for {values} bytes of values, weights {layout.weights_bytes} bytes"
    )
    return lines


def batch_line(segments: Iterable[GraphSegment | CompiledSegment]) -> str:
    """What batches do to bits; to find out, all primitives are planned once more."""
    native = [segment for segment in segments if isinstance(segment, CompiledSegment)]
    others = sum(not step.pd.any_batch for segment in native for step in segment.steps)
    if others:
        return f"  bits of an item depend on its batch in {others} primitives"
    return "  bits of an item are those that it has alone"


def step_line(number: int, step: NetworkStep) -> str:
    plan = step.pd.plan
    dst = plan.tensors[plan.outputs[0]]
    dims = "x".join(map(str, dst.dims))
    return f"{number:5}  {step.label}: {plan.implementation} to {dims} {layout_of(dst)}, {plan.cycles} cycles"


def analysis(steps: Sequence[TimedStep], times: Sequence[float]) -> str:
    """A line for each step, slowest first: its time, what share was expected, and how fast its bytes pass."""
    total, cycles = sum(times), sum(step.cycles for step in steps)
    lines = [f"{'us':>10} {'share':>6} {'expected':>8} {'GB/s':>7}    # primitive"]
    for number in sorted(range(len(steps)), key=lambda i: -times[i]):
        step, seconds = steps[number], times[number]
        shares = f"{seconds / total:>6.1%} {step.cycles / max(cycles, 1):>8.1%}"
        gbs = step.size_bytes / seconds / 1e9
        lines.append(f"{seconds * 1e6:>10.1f} {shares} {gbs:>7.2f} {number:>4} {step.label}: {step.implementation}")
    lines.append(f"{total * 1e6:>10.1f} {'':>6} {'':>8} {'':>7}      all, {cycles} cycles expected")
    return "\n".join(lines)


def profile(steps: Sequence[TimedStep], times: Sequence[float]) -> str:
    """A line for each step, slowest first, of its time in seconds."""
    total, in_numpy = sum(times), sum(step.implementation == IN_NUMPY for step in steps)
    also = f", {in_numpy} of them nodes in numpy" if in_numpy else ""
    lines = [f"{total * 1e6:10.1f} us  all of {len(steps)} primitives{also}"]
    for number in sorted(range(len(steps)), key=lambda i: -times[i]):
        step, share = steps[number], times[number] / total
        lines.append(f"{times[number] * 1e6:10.1f} us {share:6.1%}  {number:4}  {step.label}: {step.implementation}")
    return "\n".join(lines)
