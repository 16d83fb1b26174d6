"""Pooling where channels are dense: lanes are channels of one pixel (nhwc, nChw8c, nChw16c).

    dst[i, c] = max or mean over the positions t of a window of src[i, t, c]

| argument | dtype[shape] | what it is |
|---|---|---|
| src | kind | windows in nested loops, each of up to three axes of positions; `elements` channels dense; only read |
| dst | kind | a result for each window, in the same loops; only written, or read by a sum |
| words | int64[...] | how often loops come, and distances: pixel_words.py; of kernels that have any |

All windows of a kernel have the same positions: those of the interior, or the fewer ones of an edge.  `pixels` results
of the innermost loop are computed at a time and share what is reduced of a column that several of them cover: 3x3 at
stride 1 takes 18 loads for four results, not 36.  A window of more than UNROLLED positions is walked by loops; a mean
is then summed along the last axis first, so that rounding grows with the sides of a window and not with its area.  The
largest number of no position is the least one, -infinity of f32; their mean is 0.

The size of the image, and what follows from it, is in the words, so that one kernel serves images of any size.

With `streaming`, whole vectors go past the caches if dst is aligned to a vector, as all its steps must be.
"""

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, KernelWords, Range
from asmdnn.generators.functions.chain import chain_words
from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.pooling.pixel_words import (
    ANY,
    DIVISOR,
    WORD_BYTES,
    image_words,
    loops_in_code,
    window_in_code,
)
from asmdnn.generators.pooling.pixels_code import WORDS, PixelsCode
from asmdnn.generators.pooling.window import (
    ARGUMENTS,
    PixelLoop,
    Pooled,
    Taps,
    pixels_touched,
)
from asmdnn.generators.stores import emit_stored
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.elements import size_of
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPixelsSpec(Pooled):
    """What a kernel does; its bytes depend on `code_spec`.

    loops: the outermost first; the last one is of pixels in a row.  window: the axes, outermost first.  divisor: of a
    mean.  pixels, vectors: results of the innermost loop, and vectors of channels, in registers at a time.  alg: avg,
    max, or max_s8 and max_u8, of whose bytes four are one of the `elements`.  kind: the type in memory; others than
    f32 are brought to it, and rounded from it, and have no post-ops.
    """

    isa: str
    alg: str
    loops: tuple[PixelLoop, ...]
    window: tuple[Taps, ...]
    elements: int
    pixels: int
    vectors: int
    divisor: int = 1
    chain: tuple[PostOp, ...] = ()
    streaming: bool = False
    kind: str = "f32"

    @property
    def name(self) -> str:
        sizes = "x".join(str(taps.positions) for taps in self.window)
        alg, _, of_bytes = self.alg.partition("_")
        words = [f"{alg}pool_{of_bytes or self.kind}_{sizes}_{self.pixels}x{self.vectors}", *chain_words(self.chain)]
        words += ["streaming"] * self.streaming
        return f"{'_'.join(words)}_{checksum(self.code_spec)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return (*ARGUMENTS, "words") if self.words else ARGUMENTS

    @property
    def words(self) -> dict[str, int]:
        """What the code reads, by name, in order."""
        return image_words(self.loops, self.window, self.pixels, self.divisor, self.is_divided)

    @property
    def is_divided(self) -> bool:
        """Whether a sum becomes a mean."""
        return self.alg == "avg" and self.divisor != 1

    @property
    def code_spec(self) -> "PoolPixelsSpec":
        """What the bytes depend on: the same without the words."""
        loops, window = loops_in_code(self.loops, self.pixels), window_in_code(self.window)
        divisor = ANY if DIVISOR in self.words else self.divisor
        return replace(self, loops=loops, window=window, divisor=divisor)

    def footprint(self) -> Footprint:
        src, dst = pixels_touched(self.loops, self.window, size_of(self.kind) * self.elements)
        values = tuple(self.words.values())
        words = [Range(WORDS, 0, WORD_BYTES * len(values))] if values else []
        reads = (*src, *(dst if self.reads_dst else ()), *words)
        return Footprint(reads, dst, words=KernelWords(WORDS, values) if values else None)

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        code = PixelsCode(self, v)
        emit_stored(v, code.dst, code.run, self.streaming)
