"""Rows of a few bytes that touch, brought further apart with zeros after each, as pixels of three channels become four.

    dst[r, 0:row_bytes] = src[r, 0:row_bytes];  dst[r, row_bytes:dst_step] = 0

| argument | dtype[shape] | what it is |
|---|---|---|
| src | bytes[rows, row_bytes] | dense; only read |
| dst | bytes[rows, dst_step] | dense; only written |

A quarter of a register, 16 bytes, is loaded where its first row begins in src, and shuffled.  Rows at the end, where a
whole quarter would be too much, go one by one.
"""

from asmdnn.generators.contract import Footprint, Range
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.dense import QUARTER_BYTES
from asmdnn.isa.vectors import vector_bytes, vector_of
from asmdnn.records import dataclass

SRC, DST = range(2)
STEPS = (2, 4, 8, QUARTER_BYTES)  # bytes from row to row of dst
QUARTERS = 2  # of a ymm register
NOTHING = 0x80  # a byte of a shuffle that becomes 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadSpec:
    """See above: 0 < row_bytes < dst_step, which is one of STEPS."""

    isa: str
    rows: int
    row_bytes: int
    dst_step: int

    @property
    def name(self) -> str:
        return f"spread_{self.rows}x{self.row_bytes}_d{self.dst_step}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ("src", "dst")

    @property
    def of_quarter(self) -> int:
        """Rows of a quarter of a register."""
        return QUARTER_BYTES // self.dst_step

    @property
    def turns(self) -> int:
        """How often a whole register is loaded: both of its quarters lie in src then."""
        quarter = self.of_quarter * self.row_bytes
        return max(
            0, (self.rows * self.row_bytes - QUARTER_BYTES - (QUARTERS - 1) * quarter) // (QUARTERS * quarter) + 1
        )

    def footprint(self) -> Footprint:
        sizes = (self.rows * self.row_bytes, self.rows * self.dst_step)
        src, dst = (Range(argument, 0, size) for argument, size in zip((SRC, DST), sizes, strict=True))
        return Footprint((src,), (dst,))

    def generate(self, asm: Assembler) -> None:
        code = SpreadCode(self, asm)
        code.registers()
        code.one_by_one()
        asm.ret()


class SpreadCode:
    """The emission; pointers go along."""

    def __init__(self, spec: SpreadSpec, asm: Assembler) -> None:
        self.spec, self.asm = spec, asm
        self.src, self.dst, self.left = (asm.gp.take(name) for name in ("src", "dst", "left"))
        asm.MOV(self.src, mem(asm.frame, 8 * SRC))
        asm.MOV(self.dst, mem(asm.frame, 8 * DST))
        self.data, self.order = vector_of(spec.isa, asm).registers.take("rows, order", 2)

    def registers(self) -> None:
        """Whole registers of dst."""
        asm, spec, x = self.asm, self.spec, self.data
        quarter, size = spec.of_quarter * spec.row_bytes, vector_bytes(spec.isa)
        if not spec.turns:
            return
        asm.VMOVDQU(self.order.ymm, asm.const(QUARTERS * self.shuffled(), size, size=size))
        asm.MOV(self.left, spec.turns)
        with asm.loop(self.left, "registers"):
            asm.VMOVDQU(x.xmm, mem(self.src, size=QUARTER_BYTES))
            asm.VINSERTI128(x.ymm, x.ymm, mem(self.src, quarter, size=QUARTER_BYTES), 1)
            asm.VPSHUFB(x.ymm, x.ymm, self.order.ymm)
            asm.VMOVDQU(mem(self.dst, size=size), x.ymm)
            asm.ADD(self.src, QUARTERS * quarter)
            asm.ADD(self.dst, size)

    def shuffled(self) -> bytes:
        """Where each byte of a quarter comes from."""
        spec = self.spec
        places = [
            [row * spec.row_bytes + at if at < spec.row_bytes else NOTHING for at in range(spec.dst_step)]
            for row in range(spec.of_quarter)
        ]
        return bytes(place for row in places for place in row)

    def one_by_one(self) -> None:
        """The rows that are left, one at least."""
        asm, spec, x = self.asm, self.spec, self.data.xmm
        asm.MOV(self.left, spec.rows - spec.turns * QUARTERS * spec.of_quarter)
        with asm.loop(self.left, "rows"):
            asm.VPXOR(x, x, x)
            at = 0
            for size in (8, 4, 2, 1):
                if spec.row_bytes & size:
                    self.insert(x, mem(self.src, at, size=size), size, at // size)
                    at += size
            self.store(mem(self.dst, size=spec.dst_step), x)
            asm.ADD(self.src, spec.row_bytes)
            asm.ADD(self.dst, spec.dst_step)

    def insert(self, x: Register, at: Pointer, size: int, place: int) -> None:
        asm = self.asm
        {8: asm.VPINSRQ, 4: asm.VPINSRD, 2: asm.VPINSRW, 1: asm.VPINSRB}[size](x, x, at, place)

    def store(self, at: Pointer, x: Register) -> None:
        asm = self.asm
        if self.spec.dst_step == 2:
            asm.VPEXTRW(at, x, 0)
        else:
            {4: asm.VMOVD, 8: asm.VMOVQ, QUARTER_BYTES: asm.VMOVDQU}[self.spec.dst_step](at, x)
