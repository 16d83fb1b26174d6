"""Rows as signed bytes, by groups of neighbours: for each group

    scale = max abs(src) / 127;   dst = src / scale, rounded to nearest even;   sum = factor * scale * sum of dst

| argument | dtype[shape] | what it is |
|---|---|---|
| src    | kind[rows, elements]         | rows src_row_bytes apart, elements dense |
| dst    | s8[rows, elements]           | dense |
| scales | f32[rows, elements / group]  | dense |
| sums   | f32[rows, elements / group]  | dense |

The scale of a group with NaN is NaN, that of one with infinity infinite, so that results that it is in are no numbers.
"""

from struct import pack

from asmdnn.exact import exact
from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint
from asmdnn.generators.functions.row_code import Computation
from asmdnn.generators.functions.rows import rows_touched
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.elements import element_of, size_of
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

ARGUMENTS = ("src", "dst", "scales", "sums")
MOST = 127.0
ABS = 0x7FFFFFFF


@exact
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeSpec:
    """Everything that the bytes of such a kernel depend on.  elements: whole groups; group: whole vectors."""

    isa: str
    rows: int
    elements: int
    group: int
    src_row_bytes: int
    factor: float
    kind: str = "f32"
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        return f"quantize_{self.kind}_{self.rows}x{self.elements}by{self.group}_{checksum(self)}__{self.isa}"

    def footprint(self) -> Footprint:
        numbers = self.rows * self.elements // self.group
        src = rows_touched(0, self.rows, self.src_row_bytes, self.elements, size_of(self.kind))
        written = (1, self.rows * self.elements, 1), (2, numbers, F32_BYTES), (3, numbers, F32_BYTES)
        return Footprint(src, tuple(r for argument, n, size in written for r in rows_touched(argument, 1, 0, n, size)))

    def generate(self, asm: Assembler) -> None:
        QuantizeCode(self, vector_of(self.isa, asm)).emit()
        asm.ret()


class QuantizeCode(Computation):
    """A group at a time: its largest element, then its bytes, for which it is read from L1 once more."""

    def __init__(self, spec: QuantizeSpec, v: Vector) -> None:
        super().__init__(v)
        self.spec, self.of = spec, element_of(spec.kind)
        self.pointers = [v.asm.gp.take(name) for name in ARGUMENTS]
        for i, pointer in enumerate(self.pointers):
            v.asm.MOV(pointer, mem(v.asm.frame, 8 * i))

    def emit(self) -> None:
        spec, asm = self.spec, self.v.asm
        left, groups = asm.gp.take("rows left"), asm.gp.take("groups left")
        src, *_ = self.pointers
        asm.MOV(left, spec.rows)
        with asm.loop(left, "rows"):
            asm.MOV(groups, spec.elements // spec.group)
            with asm.loop(groups, "groups"):
                self.group()
                steps = (spec.group * self.of.size_bytes, spec.group, F32_BYTES, F32_BYTES)
                for pointer, step in zip(self.pointers, steps, strict=True):
                    asm.ADD(pointer, step)
            if rest := spec.src_row_bytes - spec.elements * self.of.size_bytes:
                asm.ADD(src, rest)

    def group(self) -> None:
        v, asm, spec = self.v, self.v.asm, self.spec
        _, dst, scales, sums = self.pointers
        most, inverse, scale = v.registers.take("largest", 3)
        asm.role("largest")
        self.largest(most)
        self.constant(inverse, 1 / MOST)
        v.mul(scale, most, inverse)
        asm.VMOVSS(mem(scales, size=4), scale.xmm)
        self.constant(inverse, MOST)
        asm.VDIVPS(inverse, inverse, most)
        asm.role("bytes")
        total, x = v.registers.take("sum"), v.registers.take("bytes", 2)
        v.zero(total)
        for j in range(spec.group // v.lanes):
            value = x[j % 2]
            self.load(value, j)
            v.mul(value, value, inverse)
            asm.VCVTPS2DQ(value, value)
            asm.VPADDD(total, total, value)
            element_of("s8").lanes(v, v).store(mem(dst, j * v.lanes, size=v.bytes), value)
        asm.role("sum")
        v.across(total, x[0], asm.VPADDD)
        asm.VCVTDQ2PS(total, total)
        v.mul(total, total, scale)
        self.times(total, spec.factor)
        asm.VMOVSS(mem(sums, size=4), total.xmm)
        v.registers.free(most, inverse, scale, total, *x)

    def largest(self, most: Register) -> None:
        """abs(src), of which the bits are compared, so that NaN is larger than all numbers."""
        v, asm = self.v, self.v.asm
        bits, x = v.registers.take("all bits but the sign"), v.registers.take("src")
        v.broadcast(bits, asm.const(pack("<I", ABS), 4, size=4))
        for j in range(self.spec.group // v.lanes):
            target = x if j else most
            self.load(target, j)
            asm.VANDPS(target, target, bits)
            if j:
                asm.VPMAXUD(most, most, x)
        v.across(most, x, asm.VPMAXUD)
        v.registers.free(bits, x)

    def load(self, x: Register, j: int) -> None:
        v, size = self.v, self.of.size_bytes
        self.of.load(v, x, mem(self.pointers[0], j * v.lanes * size, size=v.bytes), v)
