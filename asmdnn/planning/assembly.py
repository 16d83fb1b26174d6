"""A plan under construction: phases of several origins, scratch between them, and words for the plan's name."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Int64, Phase, View, views
from asmdnn.planning.plan import Pairs, Plan
from asmdnn.planning.tuning import Tuning

WORD_BYTES = 8  # of a constant


class Assembly:
    """Phases, scratch and constants; the only mutable object of planning.

    tuning: the numbers by which phases are planned.  isa: the level of kernels that move.
    """

    def __init__(self, tuning: Tuning, isa: str) -> None:
        self.tuning, self.isa = tuning, isa
        self.words: list[str] = []
        self.phases: list[Phase] = []
        self.scratch: dict[str, int] = {}
        self.constants: dict[str, Int64] = {}
        self.per_part: tuple[str, ...] = ()

    def branch(self) -> "Assembly":
        """A copy that is continued independently."""
        other = Assembly(self.tuning, self.isa)
        other.words += self.words
        other.phases += self.phases
        other.scratch |= self.scratch
        other.constants |= self.constants
        other.per_part = self.per_part
        return other

    def add(self, phases: Sequence[Phase], *words: str) -> None:
        """Append phases, and the words for what they do."""
        self.phases += phases
        self.words += words

    def drop(self, buffer: str) -> None:
        """Leave out a scratch buffer, and the phases that write it."""
        del self.scratch[buffer]
        self.phases = [phase for phase in self.phases if buffer not in {view.buffer for view in phase.arguments}]

    def add_plan(self, plan: Plan, places: Mapping[str, View]) -> None:
        """Append all of a plan; `places` replaces its buffers.  Scratch of one name, such as a copy of src, has the
        larger size: plans run one after the other.  Phases of the smaller one see no more than that."""
        kept = {name: self.constant(name, data) for name, data in plan.constants.items()}
        places = {**places, **{name: View(other) for name, other in kept.items() if other != name}}
        for name, size in plan.scratch_bytes.items():
            other = self.scratch.get(name, size)
            if size < other:
                places.setdefault(name, View(name, size_bytes=size))
            elif other < size:
                self.phases = [phase.on({name: View(name, size_bytes=other)}) for phase in self.phases]
            self.scratch[name] = max(size, other)
        self.add([phase.on(places) for phase in plan.phases])
        self.per_part += plan.per_part

    def constant(self, name: str, data: Int64) -> str:
        """The name of a constant with that data; a new name where another plan has other data under it."""
        names = (name if i == 1 else f"{name} {i}" for i in count(1))
        free = next(x for x in names if np.array_equal(self.constants.get(x, data), data))
        self.constants[free] = data
        return free

    def room(self, name: str, size_bytes: int) -> str:
        """The name of a scratch buffer of that size; phases that do not need it at the same time share it."""
        names = (name if i == 1 else f"{name} {i}" for i in count(1))
        free = next(x for x in names if self.scratch.get(x, size_bytes) == size_bytes)
        self.scratch[free] = size_bytes
        return free

    @property
    def name(self) -> str:
        """The words, each once."""
        return "+".join(dict.fromkeys(self.words)) or "nothing"

    def plan(
        self, name: str, tensors: Mapping[str, MemoryDesc], outputs: tuple[str, ...], in_place: Pairs = ()
    ) -> Plan:
        """The plan of all phases, of none if there is nothing to do; see Plan for the arguments."""
        return Plan(
            implementation=name,
            phases=tuple(self.phases) or (nothing(len(tensors)),),
            tensors=tensors,
            constants=self.constants,
            scratch_bytes=self.scratch,
            outputs=outputs,
            in_place=in_place,
            per_part=self.per_part,
        )


def nothing(arguments: int) -> Phase:
    """A phase without records."""
    return Phase((), views([""] * arguments), np.zeros((0, 1 + arguments), np.int64), np.zeros(0, np.int32))


def constant_words(array: NDArray[Any]) -> Int64:
    """The bytes of an array as a constant of a plan, with zeros after them."""
    data = array.tobytes()
    return np.frombuffer(data + bytes(-len(data) % WORD_BYTES), np.int64)
