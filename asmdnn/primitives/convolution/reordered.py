"""Direct convolution between reorders, for formats that its kernels do not read: channels that lie far apart, plain
weights.  Each implementation brings some of the tensors into the formats that direct convolution likes best."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from asmdnn.isa.dot import F32, dot_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Phase, View, of_one_width
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution import direct
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.implementation import Refusal
from asmdnn.primitives.reorder.schedule import reorder_phases


@dataclass(frozen=True, slots=True)
class Step:
    """A reorder of buffer `source` in format `src` to buffer `target` in format `dst`."""

    source: str
    src: MemoryDesc
    target: str
    dst: MemoryDesc


def plan_packed(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan | Refusal:
    """Pack the weights into scratch, and convolve."""
    return between_reorders("pack+direct", ("weights",), desc, attr, engine)


def plan(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan | Refusal:
    """Bring src (and dst, if a post-op reads it) into blocked scratch, convolve there, and bring the result back."""
    return between_reorders("reorder+direct", ("src", "dst"), desc, attr, engine)


def plan_both(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan | Refusal:
    """The same with weights that have to be packed."""
    return between_reorders("pack+reorder+direct", ("weights", "src", "dst"), desc, attr, engine)


def between_reorders(
    name: str, roles: tuple[str, ...], desc: ConvolutionForward, attr: Attr, engine: Engine
) -> Plan | Refusal:
    """The plan that direct convolution makes if it may choose the formats of `roles`, and reorders where the caller's
    differ."""
    name, given = f"{name}:{dot_level(F32, engine.isa)}", desc.tensors()
    if desc.dst.may_overlap:
        return Refusal(name, "elements of dst overlap")
    inner = direct.plan(desc.with_formats({role: any_format(given[role]) for role in roles}), attr, engine)
    if isinstance(inner, Refusal):
        return Refusal(name, inner.reason)
    formats = {role: given[role] for role in roles if not given[role].is_any}
    moved = [role for role, desc in formats.items() if desc != inner.tensors[role] and desc.nelems()]
    if "weights" in roles and "weights" not in moved:
        return Refusal(name, "weights need not be packed")
    before, after = [], []
    for role in moved:
        if role != "dst" or attr.reads_dst():
            before.append(Step(role, given[role], f"blocked {role}", inner.tensors[role]))
        if role == "dst":
            after.append(Step(f"blocked {role}", inner.tensors[role], role, given[role]))
    return assemble(name, inner, {**inner.tensors, **formats}, before, after)


def any_format(desc: MemoryDesc) -> MemoryDesc:
    return MemoryDesc(desc.dims, desc.dtype, "any")


def assemble(
    name: str, inner: Plan, tensors: Mapping[str, MemoryDesc], before: Sequence[Step], after: Sequence[Step]
) -> Plan | Refusal:
    """One plan of all reorders and the convolution, a phase each."""
    moved = {role: desc for role, desc in inner.tensors.items() if tensors[role] != desc and desc.nelems()}
    blocked = {f"blocked {role}": desc.size_bytes for role, desc in moved.items()}
    scratch = {**inner.scratch_bytes, **blocked}

    def reorders(steps: Sequence[Step]) -> list[Phase]:
        return [x for step in steps for x in reorder_phases(step.src, step.dst, (step.source, step.target))]

    places = {role: View(f"blocked {role}") for role in inner.tensors if f"blocked {role}" in blocked}
    product = (phase.on(places) for phase in inner.phases)
    phases = of_one_width([*reorders(before), *product, *reorders(after)])
    return Plan(name, phases, tensors, inner.constants, scratch, inner.outputs)
