"""Direct convolution between reorders, for formats that its kernels do not read: channels that lie far apart, plain
weights.  Each implementation brings some of the tensors into the formats that direct convolution likes best."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from asmdnn.isa.dot import F32, dot_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution import direct
from asmdnn.primitives.convolution.description import ConvolutionForward, Desc
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.implementation import implementation
from asmdnn.primitives.reorder import copies

BETWEEN_REORDERS = (  # what is brought into the formats that the kernels like, best first
    ("reorder", ("src", "dst")),
    ("pack", ("weights",)),
    ("pack+reorder", ("weights", "src", "dst")),
)


def f32_isa(isa: str) -> str:
    return dot_level(F32, isa)


@implementation("pack+direct", f32_isa)
def plan_packed(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Pack the weights into scratch, and convolve."""
    return between_reorders(name_of("pack+direct", engine), ("weights",), desc, attr, engine, direct.planned)


@implementation("reorder+direct", f32_isa)
def plan(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Bring src (and dst, if a post-op reads it) into blocked scratch, convolve there, and bring the result back."""
    return between_reorders(name_of("reorder+direct", engine), ("src", "dst"), desc, attr, engine, direct.planned)


@implementation("pack+reorder+direct", f32_isa)
def plan_both(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """The same with weights that have to be packed."""
    roles = ("weights", "src", "dst")
    return between_reorders(name_of("pack+reorder+direct", engine), roles, desc, attr, engine, direct.planned)


def name_of(name: str, engine: Engine) -> str:
    return f"{name}:{f32_isa(engine.isa)}"


def between_reorders(
    name: str,
    roles: tuple[str, ...],
    desc: Desc,
    attr: Attr,
    engine: Engine,
    planned: Callable[[Desc, Attr, Engine], Plan],
) -> Plan:
    """The plan that `planned` makes if it may choose the formats of `roles`, and reorders where the caller's differ.

    Raises Refused.
    """
    given = desc.tensors()
    if desc.dst.may_overlap:
        raise Refused("elements of dst overlap")
    inner = planned(desc.with_formats({role: any_format(given[role]) for role in roles}), attr, engine)
    passed = {role: given[role] for role in roles if not given[role].is_any}
    if "weights" in roles and passed.get("weights", inner.tensors["weights"]) == inner.tensors["weights"]:
        raise Refused("weights need not be packed")
    reads = ("dst",) if attr.reads_dst() else ()
    return replace(copies.between_reorders(inner, passed, engine.tuning, reads, isa=engine.isa), implementation=name)


def ways(
    name: str,
    desc: Desc,
    attr: Attr,
    engine: Engine,
    planned: Callable[[Desc, Attr, Engine], Plan],
    around: Sequence[tuple[str, tuple[str, ...]]] = BETWEEN_REORDERS,
) -> Iterator[Plan | Refusal]:
    """What `planned` answers for tensors as they are, and between reorders, best first."""
    isa = f32_isa(engine.isa)
    try:
        yield planned(desc, attr, engine)
    except Refused as reason:
        yield Refusal(f"{name}:{isa}", str(reason))
    for word, roles in around:
        try:
            yield between_reorders(f"{word}+{name}:{isa}", roles, desc, attr, engine, planned)
        except Refused as reason:
            yield Refusal(f"{word}+{name}:{isa}", str(reason))


def any_format(desc: MemoryDesc) -> MemoryDesc:
    return MemoryDesc(desc.dims, desc.dtype, "any")
