"""Reorder blocks between three planes and pixels of 1- or 2-byte elements, such as images of red, green and blue.

Arguments and formula are those of convert_block.py.  Elements stay what they are, or become bf16 as they are loaded.
They use AVX2, which every supported level has.

A quarter of a register, 16 bytes, has n elements, and three quarters n pixels.  As 3 has no divisor in common with n,
the elements of a plane in these have n different places within quarters.  So one byte shuffle brings a plane's n
elements to their places, and three planes are blended into the three quarters; or quarters are blended into what a
plane has of them, and shuffled.  Both quarters of ymm registers do so; at the end the last pixels are done once more.
"""

from typing import Any

from asmdnn.generators.move.conversion import Argument, Conversion
from asmdnn.generators.move.convert_block import TransposedBlock
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.dense import QUARTER_BYTES
from asmdnn.isa.elements import element_of
from asmdnn.isa.vectors import NARROWEST, vector_bytes, vector_of
from asmdnn.records import dataclass
from asmdnn.types import HALF_FLOATS, INTEGERS8, f32

PLANES = 3
QUARTERS = vector_bytes(NARROWEST) // QUARTER_BYTES
CUT = tuple(dst for dst in HALF_FLOATS if element_of(dst).cut_bits)  # the upper half of an f32: bf16
ROUNDED = tuple(Conversion(src.name, dst.name) for src in (f32, *INTEGERS8) for dst in CUT)
MOVED_BYTES = (1, 2)  # elements of dst


@dataclass(frozen=True, slots=True, kw_only=True)
class TriplesBlock(TransposedBlock):
    """The conversion is a copy of plain bits of MOVED_BYTES, or one of ROUNDED; there are fewest(conversion) pixels, or
    more."""

    @property
    def pixels(self) -> int:
        raise NotImplementedError

    def advance(self, argument: Argument) -> int:
        """Bytes from pixel to pixel."""
        raise NotImplementedError

    def emit(self, code: "TriplesCode", first: int) -> None:
        """A register of each plane, from that pixel on."""
        raise NotImplementedError

    def generate(self, asm: Assembler) -> None:
        code, at_once = TriplesCode(self, asm), fewest(self.conversion)
        whole, rest = divmod(self.pixels, at_once)
        with asm.repeated(whole, "groups left", "groups"):
            self.emit(code, 0)
            for argument, pointer in code.pointers.items():
                asm.ADD(pointer, at_once * self.advance(argument))
        if rest:
            self.emit(code, rest - at_once)
        asm.ret()


@dataclass(frozen=True, slots=True, kw_only=True)
class TriplesInterleaveSpec(TriplesBlock):
    """dst[c, r] = src[r, c]: rows are planes, dense; columns are pixels, dense in dst."""

    @property
    def name(self) -> str:
        return f"interleave_triples_{self.block_name}"

    @property
    def pixels(self) -> int:
        return self.columns

    def advance(self, argument: Argument) -> int:
        return self.steps(argument)[1]

    def emit(self, code: "TriplesCode", first: int) -> None:
        asm, n = code.asm, code.of_quarter
        for plane, x in enumerate(code.loaded):
            asm.role(f"plane {plane}")
            code.load(x, self.at(Argument.SRC, plane, first), n)
            asm.VPSHUFB(x, x, code.orders[plane])
        asm.role("pixels")
        for k, x in enumerate(code.made):
            code.blend(x, [code.loaded[(n * k + place) % PLANES] for place in range(PLANES)])
        # A register has quarters of one number, which are the first ones of its two runs of pixels, or those after.
        a, b, c = code.made
        start, size = self.at(Argument.DST, 0, first), QUARTERS * QUARTER_BYTES
        spare = code.loaded[0]
        asm.VINSERTI128(spare, a, b.xmm, 1)
        asm.VMOVDQU(code.place(Argument.DST, start, size), spare)
        asm.VPBLENDD(a, c, a, 0xF0)
        asm.VMOVDQU(code.place(Argument.DST, start + size, size), a)
        asm.VPERM2I128(c, b, c, 0x31)
        asm.VMOVDQU(code.place(Argument.DST, start + 2 * size, size), c)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriplesDeinterleaveSpec(TriplesBlock):
    """dst[c, r] = src[r, c]: rows are pixels, dense in src; columns are planes, dense."""

    @property
    def name(self) -> str:
        return f"deinterleave_triples_{self.block_name}"

    @property
    def pixels(self) -> int:
        return self.rows

    def advance(self, argument: Argument) -> int:
        return self.steps(argument)[0]

    def emit(self, code: "TriplesCode", first: int) -> None:
        asm, n = code.asm, code.of_quarter
        asm.role("pixels")
        for k, x in enumerate(code.loaded):
            code.load(x, self.at(Argument.SRC, first, 0) + n * k * self.conversion.sizes[0], PLANES * n)
        for plane, x in enumerate(code.made):
            asm.role(f"plane {plane}")
            quarters = {(plane - n * k) % PLANES: code.loaded[k] for k in range(PLANES)}
            code.blend(x, [quarters[place] for place in range(PLANES)])
            asm.VPSHUFB(x, x, code.orders[plane])
            asm.VMOVDQU(code.place(Argument.DST, self.at(Argument.DST, first, plane), x.size_bytes), x)


class TriplesCode:
    """Registers, and what both directions emit; pointers go along."""

    def __init__(self, spec: TriplesBlock, asm: Assembler) -> None:
        self.spec, self.asm, self.v = spec, asm, vector_of(spec.isa, asm)
        self.src, self.dst = (element_of(kind) for kind in (spec.conversion.src, spec.conversion.dst))
        take, size = self.v.registers.take, self.dst.size_bytes
        self.loaded, self.made, self.upper = take("loaded", PLANES), take("made", PLANES), take("upper lanes")
        self.orders, self.masks = take("orders", PLANES), take("masks", PLANES - 1) if size == 1 else []
        self.pointers = spec.pointers(asm)
        for plane, order in enumerate(self.orders):
            self.constant(order, order_of(plane, size, isinstance(spec, TriplesInterleaveSpec)))
        for place, mask in enumerate(self.masks, 1):
            self.constant(mask, bytes(0xFF * (i % PLANES == place) for i in range(QUARTER_BYTES)))

    def constant(self, x: Any, quarter: bytes) -> None:
        self.v.load(x, self.asm.const(QUARTERS * quarter, self.v.bytes, size=self.v.bytes))

    @property
    def of_quarter(self) -> int:
        """Elements of a quarter."""
        return QUARTER_BYTES // self.dst.size_bytes

    def place(self, argument: Argument, at: int, size: int) -> Any:
        return mem(self.pointers[argument], at, size=size)

    def load(self, x: Any, at: int, apart: int) -> None:
        """x = in each quarter as many elements as it holds, those of the second one `apart` elements after."""
        asm, size, upper = self.asm, self.src.size_bytes, self.upper
        ends = at, at + apart * size
        if self.spec.conversion.is_copy and apart == self.of_quarter:
            asm.VMOVDQU(x, self.place(Argument.SRC, at, x.size_bytes))
        elif self.spec.conversion.is_copy:
            self.halves(x, *ends)
        elif self.src.is_byte_integer:  # bf16 has all of these numbers
            for y, end in zip((x, upper), ends, strict=True):
                self.src.widen(self.v, y, self.place(Argument.SRC, end, self.v.lanes))
                asm.VPSRLD(y, y, self.dst.cut_bits)
            asm.VPACKUSDW(x, x, upper)
            asm.VPERMQ(x, x, 0b11_01_10_00)
        else:
            for y, more in ((x, 0), (upper, QUARTER_BYTES)):
                self.halves(y, *(end + more for end in ends))
                self.dst.round(self.v, y, self.made)
            asm.VPACKUSDW(x, x, upper)

    def halves(self, x: Any, low: int, high: int) -> None:
        self.asm.VMOVDQU(x.xmm, self.place(Argument.SRC, low, QUARTER_BYTES))
        self.asm.VINSERTI128(x, x, self.place(Argument.SRC, high, QUARTER_BYTES), 1)

    def blend(self, x: Any, sources: list[Any]) -> None:
        """x = element i of a quarter from the source number i modulo 3."""
        asm, (first, *others) = self.asm, sources
        for place, source in enumerate(others, 1):
            if self.masks:
                asm.VPBLENDVB(x, first, source, self.masks[place - 1])
            else:
                asm.VPBLENDW(x, first, source, sum(1 << i for i in range(place, self.of_quarter, PLANES)))
            first = x


def fewest(conversion: Conversion) -> int:
    """Pixels that fill a register of each plane."""
    return QUARTERS * QUARTER_BYTES // conversion.sizes[1]


def moves_triples(conversion: Conversion) -> bool:
    """Whether the kernels have this conversion."""
    return conversion in ROUNDED or (conversion.is_copy and conversion.sizes[1] in MOVED_BYTES)


def order_of(plane: int, size: int, interleaves: bool) -> bytes:
    """VPSHUFB's order of a quarter, from a plane's elements to where they are in three quarters of pixels, or back."""
    n = QUARTER_BYTES // size
    places = [(PLANES * pixel + plane) % n for pixel in range(n)]
    order = [places.index(i) for i in range(n)] if interleaves else places
    return bytes(size * element + octet for element in order for octet in range(size))
