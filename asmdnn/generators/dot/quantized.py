"""Rows of bytes times a panel of nibbles or bytes, by groups of k: for each group of quantised rows (quantize.py)

    t = src_scales * (sum over k of src * weights) + src_sums;   dst = after(sum over groups of scales * t)

and with offsets, whose product with src_sums is subtracted, t = src_scales * (sum of src * weights).

| argument | dtype[shape] | what it is |
|---|---|---|
| src        | s8[rows, depth]                     | rows depth apart |
| src_scales | f32[rows, groups]                   | dense |
| src_sums   | f32[rows, groups]                   | dense; factor * src_scales * sum of src |
| weights    | nibbles[depth / 8, panel, 4, 2]     | bytes: of 4 k the lower halves, of 4 more the upper ones |
|            | or u8[depth / 4, panel, 4]          | with 8 bits |
| scales     | f32[groups, panel]                  | dense |
| offsets    | f32[groups, panel]                  | scales * zero points; only with offsets |
| dst        | kind[rows, columns]                 | rows dst_row_bytes apart |
| then ..    | f32[rows, columns]                  | operands of after, each laid out as its Operand says |

A load brings nibbles of 8 k for each lane, which few instructions make bytes; products and sums of a group are exact.
"""

from typing import Final

from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.dot.panel_product import PANEL_VECTORS, QUAD_BYTES, PanelProduct, PanelProductCode
from asmdnn.generators.functions.chain import names_of_operands
from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.rows import rows_touched
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.nibbles import NIBBLE_BITS, nibble_dot
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_class, vector_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

LOW: Final = b"\x0f"
UNROLLED: Final = 8  # blocks
MOST_ROWS: Final = 4
OTHER_REGISTERS: Final = 5  # weights, their upper halves, a spare one, the mask, ones
SRC, SRC_SCALES, SRC_SUMS, WEIGHTS, SCALES = range(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizedProductSpec(PanelProduct):
    """Everything that the bytes of such a kernel depend on.  columns: of the first `vectors` of a panel, those that
    dst has.  bits: of an element of weights, 4 or 8."""

    isa: str
    rows: int
    columns: int
    vectors: int
    depth: int
    group: int
    dst_row_bytes: int
    offsets: bool = False
    after: tuple[PostOp, ...] = ()
    kind: str = "f32"
    bits: int = NIBBLE_BITS

    @property
    def name(self) -> str:
        return self.named("nibbles" if self.bits == NIBBLE_BITS else "octets")

    @property
    def frame(self) -> tuple[str, ...]:
        fixed = ("src", "src_scales", "src_sums", "weights", "scales", *["offsets"] * self.offsets, "dst")
        return (*fixed, *names_of_operands(self.after))

    def footprint(self) -> Footprint:
        numbers = self.vectors * vector_class(self.isa).bytes // F32_BYTES
        reads: list[Range] = [*rows_touched(SRC, 1, 0, self.rows * self.depth, 1)]
        for argument in (SRC_SCALES, SRC_SUMS):
            reads += rows_touched(argument, 1, 0, self.rows * self.groups)
        reads += rows_touched(WEIGHTS, self.depth // self.block, self.panel_bytes, numbers)
        for argument in range(SCALES, self.dst):
            reads += rows_touched(argument, self.groups, self.panel_bytes, numbers)
        return self.touched(reads)

    def generate(self, asm: Assembler) -> None:
        QuantizedProductCode(self, vector_of(self.isa, asm)).emit()
        asm.ret()


def vectors_of(isa: str, rows: int, bits: int = NIBBLE_BITS) -> int:
    """How many vectors of a panel registers hold the sums of for so many rows; 0 if none."""
    room = (vector_class(isa).count - OTHER_REGISTERS - 8 // bits * rows) // (2 * rows)
    return next((n for n in (PANEL_VECTORS, 2, 1) if n <= room), 0)


class QuantizedProductCode(PanelProductCode):
    """Sums of a group in integers, the others in f32."""

    def __init__(self, spec: QuantizedProductSpec, v: Vector) -> None:
        super().__init__(spec, v)
        self.spec = spec
        self.dot = nibble_dot(spec.isa, v)
        self.low: Register = v.registers.take("lower halves")
        v.load(self.low, v.asm.const(LOW * v.bytes, v.bytes, size=v.bytes))
        self.pointers = [self.pointer(i) for i in range(spec.dst)]
        self.sums = v.registers.take("sum of groups", spec.rows, spec.vectors)
        self.products = v.registers.take("products", spec.rows, spec.vectors)
        self.octets = v.registers.take("src", spec.rows, spec.block // QUAD_BYTES)
        self.nibbles = v.registers.take("weights", 3 if spec.bits == NIBBLE_BITS else 2)
        self.held = [self.low, self.products, self.octets, self.nibbles]
        if spec.bits == 8:
            self.dot.ready_for_bytes(self.low)

    def group(self) -> None:
        v, asm, spec = self.v, self.v.asm, self.spec
        src_scales, src_sums = self.pointers[SRC_SCALES], self.pointers[SRC_SUMS]
        scales = self.pointers[SCALES:]
        asm.role("products")
        v.zeros(self.products)
        with self.some_blocks(UNROLLED) as count:
            self.blocks(count)
        asm.role("group")
        scale, shift = [*self.octets[0], *self.nibbles][:2]
        for r, of_row in enumerate(self.products):
            v.broadcast(scale, mem(src_scales, r * spec.groups * F32_BYTES, size=4))
            v.broadcast(shift, mem(src_sums, r * spec.groups * F32_BYTES, size=4))
            for j, (total, x) in enumerate(zip(self.sums[r], of_row, strict=True)):
                factors = [mem(pointer, j * v.bytes, size=v.bytes) for pointer in scales]
                asm.VCVTDQ2PS(x, x)
                if spec.offsets:
                    v.mul(x, x, scale)
                    asm.VFNMADD231PS(total, shift, factors[1])
                else:
                    asm.VFMADD213PS(x, scale, shift)
                v.fma(total, x, factors[0])
        for pointer in (src_scales, src_sums):
            asm.ADD(pointer, F32_BYTES)
        for pointer in scales:
            asm.ADD(pointer, spec.panel_bytes)

    def blocks(self, count: int) -> None:
        """So many times the steps of k that a lane holds."""
        v, asm, spec = self.v, self.v.asm, self.spec
        src, weights = self.pointers[SRC], self.pointers[WEIGHTS]
        lower, upper, spare = self.nibbles[0], self.nibbles[1], self.nibbles[-1]
        for u in range(count):
            for r, pair in enumerate(self.octets):
                for half, x in enumerate(pair):
                    v.broadcast(x, mem(src, r * spec.depth + u * spec.block + half * QUAD_BYTES, size=4))
            for j in range(spec.vectors):
                v.load(lower, mem(weights, u * spec.panel_bytes + j * v.bytes, size=v.bytes))
                if spec.bits == 8:
                    for r in range(spec.rows):
                        self.dot.multiply_bytes(self.products[r][j], lower, self.octets[r][0], spare)
                    continue
                asm.VPSRLW(upper, lower, NIBBLE_BITS)
                asm.VANDPS(lower, lower, self.low)
                asm.VANDPS(upper, upper, self.low)
                for nibbles, half in ((lower, 0), (upper, 1)):
                    for r in range(spec.rows):
                        self.dot.multiply(self.products[r][j], nibbles, self.octets[r][half], spare)
        asm.ADD(src, count * spec.block)
        asm.ADD(weights, count * spec.panel_bytes)


def panel_columns(lanes: int) -> int:
    """Of a panel, for vectors of so many lanes."""
    return PANEL_VECTORS * lanes


def rows_together(isa: str, bits: int = NIBBLE_BITS) -> int:
    """The most rows of a kernel."""
    return next(n for n in range(MOST_ROWS, 0, -1) if vectors_of(isa, n, bits))
