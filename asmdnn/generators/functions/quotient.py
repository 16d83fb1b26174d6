"""Scales of src, and the factor of a sum, over scales of dst, once for each call of a reorder.

Its kernels multiply src with the former, and what dst holds with the latter.

| argument | dtype[shape] | what it is |
|---|---|---|
| src_scales | f32[count or 1] | 1 if there are none; src_step_bytes apart, 0 for one that all share |
| scales     | f32[count]      | the result: src_scale / dst_scale; with a sum as many sum / dst_scale after |
| dst_scales | f32[count or 1] | dst_step_bytes apart, 0 for one that all share |

Needs AVX2, which every supported level has.
"""

from struct import pack
from typing import ClassVar

from asmdnn.exact import exact
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.move.conversion import exact_word
from asmdnn.isa.assembler import Assembler, mem
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
        src, result, dst, left = (asm.gp.take(name) for name in (*ARGUMENTS, "scales left"))
        x, one, total = asm.vectors(32, 16).take("quotient", 3)
        for argument, pointer in ((SRC, src), (RESULT, result), (DST, dst)):
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        asm.VMOVSS(one.xmm, asm.const(pack("<f", 1.0), 4, size=4))
        if self.sum:
            asm.VMOVSS(total.xmm, asm.const(pack("<f", self.sum), 4, size=4))
        asm.MOV(left, self.count)
        with asm.loop(left, "scales"):
            numerator = one
            if self.src_step_bytes is not None:
                numerator = x
                asm.VMOVSS(x.xmm, mem(src, size=4))
                asm.ADD(src, self.src_step_bytes)
            asm.VDIVSS(x.xmm, numerator.xmm, mem(dst, size=4))
            asm.VMOVSS(mem(result, size=4), x.xmm)
            if self.sum:
                asm.VDIVSS(x.xmm, total.xmm, mem(dst, size=4))
                asm.VMOVSS(mem(result, self.count * F32_BYTES, size=4), x.xmm)
            asm.ADD(result, F32_BYTES)
            asm.ADD(dst, self.dst_step_bytes)
        asm.ret()
