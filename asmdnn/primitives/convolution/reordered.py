"""Direct convolution between reorders, for formats whose channels lie too far apart for the tile kernels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Phase, View, of_one_width
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution import direct as conv_direct
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.implementation import Refusal
from asmdnn.primitives.reorder.schedule import reorder_phases

NAME = "reorder+direct"


@dataclass(frozen=True, slots=True)
class Step:
    """A reorder of buffer `source` in format `src` to buffer `target` in format `dst`."""

    source: str
    src: MemoryDesc
    target: str
    dst: MemoryDesc


def plan(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan | Refusal:
    """Bring src (and dst, if a post-op reads it) into blocked scratch, convolve there, and bring the result back."""
    name = f"{NAME}:{f32_level(engine.isa)}"
    free = {role: MemoryDesc(d.dims, d.dtype, "any") for role, d in (("src", desc.src), ("dst", desc.dst))}
    inner = conv_direct.plan(desc.with_formats(free), attr, engine)
    if desc.dst.may_overlap:
        return Refusal(name, "elements of dst overlap")
    if isinstance(inner, Refusal):
        return Refusal(name, inner.reason)
    before, after, tensors = [], [], dict(inner.tensors)
    for role, wanted in (("src", desc.src), ("dst", desc.dst)):
        blocked = inner.tensors[role]
        if wanted.is_any or wanted == blocked:
            continue
        tensors[role] = wanted
        if role == "src" or attr.reads_dst():
            before.append(Step(role, wanted, f"blocked {role}", blocked))
        if role == "dst":
            after.append(Step(f"blocked {role}", blocked, role, wanted))
    return assemble(name, inner, tensors, before, after)


def assemble(
    name: str, inner: Plan, tensors: Mapping[str, MemoryDesc], before: Sequence[Step], after: Sequence[Step]
) -> Plan | Refusal:
    """One plan of all reorders and the convolution, a phase each."""
    blocked = {f"blocked {role}": desc.size_bytes for role, desc in inner.tensors.items() if tensors[role] != desc}
    scratch = {**inner.scratch_bytes, **blocked}

    def reorders(steps: Sequence[Step]) -> list[Phase]:
        return [x for step in steps for x in reorder_phases(step.src, step.dst, (step.source, step.target))]

    places = {role: View(f"blocked {role}") for role in inner.tensors if f"blocked {role}" in blocked}
    product = (phase.on(places) for phase in inner.phases)
    phases = of_one_width([*reorders(before), *product, *reorders(after)])
    return Plan(name, phases, tensors, inner.constants, scratch, inner.outputs)
