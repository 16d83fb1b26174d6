"""Scales of src, and the factor of a sum, over scales of dst, once for each call of a reorder.

Its kernels multiply src with the former, and what dst holds with the latter.

| argument | dtype[shape] | what it is |
|---|---|---|
| src_scales | f32[count or 1] | 1 if there are none; src_step_bytes apart, 0 for one that all share |
| scales     | f32[count]      | the result: src_scale / dst_scale; with a sum as many sum / dst_scale after |
| dst_scales | f32[count or 1] | dst_step_bytes apart, 0 for one that all share |

Whole vectors come first, then single scales, as stores of a part of a vector are slow.
"""

from struct import pack
from typing import ClassVar

from asmdnn.exact import exact
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.move.conversion import exact_word
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

ARGUMENTS = ("src_scales", "scales", "dst_scales")
SRC, RESULT, DST = range(3)


@exact
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuotientSpec:
    """scales[i] = src_scales[i] / dst_scales[i]; src_step_bytes is None if src has no scales.

    sum: if not 0, scales[count + i] = sum / dst_scales[i].
    """

    isa: str
    count: int
    src_step_bytes: int | None
    dst_step_bytes: int
    sum: float = 0.0
    chain_fields: ClassVar[tuple[str, ...]] = ("sum",)
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        src = "one" if self.src_step_bytes is None else self.src_step_bytes
        total = "_sum" + exact_word(self.sum) if self.sum else ""
        return f"quotient_f32_{self.count}_s{src}_d{self.dst_step_bytes}{total}__{self.isa}"

    @property
    def result_bytes(self) -> int:
        return self.count * F32_BYTES * (2 if self.sum else 1)

    def footprint(self) -> Footprint:
        reads = [(DST, self.dst_step_bytes)]
        if self.src_step_bytes is not None:
            reads.append((SRC, self.src_step_bytes))
        last = self.count - 1
        return Footprint(
            tuple(Range(argument, 0, last * step + F32_BYTES) for argument, step in reads),
            (Range(RESULT, 0, self.result_bytes),),
        )

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        code = QuotientCode(self, asm, v.registers.take("quotient", 4))
        whole, rest = divmod(self.count, v.lanes)
        if whole:
            with asm.repeated(whole, "vectors left", "vectors"):
                code.some(v.lanes)
        if rest:
            with asm.repeated(rest, "scales left", "scales"):
                code.some(1)
        asm.ret()


class QuotientCode:
    """The emission of a kernel: pointers to scales, which move over them."""

    def __init__(self, spec: QuotientSpec, asm: Assembler, registers: list[Register]) -> None:
        self.spec, self.asm = spec, asm
        self.src, self.result, self.dst = (asm.gp.take(name) for name in ARGUMENTS)
        self.x, self.divisor, self.one, self.total = registers
        for argument, pointer in ((SRC, self.src), (RESULT, self.result), (DST, self.dst)):
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        asm.VBROADCASTSS(self.one, asm.const(pack("<f", 1.0), 4, size=4))
        if spec.sum:
            asm.VBROADCASTSS(self.total, asm.const(pack("<f", spec.sum), 4, size=4))

    def some(self, lanes: int) -> None:
        """The next scales, a vector or one."""
        asm, spec, size = self.asm, self.spec, F32_BYTES * lanes
        store = asm.VMOVSS if lanes == 1 else asm.VMOVUPS
        divide = asm.VDIVSS if lanes == 1 else asm.VDIVPS
        x, divisor, one, total = (r.xmm if lanes == 1 else r for r in (self.x, self.divisor, self.one, self.total))
        self.load(divisor, self.dst, spec.dst_step_bytes, lanes)
        numerator = one
        if spec.src_step_bytes is not None:
            numerator = x
            self.load(x, self.src, spec.src_step_bytes, lanes)
        divide(x, numerator, divisor)
        store(mem(self.result, size=size), x)
        if spec.sum:
            divide(x, total, divisor)
            store(mem(self.result, spec.count * F32_BYTES, size=size), x)
        asm.ADD(self.result, size)

    def load(self, x: Register, pointer: Register, step: int, lanes: int) -> None:
        """One scale for each lane, or one for all."""
        if not step or lanes == 1:
            self.asm.VBROADCASTSS(x, mem(pointer, size=F32_BYTES))
        else:
            self.asm.VMOVUPS(x, mem(pointer, size=F32_BYTES * lanes))
        if step:
            self.asm.ADD(pointer, step * lanes)
