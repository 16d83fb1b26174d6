"""What joining steps makes; imported without primitives, as a network from a pack is one, too."""

from collections.abc import Mapping
from dataclasses import dataclass

from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan


@dataclass(frozen=True, eq=False)
class Joined:
    """The plan; for each step what stands for its arguments; which tensors are weights."""

    plan: Plan
    arguments: tuple[Mapping[str, View], ...]
    weights: tuple[str, ...]
