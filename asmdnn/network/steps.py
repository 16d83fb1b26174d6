"""Steps of a network: primitives on named buffers, in order, with the reorders between them."""

from collections.abc import Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.network.buffers import NetworkBuffers
from asmdnn.network.descriptors import (
    any_format,
    channels_last,
    input_desc,
    is_row_major,
    layout_of,
    row_major,
    stored,
)
from asmdnn.network.graph import Array, Node
from asmdnn.network.indices import ValuesOfIndices
from asmdnn.network.operators.definition import Value
from asmdnn.network.passing import passed_type
from asmdnn.network.place import Place as Place
from asmdnn.network.place import StateWindow
from asmdnn.network.static import StaticGraph
from asmdnn.network.storage import AS_DECLARED, StorageTypes
from asmdnn.network.typed_values import TypedValues
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.core.descriptor import PrimitiveDesc, primitive_desc
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.records import dataclass
from asmdnn.types import HALF_FLOATS, DataType, f32

CHANNELS_LAST = 3  # axes that a tensor has at least whose channels may lie after its pixels
NUMBERS = (np.float32, np.bool_, np.uint8, np.int8)
# Types of values that kernels compute with: truths are brought to them as 1 and 0 of f32.


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


class FormatChoice(NamedTuple):
    """What a step is told about formats.  result: of its result, "" being the one that its primitive prefers, PLAIN
    row-major, LAST with channels last; copies: whether to read the operand in the format that the primitive prefers,
    of which others have use, too, whatever it costs by itself."""

    result: str = ""
    copies: bool = False


PLAIN, LAST = "row-major", "channels last"
BY_ITSELF = FormatChoice()


class Steps(TypedValues, ValuesOfIndices):
    """What lowering adds to.  inputs and outputs are buffers of their own names, plain and dense.

    memory: of buffers; choice: what the next step is told."""

    def __init__(self, graph: StaticGraph, engine: Engine, storage: StorageTypes = AS_DECLARED) -> None:
        self.graph, self.engine, self.storage = graph, engine, storage
        self.steps: list[NetworkStep] = []
        self.memory = NetworkBuffers(graph.inputs)
        self.places: dict[str, list[Place]] = {}  # of a value: the one that it was made in, then copies
        self.choice = BY_ITSELF
        self.integers: dict[str, Place] = {}
        self.bounds: dict[str, tuple[float, float]] = {}
        self.checked: dict[str, tuple[int, int]] = {}
        self.limits: dict[str, tuple[int, int]] = {}
        self.dequantizers: dict[str, Node] = {}  # for floats that no step has made: the node that would make them
        self.images: dict[tuple[str, DataType], Place] = {}
        self.maxima: dict[str, Place] = {}  # of a max pooling's result: where each of them was found
        self.windows: dict[str, StateWindow] = {}  # by values that are written to states
        self.given = set(graph.inputs)
        for name in graph.inputs:
            value = graph.values[name]
            if value.dtype in NUMBERS or passed_type(value.dtype) in HALF_FLOATS:
                self.places[name] = [Place(name, input_desc(value))]

    def branch(self) -> "Steps":
        """One that is continued independently."""
        other = copy(self)
        for name, held in vars(self).items():  # what is known of values; what they hold is replaced, never changed
            if isinstance(held, list | dict | set):
                vars(other)[name] = held.copy()
        other.memory = self.memory.branch()
        return other

    def become(self, other: "Steps") -> None:
        """Go on from where a branch has come."""
        self.__dict__.update(other.__dict__)

    def value(self, name: str) -> Value:
        return self.graph.values[name]

    def shape(self, name: str) -> tuple[int, ...]:
        return self.graph.values[name].shape

    def place(self, name: str, wanted: MemoryDesc | None = None) -> Place:
        """Where a value can be read, in a format, with a reorder if there is none such; a constant becomes a weight.

        Without a format as f32, or as bytes.  Raises Refused for other values.
        """
        if name not in self.places and name in self.dequantizers:
            self.make_floats(name)
        if name not in self.places:
            value = self.value(name)
            if value.data is None or value.dtype not in NUMBERS:
                raise Refused(f"{name} is {value.dtype.name}, only f32 is computed with")
            return self.memory.add_weight(name, value.data, wanted or row_major(value.shape, stored(value)))
        known = self.places[name]
        if wanted is None:
            return self.as_type(name, f32) if known[0].desc.dtype in HALF_FLOATS else known[0]
        for place in known:
            if place.desc == wanted:
                return place
        return self.copied(name, known[0], wanted)

    def plain(self, name: str, dtype: DataType | None = None) -> Place:
        """A value in row-major order, dense or a part of something dense, of a type, or else f32 or bytes."""
        for place in self.places.get(name, ()):
            fits = place.desc.dtype not in HALF_FLOATS if dtype is None else place.desc.dtype == dtype
            if fits and is_row_major(place.desc):
                return Place(place.buffer, row_major(place.desc.dims, place.desc.dtype))
        return self.place(name, row_major(self.shape(name), dtype or stored(self.value(name))))

    def viewed(self, name: str, dims: tuple[int, ...], dtype: DataType | None = None) -> Place:
        """A value with other axes, as many elements in the same order: as it lies where that can be, else copied."""
        place = self.place(name) if dtype is None else self.as_type(name, dtype)
        if not place.desc.inner_blocks:
            try:
                return Place(place.buffer, place.desc.reshape(dims))
            except InvalidArguments:  # transposed axes that are to be one
                pass
        place = self.plain(name, dtype)
        return Place(place.buffer, place.desc.reshape(dims))

    def copied(self, name: str, source: Place, wanted: MemoryDesc) -> Place:
        """A reorder into a buffer of its own."""
        target = Place(self.memory.add(f"{name} as {layout_of(wanted)}", wanted), wanted)
        self.reorder(source, target, name)
        self.places[name] = [*self.places[name], target]
        return target

    def reorder(self, source: Place, target: Place, name: str) -> None:
        """A step that copies from one place to another."""
        pd = primitive_desc(Reorder(source.desc, target.desc), engine=self.engine)
        self.steps.append(NetworkStep(f"reorder {name}", pd, {"src": source.buffer, "dst": target.buffer}))

    def add(
        self,
        nodes: Sequence[Node],
        label: str,
        desc: Description,
        places: Mapping[str, Place],
        results: Mapping[str, str],
        constants: Mapping[str, tuple[str, Array]] | None = None,
        attr: Attr = NO_ATTR,
    ) -> None:
        """A primitive on these places.  results: the value after each output; constants: name and data of arguments
        whose format the primitive chooses.  Raises Refused where no implementation takes it."""
        pd = primitive_desc(desc, attr, self.engine)
        plan, buffers = pd.plan, dict[str, str]()
        for argument, (name, array) in (constants or {}).items():
            buffers[argument] = self.memory.add_weight(name, array, plan.tensors[argument]).buffer
        for argument, place in places.items():
            buffers[argument] = place.buffer
            if place.desc != plan.tensors[argument]:
                raise InvalidArguments(f"{label}: {argument} lies as {place.desc}, not as {plan.tensors[argument]}")
        for argument, name in results.items():
            wanted = plan.tensors[argument]
            made = Place(self.memory.add(name or f"{argument} of {label}", wanted), wanted)
            buffers[argument] = made.buffer
            if name in self.graph.values:
                self.define(name, made)
        (output, result), *others = results.items()
        further = tuple((value, argument) for argument, value in others if value)
        self.steps.append(NetworkStep(label, pd, buffers, tuple(nodes), result, output, further=further))

    def define(self, name: str, place: Place) -> None:
        """From now on the value is there, with its own dims."""
        if place.desc.dims != (self.shape(name) or (1,)):
            place = Place(place.buffer, place.desc.reshape(self.shape(name) or (1,)))
        self.places[name] = [place]

    def result_format(self, dims: tuple[int, ...], dtype: DataType = f32) -> MemoryDesc:
        """The format of the next step's result."""
        wanted = self.choice.result
        if not wanted:
            return any_format(dims, dtype)
        plain = row_major(dims, dtype)
        return plain if wanted == PLAIN or len(dims) < CHANNELS_LAST else channels_last(dims, dtype)

    def chosen(self, desc: Description, argument: str, attr: Attr = NO_ATTR) -> MemoryDesc:
        """The format that a primitive chooses for an argument which is any."""
        return primitive_desc(desc, attr, self.engine).plan.tensors[argument]
