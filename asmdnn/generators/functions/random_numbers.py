"""Random numbers by a seed that a call passes: uniform ones, or normal ones.

    key = mixed(seed + stream);  word[i] = philox(first + i)
    uniform: dst[i] = word[i] / 2^32, cut to 24 bits;  normal: of words in pairs, see eltwise/box_muller.py

| argument | dtype[shape] | what it is |
|---|---|---|
| dst    | f32[count] | only written |
| seed   | s64[1]     | any integer |
| stream | s64[1]     | added to it: other ones have other numbers |
| first  | s64[1]     | the index of the first element, a multiple of 4, of which 32 bits count |

The generator is that of philox.py.  mixed is the finalizer of Steele and others, Fast Splittable Pseudorandom Number
Generators (2014): 32 bits of it, the first one turned over, are both words of the key.
"""

from struct import pack
from typing import Final

from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.code import apply_to_each
from asmdnn.generators.functions.eltwise.box_muller import box_muller
from asmdnn.generators.functions.philox import EVEN, ODD, VECTORS, PhiloxCode
from asmdnn.generators.functions.values import Slots
from asmdnn.isa.assembler import Assembler, Register, low32, mem
from asmdnn.isa.formula import bits_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import f32

ARGUMENTS = ("dst", "seed", "stream", "first")
DST, SEED, STREAM, FIRST = range(4)
SHIFTS, FACTORS = (30, 27, 31), (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
TOP_BIT = -(2**31)
UNUSED_BITS = 8  # of a word, as f32 has 24
DISTRIBUTIONS: Final = ("uniform", "normal")


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomNumbersSpec:
    """See above.  distribution: of DISTRIBUTIONS."""

    isa: str
    count: int
    distribution: str
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        return f"random_{self.distribution}_f32_{self.count}__{self.isa}"

    def footprint(self) -> Footprint:
        numbers = (Range(SEED, 0, 8), Range(STREAM, 0, 8), Range(FIRST, 0, 4))
        return Footprint(numbers, (Range(DST, 0, f32.size_bytes * self.count),))

    def generate(self, asm: Assembler) -> None:
        code = {"uniform": UniformCode, "normal": NormalCode}[self.distribution]
        code(vector_of(self.isa, asm)).all_elements(self.count)
        asm.ret()


class UniformCode(PhiloxCode):
    """The emission of a kernel of uniform numbers."""

    def __init__(self, v: Vector) -> None:
        super().__init__(v)
        asm = self.asm
        self.dst = asm.gp.take("dst")
        asm.role("start")
        with asm.gp.taken("number") as pointer:
            self.start_counting(pointer, SEED, FIRST)
        asm.MOV(self.dst, mem(asm.frame, 8 * DST, size=8))

    def read_seed(self, pointer: Register, seed: int) -> None:
        """Mixed with the stream."""
        asm = self.asm
        with asm.gp.taken("key") as key:
            asm.MOV(pointer, mem(asm.frame, 8 * seed, size=8))
            asm.MOV(key, mem(pointer, size=8))
            asm.MOV(pointer, mem(asm.frame, 8 * STREAM, size=8))
            asm.ADD(key, mem(pointer, size=8))
            for shift, factor in zip(SHIFTS, (*FACTORS, None), strict=True):
                asm.MOV(pointer, key)
                asm.SHR(pointer, shift)
                asm.XOR(key, pointer)
                if factor is not None:
                    asm.IMUL(key, asm.const(pack("<Q", factor), 8, size=8))
            asm.XOR(low32(key), TOP_BIT)
            asm.VMOVD(self.seed.xmm, low32(key))
        asm.VPBROADCASTD(self.seed, self.seed.xmm)

    def vector(self, part: Lanes, bits: Register, j: int) -> None:
        asm, v = self.asm, self.v
        asm.VPSRLD(bits, bits, UNUSED_BITS)
        asm.VCVTDQ2PS(bits, bits)
        asm.VMULPS(bits, bits, v.splat(bits_of(2.0 ** (UNUSED_BITS - 32))))
        part.store_last(mem(self.dst, j * v.bytes, size=v.bytes), bits)

    def advance(self) -> None:
        """On to the elements after a turn's."""
        self.asm.ADD(self.dst, VECTORS * self.v.bytes)


class NormalCode(UniformCode):
    """Of normal numbers."""

    def __init__(self, v: Vector) -> None:
        super().__init__(v)
        self.slots = Slots(v)

    def turn(self, parts: list[Lanes]) -> None:
        """Words beside each other are a pair."""
        self.generate()
        asm, v, (even, odd), (first, second, *others) = self.asm, self.v, self.products, self.words
        asm.VSHUFPS(even, first, second, EVEN)
        asm.VSHUFPS(odd, first, second, ODD)
        more = v.registers.take("normal numbers", v.registers.available)
        registers = [even, odd, first, second, *others, *self.keys, *more]
        (cosine,), (sine,) = apply_to_each(box_muller(), v, [[even], [odd]], registers, self.slots)
        made = next(x for x in registers if x not in (cosine, sine))
        asm.VUNPCKLPS(made, cosine, sine)
        asm.VUNPCKHPS(sine, cosine, sine)
        for j, (part, x) in enumerate(zip(parts, (made, sine), strict=False)):
            part.store_last(mem(self.dst, j * v.bytes, size=v.bytes), x)
        v.registers.free(*more)
