"""Which dot products the ISA levels have, and what code of a level multiplies."""

from functools import cache
from typing import Final

from asmdnn.errors import Unimplemented
from asmdnn.isa.dot_base import (
    BF16,
    F16,
    F32,
    F32_BF16,
    F32_F16,
    F32_S8,
    F32_U8,
    GROUP_BYTES,
    S8S8,
    S16,
    S16S8,
    S32,
    U8S8,
    Blocks,
    Dot,
    GroupPart,
    Types,
)
from asmdnn.isa.dot_native import (
    AvxVnniDot,
    AvxVnniWordsDot,
    Bf16Dot,
    F16Dot,
    F32Dot,
    ShiftedAvxVnniDot,
    ShiftedVnniDot,
    VnniDot,
    VnniWordsDot,
)
from asmdnn.isa.dot_widened import AddedWordsDot, PairsDot, S32Dot, WidenedDot, WordsDot
from asmdnn.isa.levels import (
    AVX2,
    AVX2_VNNI,
    AVX512_CORE,
    AVX512_CORE_BF16,
    AVX512_CORE_FP16,
    AVX512_CORE_VNNI,
    Isa,
    isa_of,
)
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_class
from asmdnn.types import FLOATS, HALF_FLOATS, DataType, IsaName, f32

# Beside what is defined here:
__all__ = [
    "BF16",
    "F16",
    "F32",
    "F32_BF16",
    "F32_F16",
    "GROUP_BYTES",
    "S8S8",
    "S16",
    "S16S8",
    "S32",
    "U8S8",
    "Dot",
    "GroupPart",
    "Types",
]  # fmt: skip

DOTS: Final[dict[tuple[Types, Isa], type[Dot]]] = {
    (F32, AVX2): F32Dot,
    (F32, AVX512_CORE): F32Dot,
    (U8S8, AVX2): WordsDot,
    (U8S8, AVX2_VNNI): AvxVnniDot,
    (U8S8, AVX512_CORE): WordsDot,
    (U8S8, AVX512_CORE_VNNI): VnniDot,
    (S8S8, AVX2): WordsDot,
    (S8S8, AVX2_VNNI): ShiftedAvxVnniDot,
    (S8S8, AVX512_CORE): WordsDot,
    (S8S8, AVX512_CORE_VNNI): ShiftedVnniDot,
    (S16S8, AVX2): PairsDot,
    (S16, AVX2): AddedWordsDot,
    (S16, AVX2_VNNI): AvxVnniWordsDot,
    (S16, AVX512_CORE): AddedWordsDot,
    (S16, AVX512_CORE_VNNI): VnniWordsDot,
    (BF16, AVX512_CORE_BF16): Bf16Dot,
    (F16, AVX512_CORE_FP16): F16Dot,
    (S32, AVX2): S32Dot,
    (S32, AVX512_CORE): S32Dot,
    **{(types, isa): WidenedDot for types in (F32_BF16, F32_F16, F32_S8, F32_U8) for isa in (AVX2, AVX512_CORE)},
}

INNER: Final = (S16, S16S8, S32)  # of what plans make themselves
OFFERED: Final = tuple(of for of in dict.fromkeys(of for of, _ in DOTS) if of not in INNER and of.run is None)


def dot_level(types: Types, isa: str) -> IsaName:
    """The level whose dot product of these types is the best for a CPU of level `isa`.

    Raises Unimplemented with the reason if there is none.
    """
    return _level(types, isa).name


def f32_dot_level(isa: str) -> IsaName:
    """The level of kernels that multiply f32, from an engine's."""
    return dot_level(F32, isa)


@cache
def _level(types: Types, isa: str) -> Isa:
    levels = [level for of, level in DOTS if of == types]
    known = levels_of(types, isa)
    if known:
        return max(known, key=lambda level: level.rank)
    reason = f"isa {isa} has no dot product of {types}" if levels else f"no isa has a dot product of {types} here"
    words = map(str, levels or OFFERED)
    raise Unimplemented(f"{reason}: take {' or '.join(words)}")


def levels_of(types: Types, isa: str) -> list[Isa]:
    """The levels with a dot product of these types that a CPU of level `isa` can run."""
    return [level for of, level in DOTS if of == types and level.features <= isa_of(isa).features]


@cache
def half_products(isa: str) -> Types | None:
    """The floats of 16 bits that a CPU of level `isa` multiplies as they are, if it does so."""
    found = (of for of in OFFERED if of.src in HALF_FLOATS and levels_of(of, isa))
    return next(found, None)


def run_products(src: DataType, weights: DataType, isa: str) -> Types | None:
    """What a level multiplies of src and weights whose sums may be of their type, if it has that."""
    found = (of for of, _ in DOTS if of.run and (of.src, of.weights) == (src, weights))
    return next((of for of in found if levels_of(of, isa)), None)


@cache
def unshifted_level(types: Types, isa: str) -> IsaName:
    """As `dot_level`, of those that take src as it is."""
    levels = [level for level in levels_of(types, isa) if not DOTS[types, level].shift]
    return max(levels, key=lambda level: level.rank).name if levels else dot_level(types, isa)


@cache
def multiplied(src: DataType, weights: DataType, isa: str) -> Types:
    """What a level multiplies of src and weights: these types, or f32 for a src that it widens.

    Raises Unimplemented if it does neither.
    """
    found = [of for of in (*OFFERED, S16S8) if (of.src, of.weights) == (src, weights)]
    if src in FLOATS:
        found.append(Types(f32, weights, f32))
    for types in found:
        if levels_of(types, isa):
            return types
    pairs = dict.fromkeys((str(of.src), str(of.weights)) for of in OFFERED if levels_of(of, isa))
    factors = (f"{x} x {'/'.join(y for of, y in pairs if of == x)}" for x in dict.fromkeys(of for of, _ in pairs))
    words = ", ".join(factors)
    raise Unimplemented(f"isa {isa} does not multiply {src} by {weights}: it has {words}, bf16, f16 as f32")


@cache
def types_of_words(types: Types, isa: str) -> Types | None:
    """What is multiplied faster than bytes of these types are, if it is words that a level makes of them: in front once
    for all columns, where src is words already."""
    if types not in (U8S8, S8S8) or dot_class(types, isa).is_native:
        return None
    return S16S8 if (S16S8, _level(types, isa)) in DOTS else None


def blocks_of(types: Types, isa: str) -> Blocks:
    """The most rows of a block for each number of its vectors."""
    return dot_class(types, isa).blocks[vector_class(isa).count]


def dot_class(types: Types, isa: str) -> type[Dot]:
    """Raises Unimplemented as `dot_level` does."""
    return DOTS[types, _level(types, isa)]


def dot_of(types: Types, isa: str, v: Vector) -> Dot:
    """The dot product of these types that code of level `isa` uses, emitted with the registers of `v`.

    Raises Unimplemented as `dot_level` does.
    """
    return dot_class(types, isa)(types, v)
