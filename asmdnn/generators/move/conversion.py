"""Elements of any type as f32 in registers and back: what conversions have in common.

    dst = saturate(round(scale * (src - src_zero_point) + sum * dst + dst_zero_point))

All in f32, in this order; terms that are not asked for are left out.  scale is src_scale / dst_scale, and sum is
divided by dst_scale as well, so that the formula is oneDNN's; quotient.py computes both.  Rounding is to nearest even.
Integers saturate: what is above the largest value gives that, +inf too; NaN and what is below the smallest gives the
smallest (for s32 the largest value is 2147483520, the last f32 below 2^31).  bf16 and f16 overflow to infinity, and
keep NaN.
"""

from enum import IntEnum
from struct import pack
from typing import Any, ClassVar

from asmdnn.exact import exact
from asmdnn.generators.move.pieces import StridedPlace, load_elements, store_elements
from asmdnn.isa.assembler import mem
from asmdnn.isa.dense import QUARTER_BYTES, dense_of
from asmdnn.isa.elements import element_of, size_of
from asmdnn.isa.pieces import low_part
from asmdnn.isa.vector import Vector
from asmdnn.records import dataclass, replace

LANES = 8
PACKED = 4  # registers that make one of s8 or u8


def exact_word(number: float) -> str:
    """A number in a kernel's name, no two numbers alike; no sign or plus, since names are file names and symbols."""
    return repr(number).replace("-", "m").replace("+", "")


class Argument(IntEnum):
    """Words of the frame; zero points are one s32, scales lie as the spec says."""

    SRC = 0
    DST = 1
    SCALES = 2
    SRC_ZERO_POINT = 3
    DST_ZERO_POINT = 4


@exact
@dataclass(frozen=True, slots=True, eq=False)
class Conversion:
    """The types, and which terms of the formula there are; sum 0 leaves dst unread.

    sum_factors: how many bytes after each scale there is a further factor of the sum, sum / dst_scale; 0 for none.
    """

    src: str
    dst: str
    scaled: bool = False
    src_zero_point: bool = False
    dst_zero_point: bool = False
    sum: float = 0.0
    sum_factors: int = 0
    chain_fields: ClassVar[tuple[str, ...]] = ("sum",)

    @property
    def is_copy(self) -> bool:
        """Whether the bytes stay the same."""
        has_terms = self.scaled or self.src_zero_point or self.dst_zero_point or self.sum or self.sum_factors
        return self.src == self.dst and not has_terms

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of an element of src, of dst."""
        return size_of(self.src), size_of(self.dst)

    def as_bits(self) -> "Conversion":
        """A copy as one of plain bits, so that types of one size share kernels and no NaN changes."""
        bits = f"b{8 * self.sizes[0]}"
        return Conversion(bits, bits)

    def __str__(self) -> str:
        terms = [
            "_scaled" * self.scaled,
            "_srczp" * self.src_zero_point,
            "_sum" + exact_word(self.sum) if self.sum else "",
            f"at{self.sum_factors}" if self.sum_factors else "",
            "_dstzp" * self.dst_zero_point,
        ]
        return f"{self.src}_{self.dst}{''.join(terms)}"


class Converter:
    """Emits conversions of up to a vector of lanes.

    spare: SPARE vector registers that it may overwrite, others when assigned.  Zero points are kept in the given
    registers, or loaded anew for every vector when there are none.
    """

    def __init__(self, v: Vector, conversion: Conversion, spare: list[Any], kept: list[Any]) -> None:
        self.v, self.conversion, self.spare = v, conversion, spare
        self.asm = asm = v.asm
        self.dense, self.dst = dense_of(v, spare[0]), element_of(conversion.dst)
        self.pointers: dict[Argument, Any] = {}
        for argument, used in (
            (Argument.SRC_ZERO_POINT, conversion.src_zero_point),
            (Argument.DST_ZERO_POINT, conversion.dst_zero_point),
        ):
            if used:
                self.pointers[argument] = pointer = asm.gp.take(argument.name.lower())
                asm.MOV(pointer, mem(asm.frame, 8 * argument))
        self.kept = dict(zip(self.pointers, kept, strict=False))
        for argument, x in self.kept.items():
            self.load_zero_point(x, argument)

    def load_zero_point(self, x: Any, argument: Argument) -> None:
        self.asm.VPBROADCASTD(x, mem(self.pointers[argument], size=4))
        self.asm.VCVTDQ2PS(x, x)

    def zero_point(self, argument: Argument) -> Any:
        """The zero point in all lanes."""
        if argument in self.kept:
            return self.kept[argument]
        self.load_zero_point(self.spare[0], argument)
        return self.spare[0]

    def load(self, x: Any, place: StridedPlace, count: int, kind: str) -> None:
        """`count` elements of type `kind` as f32, those of plain bits as they are; the other lanes are undefined."""
        element = element_of(kind)
        size = element.size_bytes
        source: Any = low_part(x, size)
        if count == self.v.lanes and place.step == size and not element.stays:
            source = place.at(0, count * size)
        else:
            self.dense.spare = self.spare[0]
            load_elements(self.dense, x, place, count, size)
        element.widen(self.v, x, source, [spare for spare in self.spare if spare is not x])

    def apply(self, x: Any, scales: StridedPlace | None, dst: StridedPlace, count: int) -> None:
        """The formula without its rounding.  scales.step is 0 for one scale for all lanes."""
        asm, conversion, y = self.asm, self.conversion, self.spare[1]
        if conversion.src_zero_point:
            asm.VSUBPS(x, x, self.zero_point(Argument.SRC_ZERO_POINT))
        if scales and scales.step == 0:
            asm.VBROADCASTSS(y, scales.at(0, 4))
            asm.VMULPS(x, x, y)
        elif scales:
            self.load(y, scales, count, "f32")
            asm.VMULPS(x, x, y)
        if conversion.sum:
            self.load(y, dst, count, conversion.dst)
            if conversion.sum != 1.0:
                asm.VBROADCASTSS(self.spare[0], asm.const(pack("<f", conversion.sum), 4, size=4))
                asm.VMULPS(y, y, self.spare[0])
            if scales and conversion.sum_factors:
                self.multiply_sum(y, replace(scales, offset=scales.offset + conversion.sum_factors), count)
            asm.VADDPS(x, x, y)
        if conversion.dst_zero_point:
            asm.VADDPS(x, x, self.zero_point(Argument.DST_ZERO_POINT))

    def multiply_sum(self, y: Any, factors: StridedPlace, count: int) -> None:
        """y times its factors."""
        factor = self.spare[2]
        if factors.step == 0:
            self.asm.VBROADCASTSS(factor, factors.at(0, 4))
        else:
            self.load(factor, factors, count, "f32")
        self.asm.VMULPS(y, y, factor)

    def store(self, place: StridedPlace, x: Any, count: int) -> None:
        """`count` lanes in the type of dst; x is overwritten."""
        self.dst.narrow(self.v, x, self.spare)
        self.dense.spare = self.spare[0]
        store_elements(self.dense, place, x, count, self.dst.size_bytes)

    def store_bytes(self, place: StridedPlace, xs: list[Any], largest: Any, order: Any) -> None:
        """Four registers as one of dense s8 or u8; `largest` is that number in all lanes, `order` of packed_order()."""
        asm, (words, octets) = self.asm, self.dst.packs(self.asm)
        for x in xs:
            asm.VMINPS(x, largest, x)
            asm.VCVTPS2DQ(x, x)
        words(xs[0], xs[0], xs[1])
        words(xs[2], xs[2], xs[3])
        octets(xs[0], xs[0], xs[2])
        asm.VPERMD(xs[0], order, xs[0])
        self.store_packed(place, xs[0])

    def store_packed(self, place: StridedPlace, x: Any) -> None:
        """A register full of elements in the type of dst."""
        self.dense.spare, size = self.spare[0], self.dst.size_bytes
        store_elements(self.dense, place, x, self.v.bytes // size, size)

    def packed_order(self) -> bytes:
        """Of dwords, after two packs within the quarters of registers."""
        quarters = self.v.bytes // QUARTER_BYTES
        order = [PACKED * quarter + number for number in range(PACKED) for quarter in range(quarters)]
        return pack(f"<{len(order)}I", *order)
