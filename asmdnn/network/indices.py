"""Values of a network that are integers of 32 bits and more: indices of look-ups, and what becomes numbers."""

from typing import TYPE_CHECKING

import numpy as np

from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.network.buffers import NetworkBuffers
from asmdnn.network.descriptors import STORED, input_desc
from asmdnn.network.graph import Array
from asmdnn.network.operators.definition import Value
from asmdnn.network.place import Place
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.gather.indices import NO_AXIS
from asmdnn.types import DataType, f32, s32

INT32 = 1 << 31  # the limit of integers that choose nothing


class ValuesOfIndices:
    """A part of Steps.  integers: values that are integers, as f32, for callers, numpy and look-ups; bounds: what these
    are from, and up to; limits: of integer inputs, from how many elements they choose, of which axis; checked: the same
    of those that kernels make, which a call has to look at after it; given: inputs, and what numpy computes before."""

    integers: dict[str, Place]
    bounds: dict[str, tuple[float, float]]
    limits: dict[str, tuple[int, int]]
    checked: dict[str, tuple[int, int]]
    given: set[str]
    memory: NetworkBuffers

    if TYPE_CHECKING:

        def value(self, name: str) -> Value: ...
        def as_type(self, name: str, dtype: DataType) -> Place: ...
        def reorder(self, source: Place, target: Place, name: str) -> None: ...

    def indices(self, name: str, limit: int, axis: int) -> Place:
        """Where integers lie that choose from `limit` elements: an input, or what numpy makes of
        one, which is checked before every run, or a constant.  Raises Refused."""
        value = self.value(name)
        if value.data is not None:
            wide = value.data.astype(np.int64)
            numbers = np.where(wide < 0, wide + limit, wide)
            if numbers.size and not 0 <= numbers.min() <= numbers.max() < limit:
                raise Refused(f"its indices {name} are not all from {-limit} to {limit - 1}")
            return self.places_along(f"{name} from {limit}", numbers)
        if name in self.integers:
            return self.indices_made(name, (limit, axis))
        if name not in self.given or value.dtype.kind != "i":
            raise Refused(f"its indices {name} are {value.dtype.name} that a kernel makes")
        return self.limited(name, (limit, axis))

    def indices_made(self, name: str, limit: tuple[int, int]) -> Place:
        """Indices that kernels make as f32.  Those that may be out of range are looked at after a run."""
        least, most = self.bounds[name]
        if least < -limit[0] or most >= limit[0]:
            self.look_at(name, limit)
        source = self.integers[name]
        dims = source.desc.dims
        target = Place(f"{name} as indices", MemoryDesc(dims, s32, LETTERS[: len(dims)]))
        if target.buffer not in self.memory.sizes:
            self.reorder(source, Place(self.memory.add(*target), target.desc), name)
        return target

    def look_at(self, name: str, limit: tuple[int, int]) -> None:
        """Have a call look at integers that kernels make; the least limit holds."""
        self.checked[name] = min(self.checked.get(name, limit), limit)

    def integers_of(self, name: str, limit: int = INT32, axis: int = NO_AXIS) -> Place:
        """Where integers lie that are to be numbers from -limit to limit - 1: an input, or what numpy makes of one,
        which is checked before every run.  Raises Refused."""
        value = self.value(name)
        if name not in self.given or value.dtype.kind != "i":
            raise Refused(f"{name} is {value.dtype.name} that a kernel makes, only f32 is computed with")
        if value.dtype.itemsize < s32.size_bytes:
            raise Refused(f"{name} is {value.dtype.name}, only int32 and int64 are read")
        return self.limited(name, (limit, axis))

    def number_of(self, name: str, limit: int) -> Place:
        """Where integers lie that callers pass as f32: bytes, words, and unsigned ones up to a limit that is checked
        before every run.  Raises Refused."""
        value = self.value(name)
        if value.dtype in STORED:
            return self.as_type(name, f32)
        if name not in self.given:
            raise Refused(f"{name} is {value.dtype.name} that a kernel makes, only f32 is computed with")
        return self.limited(name, (limit, NO_AXIS)) if value.dtype.itemsize >= s32.size_bytes else self.given_as(name)

    def given_as(self, name: str) -> Place:
        return Place(name, input_desc(self.value(name)))

    def limited(self, name: str, limit: tuple[int, int]) -> Place:
        """An input of integers, of which the least limit holds."""
        self.limits[name] = min(self.limits.get(name, limit), limit)
        return self.given_as(name)

    def places_along(self, name: str, numbers: Array) -> Place:
        """Constant indices, of any dims."""
        dims = numbers.shape or (1,)
        return self.memory.add_weight(name, numbers, MemoryDesc(dims, s32, LETTERS[: len(dims)]))
