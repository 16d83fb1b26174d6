"""Reorder blocks between planes and pixels of bytes: an image whose 2 to 4 channels lie apart, and one where the
bytes of a pixel lie side by side.  The type changes on the way, or values are scaled.

Arguments and formula are those of convert_block.py.  They use AVX2 with F16C, which every supported level has.

8 pixels at a time are 16 to 32 bytes.  A byte shuffle within each half of a ymm register brings 4 pixels into planes or
back; conversions happen on planes, where every lane counts.
"""

from collections.abc import Callable
from typing import Any

from asmdnn.generators.move.conversion import LANES, Argument, Converter
from asmdnn.generators.move.convert_block import ConvertBlock, TransposedBlock
from asmdnn.generators.move.pieces import StridedPlace
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.element import SPARE
from asmdnn.isa.elements import element_of
from asmdnn.isa.pieces import HALF_BYTES, load_bytes, store_bytes
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

FEWEST_PLANES, MOST_PLANES = 2, 4
VECTOR_BYTES = 2 * HALF_BYTES
UNROLLED = 4  # runs of 8 pixels
HALF_PIXELS = LANES // 2
NOTHING = 0x80  # a zero, as VPSHUFB has it
Pointers = dict[Argument, Any]


def loop_over_pixels(
    block: ConvertBlock, asm: Assembler, pointers: Pointers, pixels: int, axis: int, emit: Callable[[int, int], None]
) -> None:
    """emit(first, count) for all pixels, 8 at a time; `first` counts from where the pointers are, along `axis`."""
    looped, rest = divmod(pixels, UNROLLED * LANES)
    if looped:
        with asm.repeated(looped, "blocks left", "blocks"):
            for first in range(0, UNROLLED * LANES, LANES):
                emit(first, LANES)
            for argument, pointer in pointers.items():
                if step := UNROLLED * LANES * block.steps(argument)[axis]:
                    asm.ADD(pointer, step)
    for first in range(0, rest, LANES):
        emit(first, min(LANES, rest - first))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertInterleaveSpec(TransposedBlock):
    """dst[c, r] = src[r, c]: rows are planes, dense; columns are pixels, whose bytes are dense in dst.  No sum."""

    @property
    def name(self) -> str:
        return f"interleave_{self.block_name}"

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        registers = v.registers
        planes, spare = registers.take("planes", self.rows), registers.take("spare", SPARE)
        largest, order = registers.take("largest"), registers.take("order")
        converter = Converter(v, self.conversion, spare, registers.take("zero points", 2))
        pointers = self.pointers(asm)
        if converter.dst.limits:
            converter.dst.load_largest(v, largest)
        asm.VMOVDQA(order, asm.const(2 * interleaved(self.rows), VECTOR_BYTES, size=VECTOR_BYTES))

        def emit(first: int, count: int) -> None:
            for r, x in enumerate(planes):
                asm.role(f"plane {r}, pixels {first}-{first + count - 1}")
                places = {a: StridedPlace(p, self.at(a, r, first), self.steps(a)[1]) for a, p in pointers.items()}
                converter.load(x, places[Argument.SRC], count, self.conversion.src)
                converter.apply(x, places.get(Argument.SCALES), places[Argument.DST], count)
                if converter.dst.limits:
                    asm.VMINPS(x, largest, x)  # x where it is NaN
                    asm.VCVTPS2DQ(x, x)
                else:
                    converter.dst.round(v, x, spare)
            asm.role(f"pixels {first}-{first + count - 1}")
            words, octets = converter.dst.packs(asm)
            x, second, last = planes[0], planes[1], planes[-1]
            words(x, x, second)
            if self.rows > 2:
                words(planes[2], planes[2], last)
            octets(x, x, planes[2] if self.rows > 2 else x)
            asm.VPSHUFB(x, x, order)
            self.store(asm, StridedPlace(pointers[Argument.DST], self.at(Argument.DST, 0, first), 1), x, count)

        loop_over_pixels(self, asm, pointers, self.columns, 1, emit)
        asm.ret()

    def store(self, asm: Assembler, place: StridedPlace, x: Any, count: int) -> None:
        """`count` pixels, of which each half of x has 4."""
        half, size = HALF_PIXELS * self.rows, count * self.rows
        if size == VECTOR_BYTES:
            asm.VMOVDQU(place.at(0, VECTOR_BYTES), x)
            return
        # The upper half is written over what the lower one has too much.
        store_bytes(asm, place.at(0, 1), x.xmm, min(HALF_BYTES, size) if size >= HALF_BYTES else min(half, size))
        if size > half:
            asm.VEXTRACTI128(x.xmm, x, 1)
            store_bytes(asm, place.at(half, 1), x.xmm, size - half)


def interleaved(planes: int) -> bytes:
    """VPSHUFB's order from 4 dwords, a plane's 4 pixels each, to 4 pixels."""
    order = bytes(r * HALF_PIXELS + c for c in range(HALF_PIXELS) for r in range(planes))
    return order.ljust(HALF_BYTES, bytes([NOTHING]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertDeinterleaveSpec(TransposedBlock):
    """dst[c, r] = src[r, c]: rows are pixels, whose bytes are dense in src; columns are planes, dense.  No sum."""

    @property
    def name(self) -> str:
        return f"deinterleave_{self.block_name}"

    @property
    def upper(self) -> int:
        """Where the upper half of a register starts in the bytes of 8 pixels, so that it ends with them."""
        return LANES * self.columns - HALF_BYTES

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        registers = v.registers
        pixels, x, spare = registers.take("pixels"), registers.take("plane"), registers.take("spare", SPARE)
        orders = registers.take("orders", self.columns)
        converter = Converter(v, self.conversion, spare, registers.take("zero points", 2))
        pointers, src = self.pointers(asm), element_of(self.conversion.src)
        for c, order in enumerate(orders):
            asm.VMOVDQA(order, asm.const(self.plane_order(c), VECTOR_BYTES, size=VECTOR_BYTES))

        def emit(first: int, count: int) -> None:
            asm.role(f"pixels {first}-{first + count - 1}")
            self.load(
                asm, pixels, StridedPlace(pointers[Argument.SRC], self.at(Argument.SRC, first, 0), 1), spare[0], count
            )
            for c, order in enumerate(orders):
                asm.role(f"plane {c}, pixels {first}-{first + count - 1}")
                places = {a: StridedPlace(p, self.at(a, first, c), self.steps(a)[0]) for a, p in pointers.items()}
                asm.VPSHUFB(x, pixels, order)
                src.from_end(v, x, spare)
                converter.apply(x, places.get(Argument.SCALES), places[Argument.DST], count)
                converter.store(places[Argument.DST], x, count)

        loop_over_pixels(self, asm, pointers, self.rows, 0, emit)
        asm.ret()

    def load(self, asm: Assembler, x: Any, place: StridedPlace, spare: Any, count: int) -> None:
        """`count` pixels: from the first one on in the lower half, and from byte `upper` on in the upper one."""
        size = count * self.columns
        if size == VECTOR_BYTES:
            asm.VMOVDQU(x, place.at(0, VECTOR_BYTES))
            return
        load_bytes(asm, x.xmm, place.at(0, 1), min(HALF_BYTES, size))
        if count > HALF_PIXELS:
            load_bytes(asm, spare.xmm, place.at(self.upper, 1), size - self.upper)
            asm.VINSERTI128(x, x, spare.xmm, 1)

    def plane_order(self, plane: int) -> bytes:
        """VPSHUFB's order from pixels to 8 dwords, each with a byte at the end where its type has it."""
        order, end = bytearray([NOTHING]) * VECTOR_BYTES, 3 * element_of(self.conversion.src).is_upper
        for pixel, dword in enumerate(range(0, VECTOR_BYTES, VECTOR_BYTES // LANES)):
            start = self.upper if pixel >= HALF_PIXELS else 0
            order[dword + end] = pixel * self.columns + plane - start
        return bytes(order)
