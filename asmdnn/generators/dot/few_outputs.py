"""Tiles of a convolution with few output channels: input channels are lanes, and lanes are added up at the end.

    dst[o, p] = post_ops(bias[o] + sum over taps t, channels c of src[p, t.src + c] * weights[t.weights + c, o])

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | src_type[...]               | pixel p's source starts src_pixel_bytes[p] after the pointer |
| weights | types.weights[vectors, outputs, lanes * group] | for each tap, at weights_vector_bytes; zero after the end |
| bias    | f32[outputs]                | if sums are f32; to others it is a post-op |
| dst     | dst_type[outputs, pixels]   | outputs at dst_output_bytes; only written, unless a sum reads it |
| taps    | int64[...]                  | for each group a count, then (src, weights) byte offsets, one pair a tap |
| 5, 6 .. | operand_types[...]          | operands of post-ops: pixels, or an element, for each output at row_bytes |

Where output channels were lanes, most lanes would be padding: of 1 channel all but one.  Sums of some pixels are in
registers, each a vector of partial sums; then the lanes of all of them are added in a tree of shuffles, 21 instructions
for 8 sums (Vector.sum_lanes), so that lanes become pixels.  Taps are grouped as conv.py says.  A lane has a group of
channels, as the dot product of `types` multiplies them; src of fewer bytes is widened as it is loaded.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range, TapList
from asmdnn.generators.dot.conv_shape import TapGroup
from asmdnn.generators.dot.epilogue import TileEpilogue
from asmdnn.generators.dot.epilogue_shape import WithEpilogue
from asmdnn.generators.dot.few_outputs_shape import ARGUMENTS, BIAS, DST, SRC, TAPS, WEIGHTS, most_at_once
from asmdnn.generators.functions.chain import chain_words, names_of_operands, operands_read
from asmdnn.generators.functions.postops import OLD_DST, Operand, PostOp
from asmdnn.generators.stepping import unless_zero
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.dense import Run, dense_of
from asmdnn.isa.dot import F32, Dot, Types, dot_of
from asmdnn.isa.elements import element_of
from asmdnn.isa.vector import Lanes, Row
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.records import dataclass
from asmdnn.types import DataType, f32

MOST_SOURCES = 3  # registers that take turns holding a source vector
Sums = list[tuple[int, list[Register]]]  # of a pixel, those of all outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class FewTileSpec(WithEpilogue):
    """Everything that the bytes of the kernel depend on; sizes in bytes where they say so.

    Pixels are at most as many as lanes.  A group's channels are those that a tap has, vectors of them and a rest.
    types: of a dot that adds nothing to src; src_type: that of its src, or one that is widened to it.
    """

    FIXED = ARGUMENTS
    isa: str
    outputs: int
    src_pixel_bytes: tuple[int, ...]
    src_vector_bytes: int  # from a vector of channels to the next one
    weights_vector_bytes: int
    dst_output_bytes: int  # from a pixel of an output channel to that of the next one
    groups: tuple[TapGroup, ...]
    bias: bool = False
    post_ops: tuple[PostOp, ...] = ()
    types: Types = F32
    src_type: DataType = f32
    dst_type: DataType = f32
    operand_types: tuple[DataType, ...] = ()  # of what post-ops read, argument by argument; () if all are f32

    @property
    def pixels(self) -> int:
        """Of the tile."""
        return len(self.src_pixel_bytes)

    @property
    def at_once(self) -> int:
        """Pixels whose sums are in registers."""
        most = most_at_once(self.isa, self.outputs, self.types)
        return min(most, 1 << (self.pixels - 1).bit_length())

    @property
    def name(self) -> str:
        words = [f"{self.pixels}x{self.outputs}"]
        words += ["bias"] * self.bias + [*chain_words(self.post_ops), checksum(self)]
        src = f"{self.src_type}_as_" * (self.src_type != self.types.src)
        return f"few_outputs_{src}{self.types}_{'_'.join(words)}__{self.isa}"

    @property
    def vector_channels(self) -> int:
        """Of a vector: a group in every lane."""
        return lanes_of(self.isa) * self.types.group

    @property
    def frame(self) -> tuple[str, ...]:
        return (*ARGUMENTS, *names_of_operands(self.post_ops))

    def footprint(self) -> Footprint:
        """The bytes that a call touches."""
        width = self.dst_type.size_bytes * self.pixels
        dst = tuple(Range(DST, at, at + width) for at in self.of_outputs(self.dst_output_bytes))
        operands = operands_read(self.post_ops)
        others = [r for operand in operands if operand is not OLD_DST for r in self.operand_ranges(operand)]
        reads = (*[Range(BIAS, 0, f32.size_bytes * self.outputs)] * self.bias, *others, *dst * (OLD_DST in operands))
        groups = tuple(tuple(dict.fromkeys(self.tap_ranges(group))) for group in self.groups)
        return Footprint(reads, dst, TapList(TAPS, (SRC, WEIGHTS), groups))

    def of_outputs(self, step_bytes: int) -> list[int]:
        return [output * step_bytes for output in range(self.outputs)]

    def operand_ranges(self, operand: Operand) -> tuple[Range, ...]:
        size = self.epilogue_types.of(operand).size_bytes * (1 if operand.element else self.pixels)
        return tuple(dict.fromkeys(Range(operand.argument, at, at + size) for at in self.of_outputs(operand.row_bytes)))

    def tap_ranges(self, group: TapGroup) -> list[Range]:
        """What one tap of a group reads, from its source pixel and its weights."""
        whole, size = self.vector_channels, self.src_type.size_bytes
        firsts = range(0, group.channels, whole)
        src = [
            (self.src_pixel_bytes[p] + j * self.src_vector_bytes, size * min(whole, group.channels - first))
            for p in group.pixels
            for j, first in enumerate(firsts)
        ]
        of_vector = self.types.weights.size_bytes * whole * self.outputs
        weights = [j * self.weights_vector_bytes for j in range(len(firsts))]
        return [*(Range(SRC, at, at + n) for at, n in src), *(Range(WEIGHTS, at, at + of_vector) for at in weights)]

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), of 5 arguments and one for each operand of post-ops."""
        code = FewCode(self, dot_of(self.types, self.isa, vector_of(self.isa, asm)))
        with code.dot.ready():
            code.sum_up()
        code.finish()
        asm.ret()


class FewCode:
    """The emission: some pixels after the other, whose sums go to the stack; then output by output the end."""

    def __init__(self, spec: FewTileSpec, dot: Dot) -> None:
        self.spec, self.dot, self.v = spec, dot, dot.v
        self.asm = asm = dot.asm
        self.sums = [asm.stack(self.v.bytes) for _ in range(spec.outputs)]
        self.src, self.weights, self.bias, self.dst = (asm.gp.take(name) for name in ARGUMENTS[:TAPS])
        for pointer, argument in ((self.src, SRC), (self.weights, WEIGHTS), (self.dst, DST)):
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        if spec.bias:
            asm.MOV(self.bias, mem(asm.frame, 8 * BIAS))

    def sum_up(self) -> None:
        for first in range(0, self.spec.pixels, self.spec.at_once):
            self.some_pixels(first)

    def some_pixels(self, first: int) -> None:
        """The sums of `at_once` pixels, or of as many as there are, of all outputs."""
        spec, asm, v = self.spec, self.asm, self.v
        asm.role(f"pixels {first}: start")
        acc = v.registers.take("acc", spec.outputs, spec.at_once)
        v.zeros(acc)
        gp = [asm.gp.take(name) for name in ("taps", "taps left", "tap's src", "tap's weights")]
        taps, left, src, weights = gp
        asm.MOV(taps, mem(asm.frame, 8 * TAPS))
        for index, group in enumerate(spec.groups):
            reached = [(p, [of[p - first] for of in acc]) for p in group.pixels if first <= p < first + spec.at_once]
            name = f"pixels{first}_group{index}"
            asm.role(f"pixels {first}, group {index}: next tap")
            asm.MOV(left, mem(taps))
            asm.ADD(taps, 8)
            with unless_zero(asm, left, f"{name}_done"), asm.loop(left, name):
                if reached:  # else on after its taps
                    asm.MOV(src, mem(taps))
                    asm.MOV(weights, mem(taps, 8))
                asm.ADD(taps, 16)
                if reached:
                    asm.ADD(src, self.src)
                    asm.ADD(weights, self.weights)
                    self.multiply_tap(group, reached, src, weights)
        asm.gp.free(*gp)
        self.add_up(first, acc)

    def multiply_tap(self, group: TapGroup, sums: Sums, src: Register, weights: Register) -> None:
        """sums[p][o] += src[p, j] * weights[j, o] for the vectors j of a tap's channels."""
        full, rest = divmod(group.channels, self.spec.vector_channels)
        for j in range(full):
            self.multiply_vector(j, self.v, sums, src, weights)
        if rest:
            with self.rest_of(rest) as part:
                self.multiply_vector(full, part, sums, src, weights)

    @contextmanager
    def rest_of(self, channels: int) -> Iterator[Lanes]:
        """How to read the first channels of a vector."""
        v = self.v
        if self.spec.types.group == 1:
            with v.parts(1, channels) as (tail,):
                yield tail
            return
        spare = v.registers.take("part of a rest")
        dense = dense_of(v, spare)
        yield Run(dense, channels * self.spec.src_type.size_bytes)
        dense.forget()
        v.registers.free(spare)

    def multiply_vector(self, j: int, part: Lanes, sums: Sums, src: Register, weights: Register) -> None:
        """Those of one vector, of which src has a part; weights are in registers if they fit there beside a source."""
        spec, asm, v, dot = self.spec, self.asm, self.v, self.dot
        asm.role(f"vector {j} of channels")
        size = dot.row_bytes
        places = [mem(weights, j * spec.weights_vector_bytes + o * size, size=size) for o in range(spec.outputs)]
        for o, place in enumerate(places):
            asm.call_it(place, f"weights[{j}, {o}]")
        product = v.registers.take("product", dot.product_registers)
        held = self.hold(places)
        row = v.registers.take("weights of an output", 0 if held or dot.reads_memory else dot.row_registers)
        count = min(MOST_SOURCES, v.registers.available // dot.copy_registers)
        sources = v.registers.take("source", count, dot.copy_registers)
        for number, (p, of_outputs) in enumerate(sums):
            at = mem(src, spec.src_pixel_bytes[p] + j * spec.src_vector_bytes, size=self.src_bytes)
            asm.call_it(at, f"src[{p}, {j}]")
            if self.reads_src and held and part is v and spec.outputs == 1:
                dot.multiply(of_outputs[0], held[0][0], at)
                continue
            source = sources[number % len(sources)]
            self.load_source(source, at, part)
            for o, x in enumerate(of_outputs):
                factor = held[o] if held else dot.read(row, v, places[o])
                dot.accumulate(x, source, factor, [*product, source[0]][0])
        v.registers.free(product, row, held, sources)

    @property
    def src_bytes(self) -> int:
        """Of a vector of channels."""
        return self.spec.vector_channels * self.spec.src_type.size_bytes

    @property
    def reads_src(self) -> bool:
        """Whether a multiply can take src from memory, in the place of weights: floats may change places."""
        spec = self.spec
        return spec.src_type == spec.types.src and spec.types.sums == f32

    def hold(self, places: Sequence[Pointer]) -> list[Row]:
        """The weights of all outputs in registers; none if too few are free."""
        registers, dot = self.v.registers, self.dot
        if registers.available < len(places) * dot.row_registers + dot.copy_registers:
            return []
        held: list[Row] = registers.take("weights", len(places), dot.row_registers)
        for row, place in zip(held, places, strict=True):
            dot.load(row, self.v, place)
        return held

    def load_source(self, source: Row, at: Pointer, part: Lanes) -> None:
        """A vector of src, as it is multiplied."""
        if self.spec.types.group == 1:
            element_of(self.spec.src_type).load(self.v, source[-1], at, part)
        else:
            part.load(source[-1], at)
        self.dot.arrange_src(source)

    def add_up(self, first: int, acc: list[list[Register]]) -> None:
        """The sums of lanes, to the stack."""
        v, asm = self.v, self.asm
        asm.role(f"pixels {first}: add lanes")
        spare = v.registers.take("spare")
        for o, of_output in enumerate(acc):
            total = v.sum_lanes(of_output, spare, self.dot.addition)
            v.store_first(self.sums[o].shifted(f32.size_bytes * first), total, len(of_output))
        v.registers.free(spare, acc)

    def finish(self) -> None:
        """Bias, post-ops and stores, a vector of pixels for each output."""
        spec, asm, v = self.spec, self.asm, self.v
        asm.role("finish")
        epilogue, x = TileEpilogue(v, spec.post_ops, types=spec.epilogue_types), v.registers.take("sums")
        vector_bytes = v.lanes * spec.dst_type.size_bytes
        with v.parts(1, spec.pixels) as (part,):
            for o in range(spec.outputs):
                part.load(x, self.sums[o])
                if spec.bias:
                    v.broadcast(epilogue.spare[0], mem(self.bias, f32.size_bytes * o, size=f32.size_bytes))
                    v.add(x, x, epilogue.spare[0])
                at = mem(self.dst, o * spec.dst_output_bytes, size=vector_bytes)
                asm.call_it(at, f"dst[{o}]")
                epilogue.finish(x, o, 0, at, part, part)
        v.registers.free(x)
        epilogue.release()
