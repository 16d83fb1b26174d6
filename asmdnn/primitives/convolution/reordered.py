"""Direct convolution between reorders, for formats whose channels lie too far apart for the tile kernels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import KernelSpec, Phase, Plan, concatenate
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution import direct as conv_direct
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.implementation import Refusal
from asmdnn.primitives.reorder.schedule import reorder_phase

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
    specs: list[KernelSpec] = []
    phases: list[tuple[Phase, int]] = []

    def reorder(step: Step) -> None:
        kernels, phase = reorder_phase(step.src, step.dst, (step.source, step.target))
        phases.append((phase, len(specs)))
        specs.extend(kernels)

    for step in before:
        reorder(step)
    for phase in inner.phases:
        buffers = tuple(f"blocked {a}" if f"blocked {a}" in blocked else a for a in phase.arguments)
        phases.append((replace(phase, arguments=buffers), len(specs)))
    specs.extend(inner.specs)
    for step in after:
        reorder(step)
    arguments = max(len(phase.arguments) for phase, _ in phases)
    return Plan(name, tuple(specs), concatenate(phases, arguments), tensors, inner.constants, scratch, inner.outputs)
