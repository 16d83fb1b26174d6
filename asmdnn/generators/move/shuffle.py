"""Shuffle blocks: dst's channels are src's in another order, for a run of pixels.

| argument | dtype[shape] | what it is |
|---|---|---|
| src | any 1, 2 or 4 byte elements | pixels `pixel_bytes` apart; of each, the windows that the spec lists |
| dst | the same, never overlapping | of each pixel the units that the spec lists; no other byte is written |

A unit is `unit_bytes` of dst that lie together; a window is as many bytes of src.  Elements are only moved, so their
type does not matter.  One body for registers of every width.
"""

from collections.abc import Iterable
from typing import Any

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.move.shuffle_body import Part, ShuffleCode
from asmdnn.generators.move.shuffle_network import best, windows_of
from asmdnn.generators.stores import if_aligned
from asmdnn.generators.stretches import merged
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.dense import QUARTER_BYTES
from asmdnn.isa.vectors import vector_bytes
from asmdnn.records import dataclass

SRC, DST = range(2)
ARGUMENTS = ("src", "dst")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffleSpec:
    """For each of `pixels` pixels all tiles of all parts.

    unit_bytes: 16, or 4 or 8 if pixel_bytes is the same, so that the pixels of a unit fill a vector.
    streaming: stores go past the caches if dst is aligned, which the kernel looks at when called; all others are then,
    too, as `can_stream` says.
    """

    isa: str
    element_bytes: int
    unit_bytes: int
    pixels: int
    pixel_bytes: int
    parts: tuple[Part, ...]
    streaming: bool = False
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        block = f"{self.pixels}x{self.stored_bytes}"
        return f"shuffle_b{8 * self.element_bytes}_{block}_{checksum(self)}__{self.isa}"

    @property
    def aligned_bytes(self) -> int:
        """What a streaming store of a group of pixels needs: they lie together, or each has stores of its own."""
        return self.vector_bytes if self.pixel_bytes == self.unit_bytes else self.unit_bytes

    @property
    def can_stream(self) -> bool:
        """Whether all stores are aligned when dst is."""
        places = [at for part in self.parts for at in (part.dst, part.dst_step, *part.tile.dst)]
        return self.pixel_bytes % self.unit_bytes == 0 and all(at % self.aligned_bytes == 0 for at in places)

    @property
    def stored_bytes(self) -> int:
        """For a pixel."""
        return sum(part.count * len(part.tile.dst) for part in self.parts) * self.unit_bytes

    @property
    def operations(self) -> int:
        """Vector instructions for as many pixels as a vector has room for; two quarters that are loaded or stored apart
        count as one, since they need no shuffle port: so eight rows cost with ymm registers what they do by
        permutations, as was measured on an Emerald Rapids."""
        built = [best(part.tile.lanes, self.element_bytes, self.unit_bytes).cost for part in self.parts]
        pairs = 1 if self.pixel_bytes == self.unit_bytes else self.vector_bytes // (2 * QUARTER_BYTES)
        moved = [pairs * (len(part.tile.windows) + len(part.tile.dst)) for part in self.parts]
        return sum(p.count * (a + b) for p, a, b in zip(self.parts, built, moved, strict=True))

    @property
    def vector_bytes(self) -> int:
        return vector_bytes(self.isa)

    @property
    def pixels_together(self) -> int:
        """How many pixels a vector has room for."""
        return self.vector_bytes // self.unit_bytes

    @property
    def sources(self) -> int:
        """From how many windows of src a unit comes, at most."""
        return max(len(windows_of(lanes, self.unit_bytes)) for part in self.parts for lanes in part.tile.lanes)

    def footprint(self) -> Footprint:
        return Footprint(
            self._ranges(SRC, ((p.src, p.src_step, p.count, p.tile.windows) for p in self.parts)),
            self._ranges(DST, ((p.dst, p.dst_step, p.count, p.tile.dst) for p in self.parts)),
        )

    def _ranges(self, argument: int, places: Iterable[tuple[int, int, int, tuple[int, ...]]]) -> tuple[Range, ...]:
        starts = [base + i * step + at for base, step, count, ats in places for i in range(count) for at in ats]
        one = merged((at, at + self.unit_bytes) for at in starts)
        shifts = range(0, self.pixels * self.pixel_bytes, self.pixel_bytes)
        return tuple(Range(argument, b, e) for b, e in merged((b + s, e + s) for s in shifts for b, e in one))

    def generate(self, asm: Assembler) -> None:
        src, dst, left = (asm.gp.take(name) for name in ("src", "dst", "pixel groups left"))
        asm.MOV(src, mem(asm.frame, 8 * SRC))
        asm.MOV(dst, mem(asm.frame, 8 * DST))
        body = ShuffleCode(asm, self.isa, self.element_bytes, self.unit_bytes, self.pixel_bytes)
        if self.streaming:
            assert self.can_stream, "a streaming store that is not aligned ends the process"
            with if_aligned(asm, dst, self.aligned_bytes, left):
                body.streaming = True
                self.all_pixels(asm, body, src, dst, left)
                body.streaming = False
                asm.ret()
        self.all_pixels(asm, body, src, dst, left)
        asm.ret()

    def all_pixels(self, asm: Assembler, body: ShuffleCode, src: Any, dst: Any, left: Any) -> None:
        """Groups that fill vectors, then smaller ones."""
        group = self.pixels_together
        rest = self.pixels
        while group:
            groups, rest = divmod(rest, group)
            if groups > 1:
                asm.MOV(left, groups)
                with asm.loop(left, "pixels"):
                    body.pixel_group(self.parts, group, src, dst)
                    asm.ADD(src, group * self.pixel_bytes)
                    asm.ADD(dst, group * self.pixel_bytes)
            elif groups:
                body.pixel_group(self.parts, group, src, dst)
                if rest:
                    asm.ADD(src, group * self.pixel_bytes)
                    asm.ADD(dst, group * self.pixel_bytes)
            group //= 2
