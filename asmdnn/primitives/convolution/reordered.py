"""Direct convolution between reorders, for formats that its kernels do not read: channels that lie far apart, plain
weights.  Each implementation brings some of the tensors into the formats that direct convolution prefers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from asmdnn.errors import Unimplemented
from asmdnn.isa.dot import f32_dot_level, multiplied
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import check_zero_points
from asmdnn.primitives.convolution import direct
from asmdnn.primitives.convolution.by_words import words_that_pay
from asmdnn.primitives.convolution.description import ConvolutionDesc, ConvolutionForward, Desc
from asmdnn.primitives.convolution.multiplied import are_bytes_by_floats, types_for, types_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.reorder import copies
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.primitives.shapes.tensors import refuse_overlap
from asmdnn.records import replace
from asmdnn.types import f32

WORDS = (("words", ("src",)),)
PACKED_WORDS = (("pack+words", ("weights", "src")),)
WIDENED = (("widen", ("src",)),)  # what is brought into another type
BETWEEN_REORDERS = (  # what is brought into the formats that the kernels prefer, best first
    ("reorder", ("src", "dst")),
    ("pack", ("weights",)),
    ("pack+reorder", ("weights", "src", "dst")),
)


@implementation("pack+direct", f32_dot_level)
def plan_packed(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Pack the weights into scratch, and convolve."""
    return between_reorders("pack+direct", ("weights",), desc, attr, engine, direct.planned)


def plan_words(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """Bring src of bytes into scratch as words, where the level multiplies these and that pays; else nothing."""
    if words_that_pay(desc, engine):
        with_sums = partial(direct.planned_parts, parts=direct.one_part, has_sums=True)
        yield from ways_around("direct", desc, attr, engine, with_sums, WORDS)
        plain = not (desc.weights.is_any or desc.weights.inner_blocks)  # panels of bytes serve as they are
        yield from ways_around("direct", desc, attr, engine, direct.planned, PACKED_WORDS * plain)


def plan_widened(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """Bring src into scratch as f32, where the level does not multiply its type; nothing for f32."""
    yield from ways_around("direct", desc, attr, engine, direct.planned, WIDENED)


@implementation("reorder+direct", f32_dot_level)
def plan(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Bring src (and dst, if a post-op reads it) into blocked scratch, convolve there, and bring the result back."""
    return between_reorders("reorder+direct", ("src", "dst"), desc, attr, engine, direct.planned)


@implementation("pack+reorder+direct", f32_dot_level)
def plan_both(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """The same with weights that have to be packed."""
    roles = ("weights", "src", "dst")
    return between_reorders("pack+reorder+direct", roles, desc, attr, engine, direct.planned)


def name_of(name: str, engine: Engine) -> str:
    return f"{name}:{f32_dot_level(engine.isa)}"


def between_reorders(
    name: str,
    roles: tuple[str, ...],
    desc: Desc,
    attr: Attr,
    engine: Engine,
    planned: Callable[[Desc, Attr, Engine], Plan],
) -> Plan:
    """The plan that `planned` makes if it may choose the formats of `roles`, and reorders where the caller's differ.

    name: without the level, which is that of the plan.  Raises Refused.
    """
    given = desc.tensors()
    refuse_overlap(dst=desc.dst)
    check_zero_points(attr, given, starts=True)  # by the types that are passed, which may be widened inside
    wanted = {role: multiplied_format(role, desc, attr, engine) for role in roles}
    inner = planned(desc.with_formats(wanted), attr, engine)  # whose reasons say more than those of check_needed
    check_needed(roles, given, inner.tensors)
    passed = {role: given[role] for role in roles if not given[role].is_any}
    if "src" in roles and given["src"].is_any:
        passed["src"] = of_type(inner.tensors["src"], given["src"].dtype)
    reads = ("dst",) if attr.reads_dst() else ()
    level = inner.implementation.rpartition(":")[2]
    between = copies.between_reorders(inner, passed, engine.tuning, reads, isa=engine.isa)
    return replace(between, implementation=f"{name}:{level}")


def check_needed(roles: tuple[str, ...], given: Mapping[str, MemoryDesc], inner: Mapping[str, MemoryDesc]) -> None:
    """Raise Refused where another implementation takes these tensors as they are, or weights cannot be reordered."""
    if roles == ("src",) and given["src"].dtype == inner["src"].dtype:
        raise Refused("src is multiplied as it is")
    if "weights" in roles and not given["weights"].holds_elements:
        raise Refused("weights are transformed already")
    if "weights" in roles and (given["weights"].is_any or given["weights"] == inner["weights"]):
        raise Refused("weights need not be packed")


def plans_between_reorders(
    name: str,
    desc: Desc,
    attr: Attr,
    engine: Engine,
    planned: Callable[[Desc, Attr, Engine], Plan],
    around: Sequence[tuple[str, tuple[str, ...]]] = BETWEEN_REORDERS,
) -> Iterator[Plan | Refusal]:
    """What `planned` answers for tensors as they are, and between reorders, best first."""
    isa = f32_dot_level(engine.isa)
    try:
        yield planned(desc, attr, engine)
    except Refused as reason:
        yield Refusal(f"{name}:{isa}", str(reason))
    yield from ways_around(name, desc, attr, engine, planned, (*WIDENED, *around))


def ways_around(
    name: str,
    desc: Desc,
    attr: Attr,
    engine: Engine,
    planned: Callable[[Desc, Attr, Engine], Plan],
    around: Sequence[tuple[str, tuple[str, ...]]],
) -> Iterator[Plan | Refusal]:
    """What `planned` answers between reorders; src of f32 is as wide as may be."""
    for word, roles in around:
        if (word, roles) in WIDENED and desc.src.dtype == f32:
            continue
        try:
            yield between_reorders(f"{word}+{name}", roles, desc, attr, engine, planned)
        except Refused as reason:
            yield Refusal(f"{word}+{name}:{f32_dot_level(engine.isa)}", str(reason))


def multiplied_format(role: str, desc: ConvolutionDesc, attr: Attr, engine: Engine) -> MemoryDesc:
    """Any format; of src, with the type that a level multiplies by these weights, fastest, or bytes that kernels read
    into f32.  Raises Refused if there is none."""
    tensor = desc.tensors()[role]
    if role != "src" or are_bytes_by_floats(types_of(desc)) or types_for(desc, attr, engine).run:
        return any_format(tensor)
    try:
        types = words_that_pay(desc, engine) or multiplied(tensor.dtype, desc.weights.dtype, engine.isa)
        return MemoryDesc(tensor.dims, types.src, "any")
    except Unimplemented as reason:
        raise Refused(str(reason)) from None


def any_format(desc: MemoryDesc) -> MemoryDesc:
    return MemoryDesc(desc.dims, desc.dtype, "any")
