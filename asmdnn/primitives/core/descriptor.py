"""Primitive descriptors: a description with the plan of the implementation that takes it."""

from functools import partial
from typing import Any, Final, NoReturn

from asmdnn import verbose
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.memory import MemoryDesc
from asmdnn.memory.allocation import within_memory
from asmdnn.memory.formats import desc_words
from asmdnn.notebook import html_of
from asmdnn.planning.phase import said_of
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.core.any_batch import attr_for
from asmdnn.primitives.core.description import Description, asked, every_tensor
from asmdnn.primitives.core.engine import BATCH, Engine, engine_or_default
from asmdnn.primitives.core.implementation import (
    PlanKey,
    Planner,
    first_plan,
    found_plan,
    plans,
    try_all,
)
from asmdnn.primitives.core.registry import kind_of, planners_of
from asmdnn.primitives.core.reports import introduce, report_choice, report_refusals
from asmdnn.primitives.core.tuned import Choice
from asmdnn.types import u8

WAYS_ELSEWHERE: Final = (
    "pickle its desc, attr and engine, and describe it again where it is needed, or write a pack with write_pack"
)


class PrimitiveDesc:
    """A description and its plan: formats resolved, kernels and schedule known, nothing generated.

    Queries carry oneDNN's names.  The descriptors of absent arguments are None; src and dst, which most kinds have,
    raise InvalidArguments where a kind has others.
    """

    def __init__(
        self,
        desc: Description,
        attr: Attr,
        engine: Engine,
        plan: Plan,
        refusals: tuple[Refusal, ...] = (),
        choice: Choice | None = None,
    ) -> None:
        self.desc, self.attr, self.engine, self.plan, self.refusals = desc, attr, engine, plan, refusals
        self.choice = choice  # of `asmdnn tune`, if it stored the plan

    def __reduce__(self) -> NoReturn:
        """Of this process: what it is made of has a pickle.  Raises InvalidArguments."""
        raise InvalidArguments(f"a {type(self).__name__} has no pickle: {WAYS_ELSEWHERE}")

    def __copy__(self) -> "PrimitiveDesc":
        """Itself, as nothing changes it."""
        return self

    def __deepcopy__(self, memo: object) -> "PrimitiveDesc":
        """As copy."""
        return self

    @property
    def implementation(self) -> str:
        """For example "direct:avx2"."""
        return self.plan.implementation

    def _tensor(self, name: str) -> MemoryDesc:
        if name not in self.plan.tensors:
            there = ", ".join(self.plan.tensors)
            raise InvalidArguments(f"{self.implementation} has no {name}, but {there}: look into pd.plan.tensors")
        return self.plan.tensors[name]

    @property
    def src_desc(self) -> MemoryDesc:
        return self._tensor("src")

    @property
    def weights_desc(self) -> MemoryDesc | None:
        return self.plan.tensors.get("weights")

    @property
    def bias_desc(self) -> MemoryDesc | None:
        return self.plan.tensors.get("bias")

    @property
    def dst_desc(self) -> MemoryDesc:
        return self._tensor("dst")

    @property
    def diff_src_desc(self) -> MemoryDesc | None:
        return self.plan.tensors.get("diff_src")

    @property
    def diff_weights_desc(self) -> MemoryDesc | None:
        return self.plan.tensors.get("diff_weights")

    @property
    def diff_bias_desc(self) -> MemoryDesc | None:
        return self.plan.tensors.get("diff_bias")

    @property
    def diff_dst_desc(self) -> MemoryDesc | None:
        return self.plan.tensors.get("diff_dst")

    @property
    def workspace_desc(self) -> MemoryDesc | None:
        """What forward training keeps for the backward pass; None if nothing is kept."""
        return self.plan.tensors.get("workspace")

    @property
    def scratchpad_desc(self) -> MemoryDesc:
        """The temporary memory that the caller passes with every call, as u8[bytes], starting at a multiple of 64.

        As `scratchpad`, with scratchpad_mode="user", or None if the size is 0.  Empty with "library", where a call
        takes `memory_consumption` bytes of the process's pool.
        """
        return MemoryDesc((self.scratchpad_bytes if self.attr.scratchpad_mode == "user" else 0,), u8, "a")

    @property
    def scratchpad_bytes(self) -> int:
        """The temporary memory of one call."""
        return self.plan.scratchpad_bytes(self.plan.parts(self.threads))

    @property
    def threads(self) -> int:
        """The engine's, or one if waking a team costs more than it saves."""
        engine = self.engine
        return engine.threads if self.plan.shared_cycles >= engine.tuning.phases.inline_cycles else 1

    @property
    def memory_consumption(self) -> int:
        """Bytes of the process's pool that a call uses while it runs: none if the user passes the scratchpad."""
        return 0 if self.attr.scratchpad_mode == "user" else self.scratchpad_bytes

    @property
    def any_batch(self) -> bool:
        """Whether an item's bits are those that it has alone: the plan is that of deterministic="batch", which is made
        to find out."""
        if self.attr.deterministic == BATCH:
            return True
        try:
            planners, attr, engine = check_request(self.desc, self.attr.changed(deterministic=BATCH), self.engine)
            check_any_batch(self.desc, attr)
            return self.plan.calls_as(first_plan(planners, self.desc, attr, engine).plan)
        except (InvalidArguments, Unimplemented):
            return False

    def formats(self) -> dict[str, str]:
        """The tensors of the plan as they are printed, with the letters of their dims: "f32 64x3x7x7 oihw"."""
        letters = partial(kind_of(self.desc).letters, self.desc)
        return {name: desc_words(tensor, letters(name, tensor)) for name, tensor in self.plan.tensors.items()}

    def explain(self) -> str:
        """What was chosen and why: refusals, formats, kernels, and the schedule in numbers."""
        plan = self.plan
        lines = [f"{plan.implementation}  ({self.desc})", *(f"  refused  {refusal}" for refusal in self.refusals)]
        lines += [f"  tuned    {self.choice}"] if self.choice else []
        width = max(8, *map(len, plan.tensors))
        lines += [f"  {name:{width}} {words}" for name, words in self.formats().items()]
        lines += [f"  scratch  {name} {size} bytes" for name, size in plan.scratch_bytes.items()]
        lines += ["  batch    bits of an item are those that it has alone"] if self.any_batch else []
        for i, phase in enumerate(plan.phases):
            lines.append(f"  phase {i}  {phase.count} records, {phase.total_cycles} cycles expected{said_of(phase)}")
            lines += [f"    {records:7} x {kernel.name}" for kernel, records, _ in phase.uses()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.implementation}: {self.desc}>"

    def _repr_html_(self) -> str:
        return html_of(self)


def primitive_desc(desc: Description, attr: Attr = NO_ATTR, engine: Engine | None = None) -> PrimitiveDesc:
    """Plan `desc` with the first implementation that takes it.

    Generates and executes nothing; works for ISA levels that this machine lacks.  Raises InvalidArguments for a wrong
    argument, Unimplemented with every implementation's reason if none takes it.
    """
    planners, attr, engine = check_request(desc, attr, engine)
    if listening := verbose.listening():
        introduce()
    try:
        key = PlanKey(planners, desc, attr, engine)
        planned = plans.get(key)  # a stored plan has passed it
        if planned is None:
            check_formats(desc)
            check_any_batch(desc, attr)
            planned = found_plan(key)
    except Unimplemented:
        if listening and verbose.wants("dispatch"):
            answers = try_all(planners, desc, attr, engine)
            report_refusals(desc, attr, [answer for answer in answers if isinstance(answer, Refusal)])
        raise
    if listening and verbose.wants("dispatch"):
        report_refusals(desc, attr, planned.refusals)
        if planned.choice:
            report_choice(desc, attr, planned.plan.implementation, planned.choice)
    return PrimitiveDesc(desc, attr, engine, planned.plan, planned.refusals, planned.choice)


@within_memory
def implementations(
    desc: Description, attr: Attr = NO_ATTR, engine: Engine | None = None
) -> list[PrimitiveDesc | Refusal]:
    """What every implementation says, best first: a primitive descriptor, or a Refusal with its reason."""
    planners, attr, engine = check_request(desc, attr, engine)
    check_formats(desc)
    check_any_batch(desc, attr)
    return [
        PrimitiveDesc(desc, attr, engine, answer) if isinstance(answer, Plan) else answer
        for answer in try_all(planners, desc, attr, engine)
    ]


def check_request(
    desc: Description, attr: Attr, engine: Engine | None
) -> tuple[tuple[Planner[Any], ...], Attr, Engine]:
    """The planners of a description, and the attributes and the engine that they get.  Raises InvalidArguments."""
    kind = kind_of(desc)
    if not isinstance(attr, Attr):
        raise InvalidArguments(f"attr must be an Attr, not {type(attr).__name__}")
    if attr.groups and "weights" not in kind.packed:
        raise InvalidArguments(f"groups are {dict(attr.groups)}, but only weights of MatMul have scales by groups")
    engine = engine_or_default(engine)
    attr = attr_for(attr, engine)
    return planners_of(kind, attr), attr, engine


def check_any_batch(desc: Description, attr: Attr) -> None:
    """Raise Unimplemented for deterministic="batch" where the kind has no plans for it."""
    reason = kind_of(desc).any_batch_refusal(desc, attr) if attr.deterministic == BATCH else ""
    if reason:
        raise Unimplemented(reason)


def check_formats(desc: Description) -> None:
    """Raise InvalidArguments for tensors whose format holds more than plain elements, where the kind does not take
    it."""
    kind = kind_of(desc)
    for name, tensor in every_tensor(desc):
        if tensor.dtype.in_a_byte > 1 and name not in kind.packed:
            raise InvalidArguments(f"{name} is {tensor}, a type of weights alone: reorder it to s8 or f32")
    for name, tensor in asked(desc).items():
        if tensor.dtype.in_a_byte > 1:
            continue
        if tensor.storage is tensor or name in (kind.summed if tensor.holds_elements else kind.transformed):
            continue
        if tensor.holds_elements:
            way = f"with sums of columns, which only products read: reorder it to {tensor.storage}"
        else:
            way = "whose elements are transformed: pass a format that holds them"
        raise InvalidArguments(f"{name} is {tensor}, {way}")
