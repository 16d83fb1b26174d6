"""Tiles of a convolution with few output channels: input channels are lanes, and lanes are added up at the end.

    dst[o, p] = post_ops(bias[o] + sum over taps t, channels c of src[p, t.src + c] * weights[t.weights + c, o])

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | f32[...]                    | pixel p's source starts src_pixel_bytes[p] after the pointer |
| weights | f32[vectors, outputs, lanes] | for each tap, vectors at weights_vector_bytes; zero after the last channel |
| bias    | f32[outputs]                | |
| dst     | f32[outputs, pixels]        | outputs at dst_output_bytes; only written, unless a sum reads it |
| taps    | int64[...]                  | for each group a count, then (src, weights) byte offsets, one pair a tap |
| 5, 6 .. | f32[...]                    | operands of post-ops: pixels, or an element, for each output at row_bytes |

Where output channels were lanes, most lanes would be padding: of 1 channel all but one.  Sums of some pixels are in
registers, each a vector of partial sums; then the lanes of all of them are added in a tree of shuffles, 21 instructions
for 8 sums (Vector.sum_lanes), so that lanes become pixels.  Taps are grouped as conv.py says.
"""

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range, TapList
from asmdnn.generators.dot.conv_shape import TapGroup
from asmdnn.generators.dot.epilogue import TileEpilogue
from asmdnn.generators.dot.few_outputs_shape import ARGUMENTS, BIAS, DST, SRC, TAPS, WEIGHTS, most_at_once
from asmdnn.generators.functions.chain import names_of_operands, operands_read, words_of
from asmdnn.generators.functions.postops import OLD_DST, Operand, PostOp
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.vector import Lanes
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.records import dataclass
from asmdnn.types import f32

MOST_SOURCES = 3  # registers that take turns holding a source vector
Sums = list[tuple[int, list[Register]]]  # of a pixel, those of all outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class FewTileSpec:
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
        most = most_at_once(self.isa, self.outputs)
        return min(most, 1 << (self.pixels - 1).bit_length())

    @property
    def name(self) -> str:
        words = [f"{self.pixels}x{self.outputs}"]
        words += ["bias"] * self.bias + [*words_of(self.post_ops), checksum(self)]
        return f"few_outputs_f32_{'_'.join(words)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return (*ARGUMENTS, *names_of_operands(self.post_ops))

    def footprint(self) -> Footprint:
        """The bytes that a call touches."""
        dst = tuple(Range(DST, at, at + f32.size_bytes * self.pixels) for at in self.of_outputs(self.dst_output_bytes))
        operands = operands_read(self.post_ops)
        others = [r for operand in operands if operand is not OLD_DST for r in self.operand_ranges(operand)]
        reads = (*[Range(BIAS, 0, f32.size_bytes * self.outputs)] * self.bias, *others, *dst * (OLD_DST in operands))
        groups = tuple(tuple(dict.fromkeys(self.tap_ranges(group))) for group in self.groups)
        return Footprint(reads, dst, TapList(TAPS, (SRC, WEIGHTS), groups))

    def of_outputs(self, step_bytes: int) -> list[int]:
        return [output * step_bytes for output in range(self.outputs)]

    def operand_ranges(self, operand: Operand) -> tuple[Range, ...]:
        size = f32.size_bytes * (1 if operand.element else self.pixels)
        return tuple(dict.fromkeys(Range(operand.argument, at, at + size) for at in self.of_outputs(operand.row_bytes)))

    def tap_ranges(self, group: TapGroup) -> list[Range]:
        """What one tap of a group reads, from its source pixel and its weights."""
        lanes = lanes_of(self.isa)
        firsts = range(0, group.channels, lanes)
        src = [
            (self.src_pixel_bytes[p] + j * self.src_vector_bytes, f32.size_bytes * min(lanes, group.channels - first))
            for p in group.pixels
            for j, first in enumerate(firsts)
        ]
        of_vector = f32.size_bytes * lanes * self.outputs
        weights = [j * self.weights_vector_bytes for j in range(len(firsts))]
        return [*(Range(SRC, at, at + n) for at, n in src), *(Range(WEIGHTS, at, at + of_vector) for at in weights)]

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), of 5 arguments and one for each operand of post-ops."""
        FewCode(self, asm).emit()
        asm.ret()


class FewCode:
    """The emission: some pixels after the other, whose sums go to the stack; then output by output the end."""

    def __init__(self, spec: FewTileSpec, asm: Assembler) -> None:
        self.spec, self.asm, self.v = spec, asm, vector_of(spec.isa, asm)
        self.sums = [asm.stack(self.v.bytes) for _ in range(spec.outputs)]
        self.src, self.weights, self.bias, self.dst = (asm.gp.take(name) for name in ARGUMENTS[:TAPS])
        for pointer, argument in ((self.src, SRC), (self.weights, WEIGHTS), (self.dst, DST)):
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        if spec.bias:
            asm.MOV(self.bias, mem(asm.frame, 8 * BIAS))

    def emit(self) -> None:
        for first in range(0, self.spec.pixels, self.spec.at_once):
            self.some_pixels(first)
        self.finish()

    def some_pixels(self, first: int) -> None:
        """The sums of `at_once` pixels, or of as many as there are, of all outputs."""
        spec, asm, v = self.spec, self.asm, self.v
        asm.role(f"pixels {first}: start")
        acc = v.registers.take("acc", spec.outputs, spec.at_once)
        for x in (x for of_output in acc for x in of_output):
            v.zero(x)
        gp = [asm.gp.take(name) for name in ("taps", "taps left", "tap's src", "tap's weights")]
        taps, left, src, weights = gp
        asm.MOV(taps, mem(asm.frame, 8 * TAPS))
        for index, group in enumerate(spec.groups):
            reached = [(p, [of[p - first] for of in acc]) for p in group.pixels if first <= p < first + spec.at_once]
            nothing, name = asm.new_label(f"pixels{first}_group{index}_done"), f"pixels{first}_group{index}"
            asm.role(f"pixels {first}, group {index}: next tap")
            asm.MOV(left, mem(taps))
            asm.ADD(taps, 8)
            asm.TEST(left, left)
            asm.JZ(nothing)
            with asm.loop(left, name):
                if reached:  # else on after its taps
                    asm.MOV(src, mem(taps))
                    asm.MOV(weights, mem(taps, 8))
                asm.ADD(taps, 16)
                if reached:
                    asm.ADD(src, self.src)
                    asm.ADD(weights, self.weights)
                    self.multiply_tap(group, reached, src, weights)
            asm.bind(nothing)
        asm.gp.free(*gp)
        self.add_up(first, acc)

    def multiply_tap(self, group: TapGroup, sums: Sums, src: Register, weights: Register) -> None:
        """sums[p][o] += src[p, j] * weights[j, o] for the vectors j of a tap's channels."""
        full, rest = divmod(group.channels, self.v.lanes)
        for j in range(full):
            self.multiply_vector(j, self.v, sums, src, weights)
        if rest:
            tail = self.v.tail(rest)
            self.multiply_vector(full, tail, sums, src, weights)
            tail.release()

    def multiply_vector(self, j: int, part: Lanes, sums: Sums, src: Register, weights: Register) -> None:
        """Those of one vector, of which src has a part; weights are in registers if they fit there beside a source."""
        spec, asm, v = self.spec, self.asm, self.v
        asm.role(f"vector {j} of channels")
        rows = [mem(weights, j * spec.weights_vector_bytes + o * v.bytes, size=v.bytes) for o in range(spec.outputs)]
        held = v.registers.take("weights", spec.outputs) if v.registers.available > spec.outputs else []
        for o, row in enumerate(rows):
            asm.call_it(row, f"weights[{j}, {o}]")
        for x, row in zip(held, rows, strict=False):
            v.load(x, row)
        sources = v.registers.take("source", min(MOST_SOURCES, v.registers.available))
        for number, (p, of_outputs) in enumerate(sums):
            at = mem(src, spec.src_pixel_bytes[p] + j * spec.src_vector_bytes, size=v.bytes)
            asm.call_it(at, f"src[{p}, {j}]")
            if held and part is v and spec.outputs == 1:
                v.fma(of_outputs[0], held[0], at)
                continue
            source = sources[number % len(sources)]
            part.load(source, at)
            for x, factor in zip(of_outputs, held or rows, strict=True):
                v.fma(x, source, factor)
        v.registers.free(*held, *sources)

    def add_up(self, first: int, acc: list[list[Register]]) -> None:
        """The sums of lanes, to the stack."""
        v, asm = self.v, self.asm
        asm.role(f"pixels {first}: add lanes")
        spare = v.registers.take("spare")
        for o, of_output in enumerate(acc):
            v.store_first(self.sums[o].shifted(f32.size_bytes * first), v.sum_lanes(of_output, spare), len(of_output))
        v.registers.free(spare, *(x for of_output in acc for x in of_output))

    def finish(self) -> None:
        """Bias, post-ops and stores, a vector of pixels for each output."""
        spec, asm, v = self.spec, self.asm, self.v
        asm.role("finish")
        epilogue, x = TileEpilogue(v, spec.post_ops), v.registers.take("sums")
        with v.parts(1, spec.pixels) as (part,):
            for o in range(spec.outputs):
                part.load(x, self.sums[o])
                if spec.bias:
                    v.broadcast(epilogue.spare[0], mem(self.bias, f32.size_bytes * o, size=f32.size_bytes))
                    v.add(x, x, epilogue.spare[0])
                at = mem(self.dst, o * spec.dst_output_bytes, size=v.bytes)
                asm.call_it(at, f"dst[{o}]")
                epilogue.finish(x, o, 0, at, part, part)
        v.registers.free(x)
        epilogue.release()
