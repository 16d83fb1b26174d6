"""Dropout of f32 vectors by a counter-based generator: elements are zeroed at random, the others grow.

    mask[i] = philox(first + i) > (2^32 - 1) probability
    dst[i] = src[i] / (1 - probability) where mask[i], else 0

| argument | dtype[shape] | what it is |
|---|---|---|
| src         | f32[count] | only read, and nothing past it; may be dst |
| dst         | f32[count] | only written |
| mask        | u8[count]  | only written: 1 where an element stays, else 0 |
| probability | f32[1]     | that an element is zeroed, 0 to 1 |
| seed        | s32[1]     | of the generator |
| first       | s64[1]     | the index of the first element, a multiple of 4, of which 32 bits count |

The generator is that of philox.py.
"""

from struct import pack

from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.philox import VECTORS, PhiloxCode
from asmdnn.generators.functions.program import Predicate, Rounding
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.elements import element_of
from asmdnn.isa.formula import bits_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import f32

ARGUMENTS = ("src", "dst", "mask", "probability", "seed", "first")
SRC, DST, MASK, PROBABILITY, SEED, FIRST = range(6)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropoutSpec:
    """See above."""

    isa: str
    count: int
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        return f"dropout_f32_{self.count}__{self.isa}"

    def footprint(self) -> Footprint:
        numbers = (Range(PROBABILITY, 0, 4), Range(SEED, 0, 4), Range(FIRST, 0, 4))
        size = f32.size_bytes * self.count
        writes = (Range(DST, 0, size), Range(MASK, 0, self.count))
        return Footprint((Range(SRC, 0, size), *numbers), writes)

    def generate(self, asm: Assembler) -> None:
        DropoutCode(vector_of(self.isa, asm)).all_elements(self.count)
        asm.ret()


class DropoutCode(PhiloxCode):
    """The emission of a kernel."""

    def __init__(self, v: Vector) -> None:
        super().__init__(v)
        self.threshold, self.factor = (v.registers.take(name) for name in ("threshold", "factor"))
        self.src, self.dst, self.mask = (self.asm.gp.take(name) for name in ARGUMENTS[:3])
        self.start()

    def start(self) -> None:
        """What stays the same for all elements."""
        asm = self.asm
        asm.role("start")
        pointer = asm.gp.take("number")
        self.start_counting(pointer, SEED, FIRST)
        asm.MOV(pointer, mem(asm.frame, 8 * PROBABILITY, size=8))
        self.set_limits(pointer)
        for register, argument in ((self.src, SRC), (self.dst, DST), (self.mask, MASK)):
            asm.MOV(register, mem(asm.frame, 8 * argument, size=8))
        asm.gp.free(pointer)

    def set_limits(self, pointer: Register) -> None:
        """factor = 1 / (1 - p); threshold = the integer part of (2^32 - 1) p, which is ceil(2^32 p) - 1, or 0 for 0."""
        asm, v, p = self.asm, self.v, self.threshold
        v.broadcast(p, mem(pointer, size=4))
        v.broadcast(self.factor, asm.const(pack("<f", 1.0), 4, size=4))
        asm.VSUBPS(self.products[0], self.factor, p)
        asm.VDIVPS(self.factor, self.factor, self.products[0])
        asm.VMULPS(p, p, v.splat(bits_of(2.0**32)))
        v.round(p, p, Rounding.up)
        asm.VMAXPS(p, p, v.splat(bits_of(1.0)))
        high, low = self.products
        asm.VMULPS(high, p, v.splat(bits_of(2.0**-16)))  # an integer of 32 bits from f32, in halves
        v.round(high, high, Rounding.towards_zero)
        asm.VMULPS(low, high, v.splat(bits_of(2.0**16)))
        asm.VSUBPS(low, p, low)
        asm.VCVTPS2DQ(p, high)
        asm.VPSLLD(p, p, 16)
        asm.VCVTPS2DQ(low, low)
        asm.VPADDD(p, p, low)
        asm.VPADDD(p, p, v.splat(0xFFFFFFFF))

    def vector(self, part: Lanes, bits: Register, j: int) -> None:
        """Vector j of elements, kept where their bits are above the threshold: then the larger one differs from it."""
        asm, v, (x, ones) = self.asm, self.v, self.words[2:]
        asm.VPMAXUD(bits, bits, self.threshold)
        asm.VXORPS(bits, bits, self.threshold)
        asm.VCVTDQ2PS(bits, bits)
        kept = v.condition(lambda: self.keys[0])
        v.compare(kept, bits, v.splat(0), Predicate.not_equal)
        part.load(x, mem(self.src, j * v.bytes, size=v.bytes))
        asm.VMULPS(x, x, self.factor)
        v.keep(x, kept, x)
        part.store_last(mem(self.dst, j * v.bytes, size=v.bytes), x)
        v.keep(ones, kept, v.splat(1))
        element_of("u8").lanes(v, part).store(mem(self.mask, j * v.lanes, size=v.lanes), ones)
        v.end_condition(kept)

    def advance(self) -> None:
        """On to the elements after a turn's."""
        asm, v = self.asm, self.v
        for pointer, size in ((self.src, v.bytes), (self.dst, v.bytes), (self.mask, v.lanes)):
            asm.ADD(pointer, VECTORS * size)
