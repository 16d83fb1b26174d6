"""What a traced lowering learns of primitives, as decisions and numbers of the trace."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from asmdnn.errors import AsmdnnError, Unimplemented
from asmdnn.memory import MemoryDesc
from asmdnn.memory.traced import TracedNumber
from asmdnn.network.asking import Asking, Question
from asmdnn.network.template.parts import Constant, Part, ValueParts
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.core.description import Description, asked
from asmdnn.primitives.core.descriptor import PrimitiveDesc, primitive_desc
from asmdnn.primitives.core.engine import Engine

Placed = Any  # a part; in a flat trace, its place


class Asked(NamedTuple):
    """A step of a trace: a primitive is planned; its cycles become a number.  refused: whether nothing takes it."""

    desc: Placed
    attr: Placed
    slot: int
    cycles: int
    refused: bool


class Seen(NamedTuple):
    """A step of a trace: what was seen of an answer; it has to be the same."""

    look: Callable[[Any], Any]
    answer: int
    wanted: Placed


class Answered(NamedTuple):
    """A step of a trace: a question about a description; it has to be answered so."""

    question: Question
    desc: Placed
    attr: Placed
    answer: bool


class AskingOnce(Asking):
    """Asks each question once: equal layers, and the templates that are tried for a shape, have most in common."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._planned: dict[tuple[Description, Attr], PrimitiveDesc] = {}
        self._answers: dict[tuple[Question, Description, Attr], bool] = {}

    def planned(self, desc: Description, attr: Attr = NO_ATTR) -> PrimitiveDesc:
        """Raises InvalidArguments, Unimplemented."""
        found = self._planned.get((desc, attr))
        if found is None:
            found = self._planned[desc, attr] = super().planned(desc, attr)
        return found

    def whether(self, question: Question, desc: Description, attr: Attr) -> bool:
        key = question, desc, attr
        found = self._answers.get(key)
        if found is None:
            found = self._answers[key] = super().whether(question, desc, attr)
        return found


class AskingTraced(Asking):
    """Asks for the numbers that the trace has now."""

    is_traced = True

    def __init__(self, engine: Engine, parts: ValueParts) -> None:
        super().__init__(engine)
        self.parts, self.trace = parts, parts.trace
        self._known: dict[object, TracedPrimitive] = {}

    def planned(self, desc: Description, attr: Attr = NO_ATTR) -> PrimitiveDesc:
        request = self.parts.part(desc), self.parts.part(attr)
        key = (*(part.value if type(part) is Constant else part for part in request),)  # which are values
        if key in self._known:
            return self._known[key]  # type: ignore[return-value]
        values = [self.parts.value(part) for part in request]
        try:
            pd = primitive_desc(values[0], values[1], self.engine)
        except AsmdnnError as error:
            if not isinstance(error, Unimplemented):
                self.trace.spoil(str(error))
            self.trace.steps.append(Asked(*request, slot=-1, cycles=-1, refused=True))
            raise
        slot, cycles = self.parts.slot(pd), self.trace.leaf(pd.plan.cycles)
        self.trace.steps.append(Asked(*request, slot=slot.at, cycles=cycles.index, refused=False))
        seen = TracedPlan(self, slot.at, desc, attr, plan=pd.plan, cycles=cycles)
        found = self._known[key] = TracedPrimitive(self, slot.at, desc, attr, seen, pd.implementation)
        self.parts.stand_for(found, slot)
        return found  # type: ignore[return-value]

    def whether(self, question: Question, desc: Description, attr: Attr) -> bool:
        """Asked as a whole: what is compared on the way to the answer may come out in many ways."""
        request = self.parts.part(desc), self.parts.part(attr)
        answer = question(self.parts.value(request[0]), self.parts.value(request[1]), self.engine)
        self.trace.steps.append(Answered(question, *request, answer=answer))
        return answer

    def only_here(self, why: str) -> None:
        self.trace.spoil(why)

    def see(self, look: Callable[[Any], Any], answer: int, wanted: Part) -> None:
        self.trace.steps.append(Seen(look, answer, wanted))


class TracedPrimitive:
    """A primitive descriptor of traced dims."""

    def __init__(
        self, asking: AskingTraced, slot: int, desc: Description, attr: Attr, plan: "TracedPlan", implementation: str
    ) -> None:
        self._asking, self._slot, self._implementation = asking, slot, implementation
        self.desc, self.attr, self.engine, self.plan = desc, attr, asking.engine, plan

    @property
    def implementation(self) -> str:
        self._asking.see(lambda pd: pd.implementation, self._slot, Constant(self._implementation))
        return self._implementation


class TracedPlan:
    """What may be seen of a plan: its tensors, the names of those that it writes, its cycles."""

    def __init__(
        self, asking: AskingTraced, slot: int, desc: Description, attr: Attr, plan: Plan, cycles: TracedNumber
    ) -> None:
        self._asking, self._slot, self._plan, self.cycles = asking, slot, plan, cycles
        self.tensors = TracedTensors(asking, slot, {**asked(desc), **attr.tensors()}, plan)

    @property
    def outputs(self) -> Sequence[str]:
        self._asking.see(lambda pd: pd.plan.outputs, self._slot, Constant(self._plan.outputs))
        return self._plan.outputs

    def __getattr__(self, name: str) -> Any:
        self._asking.trace.spoil(f"{name} of a plan was asked")
        raise AttributeError(name)


class TracedTensors(Mapping[str, MemoryDesc]):
    """The tensors of a plan, with traced dims where those that were asked for had such."""

    def __init__(self, asking: AskingTraced, slot: int, asked: Mapping[str, MemoryDesc], plan: Plan) -> None:
        self._asking, self._slot, self._asked, self._plan = asking, slot, asked, plan
        self._found: dict[str, MemoryDesc] = {}

    def __iter__(self) -> Iterator[str]:
        names = (*self._plan.tensors,)
        self._asking.see(lambda pd: (*pd.plan.tensors,), self._slot, Constant(names))
        return iter(names)

    def __len__(self) -> int:
        return sum(1 for _ in iter(self))

    def __getitem__(self, name: str) -> MemoryDesc:
        if name not in self._found:
            found = self._found[name] = self.traced(name)
            part = self._asking.parts.part(found)
            self._asking.see(
                lambda pd: placed(pd.plan.tensors[name]), self._slot, self._asking.parts.part((found, found.strides))
            )
            if placed(self._plan.tensors[name]) != placed(self._asking.parts.value(part)):
                self._asking.trace.spoil(f"{name} lies as {self._plan.tensors[name]}, not as it was traced")
        return self._found[name]

    def traced(self, name: str) -> MemoryDesc:
        """The tensor as it was asked for, or in the format that was chosen for its dims."""
        parts, given = self._asking.parts, self._plan.tensors[name]
        asked = self._asked.get(name)
        if asked is None or type(parts.part(asked)) is Constant:
            return given
        if placed(parts.value(parts.part(asked))) == placed(given):
            return asked
        tag = given.tag if type(given) is MemoryDesc else None
        if tag is None:
            self._asking.trace.spoil(f"{name} lies as {given}, which no tag says")
            return given
        return MemoryDesc(asked.dims, given.dtype, tag, offset0=given.offset0)


def placed(desc: MemoryDesc) -> tuple[MemoryDesc, tuple[int, ...]]:
    """A descriptor with its strides along dims of one block, which do not count where descriptors are compared."""
    return desc, desc.strides
