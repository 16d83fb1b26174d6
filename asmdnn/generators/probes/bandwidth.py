"""What a core is measured with besides its FMA peak: how fast it reads a buffer, and how long its cycle is."""

from asmdnn.generators.contract import NOTHING, Footprint
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

UNROLLED = 16  # loads of a block: enough in flight, and the loop's own two instructions do not count
ADDITIONS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthSpec:
    """void kernel(const int64 frame[3]): reads frame[1] blocks from address frame[0] on, frame[2] times over.

    A block is 16 vectors that lie together; nothing is computed and nothing is written.  Source: the load-only kernel
    of McCalpin's and Treibig's bandwidth benchmarks (likwid-bench `load`).
    """

    isa: str

    @property
    def name(self) -> str:
        return f"bandwidth_load__{self.isa}"

    @staticmethod
    def block_bytes(vector_bytes: int) -> int:
        return UNROLLED * vector_bytes

    @property
    def frame(self) -> tuple[str, ...]:
        return ("start", "blocks", "passes")

    def footprint(self) -> None:
        """Not claimed: how much is read is in the frame."""

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        data = v.registers.take("data", UNROLLED)
        start, blocks, passes, at, left = (
            asm.gp.take(name) for name in ("start", "blocks", "passes", "block", "blocks left")
        )
        asm.role("start")
        for register, argument in ((start, 0), (blocks, 1), (passes, 2)):
            asm.MOV(register, mem(asm.frame, 8 * argument))
        with asm.loop(passes, "passes"):
            asm.role("next pass")
            asm.MOV(at, start)
            asm.MOV(left, blocks)
            asm.align(32)
            with asm.loop(left, "blocks"):
                asm.role("block")
                for i, x in enumerate(data):
                    v.load(x, mem(at, i * v.bytes, size=v.bytes))
                asm.ADD(at, self.block_bytes(v.bytes))
            asm.role("next pass")
        asm.ret()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSpec:
    """void kernel(const int64 frame[1]): frame[0] times 64 additions, each of which waits for the one before.

    A register is added, not a number: some CPUs add numbers while renaming, at no latency.
    """

    @property
    def isa(self) -> str:
        return "avx2"

    @property
    def name(self) -> str:
        return "clock_add__x86_64"

    @property
    def frame(self) -> tuple[str, ...]:
        return ("passes",)

    def footprint(self) -> Footprint:
        """No memory but the frame."""
        return NOTHING

    def generate(self, asm: Assembler) -> None:
        passes, total, one = (asm.gp.take(name) for name in ("passes", "total", "one"))
        asm.MOV(passes, mem(asm.frame))
        asm.MOV(total, 0)
        asm.MOV(one, 1)
        asm.align(32)
        with asm.loop(passes, "passes"):
            for _ in range(ADDITIONS):
                asm.ADD(total, one)
        asm.ret()
