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
from asmdnn.records import dataclass, field
from asmdnn.types import HALF_FLOATS

CONSTANT, SCRATCH = "constant ", "scratch "  # how names of what is no value begin


@dataclass(frozen=True, eq=False)
class Weight:
    """A constant in the format that a primitive reads; `array` is plain, of desc's dims, and f32 for narrower types."""

    desc: MemoryDesc
    array: Array


class BufferPart(NamedTuple):
    """A part of another buffer, so many bytes after its start."""

    buffer: str
    offset_bytes: int


@dataclass(eq=False)
class NetworkBuffers:
    """taken: names of inputs, which no buffer gets.  sizes: of values' buffers, in bytes.  parts: those in others."""

    taken: Collection[str]
    weights: dict[str, Weight] = field(default_factory=dict)
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
        narrow = desc.dtype in HALF_FLOATS
        key = own_name(f"{name} as {desc.dtype} {layout_of(desc)}" if narrow else f"{name} as {layout_of(desc)}")
        data = np.asarray(array, np.float32 if narrow else desc.dtype.numpy).reshape(desc.dims)
        while (known := self.weights.get(key)) and not (known.desc == desc and same_bits(known.array, data)):
            key += "'"
        self.weights[key] = known or Weight(desc, data)
        return Place(key, desc)

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


def own_name(name: str) -> str:
    """A buffer's name, which none of a plan's other names is, however values are called."""
    return f"value {name}" if name.startswith((INPUT, RESULT, CONSTANT, SCRATCH)) else name
