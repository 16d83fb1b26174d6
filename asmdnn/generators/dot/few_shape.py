"""The shape of a tile of few output channels: what its code depends on, its name, and the bytes that it touches."""

from dataclasses import dataclass
from zlib import crc32

from asmdnn.generators.contract import Footprint, Range, TapList
from asmdnn.generators.dot.conv_shape import TapGroup
from asmdnn.generators.functions.chain import names_of_operands, operands_read, words_of
from asmdnn.generators.functions.postops import OLD_DST, Operand, PostOp
from asmdnn.isa.vectors import lanes_of

SRC, WEIGHTS, BIAS, DST, TAPS = range(5)
ARGUMENTS = ("src", "weights", "bias", "dst", "taps")
MOST_OUTPUTS = 8
# Pixels at a time for each number of outputs, powers of two: enough sums under way, and a few registers are left.
PIXELS = {
    "avx2": {1: 8, 2: 4, 3: 4, 4: 2, 5: 2, 6: 2, 7: 1, 8: 1},
    "avx512_core": {1: 16, 2: 8, 3: 8, 4: 4, 5: 4, 6: 4, 7: 2, 8: 2},
}


@dataclass(frozen=True, slots=True)
class FewTile:
    """Everything that the bytes of the kernel depend on; sizes in bytes where they say so.

    Pixels are at most as many as lanes.  A group's channels are those that a tap has, vectors of them and a rest.
    """

    isa: str
    outputs: int
    src_pixel_bytes: tuple[int, ...]
    src_vector_bytes: int  # from a vector of channels to the next one
    weights_vector_bytes: int
    dst_output_bytes: int  # from a pixel of an output channel to that of the next one
    groups: tuple[TapGroup, ...]
    bias: bool = False
    post_ops: tuple[PostOp, ...] = ()

    @property
    def pixels(self) -> int:
        """Of the tile."""
        return len(self.src_pixel_bytes)

    @property
    def at_once(self) -> int:
        """Pixels whose sums are in registers."""
        most = PIXELS[self.isa][self.outputs]
        return min(most, 1 << (self.pixels - 1).bit_length())

    @property
    def name(self) -> str:
        words = [f"{self.pixels}x{self.outputs}"]
        words += ["bias"] * self.bias + [*words_of(self.post_ops), f"{crc32(repr(self).encode()):08x}"]
        return f"few_f32_{'_'.join(words)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return (*ARGUMENTS, *names_of_operands(self.post_ops))

    def footprint(self) -> Footprint:
        """The bytes that a call touches."""
        dst = tuple(Range(DST, at, at + 4 * self.pixels) for at in self.of_outputs(self.dst_output_bytes))
        operands = operands_read(self.post_ops)
        others = [r for operand in operands if operand is not OLD_DST for r in self.operand_ranges(operand)]
        reads = (*[Range(BIAS, 0, 4 * self.outputs)] * self.bias, *others, *dst * (OLD_DST in operands))
        groups = tuple(tuple(dict.fromkeys(self.tap_ranges(group))) for group in self.groups)
        return Footprint(reads, dst, TapList(TAPS, (SRC, WEIGHTS), groups))

    def of_outputs(self, step_bytes: int) -> list[int]:
        return [output * step_bytes for output in range(self.outputs)]

    def operand_ranges(self, operand: Operand) -> tuple[Range, ...]:
        size = 4 * (1 if operand.element else self.pixels)
        return tuple(dict.fromkeys(Range(operand.argument, at, at + size) for at in self.of_outputs(operand.row_bytes)))

    def tap_ranges(self, group: TapGroup) -> list[Range]:
        """What one tap of a group reads, from its source pixel and its weights."""
        lanes = lanes_of(self.isa)
        firsts = range(0, group.channels, lanes)
        src = [
            (self.src_pixel_bytes[p] + j * self.src_vector_bytes, 4 * min(lanes, group.channels - first))
            for p in group.pixels
            for j, first in enumerate(firsts)
        ]
        of_vector = 4 * lanes * self.outputs
        weights = [j * self.weights_vector_bytes for j in range(len(firsts))]
        return [*(Range(SRC, at, at + n) for at, n in src), *(Range(WEIGHTS, at, at + of_vector) for at in weights)]
