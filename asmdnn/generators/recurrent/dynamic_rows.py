"""Rows of floats as bytes of a scale of their own, and what products of these bytes start from and stand for:

    low, high = the least and largest of src and 0;  scale = (high - low) / 255;  zero_point = round(-low / scale)
    dst = round(src / scale) + zero_point, saturated;  starts = zero_point * sums;  factors = scale * scales

as ONNX's DynamicQuantizeLinear, to nearest even.  A scale is at least 2^-126, so that rows of zeros give zeros; where
src has NaN or infinity it is NaN, and so are all factors.

| argument | dtype[shape]        | what it is |
|---|---|---|
| src      | f32[rows, elements] | rows src_row_bytes apart |
| dst      | u8[rows, elements]  | dense |
| sums     | s32[columns]        | -1 times the sums of weights' columns |
| scales   | f32[columns]        | what 1 of the weights stands for |
| starts   | s32[columns]        | modulo 2^32 |
| factors  | f32[columns]        | what 1 of a sum of products stands for |
"""

from collections.abc import Callable, Mapping
from typing import Final

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.row_code import Computation
from asmdnn.generators.functions.rows import rows_touched
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.elements import element_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

ARGUMENTS: Final = ("src", "dst", "sums", "scales", "starts", "factors")
MOST: Final = 255
LEAST_SCALE: Final = 2.0**-126
WORD_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicRowsSpec:
    """Everything that the bytes of such a kernel depend on."""

    isa: str
    rows: int
    elements: int
    src_row_bytes: int
    columns: int
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        sizes = f"{self.rows}x{self.elements}for{self.columns}"
        return f"dynamic_rows_f32u8_{sizes}_{checksum(self)}__{self.isa}"

    def footprint(self) -> Footprint:
        src = rows_touched(0, self.rows, self.src_row_bytes, self.elements, F32_BYTES)
        columns = [Range(argument, 0, self.columns * F32_BYTES) for argument in (2, 3, 4, 5)]
        return Footprint((*src, *columns[:2]), (Range(1, 0, self.rows * self.elements), *columns[2:]))

    def generate(self, asm: Assembler) -> None:
        DynamicRowsCode(self, vector_of(self.isa, asm)).emit()
        asm.ret()


class DynamicRowsCode(Computation):
    """Two passes over rows, which the second reads from a cache, then one over columns."""

    def __init__(self, spec: DynamicRowsSpec, v: Vector) -> None:
        super().__init__(v)
        self.spec = spec
        self.pointers = {name: v.asm.gp.take(name) for name in ARGUMENTS}
        self.low, self.high, self.faults, self.spare = v.registers.take("range", 4)

    def emit(self) -> None:
        for name in ARGUMENTS:
            self.point(name)
        self.v.asm.role("range")
        self.find_range()
        self.v.asm.role("scale")
        self.find_scale()
        self.v.asm.role("bytes")
        self.point("src")
        self.round()
        self.v.asm.role("columns")
        self.scale_columns()

    def point(self, name: str) -> None:
        """To an argument's begin."""
        self.v.asm.MOV(self.pointers[name], mem(self.v.asm.frame, WORD_BYTES * ARGUMENTS.index(name)))

    def find_range(self) -> None:
        """low and high, with 0; in `faults` NaN in lanes that have met NaN or infinity, else 0."""
        v, asm, x = self.v, self.v.asm, self.spare
        zero = v.registers.take("zero")
        for register in (self.low, self.high, self.faults, zero):
            v.zero(register)

        def body(lanes: Lanes) -> None:
            self.load(lanes, x, "src")
            asm.VMINPS(self.low, self.low, x)
            asm.VMAXPS(self.high, self.high, x)
            v.mul(x, x, zero)
            asm.VORPS(self.faults, self.faults, x)

        self.walk(self.spec.rows, self.spec.elements, {"src": F32_BYTES}, body)
        v.registers.free(zero)
        v.across(self.low, x, asm.VMINPS)
        v.across(self.high, x, asm.VMAXPS)
        v.across(self.faults, x, asm.VORPS)

    def find_scale(self) -> None:
        """The scale in `high`, the zero point in `low`, as an integer."""
        v, asm, number = self.v, self.v.asm, self.spare
        asm.VSUBPS(self.high, self.high, self.low)
        self.constant(number, float(MOST))
        asm.VDIVPS(self.high, self.high, number)
        self.constant(number, LEAST_SCALE)
        asm.VMAXPS(self.high, self.high, number)
        v.zero(number)
        asm.VSUBPS(number, number, self.low)
        asm.VDIVPS(number, number, self.high)
        asm.VCVTPS2DQ(self.low, number)
        self.bound(self.low)
        v.add(self.high, self.high, self.faults)

    def bound(self, x: Register) -> None:
        """Integers as u8 has them."""
        asm, v = self.v.asm, self.v
        asm.VPMINSD(x, x, v.splat(MOST))
        asm.VPMAXSD(x, x, v.splat(0))

    def round(self) -> None:
        asm, x = self.v.asm, self.spare
        u8 = element_of("u8")

        def body(lanes: Lanes) -> None:
            self.load(lanes, x, "src")
            asm.VDIVPS(x, x, self.high)
            asm.VCVTPS2DQ(x, x)
            asm.VPADDD(x, x, self.low)
            self.bound(x)
            u8.lanes(self.v, lanes).store(mem(self.pointers["dst"], size=self.v.bytes), x)

        self.walk(self.spec.rows, self.spec.elements, {"src": F32_BYTES, "dst": 1}, body)

    def scale_columns(self) -> None:
        asm, x = self.v.asm, self.spare

        def body(lanes: Lanes) -> None:
            self.load(lanes, x, "sums")
            asm.VPMULLD(x, x, self.low)
            lanes.store(mem(self.pointers["starts"], size=self.v.bytes), x)
            self.load(lanes, x, "scales")
            self.v.mul(x, x, self.high)
            lanes.store(mem(self.pointers["factors"], size=self.v.bytes), x)

        self.walk(1, self.spec.columns, dict.fromkeys(ARGUMENTS[2:], F32_BYTES), body)

    def load(self, lanes: Lanes, x: Register, name: str) -> None:
        lanes.load(x, mem(self.pointers[name], size=self.v.bytes))

    def walk(self, rows: int, elements: int, sizes: Mapping[str, int], body: Callable[[Lanes], None]) -> None:
        """`body` for all vectors of all rows; sizes: of elements, by the name of the pointer that moves."""
        asm = self.v.asm
        if rows == 1:
            self.walk_row(elements, sizes, body)
            return
        with asm.repeated(rows, "rows left", "rows"):
            self.walk_row(elements, sizes, body)
            if gap := self.spec.src_row_bytes - elements * F32_BYTES:
                asm.ADD(self.pointers["src"], gap)

    def walk_row(self, elements: int, sizes: Mapping[str, int], body: Callable[[Lanes], None]) -> None:
        v, asm = self.v, self.v.asm
        whole, rest = divmod(elements, v.lanes)
        if whole:
            with asm.repeated(whole, "vectors left", "vectors"):
                body(v)
                for name, size in sizes.items():
                    asm.ADD(self.pointers[name], v.lanes * size)
        if rest:
            tail = v.tail(rest)
            body(tail)
            for name, size in sizes.items():
                asm.ADD(self.pointers[name], rest * size)
            tail.release()
