"""Rows of f32 as sums of two numbers of fewer bits, for products of three times the depth:

    high = again = round(src);  low = round(src - high)

| argument | dtype[shape]        | what it is |
|---|---|---|
| src      | f32[rows, elements]  | rows src_row_bytes apart |
| high     | kind[rows, elements] | rows dst_row_bytes apart, as all that is written |
| again    | kind[rows, elements] | high once more |
| low      | kind[rows, elements] | what is left, rounded; NaN where high is infinite |

Rounded to nearest even, as the level does it: where an instruction rounds, denormals become zero.
"""

from typing import Final

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint
from asmdnn.generators.functions.rows import Vectors, Walk, rows_touched
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.element import SPARE
from asmdnn.isa.elements import native_element
from asmdnn.isa.pieces import low_part
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

ARGUMENTS: Final = ("src", "high", "again", "low")
TOGETHER: Final = 2  # vectors in a loop
WORD_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSpec:
    """Everything that the bytes of such a kernel depend on.  kind: the type of parts, the upper half of f32."""

    isa: str
    kind: str
    rows: int
    elements: int
    src_row_bytes: int
    dst_row_bytes: int
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        return f"split_f32{self.kind}_{self.rows}x{self.elements}_{checksum(self)}__{self.isa}"

    def footprint(self) -> Footprint:
        size = native_element(self.kind, self.isa).size_bytes
        parts = (1, 2, 3)
        written = [rows_touched(number, self.rows, self.dst_row_bytes, self.elements, size) for number in parts]
        read = rows_touched(0, self.rows, self.src_row_bytes, self.elements)
        return Footprint(read, tuple(x for ranges in written for x in ranges))

    def generate(self, asm: Assembler) -> None:
        SplitCode(self, vector_of(self.isa, asm)).emit()
        asm.ret()


class SplitCode:
    """Row after row."""

    def __init__(self, spec: SplitSpec, v: Vector) -> None:
        self.spec, self.v, self.asm = spec, v, v.asm
        self.element = native_element(spec.kind, spec.isa)
        self.pointers: list[Register] = []
        for number, name in enumerate(ARGUMENTS):
            self.pointers.append(self.asm.gp.take(name))
            self.asm.MOV(self.pointers[-1], mem(self.asm.frame, WORD_BYTES * number))
        self.x, self.high, self.wide = v.registers.take("numbers", 3)
        self.spare = v.registers.take("rounding", SPARE)

    def emit(self) -> None:
        spec, asm = self.spec, self.asm
        walk = Walk(self.v, spec.elements, self.element.size_bytes)
        if spec.rows == 1:
            walk.each(TOGETHER, "vectors", self.vectors)
            return
        with asm.repeated(spec.rows, "rows left", "rows"):
            walk.each(TOGETHER, "vectors", self.vectors)
            for number, pointer in enumerate(self.pointers):
                asm.ADD(pointer, spec.dst_row_bytes if number else spec.src_row_bytes)

    def vectors(self, some: Vectors) -> None:
        v, asm, element = self.v, self.asm, self.element
        src, *high, low = self.pointers
        for j, part in enumerate(some.parts):
            some.load(self.x, src, j)
            asm.VMOVAPS(self.high, self.x)
            element.narrow(v, self.high, self.spare)
            for pointer in high:
                element.store_packed(v, some.at(pointer, j, size=element.size_bytes), self.high, part)
            element.widen(v, self.wide, low_part(self.high, element.size_bytes), self.spare)
            asm.VSUBPS(self.x, self.x, self.wide)
            element.narrow(v, self.x, self.spare)
            element.store_packed(v, some.at(low, j, size=element.size_bytes), self.x, part)
