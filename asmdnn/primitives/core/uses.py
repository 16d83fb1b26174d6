"""Checks that a plan uses everything requested: tensors, types and attributes.

A planner that forgets post-ops, scales, zero points or the type of a result would make a plan that runs and gives wrong
numbers.  Every plan of an implementation is checked here (implementation.py), so that such a plan is an error:

- tensors have the types asked for, but for weights that are transformed or that attributes allow to be rounded, and
  those of attributes are arguments of the plan;
- kernels have a place for them in their frames;
- post-ops stand in kernels, in the order of the chain; all kernels of a phase that can have some have the same ones,
  except where one kernel continues what another one has written.
"""

from collections.abc import Hashable, Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from itertools import chain

from asmdnn.errors import PlanError
from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.functions.postops import OLD_DST, IntegerOp, Operand, PostOp, SumOp
from asmdnn.generators.functions.shifted import ShiftedSpec
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Phase
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.attributes.depthwise import Depthwise
from asmdnn.primitives.attributes.post_ops import Sum
from asmdnn.primitives.core.description import Description, asked
from asmdnn.types import FLOATS8, f32

NO_SUM = Sum(0.0)  # a reorder with such scales does nothing
ANYWHERE = Operand(0, 0, 0, False)
ADDED_DST = IntegerOp("add", OLD_DST)  # is a sum by another name
ROUNDING_SEED = "rounding_seed"
MULTIPLIED = ("weights", "weights_layer", "weights_iter", "weights_projection")
AT_ONCE = 256  # records whose kernels are looked at
CHAIN = tuple[PostOp, ...]
Form = tuple[object, ...]  # of a post-op: its class and its numbers, wherever its tensors lie


def check_uses(plan: Plan, desc: Description, attr: Attr) -> None:
    """Raise PlanError for anything requested that the plan does not use."""
    for name, tensor in asked(desc).items():
        held = plan.tensors.get(name, tensor)
        if (
            held is not tensor
            and held.dtype != tensor.dtype
            and held.holds_elements
            and not may_round(name, tensor, attr)
        ):
            reject(plan, f"has {name} as {held.dtype}, asked for is {tensor.dtype}")
    if attr == NO_ATTR:
        return
    brought = [*run_time_names(attr)]
    for name in brought:
        if name not in plan.tensors:
            reject(plan, f"has no argument {name}")
    if all(0 not in tensor.dims for tensor in plan.tensors.values()):
        read = set[str]().union(*map(places_of, plan.phases)) if brought else set[str]()
        for name in brought:
            if name not in read:
                reject(plan, f"never reads {name}")
        if attr.post_ops:
            check_chain(plan, attr)


def may_round(name: str, tensor: MemoryDesc, attr: Attr) -> bool:
    """Whether weights may be packed as another type than requested: a smaller one that is allowed, or a wider one."""
    is_rounded = tensor.dtype == f32 and attr.fpmath_mode != "strict"
    return name in MULTIPLIED and tensor.is_any and (is_rounded or tensor.dtype in FLOATS8)


def run_time_names(attr: Attr) -> Iterator[str]:
    """The arguments that belong to attributes."""
    yield from attr.tensors()
    yield from (f"{name}_scales" for name, _ in attr.scales)
    yield from (f"{name}_zero_points" for name, _ in attr.zero_points)
    if attr.rounding_mode:
        yield ROUNDING_SEED


def places_of(phase: Phase) -> set[str]:
    """The buffers to which the kernels of a phase have pointers in their frames."""
    longest = 0
    for spec in phase.kernels:
        longest = max(longest, len(spec.frame))
        if longest >= len(phase.arguments):  # as most have the first time
            break
    return {view.buffer for view in phase.arguments[:longest]}


def check_chain(plan: Plan, attr: Attr) -> None:
    """Raise PlanError unless the post-ops stand in the kernels, one after the other."""
    ops = [op for op in attr.post_ops if not isinstance(op, Depthwise) and op != NO_SUM]
    wanted = [form_of(op.on_registers(*[ANYWHERE] * len(op.tensors))) for op in ops]
    reached, applied = 0, Applied(wanted)
    for number, phase in enumerate(plan.phases):
        chains = applied.in_phase(phase)
        if phase.groups is None and len({place for _, place in chains}) > 1:
            reject(plan, f"has kernels with and without post-ops in phase {number}")
        for form in chain.from_iterable(applied.chains[place] for _, place in chains):
            reached += reached < len(wanted) and form == wanted[reached]
    if reached < len(ops):
        reject(plan, f"does not apply the post-op {ops[reached]}")


def inside(spec: KernelSpec) -> KernelSpec:
    """The kernel that a shifted one calls, which may be shifted itself, or the spec."""
    return inside(spec.kernel) if isinstance(spec, ShiftedSpec) else spec


def has_chain(spec: KernelSpec) -> bool:
    """Whether kernels of its class can have post-ops."""
    return bool(chain_fields(type(spec)))


class Applied:
    """Those of the wanted post-ops that kernels apply, in their order: `chains`, each of which is there once, and of
    every kernel which one is its.  Specs are many, and their hashes take time."""

    def __init__(self, wanted: list[Form]) -> None:
        self.wanted, self.chains = wanted, list[tuple[Form, ...]]()
        self._known: dict[int, tuple[KernelSpec, int]] = {}  # by id
        self._forms: dict[int, tuple[object, list[Form]]] = {}  # of chains, which kernels share, by id

    def in_phase(self, phase: Phase) -> list[tuple[type, int]]:
        """The classes of kernels that a phase calls and can have post-ops, in the order of their first calls, and which
        chain each has: the one that begins a sum comes first.  Of records no more are looked at than it takes to find
        all of the table, mostly none."""
        table = [(type(spec), self.by(spec)) if has_chain(spec) else None for spec in map(inside, phase.kernels)]
        every = {*table}
        if len(every) == 1 and len(phase.records):
            return [one for one in every if one is not None]
        numbers, found = phase.records[:, 0], dict[tuple[type, int], None]()
        for begin in range(0, len(numbers), AT_ONCE):
            some = (table[kernel] for kernel in dict.fromkeys(numbers[begin : begin + AT_ONCE].tolist()))
            found |= dict.fromkeys(one for one in some if one is not None)
            if len(found) == len(every - {None}):
                break
        return [*found]

    def by(self, spec: KernelSpec) -> int:
        known = self._known.get(id(spec))
        if known is not None:
            return known[1]
        chain = tuple(self.wanted_in(spec))
        if chain not in self.chains:
            self.chains.append(chain)
        self._known[id(spec)] = spec, self.chains.index(chain)
        return self._known[id(spec)][1]

    def wanted_in(self, value: object) -> Iterator[Form]:
        """Of a spec, or of a part of one that has such fields."""
        for name in chain_fields(type(value)):  # type: ignore[arg-type]  # every class has a hash
            part = getattr(value, name)
            if isinstance(part, float | tuple):
                if id(part) not in self._forms:
                    self._forms[id(part)] = part, [form for form in forms_of(part) if form in self.wanted]
                yield from self._forms[id(part)][1]
            else:
                yield from self.wanted_in(part)


@lru_cache
def chain_fields(part: Hashable) -> tuple[str, ...]:
    """The fields of a class of specs, or of a part of specs, that say what is done to results: those that it names
    itself, and chains."""
    if named := getattr(part, "chain_fields", ()):
        return named  # type: ignore[no-any-return]
    typed = [(field.name, field.type) for field in fields(part)] if is_dataclass(part) else []
    return tuple(name for name, kind in typed if kind == CHAIN or (isinstance(kind, type) and chain_fields(kind)))


def forms_of(part: float | CHAIN) -> list[Form]:
    """Of a chain, or of the factor of a reorder's sum."""
    return [form_of(SumOp(part))] if isinstance(part, float) else [form_of(op) for op in part]


@lru_cache
def form_of(op: PostOp) -> Form:
    """Equal for post-ops that do the same, wherever their tensors lie."""
    if op == ADDED_DST:
        op = SumOp(1.0)
    numbers = [getattr(op, name) for name in names_in(type(op))]  # type: ignore[arg-type]  # every class has a hash
    return (type(op), *[number for number in numbers if not isinstance(number, Operand)])


@lru_cache
def names_in(kind: Hashable) -> tuple[str, ...]:
    """The fields of a class of post-ops that are not all operands."""
    return tuple(field.name for field in fields(kind) if field.name != "operands")  # type: ignore[arg-type]


def reject(plan: Plan, what: str) -> None:
    raise PlanError(f"the plan {plan.implementation} {what}: this is a defect of asmdnn, please report it")
