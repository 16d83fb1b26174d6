"""What sums of integers start from when src has a zero point, or is shifted: from the sums of columns.

    start[c] = (shift + zero_point[0]) * sums[c]

| argument | dtype[shape] | what it is |
|---|---|---|
| zero_point | s32[1]      | of src |
| sums       | s32[count]  | of the columns of weights, negative; all is modulo 2^32 |
| start      | s32[count]  | may be `sums` |

Since the sum of (a - zero_point) * w is that of (a + shift) * w, less (shift + zero_point) times the sum of w.
"""

from asmdnn.generators.contract import Footprint, Range
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import s32

ARGUMENTS = ("zero_point", "sums", "start")
ZERO_POINT, SUMS, START = range(len(ARGUMENTS))
CHUNK = 4  # vectors in a turn of the loop


@dataclass(frozen=True, slots=True, kw_only=True)
class StartVectorSpec:
    """Everything that the bytes of the kernel depend on; count > 0."""

    isa: str
    count: int
    shift: int = 0
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        shift = f"_shift{self.shift}" if self.shift else ""
        return f"start_s32_{self.count}{shift}__{self.isa}"

    def footprint(self) -> Footprint:
        size = self.count * s32.size_bytes
        return Footprint((Range(ZERO_POINT, 0, s32.size_bytes), Range(SUMS, 0, size)), (Range(START, 0, size),))

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        factor, data = v.registers.take("factor"), v.registers.take("sums", CHUNK)
        zero_point, *vectors = (asm.gp.take(name) for name in ARGUMENTS)
        asm.MOV(zero_point, mem(asm.frame, 8 * ZERO_POINT))
        for argument, pointer in zip((SUMS, START), vectors, strict=True):
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        asm.VPBROADCASTD(factor, mem(zero_point, 0, size=s32.size_bytes))
        if self.shift:
            asm.VPADDD(factor, factor, v.splat(self.shift))
        chunk = CHUNK * v.lanes
        turns, rest = divmod(self.count, chunk)
        if turns:
            left = asm.gp.take("turns left")
            asm.MOV(left, turns)
            with asm.loop(left, "chunks"):
                self.multiply(v, vectors, factor, data, chunk)
                for pointer in vectors:
                    asm.ADD(pointer, CHUNK * v.bytes)
        if rest:
            self.multiply(v, vectors, factor, data, rest)
        asm.ret()

    def multiply(self, v: Vector, pointers: list[Register], factor: Register, data: list[Register], count: int) -> None:
        """The next `count` elements."""
        with v.parts(-(-count // v.lanes), count) as parts:
            for j, (x, part) in enumerate(zip(data, parts, strict=False)):
                source, target = (mem(pointer, j * v.bytes, size=v.bytes) for pointer in pointers)
                part.load(x, source)
                v.asm.VPMULLD(x, x, factor)
                part.store_last(target, x)
