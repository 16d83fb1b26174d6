"""A plan between reorders: for formats that its kernels do not address, and for dims that they do not repeat.

A phase in front copies such a tensor into scratch in the format that the plan reads, and one after brings results
into the caller's format.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, wraps

from asmdnn.forking import importing
from asmdnn.memory import MemoryDesc
from asmdnn.memory.summed import SummedDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.phases import barriers_before
from asmdnn.planning.plan import Pairs, Plan, alike
from asmdnn.planning.refusal import Refused
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, Desc, Request, implementations_of
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.records import dataclass, replace

WORD = "reorder"  # in the implementation's name


@dataclass(frozen=True, slots=True)
class Reordering:
    """Buffer `source` in format `src` into buffer `target` in format `dst`.  few_sizes: of kernels, for any dims."""

    source: str
    src: MemoryDesc
    target: str
    dst: MemoryDesc
    few_sizes: bool = False

    @property
    def back(self) -> "Reordering":
        return Reordering(self.target, self.dst, self.source, self.src)


def add_reorder(assembly: Assembly, step: Reordering, *words: str) -> None:
    """The phases that do it."""
    if not step.dst.holds_elements:
        with importing():
            from asmdnn.primitives.reorder.transformed import add_transformed

        assembly.words += words
        add_transformed(assembly, (step.source, step.src), (step.target, step.dst))
        return
    with importing():  # the kernels of reorders, which most plans do without
        from asmdnn.primitives.reorder.schedule import reorder_phases
        from asmdnn.primitives.reorder.style import MoveStyle

    places = step.source, step.target
    formats = step.src.storage, step.dst.storage
    made = reorder_phases(
        *formats, places, assembly.tuning, style=MoveStyle(few_sizes=step.few_sizes), isa=assembly.isa
    )
    assembly.add(made, *words)
    if isinstance(step.dst, SummedDesc):
        with importing():
            from asmdnn.primitives.reorder.compensation import add_sums

        add_sums(assembly, step.dst, step.target)


def between_reorders(
    plan: Plan, passed: Mapping[str, MemoryDesc], tuning: Tuning, reads: Container[str] = (), *, isa: str
) -> Plan:
    """`plan` for a caller who passes some tensors as `passed` describes them.

    A dim of 1 of an input is repeated where the plan has more.  `reads` names the outputs of which the plan reads what
    they held before.  isa: the level of the reorders' kernels.  The plan itself if it takes all tensors as they are
    passed.
    """
    apart = {name: desc for name, desc in passed.items() if desc != plan.tensors[name]}
    if not apart:
        return plan
    assembly = Assembly(tuning, isa)
    copies = {name: room_of(name, plan) for name, desc in apart.items() if desc.nelems()}
    plain: dict[str, int] = {}
    for name, copy in copies.items():
        if name not in plan.outputs or name in reads:
            with beside_others(assembly, bool(assembly.phases)):
                plain |= bring(assembly, name, apart[name], copy, plan.tensors[name])
    with beside_others(assembly, bool(assembly.phases) and goes_on_in_scratch(plan, copies)):
        assembly.add_plan(plan, {name: View(copy) for name, copy in copies.items()})
    outputs = [name for name in copies if name in plan.outputs]
    for i, name in enumerate(outputs):
        with beside_others(assembly, i > 0):
            add_reorder(assembly, Reordering(copies[name], plan.tensors[name], name, apart[name]))
    assembly.scratch |= {copy: plan.tensors[name].size_bytes for name, copy in copies.items()} | plain
    tensors = {**plan.tensors, **apart}
    return assembly.plan(f"{WORD}+{plan.implementation}", tensors, plan.outputs, in_place(plan, copies, tensors))


@contextmanager
def beside_others(assembly: Assembly, is_independent: bool) -> Iterator[None]:
    """The first phase of what is added needs no barrier, such as that of a copy after another one's."""
    done = len(assembly.phases)
    yield
    if is_independent and len(assembly.phases) > done:
        assembly.phases[done] = replace(assembly.phases[done], independent=True)


def goes_on_in_scratch(plan: Plan, copies: Container[str]) -> bool:
    """Whether a plan has nothing to do, up to its first barrier, with the tensors that are copied in front of it, nor
    with a result, whose memory may be that of one of these."""
    _, *barriers = barriers_before(plan.phases)
    first = plan.phases[: barriers.index(True) + 1 if True in barriers else len(plan.phases)]
    buffers = {view.buffer for phase in first for view in phase.arguments}
    return not any(name in copies or name in plan.outputs for name in buffers)


@dataclass(frozen=True, slots=True, eq=False)
class Inside:
    """A plan of the formats that kernels take, and what a caller passes: arguments of `between_reorders`."""

    plan: Plan
    passed: Mapping[str, MemoryDesc]
    tuning: Tuning
    isa: str
    reads: tuple[str, ...] = ()


def as_passed_or_copied(
    name: str, inside_of: Callable[[Desc, Attr, Engine], Inside], level: Callable[[str], str]
) -> Callable[[Desc, Attr, Engine], Iterator[Answer]]:
    """A planner that lists two implementations: of tensors as they are passed, and between reorders."""
    return implementations_of(inside_of, {name: as_passed, f"{WORD}+{name}": copied}, level)


def ways_as_passed_or_copied(
    request_of: Callable[[Desc, Attr, Engine], Request],
    ways: Mapping[str, Callable[[Request], Inside]],
    level: Callable[[str], str],
) -> Callable[[Desc, Attr, Engine], Iterator[Answer]]:
    """A planner with several ways by name, best first: all of tensors as they are passed, then all between reorders."""

    @wraps(request_of)
    def planned(desc: Desc, attr: Attr, engine: Engine) -> Callable[[str], Inside]:
        request = request_of(desc, attr, engine)
        return cache(lambda name: ways[name](request))  # a plan that is not for tensors as passed goes between reorders

    def way(name: str, finish: Callable[[Inside], Plan]) -> Callable[[Callable[[str], Inside]], Plan]:
        return lambda inside_of: finish(inside_of(name))

    passed = {name: way(name, as_passed) for name in ways}
    return implementations_of(planned, passed | {f"{WORD}+{name}": way(name, copied) for name in ways}, level)


def as_passed(inside: Inside) -> Plan:
    """Raises Refused for a format that the plan does not take."""
    for name, desc in inside.passed.items():
        if desc != inside.plan.tensors[name]:
            raise Refused(f"{name} is {desc}, kernels take {inside.plan.tensors[name]}")
    return inside.plan


def copied(inside: Inside) -> Plan:
    """Raises Refused where nothing is to be copied."""
    plan = between_reorders(inside.plan, inside.passed, inside.tuning, inside.reads, isa=inside.isa)
    if plan is inside.plan:
        raise Refused("kernels take all tensors as they are")
    return plan


def in_place(plan: Plan, copies: Container[str], tensors: Mapping[str, MemoryDesc]) -> Pairs:
    """The inputs that may be the memory of an output.  What is copied in front is not read once outputs are written;
    and once outputs are copied back, after everything else, no input is."""
    inputs = [name for name in tensors if name not in plan.outputs]
    return tuple(
        pair
        for output in plan.outputs
        for pair in alike(tensors, inputs, output)
        if pair[0] in copies or output in copies or pair in plan.in_place
    )


def copy_of(name: str) -> str:
    """The scratch buffer of a copy."""
    return f"copy of {name}"


def room_of(name: str, plan: Plan) -> str:
    """The scratch of a copy around a plan, which may have one of its own."""
    room = copy_of(name)
    return f"outer {room}" if room in plan.scratch_bytes else room


def bring(assembly: Assembly, source: str, src: MemoryDesc, target: str, dst: MemoryDesc) -> dict[str, int]:
    """Add what brings `source` into the format of the scratch `target`, which may have more of what is 1 in src; and
    say which further scratch that needs."""
    if src.dims == dst.dims or not src.inner_blocks:
        add_reorder(assembly, Reordering(source, repeated(src, dst.dims), target, dst))
        return {}
    plain, buffer = row_major(src.dims, src), f"plain {source}"  # a block cannot be repeated, so it becomes plain first
    add_reorder(assembly, Reordering(source, src, buffer, plain))
    add_reorder(assembly, Reordering(buffer, repeated(plain, dst.dims), target, dst))
    return {buffer: plain.size_bytes}


def repeated(desc: MemoryDesc, dims: tuple[int, ...]) -> MemoryDesc:
    """A plain tensor with its dims of 1 repeated up to `dims`."""
    if desc.dims == dims:
        return desc
    strides = [stride if n == m else 0 for stride, n, m in zip(desc.strides, desc.dims, dims, strict=True)]
    return MemoryDesc(dims, desc.dtype, strides=strides, offset0=desc.offset0)
