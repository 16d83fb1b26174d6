"""A kind of primitive as one value: its description, its implementations, and the words of verbose lines.

Every folder of primitives has a kind.py with its KINDS; registry.py collects them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from asmdnn.memory import Memory, MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.any_batch import refused
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Planner
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a verbose line.

    primitive, prop_kind: oneDNN's names; auxiliary: its column; problem: benchdnn's string; bias_mask: the dims of a
    product's bias.
    """

    primitive: str
    auxiliary: str
    problem: str
    prop_kind: str = "undef"
    bias_mask: int | None = None


Letters = Callable[[Any, str, MemoryDesc], str]


def no_letters(*_: object) -> str:
    """No letters of its own: formats print with the default ones."""
    return ""


Candidates = Callable[[Any, Attr, Engine], Iterator[tuple[str, Plan]]]
AnyBatchRefusal = Callable[[Any, Attr], str]
Guard = Callable[[Any, Mapping[str, Memory]], None]
Limits = Callable[[Any], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of primitive.

    description: the class; planners: its implementations, best first; words: of a description, for verbose lines.
    candidates: all plans that planners choose from, each with its label; for measurements.
    transformed: the tensors whose format may be one that transforms elements.  summed: those that may have sums of
    columns after them.  packed: those whose elements may share a byte.  guard: of a description and the
    memories of a call, before each: raises InvalidArguments for data that are refused, such as indices out of range.
    limits: of a description, if that is all that its guard refuses: integers of these tensors are from -limit to
    limit - 1.
    any_batch_refusal: of a description and attributes, why there are no plans for deterministic="batch"; "" if there
    are.
    rounds: whether dst may be rounded at random.
    letters: of a description, a tensor's name and desc, the letters of its dims where its format is printed.
    """

    description: type[Any]
    planners: tuple[Planner[Any], ...]
    words: Callable[[Any], Words]
    transformed: tuple[str, ...] = ()
    candidates: Candidates | None = None
    guard: Guard | None = None
    limits: Limits | None = None
    any_batch_refusal: AnyBatchRefusal = refused
    letters: Letters = no_letters
    summed: tuple[str, ...] = ()
    packed: tuple[str, ...] = ()
    rounds: bool = False


def dims_word(desc: MemoryDesc) -> str:
    """`16x1024`: how benchdnn writes dims."""
    return "x".join(map(str, desc.dims))
