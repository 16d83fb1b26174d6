"""Where the values of a network lie while it is lowered: in which buffers, formats and types, with what brings them
from one to another."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.network.asking import Asking
from asmdnn.network.descriptors import input_desc, is_row_major, layout_of, row_major, stored
from asmdnn.network.format_choice import BY_ITSELF
from asmdnn.network.graph import Array, Node
from asmdnn.network.integer_values import IntegerValues
from asmdnn.network.joining.buffers import NetworkBuffers
from asmdnn.network.joining.place import Place, StateWindow
from asmdnn.network.narrow.storage import AS_DECLARED, StorageTypes
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.evaluation import results_of
from asmdnn.network.passing import passed_type
from asmdnn.network.quantized.numbers import quantization_of
from asmdnn.network.static import StaticGraph
from asmdnn.network.step_list import StepList
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.primitives.shapes.formats import dense_like, of_type
from asmdnn.types import HALF_FLOATS, DataType, f32

NUMBERS = (np.float32, np.bool_, np.uint8, np.int8)
# Types of values that kernels compute with: truths are brought to them as 1 and 0 of f32.


class Steps(StepList):
    """What lowering adds to.  inputs and outputs are buffers of their own names, plain and dense.

    places: of a value the one that it was made in, then copies.  images: of buffers all of whose elements lie in
    another type, too, one for one.  dequantizers: for floats that no step has made yet, the node that would make them.
    left: by results, what a step leaves for its gradient: where maxima were found, the logsumexp of rows.  windows: by
    values that are written to states.  choice: what the next step is told.
    """

    def __init__(
        self, graph: StaticGraph, engine: Engine, storage: StorageTypes = AS_DECLARED, asking: Asking | None = None
    ) -> None:
        super().__init__(engine, NetworkBuffers(graph.inputs), asking)
        self.graph, self.storage, self.choice = graph, storage, BY_ITSELF
        self.places: dict[str, list[Place]] = {}
        self.images: dict[tuple[str, DataType], Place] = {}
        self.dequantizers: dict[str, Node] = {}
        self.left: dict[str, Place] = {}
        self.windows: dict[str, StateWindow] = {}
        self.integers = IntegerValues(graph.inputs)
        for name in graph.inputs:
            value = graph.values[name]
            if value.dtype in NUMBERS or passed_type(value.dtype) in HALF_FLOATS:
                self.places[name] = [Place(name, input_desc(value))]

    def branch(self) -> "Steps":
        """One that is continued independently."""
        other = copy(self)
        for name, held in vars(self).items():  # what is known of values; what they hold is replaced, never changed
            if isinstance(held, list | dict):
                vars(other)[name] = held.copy()
        other.memory, other.integers = self.memory.branch(), self.integers.branch()
        return other

    def become(self, other: "Steps") -> None:
        """Go on from where a branch has come."""
        self.__dict__.update(other.__dict__)

    def value(self, name: str) -> Value:
        return self.graph.values[name]

    def shape(self, name: str) -> tuple[int, ...]:
        return self.graph.values[name].shape

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
        """A primitive on these places; see `append` for results and constants.  Values that it makes lie where it
        writes them.  Raises Refused where no implementation takes it."""
        pd = self.asking.planned(desc, attr)
        made = self.append(nodes, label, pd, places, results, constants or {})
        for name, place in zip(results.values(), made, strict=True):
            if name in self.graph.values:
                self.define(name, place)

    def define(self, name: str, place: Place) -> None:
        """From now on the value is there, with its own dims."""
        if place.desc.dims != (self.shape(name) or (1,)):
            place = Place(place.buffer, place.desc.reshape(self.shape(name) or (1,)))
        self.places[name] = [place]

    def result_format(self, dims: tuple[int, ...], dtype: DataType = f32) -> MemoryDesc:
        """The format of the next step's result."""
        return self.choice.of_result(dims, dtype)

    def type_of(self, name: str) -> DataType:
        """In which kernels that can do so store a value."""
        return self.storage.values.get(name, stored(self.value(name)))

    def multiplies_narrow(self, name: str) -> bool:
        """Whether the product whose group makes a value is of narrow operands."""
        return name in self.storage.products

    def factor_type(self, name: str) -> DataType:
        """What the product whose group makes a value multiplies."""
        return self.storage.products.get(name, f32)

    def weights_type(self, name: str) -> DataType:
        """What the weights of the product whose group makes a value are kept in."""
        return self.storage.weights.get(name, self.factor_type(name))

    def kept(self, name: str) -> Place:
        """Where a value lies, in the type in which it was made."""
        return self.places[name][0] if name in self.places else self.place(name)

    def place(self, name: str, wanted: MemoryDesc | None = None) -> Place:
        """Where a value can be read, in a format, with a reorder if there is none such; a constant becomes a weight.

        Without a format as f32, or as bytes.  Raises Refused for other values.
        """
        if name not in self.places and name in self.dequantizers:
            self.make_floats(name)
        if name not in self.places:
            value = self.value(name)
            if value.data is None or value.dtype not in NUMBERS:
                raise Refused(no_numbers(name, value.dtype))
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

    def as_type(self, name: str, dtype: DataType) -> Place:
        """A value in a type, with a reorder if it is not there in it."""
        if self.graph.is_constant(name):
            return self.place(name, row_major(self.shape(name), dtype))
        if name not in self.places:
            self.place(name)
        for place in self.places[name]:
            if place.desc.dtype == dtype:
                return place
        found = self.places[name][0]
        image = self.image(found, dtype)
        if image is not None:
            self.places[name] = [*self.places[name], image]
            return image
        made = self.copied(name, found, retyped(found.desc, dtype))
        if found.desc.is_dense and not found.desc.offset0:
            self.images[found.buffer, dtype] = made
        return made

    def image(self, place: Place, dtype: DataType) -> Place | None:
        """A view of a buffer in another type, if all of what it shows has been converted for another value."""
        made, desc = self.images.get((place.buffer, dtype)), place.desc
        if made is None or desc.size_bytes // desc.dtype.size_bytes > made.desc.nelems():
            return None
        same = MemoryDesc(desc.dims, dtype, strides=desc.strides, inner_blocks=desc.inner_blocks, offset0=desc.offset0)
        return Place(made.buffer, same)

    def make_floats(self, name: str) -> None:
        """The step that makes floats of integers, for those who cannot read these.  Raises Refused."""
        node = self.dequantizers[name]
        integers = quantization_of(self.graph.values, node)
        if not integers.is_common:
            raise Refused(f"{node} has several scales, one for all has a kernel")
        source = self.bytes_of(node.inputs[0])
        desc = Reorder(source.desc, retyped(source.desc, f32))
        constants, points = {"src_scales": (f"scale of {name}", integers.scale)}, dict[str, int]()
        if integers.zero.any():
            constants["src_zero_points"] = (f"zero point of {name}", integers.zero)
            points = {"src": 0}
        attr = Attr(scales={"src": 0}, zero_points=points)
        self.add((node,), str(node), desc, {"src": source}, {"dst": name}, constants=constants, attr=attr)

    def bytes_of(self, name: str) -> Place:
        """Where integers of 8 bits lie as such: those of a caller come as f32."""
        found, dtype = self.place(name), stored(self.value(name))
        return found if found.desc.dtype == dtype else self.place(name, row_major(found.desc.dims, dtype))

    def plain_bytes(self, name: str) -> Place:
        """Integers of 8 bits in row-major order."""
        self.bytes_of(name)
        dtype = stored(self.value(name))
        for place in self.places.get(name, ()):
            if is_row_major(place.desc) and place.desc.dtype == dtype:
                return place._replace(desc=row_major(place.desc.dims, dtype))
        return self.place(name, row_major(self.shape(name), dtype))

    def constant(self, name: str) -> Array | None:
        """The data of a constant, also of one that is integers after floats; None for other values."""
        node = self.dequantizers.get(name)
        if node is None or not all(self.graph.is_constant(x) for x in node.inputs if x):
            return self.value(name).data
        return results_of(node, [self.value(x).data if x else None for x in node.inputs])[0]


def retyped(desc: MemoryDesc, dtype: DataType) -> MemoryDesc:
    """Elements of another type in the same order, dense."""
    return of_type(desc, dtype) if desc.is_dense else dense_like(desc, row_major(desc.dims, dtype))


def no_numbers(name: str, dtype: np.dtype[Any]) -> str:
    """Why a value of this type is not computed with."""
    if dtype in (np.int64, np.int32):
        return f"{name} is {dtype.name}, whose numbers may be beyond 2^24 here, and f32 has none of these exactly"
    return f"{name} is {dtype.name}, only f32 is computed with"
