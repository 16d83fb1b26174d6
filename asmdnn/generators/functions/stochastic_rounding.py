"""Stochastic rounding of f32 to the numbers of a smaller type: to one of the two neighbours, the nearer the likelier.

    dst[i] = the neighbour away from 0 if share(src[i]) + philox(first + i) / 2^32 >= 1, else the one towards 0

share is how far the number is on its way from the latter to the former, in steps of 2^-16 of bf16 and integers, and of
as many bits as an f32 has more than the type of others; random numbers have as many bits.  So the mean is src itself.
Infinity stays, NaN becomes quiet; what lies above the largest number becomes that or what the type has for more than
that: integers saturate.  Source: Gupta and others, Deep Learning with Limited Numerical Precision, 2015.

| argument | dtype[shape] | what it is |
|---|---|---|
| src   | f32[count] | only read, and nothing past it; may be dst, if that is f32 |
| dst   | dst[count] | only written; f32: the numbers are those of bf16 |
| seed  | s32[1]     | of the generator, philox.py |
| first | s64[1]     | the index of the first element, a multiple of 4, of which 32 bits count |
"""

from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.philox import VECTORS, PhiloxCode
from asmdnn.generators.functions.program import Predicate
from asmdnn.generators.functions.stochastic_grid import Grid
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.elements import element_of
from asmdnn.isa.formula import bits_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import DataType, f32

ARGUMENTS = ("src", "dst", "seed", "first")
SRC, DST, SEED, FIRST = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class StochasticRoundingSpec:
    """See above."""

    isa: str
    count: int
    dst: DataType = f32
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        types = f32.name if self.dst == f32 else f"{f32.name}{self.dst}"
        return f"stochastic_rounding_{types}_{self.count}__{self.isa}"

    def footprint(self) -> Footprint:
        src, dst = (dtype.size_bytes * self.count for dtype in (f32, self.dst))
        return Footprint((Range(SRC, 0, src), Range(SEED, 0, 4), Range(FIRST, 0, 4)), (Range(DST, 0, dst),))

    def generate(self, asm: Assembler) -> None:
        StochasticRoundingCode(vector_of(self.isa, asm), self.dst).all_elements(self.count)
        asm.ret()


class StochasticRoundingCode(PhiloxCode):
    """The emission of a kernel."""

    def __init__(self, v: Vector, dst: DataType) -> None:
        super().__init__(v)
        asm = self.asm
        self.element, self.grid = element_of(dst), Grid(v, dst)
        self.src, self.dst = (asm.gp.take(name) for name in ARGUMENTS[:2])
        asm.role("start")
        pointer = asm.gp.take("number")
        self.start_counting(pointer, SEED, FIRST)
        for register, argument in ((self.src, SRC), (self.dst, DST)):
            asm.MOV(register, mem(asm.frame, 8 * argument, size=8))
        asm.gp.free(pointer)

    def vector(self, part: Lanes, bits: Register, j: int) -> None:
        """Vector j of elements; nothing is added to what is not finite, as a NaN might become a number."""
        asm, v, (x, rest) = self.asm, self.v, self.words[2:]
        part.load(x, mem(self.src, j * v.bytes, size=v.bytes))
        asm.VMULPS(x, x, v.splat(bits_of(1.0)))  # a signalling NaN, whose upper bits may be infinity's, becomes quiet
        asm.VSUBPS(rest, x, x)
        self.grid.cut(bits)
        finite = v.condition(lambda: self.keys[0])
        v.compare(finite, rest, rest, Predicate.equal)
        spare = (rest, *self.products, self.keys[1])
        self.grid.round(x, bits, finite, spare)
        v.end_condition(finite)
        size = v.lanes * self.element.size_bytes
        self.element.store(v, mem(self.dst, j * size, size=size), x, part, spare)

    def advance(self) -> None:
        """On to the elements after a turn's."""
        for pointer, size in ((self.src, f32.size_bytes), (self.dst, self.element.size_bytes)):
            self.asm.ADD(pointer, VECTORS * self.v.lanes * size)
