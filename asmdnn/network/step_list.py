"""Primitives on named buffers, in order, with the reorders between them: what a network runs."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.network.asking import Asking
from asmdnn.network.graph import Array, Node
from asmdnn.network.joining.buffers import NetworkBuffers
from asmdnn.network.joining.place import Place
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.core.description import Description, asked
from asmdnn.primitives.core.descriptor import PrimitiveDesc
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.records import altered, dataclass


@dataclass(frozen=True, eq=False)
class NetworkStep:
    """A primitive, the buffers that are its arguments, and which operators it computes.

    result: the value that they are there for, which the argument `output` is; further: other values that it makes, with
    the arguments that they are."""

    label: str
    pd: PrimitiveDesc
    buffers: Mapping[str, str]
    nodes: tuple[Node, ...] = ()
    result: str = ""
    output: str = ""
    further: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "buffers", MappingProxyType(dict(self.buffers)))

    @property
    def is_reorder(self) -> bool:
        return isinstance(self.pd.desc, Reorder)

    def with_names(self, names: Mapping[str, str]) -> "NetworkStep":
        """The same where some buffers have other names."""
        if names.keys().isdisjoint(self.buffers.values()):
            return self
        own = {argument: names.get(name, name) for argument, name in self.buffers.items()}
        found: NetworkStep = altered(self, buffers=MappingProxyType(own))
        return found


class StepList:
    """The steps so far, and the buffers that they read and write.  It knows no values but by the names of steps."""

    def __init__(self, engine: Engine, memory: NetworkBuffers, asking: Asking | None = None) -> None:
        self.engine, self.memory, self.asking = engine, memory, asking or Asking(engine)
        self.steps: list[NetworkStep] = []

    def reorder(self, source: Place, target: Place, name: str) -> None:
        """A step that copies from one place to another."""
        pd = self.asking.planned(Reorder(source.desc, target.desc))
        self.steps.append(NetworkStep(f"reorder {name}", pd, {"src": source.buffer, "dst": target.buffer}))

    def append(
        self,
        nodes: Sequence[Node],
        label: str,
        pd: PrimitiveDesc,
        places: Mapping[str, Place],
        results: Mapping[str, str],
        constants: Mapping[str, tuple[str, Array]],
    ) -> list[Place]:
        """A primitive on these places; where its results lie, in buffers of their own.

        results: the value after each output, or "" for one that is of this step alone; constants: name and data of
        arguments whose format the primitive chooses.
        """
        plan, buffers, made = pd.plan, dict[str, str](), list[Place]()
        for argument, (name, array) in constants.items():
            wanted = asked(pd.desc).get(argument)
            if wanted is not None and wanted.is_any:
                buffers[argument] = self.memory.add_chosen(name, array, pd, argument, wanted)
            else:
                buffers[argument] = self.memory.add_weight(name, array, plan.tensors[argument]).buffer
        for argument, place in places.items():
            buffers[argument] = place.buffer
            if place.desc != plan.tensors[argument]:
                raise InvalidArguments(f"{label}: {argument} lies as {place.desc}, not as {plan.tensors[argument]}")
        for argument, name in results.items():
            wanted = plan.tensors[argument]
            made.append(Place(self.memory.add(name or f"{argument} of {label}", wanted), wanted))
            buffers[argument] = made[-1].buffer
        (output, result), *others = results.items()
        further = tuple((value, argument) for argument, value in others if value)
        self.steps.append(NetworkStep(label, pd, buffers, tuple(nodes), result, output, further=further))
        return made

    def settle_weights(self) -> None:
        """Have each weight in the format that its primitive's plan has."""
        self.memory, names = self.memory.settled()
        self.steps = [step.with_names(names) for step in self.steps]

    def chosen(self, desc: Description, argument: str, attr: Attr = NO_ATTR) -> MemoryDesc:
        """The format that a primitive chooses for an argument which is any."""
        return self.asking.planned(desc, attr).plan.tensors[argument]
