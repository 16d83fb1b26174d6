"""The vector operations of an ISA level."""

from typing import Final

from asmdnn.isa.assembler import Assembler
from asmdnn.isa.avx2 import Avx2
from asmdnn.isa.avx512 import Avx512
from asmdnn.isa.levels import AVX2, AVX512_CORE, LEVELS, isa_of
from asmdnn.isa.vector import Vector
from asmdnn.types import IsaName

F32_LEVELS = (AVX2, AVX512_CORE)  # those that add something to f32
NARROWEST: Final[IsaName] = AVX2.name
"""The level of kernels that serve every CPU: those that no count or measurement has found better with zmm registers,
and the first of f32_widths where one is to choose."""
VECTORS: dict[str, type[Vector]] = {
    level.name: Avx512 if level.vector_bytes == Avx512.bytes else Avx2 for level in LEVELS
}


def f32_level(isa: str) -> IsaName:
    """The level whose f32 code is the best for a CPU of level `isa`: levels above it add nothing to f32."""
    features = isa_of(isa).features
    return max((level for level in F32_LEVELS if level.features <= features), key=lambda level: level.rank).name


def lanes_of(isa: str) -> int:
    """Lanes of 32 bits, f32 or s32, of a vector of an ISA level."""
    return VECTORS[isa].bytes // 4


def vector_bytes(isa: str) -> int:
    """Bytes of a vector of an ISA level."""
    return VECTORS[isa].bytes


def f32_widths(isa: str) -> tuple[IsaName, ...]:
    """The levels that code of level `isa` chooses from where a count or a measurement says which vectors are better:
    the lowest for each size of vectors, narrow ones first."""
    features = isa_of(isa).features
    return tuple(level.name for level in F32_LEVELS if level.features <= features)


def narrowed(isa: str, elements: int) -> str:
    """The level for rows of so many elements, computed in f32, that lie apart: of those that fill a ymm register the
    lower one, as a zmm register would be half empty, under a mask."""
    return NARROWEST if elements == Avx2.bytes // 4 else isa


def vector_of(isa: str, asm: Assembler) -> Vector:
    """The vector operations of an ISA level, emitting into `asm`."""
    return VECTORS[isa](asm)
