"""What joining steps makes; imported without primitives, as a network from a pack is one, too."""

from collections.abc import Mapping
from typing import NamedTuple

from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.records import dataclass


class StateTensors(NamedTuple):
    """Tensors that are one piece of memory: a state as it was, as it is written, and as it is then ("" if unread)."""

    old: str
    written: str
    now: str


@dataclass(frozen=True, eq=False)
class JoinedPlan:
    """The plan; for each step what stands for its arguments; which tensors are weights; which are states."""

    plan: Plan
    arguments: tuple[Mapping[str, View], ...]
    weights: tuple[str, ...]
    states: tuple[StateTensors, ...] = ()
