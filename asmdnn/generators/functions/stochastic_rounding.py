"""Stochastic rounding of f32 to the numbers of bf16: to one of the two neighbours, the nearer the likelier.

    dst[i] = (bits of src[i] + philox(first + i) / 2^16) with the lower 16 bits zeroed

The chance to be rounded away from 0 is the share of the way there, in steps of 2^-16, so that the mean is src itself.
Infinity stays, NaN becomes quiet; what lies above bf16's largest number becomes that or infinity.  Source: Gupta and
others, Deep Learning with Limited Numerical Precision, 2015.

| argument | dtype[shape] | what it is |
|---|---|---|
| src   | f32[count] | only read, and nothing past it; may be dst |
| dst   | f32[count] | only written |
| seed  | s32[1]     | of the generator, philox.py |
| first | s64[1]     | the index of the first element, a multiple of 4, of which 32 bits count |
"""

from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.philox import VECTORS, PhiloxCode
from asmdnn.generators.functions.program import Predicate
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.formula import bits_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import f32

ARGUMENTS = ("src", "dst", "seed", "first")
SRC, DST, SEED, FIRST = range(4)
LOWER, UPPER = 16, 0xFFFF0000  # of an f32's bits: how many bf16 does not have, and those that it has


@dataclass(frozen=True, slots=True)
class StochasticRoundingSpec:
    """See above."""

    isa: str
    count: int

    @property
    def name(self) -> str:
        return f"stochastic_rounding_f32_{self.count}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return ARGUMENTS

    def footprint(self) -> Footprint:
        size = f32.size_bytes * self.count
        return Footprint((Range(SRC, 0, size), Range(SEED, 0, 4), Range(FIRST, 0, 4)), (Range(DST, 0, size),))

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 frame[])."""
        v = vector_of(self.isa, asm)
        code = StochasticRoundingCode(v)
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


class StochasticRoundingCode(PhiloxCode):
    """The emission of a kernel."""

    def __init__(self, v: Vector) -> None:
        super().__init__(v)
        asm = self.asm
        self.src, self.dst = (asm.gp.take(name) for name in ARGUMENTS[:2])
        asm.role("start")
        pointer = asm.gp.take("number")
        self.start_counting(pointer, SEED, FIRST)
        for register, argument in ((self.src, SRC), (self.dst, DST)):
            asm.MOV(register, mem(asm.frame, 8 * argument, size=8))
        asm.gp.free(pointer)

    def turn(self, parts: list[Lanes]) -> None:
        """The elements of the next counters, or as many as there are."""
        self.generate()
        for j, (part, bits) in enumerate(zip(parts, self.words, strict=False)):
            self.round_vector(part, bits, j)

    def round_vector(self, part: Lanes, bits: Register, j: int) -> None:
        """Vector j of elements; nothing is added to what is not finite, as a NaN might become a number."""
        asm, v, (x, rest) = self.asm, self.v, self.words[2:]
        part.load(x, mem(self.src, j * v.bytes, size=v.bytes))
        asm.VMULPS(x, x, v.splat(bits_of(1.0)))  # a signalling NaN, whose upper bits may be infinity's, becomes quiet
        asm.VSUBPS(rest, x, x)
        asm.VPSRLD(bits, bits, LOWER)
        finite = v.condition(lambda: self.keys[0])
        v.compare(finite, rest, rest, Predicate.equal)
        v.keep(bits, finite, bits)
        v.end_condition(finite)
        asm.VPADDD(x, x, bits)
        asm.VANDPS(x, x, v.splat(UPPER))
        part.store_last(mem(self.dst, j * v.bytes, size=v.bytes), x)

    def advance(self) -> None:
        """On to the elements after a turn's."""
        self.count_on()
        for pointer in (self.src, self.dst):
            self.asm.ADD(pointer, VECTORS * self.v.bytes)
