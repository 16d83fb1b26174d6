"""The FMA ceiling of a core: independent multiply-adds on registers, and nothing else."""

from asmdnn.generators.contract import NOTHING, Footprint
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.records import dataclass

ARGUMENTS = ("passes",)
CHAINS = 12  # more than latency times ports anywhere (4 x 2), and no more than AVX2 has registers for


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakSpec:
    """void kernel(const int64 frame[1]): frame[0] times 12 multiply-adds of zeros."""

    isa: str
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        return f"peak_f32__{self.isa}"

    @property
    def flops(self) -> int:
        """Floating-point operations of one pass."""
        return 2 * CHAINS * lanes_of(self.isa)

    def footprint(self) -> Footprint:
        """No memory but the frame."""
        return NOTHING

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        acc, factor = v.registers.take("chains", CHAINS), v.registers.take("factor")
        passes = asm.gp.take("passes")
        asm.MOV(passes, mem(asm.frame))
        for x in (*acc, factor):
            v.zero(x)
        asm.align(32)
        with asm.loop(passes, "passes"):
            for x in acc:
                v.fma(x, factor, factor)
        asm.ret()
