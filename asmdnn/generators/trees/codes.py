"""Rows of f32 as integers in the same order, so that a walk compares with CMP, whose flags are sooner there.

    code(x) = x's bits, all of them turned if x < 0, else the highest;  NaN: all ones

| argument | dtype[shape] | what it is |
|---|---|---|
| src   | f32[rows, features] | rows src_row_bytes apart, only read |
| codes | u32[rows, words]    | dense, only written: codes of a row, of -x if `mirrored`, then zeros |

Features of a row take whole vectors of 8, what a last one has beside is the code of 0, or of -0 in the second half.
"""

from asmdnn.generators.contract import Footprint, Range
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.vector import Lanes
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

ARGUMENTS = ("src", "codes")
SRC, CODES = range(2)
LANES = 8
WORD_BYTES = 4  # of a code, a leaf, and what a row has
UNORDERED = 3  # of VCMPPS
SIGN, ONES = b"\x00\x00\x00\x80", b"\xff\xff\xff\xff"


def features_of(features: int) -> int:
    """The words that features take, whole vectors."""
    return -(-features // LANES) * LANES


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeCodesSpec:
    """words: a multiple of 8 that the features fit, twice if they are mirrored."""

    isa: str
    rows: int
    features: int
    words: int
    mirrored: bool
    src_row_bytes: int
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        what = f"{self.rows}x{self.features}_w{self.words}{'_mirrored' * self.mirrored}"
        return f"tree_codes_{what}_s{self.src_row_bytes}__{self.isa}"

    def footprint(self) -> Footprint:
        starts = [row * self.src_row_bytes for row in range(self.rows)]
        reads = tuple(Range(SRC, at, at + WORD_BYTES * self.features) for at in starts)
        return Footprint(reads, (Range(CODES, 0, WORD_BYTES * self.words * self.rows),))

    def generate(self, asm: Assembler) -> None:
        code = CodesCode(self, asm)
        with asm.repeated(self.rows, "rows left", "rows"):
            code.row()
        asm.ret()


class CodesCode:
    """The emission of a kernel: pointers to a row, which move over it."""

    def __init__(self, spec: TreeCodesSpec, asm: Assembler) -> None:
        self.spec, self.asm = spec, asm
        self.src, self.codes, self.left = (asm.gp.take(name) for name in ("src", "codes", "vectors left"))
        asm.MOV(self.src, mem(asm.frame, 8 * SRC))
        asm.MOV(self.codes, mem(asm.frame, 8 * CODES))
        self.vector = vector_of(spec.isa, asm)
        names = ("sign bits", "ones", "zeros", "x", "turned bits", "where it is NaN")
        self.sign, self.ones, self.zeros, self.x, self.turned, self.unknown = map(self.vector.registers.take, names)
        for register, octets in ((self.sign, SIGN), (self.ones, ONES)):
            self.vector.broadcast(register, asm.const(octets, 4, size=4))
        self.vector.zero(self.zeros)

    def row(self) -> None:
        asm, spec = self.asm, self.spec
        full, rest = divmod(spec.features, LANES)
        if full:
            asm.MOV(self.left, full)
            with asm.loop(self.left, "vectors"):
                self.piece(self.vector)
        if rest:
            self.piece(self.vector.tail(rest))
        done = features_of(spec.features)
        halves = done * (1 + spec.mirrored)
        pads = (spec.words - halves) // LANES
        if spec.mirrored:
            asm.ADD(self.codes, WORD_BYTES * done)
        if pads:
            asm.MOV(self.left, pads)
            with asm.loop(self.left, "zeros"):
                asm.VMOVUPS(mem(self.codes, size=WORD_BYTES * LANES), self.zeros)
                asm.ADD(self.codes, WORD_BYTES * LANES)
        asm.ADD(self.src, spec.src_row_bytes - WORD_BYTES * done)

    def piece(self, lanes: Lanes) -> None:
        """A vector of features, whose codes and, further on, those of -x are stored."""
        asm, x, turned = self.asm, self.x, self.turned
        lanes.load(x, mem(self.src, size=WORD_BYTES * LANES))
        asm.VPSRAD(turned, x, 31)
        asm.VPOR(turned, turned, self.sign)
        asm.VCMPPS(self.unknown, x, x, UNORDERED)
        asm.VPXOR(x, x, turned)
        asm.VPOR(turned, x, self.unknown)
        asm.VMOVUPS(mem(self.codes, size=WORD_BYTES * LANES), turned)
        if self.spec.mirrored:
            asm.VPXOR(x, x, self.ones)
            asm.VPOR(x, x, self.unknown)
            asm.VMOVUPS(mem(self.codes, WORD_BYTES * features_of(self.spec.features), size=WORD_BYTES * LANES), x)
        asm.ADD(self.src, WORD_BYTES * LANES)
        asm.ADD(self.codes, WORD_BYTES * LANES)
