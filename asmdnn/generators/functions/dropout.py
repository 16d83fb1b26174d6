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

The generator is Philox4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011) as oneDNN lays it out:
with x = index - index % 4, the counter is (x, x + 1, x + 2, x + 3), both words of the key are the seed, and element
index % 4 of the result is the index's own.  So elements may be computed in any order, by anybody.

A register holds a word of as many counters as it has 8-byte lanes, which VPMULUDQ multiplies; upper halves are junk.
"""

from struct import pack

from asmdnn.generators.contract import Footprint, Range
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
ROUNDS = 10
MULTIPLIERS, WEYL = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
WORDS = 4  # of a counter
VECTORS = 2  # of elements, that the words of a register's counters are
EVEN, ODD = 0x88, 0xDD  # VSHUFPS: elements 0 and 2, or 1 and 3, of both operands


@dataclass(frozen=True, slots=True)
class DropoutSpec:
    """See above."""

    isa: str
    count: int

    @property
    def name(self) -> str:
        return f"dropout_f32_{self.count}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return ARGUMENTS

    def footprint(self) -> Footprint:
        numbers = (Range(PROBABILITY, 0, 4), Range(SEED, 0, 4), Range(FIRST, 0, 4))
        size = f32.size_bytes * self.count
        writes = (Range(DST, 0, size), Range(MASK, 0, self.count))
        return Footprint((Range(SRC, 0, size), *numbers), writes)

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 frame[])."""
        v = vector_of(self.isa, asm)
        code = DropoutCode(v)
        turns, rest = divmod(self.count, VECTORS * v.lanes)
        if turns:
            asm.role("whole vectors")
            left = asm.gp.take("turns left")
            asm.MOV(left, turns)
            with asm.loop(left, "vectors"):
                code.turn([v] * VECTORS)
                code.advance()
        if rest:
            asm.role("rest")
            with v.parts(-(-rest // v.lanes), rest) as parts:
                code.turn(parts)
        asm.ret()


class DropoutCode:
    """The emission of a kernel; counters: word 0 of the next ones."""

    def __init__(self, v: Vector) -> None:
        self.v, self.asm = v, v.asm
        self.words = [v.registers.take(f"word {i}") for i in range(WORDS)]
        self.products = [v.registers.take(f"product {i}") for i in range(2)]
        self.keys = [v.registers.take(f"key {i}") for i in range(2)]
        self.multipliers = [v.registers.take(f"multiplier {i}") for i in range(2)]
        names = ("seed", "word 0 of the next counters", "threshold", "factor")
        self.seed, self.counters, self.threshold, self.factor = (v.registers.take(name) for name in names)
        self.src, self.dst, self.mask = (self.asm.gp.take(name) for name in ARGUMENTS[:3])
        self.start()

    def start(self) -> None:
        """What stays the same for all elements."""
        asm, v = self.asm, self.v
        asm.role("start")
        pointer = asm.gp.take("number")
        for register, bits in zip(self.multipliers, MULTIPLIERS, strict=True):
            v.broadcast(register, asm.const(pack("<I", bits), 4, size=4))
        asm.MOV(pointer, mem(asm.frame, 8 * SEED, size=8))
        v.broadcast(self.seed, mem(pointer, size=4))
        asm.MOV(pointer, mem(asm.frame, 8 * FIRST, size=8))
        v.broadcast(self.counters, mem(pointer, size=4))
        counters = v.lanes // 2  # each of them has two lanes, for products of 64 bits
        quads = [lane // 2 + counters // 2 * (lane % 2) for lane in range(counters)]
        offsets = [number for quad in quads for number in (WORDS * quad, 0)]
        asm.VPADDD(self.counters, self.counters, asm.const(pack(f"<{v.lanes}i", *offsets), v.bytes, size=v.bytes))
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

    def turn(self, parts: list[Lanes]) -> None:
        """The elements of the next counters, or as many as there are."""
        self.generate()
        for j, (part, bits) in enumerate(zip(parts, self.words, strict=False)):
            self.drop(part, bits, j)

    def generate(self) -> None:
        """The bits of consecutive elements into words[0] and words[1], from the counters."""
        asm, v = self.asm, self.v
        for i, word in enumerate(self.words):
            asm.VPADDD(word, self.counters, v.splat(i))
        for number in range(ROUNDS):
            for key, step in zip(self.keys, WEYL, strict=True):
                asm.VPADDD(key, self.seed if number == 0 else key, v.splat(0 if number == 0 else step))
            self.round()
        a, b = self.products
        first, second, third, fourth = self.words
        asm.VSHUFPS(a, first, second, EVEN)
        asm.VSHUFPS(b, third, fourth, EVEN)
        asm.VSHUFPS(first, a, b, EVEN)
        asm.VSHUFPS(second, a, b, ODD)

    def round(self) -> None:
        """Words 0 and 2 are multiplied; upper halves are mixed with the other words and the key."""
        asm, (w0, w1, w2, w3), (p0, p1) = self.asm, self.words, self.products
        asm.VPMULUDQ(p0, w0, self.multipliers[0])
        asm.VPMULUDQ(p1, w2, self.multipliers[1])
        for word, product, other, key in ((w0, p1, w1, self.keys[0]), (w2, p0, w3, self.keys[1])):
            asm.VPSRLQ(word, product, 32)
            asm.VXORPS(word, word, other)
            asm.VXORPS(word, word, key)
        self.words, self.products = [w0, p1, w2, p0], [w1, w3]

    def drop(self, part: Lanes, bits: Register, j: int) -> None:
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
        asm.VPADDD(self.counters, self.counters, v.splat(VECTORS * v.lanes))
        for pointer, size in ((self.src, v.bytes), (self.dst, v.bytes), (self.mask, v.lanes)):
            asm.ADD(pointer, VECTORS * size)
