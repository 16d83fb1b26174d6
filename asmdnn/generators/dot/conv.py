"""Convolution tiles: a few output pixels by a few vectors of output channels, accumulated in registers.

    dst[p, o] = post_ops(bias[o] + sum over taps t, channels c of src[p, t.src + c] * weights[t.weights + c, o])

| argument | dtype[shape] | what it is |
|---|---|---|
| src        | src[...]                | pixel p's source starts src_pixel_bytes[p] after the pointer; never written |
| weights    | weights[.., vectors] | a panel: a row for each tap and group of channels, zero padded; 4-byte aligned |
| bias       | sums[channels]          | the panel's channels; nothing past them is read |
|            | sums[.., vectors]       | with `starts`: whole vectors, pixel p's at starts[p] bytes |
|            | sums[channels]          | with `row_sums`: the sums of all rows of weights that taps name |
| dst        | dst[...]                | pixel p at p * dst_pixel_bytes, channel vector j at j * dst_vector_bytes; or |
|            |                         | with `dst_argument`, vector j has a pointer, argument dst_argument + j - 1 |
| taps       | int64[...]              | for each group a count, then (src, weights) byte offsets, one pair a tap |
| prefetched | bytes                   | weights that will be needed soon; only prefetched |
| 6, 7 ..    | operand_types, f32      | operands of post-ops, laid out as each Operand says; of the real channels |

The types of src, weights and sums are the spec's `types`; input channels go in groups (isa/dot.py), single ones in f32.
Where the last group is not whole, src is read only up to the last channel, and weights are zero beyond.  By default dst
has the type of the sums, or f32 if there are post-ops; accumulating into dst needs the type of the sums.

A tap is one kernel position and a run of input channels.  Taps are grouped by the pixels that they reach: a pixel for
which a tap lies in the padding is not in that tap's group, so padding costs no instruction and is never read.
The register block is the outer product of Goto and van de Geijn's GEBP kernel ("Anatomy of high-performance matrix
multiplication", 2008); the batch of taps is the batch-reduce of Georganas et al. (2019).
"""

from collections.abc import Callable, Hashable
from itertools import groupby

from asmdnn.generators.dot.conv_shape import BIAS, DST
from asmdnn.generators.dot.conv_taps import TapCode
from asmdnn.generators.dot.conv_tile import ConvTile
from asmdnn.generators.dot.epilogue import TileEpilogue
from asmdnn.generators.dot.matmul_shape import Bias
from asmdnn.generators.dot.prologue import load_bias, load_starts, start_tile
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.dot import dot_of
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vector import Lanes
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

ONE_ROW = Bias(0, True)  # a channel's for all pixels
Visit = Callable[[int, int, Pointer, Lanes, Lanes], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvTileSpec(ConvTile):
    """The kernel of a tile."""

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), of 6 arguments and one for each operand of post-ops."""
        ConvTileCode(self, asm).compute()
        asm.ret()


class ConvTileCode:
    """The code of one tile: `acc[p][j]` are the sums of pixel p and vector j of channels."""

    def __init__(self, spec: ConvTile, asm: Assembler) -> None:
        self.spec, self.asm, self.v = spec, asm, vector_of(spec.isa, asm)
        self.acc = self.v.registers.take("acc", len(spec.src_pixel_bytes), spec.vectors)
        self.row_sums = self.v.registers.take("sum of rows", spec.vectors * spec.row_sums)

    def compute(self) -> None:
        if self.spec.prefetches_dst:
            self.prefetch_dst()
        self.start()
        dot = dot_of(self.spec.types, self.spec.isa, self.v)
        with dot.ready():
            TapCode(self.spec, dot, self.acc, self.row_sums).multiply()
        self.finish()

    def prefetch_dst(self) -> None:
        """Lines that come from beyond L2 one after another would have the next tile's stores wait."""
        spec, asm = self.spec, self.asm
        asm.role("prefetch dst")
        dst = asm.gp.take("dst")
        places = {
            (spec.place_in_dst(j)[0], (spec.place_in_dst(j)[1] + p * spec.dst_pixel_bytes) // LINE_BYTES * LINE_BYTES)
            for j in range(spec.vectors)
            for p in range(len(spec.src_pixel_bytes))
        }
        for argument, group in groupby(sorted(places), key=lambda place: place[0]):
            asm.MOV(dst, mem(asm.frame, 8 * argument))
            for _, place in group:
                asm.PREFETCHT0(mem(dst, place))
        asm.gp.free(dst)

    def start(self) -> None:
        """acc[p][j] = dst[p, j], bias vector j, or zero."""
        spec = self.spec
        start_tile(
            self.v, self.acc, self.load_dst if spec.accumulate else None, self.load_channels if spec.bias else None
        )
        if spec.row_sums and spec.accumulate:
            self.walk_row_sums(lambda x, at, part: part.load(x, at))
        elif spec.row_sums:
            self.v.zeros(self.row_sums)

    def load_dst(self) -> None:
        self.walk_dst(lambda p, j, at, stored, real: stored.load(self.acc[p][j], at), "start")

    def load_channels(self) -> None:
        spec, v = self.spec, self.v
        with self.asm.gp.taken("bias") as bias:
            self.asm.MOV(bias, mem(self.asm.frame, 8 * BIAS))
            if spec.starts:
                load_starts(v, self.acc, spec.starts, bias)
            else:
                load_bias(v, self.acc, ONE_ROW, bias, spec.channels, spec.types.sums.size_bytes)

    def walk_row_sums(self, visit: Callable[[Register, Pointer, Lanes], None]) -> None:
        """visit(register, memory, real lanes) for the sums of the weights' rows."""
        spec, v, asm = self.spec, self.v, self.asm
        with asm.gp.taken("sums of rows") as at, v.parts(spec.vectors, spec.channels, halves=True) as parts:
            asm.MOV(at, mem(asm.frame, 8 * BIAS))
            for j, (x, part) in enumerate(zip(self.row_sums, parts, strict=True)):
                place = mem(at, j * v.bytes, size=v.bytes)
                asm.call_it(place, f"sums[{j}]")
                visit(x, place, part)

    def finish(self) -> None:
        """Post-ops and stores."""
        spec, v, asm = self.spec, self.v, self.asm
        asm.role("finish")
        if spec.row_sums:
            self.walk_row_sums(lambda x, at, part: part.store(at, x))
            v.registers.free(*self.row_sums)
        touching = not spec.dst_argument and spec.dst_vector_bytes == v.lanes * spec.dst_type.size_bytes
        epilogue = TileEpilogue(v, spec.post_ops, types=spec.epilogue_types, tile=self.acc, touching=touching)

        def store(p: int, j: int, at: Pointer, stored: Lanes, real: Lanes) -> None:
            epilogue.finish(self.acc[p][j], p, j, at, stored, real)

        def walk() -> None:
            self.walk_dst(store, epilogue.key)

        if not (spec.streams and epilogue.stores_vectors):
            walk()
            return
        assert not any(at % v.bytes for at in (spec.dst_pixel_bytes, spec.dst_vector_bytes * (1 + epilogue.pairs)))
        first, *others = sorted({spec.place_in_dst(j)[0] for j in range(spec.vectors)})
        with asm.gp.taken("all pointers to dst") as bits:
            asm.MOV(bits, mem(asm.frame, 8 * first))
            for argument in others:
                asm.OR(bits, mem(asm.frame, 8 * argument))
            epilogue.emit(bits, True, walk)

    def walk_dst(self, visit: Visit, key: Hashable) -> None:
        """visit(pixel, vector, memory, stored lanes, real lanes) for the whole tile, one vector of channels after the
        other; the code that it emits depends on `key` and on dst."""
        spec, asm, v = self.spec, self.asm, self.v
        dst = asm.gp.take("dst")
        asm.MOV(dst, mem(asm.frame, 8 * DST))
        # Real lanes are output channels; `part` has those of a vector: all lanes (v itself), the first few (TailLanes),
        # or, in vectors that are padding alone, none (Nothing: a load is zeros, a store is none).  Stored lanes are
        # those that dst has room for: with whole vectors all of them, so that zeros of the padding are written too.
        vector_bytes = v.lanes * spec.dst_type.size_bytes
        key = (key, spec.isa, spec.types, spec.dst, spec.dst_pixel_bytes, spec.whole_vectors, spec.operand_types)
        with v.parts(spec.vectors, spec.channels, halves=spec.has_halves) as parts:
            for j, part in enumerate(parts):

                def of_vector(j: int = j, part: Lanes = part) -> None:
                    for p in range(len(spec.src_pixel_bytes)):
                        at = mem(dst, p * spec.dst_pixel_bytes, size=vector_bytes)
                        asm.call_it(at, f"dst[{p}, {j}]")
                        visit(p, j, at, v if spec.whole_vectors else part, part)

                real = min(v.lanes, spec.channels - j * v.lanes)
                asm.stretch((key, len(spec.src_pixel_bytes), j, real), of_vector)
                if j + 1 < spec.vectors and spec.dst_argument:
                    asm.MOV(dst, mem(asm.frame, 8 * spec.place_in_dst(j + 1)[0]))
                elif j + 1 < spec.vectors:
                    asm.ADD(dst, spec.dst_vector_bytes)
        asm.gp.free(dst)
