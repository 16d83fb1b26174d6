"""Bytes to halves of bytes, and back: neighbours share a byte, the first one in its lower half.

| argument | dtype[shape] packing | widening | what it is |
|---|---|---|---|
| src | s8 or u8[2 count] | u8[count]         | dense |
| dst | u8[count]         | s8 or u8[2 count] | dense |

Packing saturates: to -8 and 7 of signed numbers, to 15 of others.
"""

from struct import pack

from asmdnn.generators.contract import Footprint
from asmdnn.generators.functions.rows import Vectors, Walk, rows_touched
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.nibbles import NIBBLE_BITS
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

SRC, DST = range(2)
ARGUMENTS = ("src", "dst")
TOGETHER = 4  # vectors
LANE_BITS, LOW, SIGN = 32, 15, 8
LEAST, MOST, MOST_UNSIGNED = -8, 7, 15
KINDS = ("b16", "b8")  # plain bits of two elements, and of two nibbles


@dataclass(frozen=True, slots=True, kw_only=True)
class NibblesSpec:
    """Everything that the bytes of such a kernel depend on.  count: of bytes that hold two; packs, or widens."""

    isa: str
    count: int
    signed: bool
    packs: bool
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        words = f"{'s' if self.signed else 'u'}{'8to4' if self.packs else '4to8'}"
        return f"nibbles_{words}_{self.count}__{self.isa}"

    def footprint(self) -> Footprint:
        sizes = (2, 1) if self.packs else (1, 2)
        reads, writes = (rows_touched(i, 1, 0, self.count, size) for i, size in enumerate(sizes))
        return Footprint(reads, writes)

    def generate(self, asm: Assembler) -> None:
        NibblesCode(self, vector_of(self.isa, asm)).emit()
        asm.ret()


class NibblesCode:
    """A lane has two elements, which are two bytes or one."""

    def __init__(self, spec: NibblesSpec, v: Vector) -> None:
        self.v, self.spec = v, spec
        self.src, self.dst = (v.asm.gp.take(name) for name in ARGUMENTS)
        for i, pointer in enumerate((self.src, self.dst)):
            v.asm.MOV(pointer, mem(v.asm.frame, 8 * i))

    def constant(self, purpose: str, number: int) -> Register:
        found: Register = self.v.registers.take(purpose)
        self.v.broadcast(found, self.v.asm.const(pack("<i", number), 4, size=4))
        return found

    def emit(self) -> None:
        v, spec = self.v, self.spec
        walk = Walk(v, spec.count, 1)
        self.low = self.constant("lower half", LOW)
        if spec.packs:
            self.most = self.constant("most", MOST if spec.signed else MOST_UNSIGNED)
            self.least = self.constant("least", LEAST) if spec.signed else None
        elif spec.signed:
            self.signs = self.constant("signs", SIGN | SIGN << 8)
        walk.each(TOGETHER, "bytes", self.some)

    def some(self, vectors: Vectors) -> None:
        v = self.v
        x, y = v.registers.take("elements", 2)
        wide, narrow = KINDS
        kinds = (wide, narrow) if self.spec.packs else (narrow, wide)
        for j in range(vectors.count):
            vectors.load(x, self.src, j, kind=kinds[SRC])
            (self.pack if self.spec.packs else self.widen)(x, y)
            vectors.store_last(self.dst, j, x, kind=kinds[DST])
        v.registers.free(x, y)

    def pack(self, x: Register, y: Register) -> None:
        """Two bytes of a lane to one."""
        asm, signed = self.v.asm, self.spec.signed
        down = asm.VPSRAD if signed else asm.VPSRLD
        asm.VPSLLD(y, x, LANE_BITS - 16)
        down(y, y, LANE_BITS - 8)
        asm.VPSLLD(x, x, LANE_BITS - 8)
        down(x, x, LANE_BITS - 8)
        for number in (x, y):
            asm.VPMINSD(number, number, self.most)
            if self.least is not None:
                asm.VPMAXSD(number, number, self.least)
        asm.VANDPS(x, x, self.low)
        asm.VANDPS(y, y, self.low)
        asm.VPSLLD(y, y, NIBBLE_BITS)
        asm.VORPS(x, x, y)

    def widen(self, x: Register, y: Register) -> None:
        """One byte of a lane to two."""
        asm = self.v.asm
        asm.VPSRLD(y, x, NIBBLE_BITS)
        asm.VPSLLD(y, y, 8)
        asm.VANDPS(x, x, self.low)
        asm.VORPS(x, x, y)
        if self.spec.signed:  # (n ^ 8) - 8 in each byte, of which only 16 bits are stored
            asm.VXORPS(x, x, self.signs)
            asm.VPSUBB(x, x, self.signs)
