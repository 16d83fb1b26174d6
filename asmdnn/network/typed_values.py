"""Values that kernels keep in other types than f32: as they lie, and as floats for those who read floats alone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from asmdnn.memory import MemoryDesc
from asmdnn.network.descriptors import is_row_major, row_major, stored
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.evaluation import results_of
from asmdnn.network.place import Place
from asmdnn.network.quantised.numbers import quantization_of
from asmdnn.network.static import StaticGraph
from asmdnn.network.storage import StorageTypes
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.primitives.shapes.formats import dense_like, of_type
from asmdnn.types import DataType, f32


class TypedValues:
    """A part of Steps.  dequantizers: for floats that no step has made yet, the node that would make them; storage: of
    others the types; images: of buffers all of whose elements lie in another type, too, one for one."""

    graph: StaticGraph
    places: dict[str, list[Place]]
    dequantizers: dict[str, Node]
    storage: StorageTypes
    images: dict[tuple[str, DataType], Place]

    if TYPE_CHECKING:

        def place(self, name: str, wanted: MemoryDesc | None = None) -> Place: ...
        def value(self, name: str) -> Value: ...
        def shape(self, name: str) -> tuple[int, ...]: ...
        def add(self, nodes: Sequence[Node], label: str, *arguments: Any, **named: Any) -> None: ...
        def copied(self, name: str, source: Place, wanted: MemoryDesc) -> Place: ...

    def type_of(self, name: str) -> DataType:
        """In which kernels that can do so store a value."""
        return self.storage.values.get(name, stored(self.value(name)))

    def multiplies_narrow(self, name: str) -> bool:
        """Whether the product whose group makes a value is of narrow operands."""
        return name in self.storage.products

    def factor_type(self, name: str) -> DataType:
        """What the product whose group makes a value multiplies."""
        return self.storage.products.get(name, f32)

    def kept(self, name: str) -> Place:
        """Where a value lies, in the type in which it was made."""
        return self.places[name][0] if name in self.places else self.place(name)

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
