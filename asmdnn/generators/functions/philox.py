"""Philox4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011) in vectors, as oneDNN lays it out.

With x = index - index % 4, the counter is (x, x + 1, x + 2, x + 3), both words of the key are the seed, and element
index % 4 of the result is the index's own.  So elements may be computed in any order, by anybody.

A register holds a word of as many counters as it has 8-byte lanes, which VPMULUDQ multiplies; upper halves are junk.
"""

from struct import pack

from asmdnn.isa.assembler import Register, mem
from asmdnn.isa.vector import Lanes, Vector

ROUNDS = 10
MULTIPLIERS, WEYL = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
WORDS = 4  # of a counter
VECTORS = 2  # of elements, that the words of a register's counters are
EVEN, ODD = 0x88, 0xDD  # VSHUFPS: elements 0 and 2, or 1 and 3, of both operands


class PhiloxCode:
    """The emission of the generator; counters: word 0 of the next ones."""

    def __init__(self, v: Vector) -> None:
        self.v, self.asm = v, v.asm
        self.words = [v.registers.take(f"word {i}") for i in range(WORDS)]
        self.products = [v.registers.take(f"product {i}") for i in range(2)]
        self.keys = [v.registers.take(f"key {i}") for i in range(2)]
        self.multipliers = [v.registers.take(f"multiplier {i}") for i in range(2)]
        self.seed, self.counters = (v.registers.take(name) for name in ("seed", "word 0 of the next counters"))

    def start_counting(self, pointer: Register, seed: int, first: int) -> None:
        """Read the seed, s32[1], and the index of the first element, s64[1].  seed, first: places in the frame."""
        asm, v = self.asm, self.v
        for register, bits in zip(self.multipliers, MULTIPLIERS, strict=True):
            v.broadcast(register, asm.const(pack("<I", bits), 4, size=4))
        self.read_seed(pointer, seed)
        asm.MOV(pointer, mem(asm.frame, 8 * first, size=8))
        v.broadcast(self.counters, mem(pointer, size=4))
        counters = v.lanes // 2  # each of them has two lanes, for products of 64 bits
        quads = [lane // 2 + counters // 2 * (lane % 2) for lane in range(counters)]
        offsets = [number for quad in quads for number in (WORDS * quad, 0)]
        asm.VPADDD(self.counters, self.counters, asm.const(pack(f"<{v.lanes}i", *offsets), v.bytes, size=v.bytes))

    def read_seed(self, pointer: Register, seed: int) -> None:
        """Both words of the key."""
        self.asm.MOV(pointer, mem(self.asm.frame, 8 * seed, size=8))
        self.v.broadcast(self.seed, mem(pointer, size=4))

    def vector(self, part: Lanes, bits: Register, j: int) -> None:
        """Vector j of a turn's elements, with these random bits; words 2 and 3 are free."""
        raise NotImplementedError

    def advance(self) -> None:
        """Pointers go on to the elements after a turn's."""
        raise NotImplementedError

    def all_elements(self, count: int) -> None:
        """Turns of whole vectors, and the rest."""
        asm, v = self.asm, self.v
        turns, rest = divmod(count, VECTORS * v.lanes)
        if turns:
            asm.role("whole vectors")
            left = asm.gp.take("turns left")
            asm.MOV(left, turns)
            with asm.loop(left, "vectors"):
                self.turn([v] * VECTORS)
                self.count_on()
                self.advance()
        if rest:
            asm.role("rest")
            with v.parts(-(-rest // v.lanes), rest) as parts:
                self.turn(parts)

    def turn(self, parts: list[Lanes]) -> None:
        """The elements of the next counters, or as many as there are."""
        self.generate()
        for j, (part, bits) in enumerate(zip(parts, self.words, strict=False)):
            self.vector(part, bits, j)

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

    def count_on(self) -> None:
        """On to the counters of the elements after a turn's."""
        self.asm.VPADDD(self.counters, self.counters, self.v.splat(VECTORS * self.v.lanes))
