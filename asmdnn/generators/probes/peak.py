"""The ceiling of a core in one kind of multiply-adds: independent ones on registers, and nothing else."""

from asmdnn.generators.contract import NOTHING, Footprint
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.multiply_adds import ADDED_AFTER, FMA, NOT_ADDED, OPS_OF_LANE, OPS_OF_TILE
from asmdnn.isa.operands import Register
from asmdnn.isa.tiles import BLOCK_TILES, TILE_ROWS, configured
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.records import dataclass

ARGUMENTS = ("passes",)
CHAINS = 12  # more than latency times ports anywhere (4 x 2), and no more than AVX2 has registers for


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakSpec:
    """void kernel(const int64 frame[1]): frame[0] times 12 multiply-adds of zeros, or 4 of tiles.

    instruction: of those of isa/multiply_adds.py; the addition of its products to sums goes with it.
    """

    isa: str
    instruction: str = FMA
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        return f"peak_{'f32' if self.instruction == FMA else self.instruction.lower()}__{self.isa}"

    @property
    def flops(self) -> int:
        """Operations of one pass."""
        if self.instruction in OPS_OF_TILE:
            return OPS_OF_TILE[self.instruction] * BLOCK_TILES**2
        return OPS_OF_LANE.get(self.instruction, 2) * CHAINS * lanes_of(self.isa)

    def footprint(self) -> Footprint:
        """No memory but the frame."""
        return NOTHING

    def generate(self, asm: Assembler) -> None:
        passes = asm.gp.take("passes")
        asm.MOV(passes, mem(asm.frame))
        if self.instruction in OPS_OF_TILE:
            self._tiles(asm, passes)
        else:
            self._vectors(asm, passes)
        asm.ret()

    def _vectors(self, asm: Assembler, passes: Register) -> None:
        v = vector_of(self.isa, asm)
        acc, factor = v.registers.take("chains", CHAINS), v.registers.take("factor")
        for x in (*acc, factor):
            v.zero(x)
        product = factor if self.instruction == FMA else v.registers.take("product")
        asm.align(32)
        with asm.loop(passes, "passes"):
            for x in acc:
                self._multiply_add(v, x, factor, product)

    def _multiply_add(self, v: Vector, acc: Register, factor: Register, product: Register) -> None:
        if self.instruction == FMA:
            v.fma(acc, factor, factor)
            return
        multiply = getattr(v.asm, self.instruction)
        if self.instruction in ADDED_AFTER:
            multiply(product, factor, factor)
            v.asm.VPADDD(acc, acc, product)
        elif self.instruction in NOT_ADDED:
            multiply(product, factor, factor)
        else:
            multiply(acc, factor, factor)

    def _tiles(self, asm: Assembler, passes: Register) -> None:
        with configured(asm, TILE_ROWS, (BLOCK_TILES, BLOCK_TILES), (1, 0)) as tiles:
            assert tiles.whole is not None
            for tile in (*(tile for row in tiles.acc for tile in row), *tiles.whole.src, *tiles.whole.weights):
                asm.TILEZERO(tile)
            asm.align(32)
            with asm.loop(passes, "passes"):
                for row, src in zip(tiles.acc, tiles.whole.src, strict=True):
                    for acc, weights in zip(row, tiles.whole.weights, strict=True):
                        getattr(asm, self.instruction)(acc, src, weights)
