"""The vector operations of an ISA level."""

from asmdnn.errors import Unimplemented
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.avx2 import Avx2
from asmdnn.isa.avx512 import Avx512
from asmdnn.isa.levels import isa_of
from asmdnn.isa.vector import Vector
from asmdnn.types import IsaName

VECTORS = {"avx2": Avx2, "avx512_core": Avx512}


def f32_level(isa: str) -> IsaName:
    """The level whose f32 code is the best for a CPU of level `isa`: levels above it add nothing to f32."""
    levels = (isa_of(name) for name in VECTORS)
    return max((level for level in levels if level.features <= isa_of(isa).features), key=lambda level: level.rank).name


def lanes_of(isa: str) -> int:
    """f32 lanes of a vector of an ISA level."""
    return VECTORS[isa].bytes // 4


def vector_of(isa: str, asm: Assembler) -> Vector:
    """The vector operations of an ISA level, emitting into `asm`."""
    if isa not in VECTORS:
        raise Unimplemented(f"isa {isa} has no f32 vector operations yet, use one of {', '.join(VECTORS)}")
    return VECTORS[isa](asm)
