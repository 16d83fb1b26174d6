"""The buffers of a network: weights, those of values, and such as lie inside others."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from asmdnn.memory import MemoryDesc
from asmdnn.network.arrays import same_bits
from asmdnn.network.calls.running import INPUT, RESULT
from asmdnn.network.descriptors import layout_of
from asmdnn.network.graph import Array
from asmdnn.network.joining.place import Place
from asmdnn.planning.phase import View
from asmdnn.primitives.core.descriptor import PrimitiveDesc
from asmdnn.records import dataclass, field
from asmdnn.types import HALF_FLOATS

CONSTANT, SCRATCH = "constant ", "scratch "  # how names of what is no value begin


@dataclass(frozen=True, eq=False)
class Weight:
    """A constant in the format that a primitive reads; `array` is plain, of desc's dims, and f32 for narrower types."""

    desc: MemoryDesc
    array: Array


@dataclass(frozen=True, eq=False)
class ChosenWeight:
    """One in the format that the plan of a primitive chooses, which lowering does not look at: other dims of an image
    may have another one, and all else stays.  pd: the primitive, whose argument it is; array: as Weight's."""

    name: str
    array: Array
    pd: PrimitiveDesc
    argument: str

    def settled(self) -> Weight:
        """Once the plan is known."""
        return Weight(self.pd.plan.tensors[self.argument], self.array)


class BufferPart(NamedTuple):
    """A part of another buffer, so many bytes after its start."""

    buffer: str
    offset_bytes: int


@dataclass(eq=False)
class NetworkBuffers:
    """taken: names of inputs, which no buffer gets.  sizes: of values' buffers, in bytes.  parts: those in others."""

    taken: Collection[str]
    weights: dict[str, Weight | ChosenWeight] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    parts: dict[str, BufferPart] = field(default_factory=dict)

    def branch(self) -> "NetworkBuffers":
        """Those that are continued independently."""
        return NetworkBuffers(self.taken, dict(self.weights), dict(self.sizes), dict(self.parts))

    def add(self, name: str, desc: MemoryDesc) -> str:
        """A new buffer that holds a tensor from its base on; its name."""
        name = own_name(name)
        while name in self.sizes or name in self.weights or name in self.taken:
            name += "'"
        self.sizes[name] = desc.size_bytes
        return name

    def add_weight(self, name: str, array: Array, desc: MemoryDesc) -> Place:
        """A constant in a format, packed once; other numbers under that name have a buffer of their own."""
        return Place(self.put_weight(name, Weight(desc, as_stored(array, desc))), desc)

    def add_chosen(self, name: str, array: Array, pd: PrimitiveDesc, argument: str, wanted: MemoryDesc) -> str:
        """A constant in the format that a primitive chooses for an argument which is asked for as any; its name until
        `settled`."""
        key = own_name(f"{name} for {argument}")
        while key in self.weights or key in self.sizes or key in self.taken:
            key += "'"
        self.weights[key] = ChosenWeight(name, as_stored(array, wanted), pd, argument)
        return key

    def put_weight(self, name: str, weight: Weight) -> str:
        """The buffer of a weight, which is that of an equal one of this name."""
        desc, words = weight.desc, layout_of(weight.desc)
        key = own_name(f"{name} as {desc.dtype} {words}" if desc.dtype in HALF_FLOATS else f"{name} as {words}")
        return self.insert(key, weight)

    def insert(self, key: str, weight: Weight) -> str:
        """A weight under this name, or a longer one where it is taken."""
        while key in self.sizes or key in self.taken or not is_free(self.weights.get(key), weight):
            key += "'"
        self.weights.setdefault(key, weight)
        return key

    def settled(self) -> tuple["NetworkBuffers", dict[str, str]]:
        """Those where each weight has its format, in the order in which they came, and the names that have changed."""
        made, names = NetworkBuffers(self.taken, {}, self.sizes, self.parts), dict[str, str]()
        for key, weight in self.weights.items():
            if isinstance(weight, ChosenWeight):
                names[key] = made.put_weight(weight.name, weight.settled())
            elif (name := made.insert(key, weight)) != key:
                names[key] = name
        return made, names

    @property
    def settled_weights(self) -> dict[str, Weight]:
        """All of those that are settled."""
        return {name: weight for name, weight in self.weights.items() if isinstance(weight, Weight)}

    def owns(self, place: Place) -> bool:
        """Whether a tensor is the whole of a buffer of its own."""
        return place.buffer not in self.parts and self.sizes.get(place.buffer) == place.desc.size_bytes

    def put_inside(self, place: Place, whole: Place, part: MemoryDesc) -> bool:
        """Have a value lie in a part of another buffer from the start, if it is the whole of a buffer of its own, and
        the part one piece of memory of the same format.  Whether it does."""
        same = MemoryDesc(part.dims, part.dtype, strides=part.strides, inner_blocks=part.inner_blocks)
        if not self.owns(place) or place.desc != same or whole.buffer == place.buffer:
            return False
        self.parts[place.buffer] = BufferPart(whole.buffer, part.offset0 * part.dtype.size_bytes)
        return True

    def located(self, buffer: str) -> View:
        """The bytes of a buffer that lies in another one; of others all."""
        view, size = View(buffer), self.sizes.get(buffer)
        while view.buffer in self.parts:
            outer, offset = self.parts[view.buffer]
            view = View(outer, view.offset_bytes + offset, size)
        return view


def as_stored(array: Array, desc: MemoryDesc) -> Array:
    """A constant of these dims, in the type in which Weight has it."""
    return np.asarray(array, np.float32 if desc.dtype in HALF_FLOATS else desc.dtype.numpy).reshape(desc.dims)


def is_free(one: Weight | ChosenWeight | None, two: Weight) -> bool:
    """Whether a weight may have a name that another one has, if any: an equal one is the same."""
    if one is None:
        return True
    return isinstance(one, Weight) and one.desc == two.desc and same_bits(one.array, two.array)


def own_name(name: str) -> str:
    """A buffer's name, which none of a plan's other names is, however values are called."""
    return f"value {name}" if name.startswith((INPUT, RESULT, CONSTANT, SCRATCH)) else name
