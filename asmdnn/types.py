"""Data types, propagation kinds and algorithms, in oneDNN's words.  Imports nothing, does nothing at import."""

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class DataType:
    """An element type: `name` as oneDNN spells it, `size_bytes` of one element, `numpy` its array-protocol string.

    bf16 has no numpy type; its storage is viewed as uint16.
    """

    name: str
    size_bytes: int
    numpy: str

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


f32 = DataType("f32", 4, "<f4")
bf16 = DataType("bf16", 2, "<u2")
f16 = DataType("f16", 2, "<f2")
s32 = DataType("s32", 4, "<i4")
s8 = DataType("s8", 1, "|i1")
u8 = DataType("u8", 1, "|u1")

DATA_TYPES = {t.name: t for t in (f32, bf16, f16, s32, s8, u8)}


class PropKind(Enum):
    """What a primitive computes; forward kinds differ in what they keep for a backward pass."""

    forward_training = "forward_training"
    forward_inference = "forward_inference"
    backward_data = "backward_data"


class Algorithm(Enum):
    """Convolution algorithms; `auto` lets the implementation list decide."""

    convolution_auto = "convolution_auto"
    convolution_direct = "convolution_direct"
