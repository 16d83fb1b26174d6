"""The vectors of an ISA level: their sizes, and their operations, which are imported where code is emitted."""

from functools import cache
from typing import TYPE_CHECKING, Final

from asmdnn.forking import importing
from asmdnn.isa.levels import AVX2, AVX512_CORE, LEVELS, isa_of
from asmdnn.types import IsaName

if TYPE_CHECKING:  # what runs from the cache on disk needs no assembler
    from asmdnn.isa.assembler import Assembler
    from asmdnn.isa.vector import Vector

F32_LEVELS = (AVX2, AVX512_CORE)  # those that add something to f32
NARROWEST: Final[IsaName] = AVX2.name
"""The level of kernels that serve every CPU: those that no count or measurement has found better with zmm registers,
and the first of f32_widths where one is to choose."""
BYTES: Final[dict[str, int]] = {level.name: level.vector_bytes for level in LEVELS}


def f32_level(isa: str) -> IsaName:
    """The level whose f32 code is the best for a CPU of level `isa`: levels above it add nothing to f32."""
    features = isa_of(isa).features
    return max((level for level in F32_LEVELS if level.features <= features), key=lambda level: level.rank).name


def lanes_of(isa: str) -> int:
    """Lanes of 32 bits, f32 or s32, of a vector of an ISA level."""
    return BYTES[isa] // 4


def vector_bytes(isa: str) -> int:
    """Bytes of a vector of an ISA level."""
    return BYTES[isa]


def f32_widths(isa: str) -> tuple[IsaName, ...]:
    """The levels that code of level `isa` chooses from where a count or a measurement says which vectors are better:
    the lowest for each size of vectors, narrow ones first."""
    features = isa_of(isa).features
    return tuple(level.name for level in F32_LEVELS if level.features <= features)


def narrowed(isa: str, elements: int) -> str:
    """The level for rows of so many elements, computed in f32, that lie apart: of those that fill a ymm register the
    lower one, as a zmm register would be half empty, under a mask."""
    return NARROWEST if elements == AVX2.vector_bytes // 4 else isa


@cache
def vector_class(isa: str) -> "type[Vector]":
    """The vector operations of an ISA level."""
    with importing():
        from asmdnn.isa.avx2 import Avx2
        from asmdnn.isa.avx512 import Avx512

    return Avx512 if BYTES[isa] == Avx512.bytes else Avx2


def vector_of(isa: str, asm: "Assembler") -> "Vector":
    """The vector operations of an ISA level, emitting into `asm`."""
    return vector_class(isa)(asm)
