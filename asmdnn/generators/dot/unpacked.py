"""Rows of f32 times a panel of nibbles or bytes, which become f32 in registers, with a scale for each group of k:

    dst = after(sum over k of src * (scales * weights - offsets)),   offsets = scales * zero_point without the argument
    dst = after(sum over k of src * scales * (weights - offsets))    unscaled

| argument | dtype[shape] | what it is |
|---|---|---|
| src        | f32[rows, depth]           | rows src_row_bytes apart |
| weights    | nibbles[depth / 8, panel, 4, 2] | bytes: of 4 k the lower halves, of 4 more the upper ones; or in order |
|            | or u8[depth / 4, panel, 4] | with 8 bits |
| scales     | f32[groups, panel]         | dense, or rows scales_row_bytes apart |
| offsets    | f32[groups, panel]         | dense; only with offsets |
| dst        | kind[rows, columns]        | rows dst_row_bytes apart |
| then ..    | f32[rows, columns]         | operands of after, each laid out as its Operand says |

One or two rows wait for weights, so there a group is multiplied as it is, and its sum scaled: scales * (sum of src *
weights) - offsets * (sum of src).  More rows share what scales every element.  Unscaled, zero points are subtracted
first, from the sum of a group or from an element: exactly, where these are small whole numbers.  With `as_many` a few
rows are summed as more are, so that their bits are the same.
"""

from typing import Final

from asmdnn.exact import exact
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.dot.panel_product import PANEL_VECTORS, PanelProduct, PanelProductCode
from asmdnn.generators.functions.chain import names_of_operands
from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.rows import rows_touched
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.few_bits import Coding, unpacking_of
from asmdnn.isa.nibbles import NIBBLE_BITS
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_class, vector_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

UNROLLED: Final = 4  # blocks
OTHER_REGISTERS: Final = 4  # weights, numbers of them, a spare one, what unpacking needs
ROWS_BY_GROUPS, MOST_ROWS = 2, 12
SRC, WEIGHTS, SCALES = range(3)


@exact
@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackedProductSpec(PanelProduct):
    """Everything that the bytes of such a kernel depend on.  columns: of the first `vectors` of a panel, those that
    dst has.  bits: of an element of weights, 4 or 8.  signed: in two's complement.  in_order: nibbles of 8 k as they
    come.  scales_row_bytes: 0 in panels.  table: what nibbles are numbers of, "f4_e2m1" or "nf4".  as_many: of one or
    two rows alone.  unscaled: of offsets, which are zero points."""

    isa: str
    rows: int
    columns: int
    vectors: int
    depth: int
    group: int
    src_row_bytes: int
    dst_row_bytes: int
    offsets: bool = False
    zero_point: float = 0.0
    after: tuple[PostOp, ...] = ()
    kind: str = "f32"
    bits: int = NIBBLE_BITS
    signed: bool = False
    in_order: bool = False
    scales_row_bytes: int = 0
    table: str = ""
    as_many: bool = False
    unscaled: bool = False

    @property
    def name(self) -> str:
        return self.named(f"unpacked_{self.bits}bits")

    @property
    def frame(self) -> tuple[str, ...]:
        fixed = ("src", "weights", "scales", *["offsets"] * self.offsets, "dst")
        return (*fixed, *names_of_operands(self.after))

    def step_bytes(self, argument: int) -> int:
        """From a group's scales or offsets to the next one's."""
        return self.scales_row_bytes if argument == SCALES and self.scales_row_bytes else self.panel_bytes

    @property
    def is_shifted(self) -> bool:
        """Whether weights have zero points."""
        return self.offsets or self.zero_point != 0

    def footprint(self) -> Footprint:
        numbers = self.vectors * vector_class(self.isa).bytes // F32_BYTES
        reads: list[Range] = [*rows_touched(SRC, self.rows, self.src_row_bytes, self.depth)]
        reads += rows_touched(WEIGHTS, self.depth // self.block, self.panel_bytes, numbers)
        for argument in range(SCALES, self.dst):
            reads += rows_touched(argument, self.groups, self.step_bytes(argument), numbers)
        return self.touched(reads)

    def generate(self, asm: Assembler) -> None:
        code = SumsOfGroups if self.rows <= ROWS_BY_GROUPS and not self.as_many else ScaledWeights
        code(self, vector_of(self.isa, asm)).emit()
        asm.ret()


def unpacked_vectors(isa: str, rows: int, as_many: bool = False) -> int:
    """How many vectors of a panel registers hold the sums of for so many rows; 0 if none."""
    room = vector_class(isa).count - OTHER_REGISTERS
    by_groups = rows <= ROWS_BY_GROUPS and not as_many
    room, each = (room - rows, 2 * rows) if by_groups else (room, rows + 2)
    return next((n for n in (PANEL_VECTORS, 2, 1) if n * each <= room), 0)


def unpacked_rows(isa: str) -> int:
    """The most rows of a kernel, with two vectors or more of each."""
    return max(n for n in range(1, MOST_ROWS + 1) if unpacked_vectors(isa, n) > 1)


class UnpackedProductCode(PanelProductCode):
    """What is done with a group is said below."""

    def __init__(self, spec: UnpackedProductSpec, v: Vector) -> None:
        super().__init__(spec, v)
        self.spec = spec
        self.unpacking = unpacking_of(v, Coding(spec.bits, spec.signed, spec.in_order, spec.table))
        self.pointers = [self.pointer(i) for i in range(spec.dst)]
        self.sums = v.registers.take("sum", spec.rows, spec.vectors)
        self.lanes, self.number, self.spare = v.registers.take("weights", 3)
        self.held = [self.lanes, self.number, self.spare, *self.unpacking.held]

    def group(self) -> None:
        self.multiply()
        for argument, pointer in enumerate(self.pointers[SCALES:], SCALES):
            self.v.asm.ADD(pointer, self.spec.step_bytes(argument))

    def multiply(self) -> None:
        """The products of a group."""
        raise NotImplementedError

    def steps(self, into: list[list[Register]]) -> None:
        """All k of a group; pointers to src and weights go on to the next one."""
        with self.some_blocks(UNROLLED) as count:
            self.blocks(count, into)

    def blocks(self, count: int, into: list[list[Register]]) -> None:
        """So many times the steps of k that a lane holds."""
        v, asm, spec = self.v, self.v.asm, self.spec
        src, weights = self.pointers[SRC], self.pointers[WEIGHTS]
        for u in range(count):
            for j in range(spec.vectors):
                v.load(self.lanes, mem(weights, u * spec.panel_bytes + j * v.bytes, size=v.bytes))
                for i in range(spec.block):
                    self.unpacking.number(self.number, self.lanes, i)
                    self.scale(j)
                    k = F32_BYTES * (u * spec.block + i)
                    column = [mem(src, r * spec.src_row_bytes + k, size=4) for r in range(spec.rows)]
                    v.outer_product([[of_row[j]] for of_row in into], [self.number], column, [self.spare])
        asm.ADD(src, count * spec.block * F32_BYTES)
        asm.ADD(weights, count * spec.panel_bytes)

    def scale(self, j: int) -> None:
        """The numbers of vector j, where they are scaled one by one."""


class SumsOfGroups(UnpackedProductCode):
    """The products of a group have registers of their own, and so has the sum of a row of src."""

    def __init__(self, spec: UnpackedProductSpec, v: Vector) -> None:
        super().__init__(spec, v)
        self.products = v.registers.take("products", spec.rows, spec.vectors)
        self.sums_of_src = v.registers.take("sum of src", spec.rows)
        self.held += [self.sums_of_src, self.products]

    def multiply(self) -> None:
        v, asm, spec = self.v, self.v.asm, self.spec
        if spec.is_shifted:
            asm.role("sums of src")
            for r, total in enumerate(self.sums_of_src):
                self.sum_src(r, total)
        asm.role("products")
        v.zeros(self.products)
        self.steps(self.products)
        asm.role("group")
        for of_sums, products, of_src in zip(self.sums, self.products, self.sums_of_src, strict=True):
            for j, (total, x) in enumerate(zip(of_sums, products, strict=True)):
                scales, *offsets = (mem(at, j * v.bytes, size=v.bytes) for at in self.pointers[SCALES:])
                if spec.zero_point:
                    asm.VSUBPS(x, x, of_src)
                for shift in offsets * spec.unscaled:
                    asm.VFNMADD231PS(x, of_src, shift)
                v.fma(total, x, scales)
                for shift in offsets * (not spec.unscaled):
                    asm.VFNMADD231PS(total, of_src, shift)

    def sum_src(self, r: int, total: Register) -> None:
        """Of the group, times the zero point, if all have one."""
        v, spec = self.v, self.spec
        for j in range(spec.group // v.lanes):
            place = mem(self.pointers[SRC], r * spec.src_row_bytes + j * v.bytes, size=v.bytes)
            if j:
                v.add(total, total, place)
            else:
                v.load(total, place)
        v.across(total, self.spare, v.add)
        if spec.zero_point:
            self.times(total, spec.zero_point)


class ScaledWeights(UnpackedProductCode):
    """Every number is scaled and shifted before it meets the rows."""

    def __init__(self, spec: UnpackedProductSpec, v: Vector) -> None:
        super().__init__(spec, v)
        self.scales = v.registers.take("scales", spec.vectors)
        self.shifts = v.registers.take("offsets", spec.vectors) if spec.is_shifted else []
        self.held += [self.scales, self.shifts]

    def multiply(self) -> None:
        v, asm, spec = self.v, self.v.asm, self.spec
        asm.role("scales")
        if spec.zero_point:
            self.constant(self.spare, spec.zero_point)
        for j, scale in enumerate(self.scales):
            places = [mem(pointer, j * v.bytes, size=v.bytes) for pointer in self.pointers[SCALES:]]
            v.load(scale, places[0])
            if spec.offsets:
                v.load(self.shifts[j], places[1])
            elif spec.zero_point:
                v.mul(self.shifts[j], scale, self.spare)
        asm.role("products")
        self.steps(self.sums)

    def scale(self, j: int) -> None:
        if self.spec.unscaled:
            self.v.asm.VSUBPS(self.number, self.number, self.shifts[j])
        elif self.spec.is_shifted:
            self.v.asm.VFMSUB213PS(self.number, self.scales[j], self.shifts[j])
            return
        self.v.mul(self.number, self.number, self.scales[j])
