"""A matrix of 4 or 8 bits an element, as packed for products."""

from typing import Final, Literal

import numpy as np

from asmdnn.memory import Memory
from asmdnn.memory.allocation import within_memory
from asmdnn.ops.arguments import Array
from asmdnn.primitives.quantized.octets import NIBBLE_BITS, TABLES, numbers_in
from asmdnn.records import dataclass

FewBits = Literal["s4", "u4", "s8", "u8", "f4_e2m1", "nf4"]
LIMITS: Final = {"s4": (-8, 7), "u4": (0, 15), "s8": (-128, 127), "u8": (0, 255), **dict.fromkeys(TABLES, (0, 15))}
BITS: Final = {name: 8 if name in ("s8", "u8") else NIBBLE_BITS for name in LIMITS}


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedWeights:
    """A matrix (k, n) of 4 or 8 bits: scales * (weights - zero points), by groups of k, in the format of products.

    dtype: "s4", "u4", "s8", "u8", or "f4_e2m1" or "nf4", whose numbers are floats.  group: how many k share a scale.
    weights: u8, of 4 bits two in a byte; scales: f32; offsets: scales * zero points, or None.
    """

    dtype: FewBits
    dims: tuple[int, int]
    group: int
    weights: Memory
    scales: Memory
    offsets: Memory | None

    @property
    def zero_point(self) -> int:
        """What is subtracted from an element where there are no offsets."""
        return -LIMITS[self.dtype][0]

    @property
    def table(self) -> str:
        """Of floats, whose codes elements are."""
        return self.dtype if self.dtype in TABLES else ""

    @property
    def size_bytes(self) -> int:
        """Of all memory."""
        held = (self.weights, self.scales, self.offsets)
        return sum(memory.desc.size_bytes for memory in held if memory is not None)

    @within_memory
    def dequantize(self) -> Array:
        """The matrix as f32, of which products are."""
        (k, n), panels = self.dims, [x for x in (self.weights, self.scales, self.offsets) if x is not None]
        octets, scales, *offsets = (memory.numpy() for memory in panels)
        codes = numbers_in(octets, BITS[self.dtype]).reshape(-1, self.group, n)
        numbers = np.array(TABLES[self.table], np.float32)[codes] if self.table else codes.astype(np.float32)
        shift = offsets[0][:, None] if offsets else scales[:, None] * np.float32(self.zero_point)
        found: Array = (numbers * scales[:, None] - shift).reshape(k, n)
        return found

    def __repr__(self) -> str:
        """For example "QuantizedWeights s4 4096x4096, groups of 32"."""
        return f"QuantizedWeights {self.dtype} {self.dims[0]}x{self.dims[1]}, groups of {self.group}"
