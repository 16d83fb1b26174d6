"""Shuffle blocks for layouts in which nothing lies together: single elements, each where it belongs.

| argument | dtype[shape] | what it is |
|---|---|---|
| src | bytes | what the spec's formula reads, no other byte |
| dst | bytes | what the spec's formula writes, no other byte; never overlaps src |

Needs AVX2, which every supported level has.
"""

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.move.rows import ARGUMENTS, DST, IN_FLIGHT, SRC, load, store
from asmdnn.generators.stretches import merged
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementsSpec:
    """For i < count, each element of `moves`: dst[d + i * step] = src[s + i * step], in bytes; moves: (s, d)."""

    isa: str
    element_bytes: int
    count: int
    step: int
    moves: tuple[tuple[int, int], ...]
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        block = f"{self.count}x{len(self.moves)}"
        return f"elements_b{8 * self.element_bytes}_{block}_{checksum(self)}__{self.isa}"

    def footprint(self) -> Footprint:
        size, steps = self.element_bytes, [i * self.step for i in range(self.count)]
        reads, writes = (
            tuple(
                Range(argument, begin, end)
                for begin, end in merged((m[argument] + s, m[argument] + s + size) for m in self.moves for s in steps)
            )
            for argument in (SRC, DST)
        )
        return Footprint(reads, writes)

    def generate(self, asm: Assembler) -> None:
        src, dst, left = (asm.gp.take(name) for name in ("src", "dst", "steps left"))
        asm.MOV(src, mem(asm.frame, 8 * SRC))
        asm.MOV(dst, mem(asm.frame, 8 * DST))
        data = vector_of(self.isa, asm).registers.take("data", IN_FLIGHT)
        size = self.element_bytes
        asm.MOV(left, self.count)
        with asm.loop(left, "steps"):
            for first in range(0, len(self.moves), IN_FLIGHT):
                batch = list(zip(data, self.moves[first : first + IN_FLIGHT], strict=False))
                for x, (s, _) in batch:
                    load(asm, x, mem(src, s, size=size), size)
                for x, (_, d) in batch:
                    store(asm, mem(dst, d, size=size), x, size)
            asm.ADD(src, self.step)
            asm.ADD(dst, self.step)
        asm.ret()
