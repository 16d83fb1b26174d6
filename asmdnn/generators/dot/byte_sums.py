"""Products of rows of bytes with random numbers, which stand for the bytes (runtime/byte_sums.py).

    dst[i, j] = the sum over k of src[i, k] * weights[k, j], modulo 2^32

| argument | dtype[shape] | what it is |
|---|---|---|
| src | s16[BLOCK_ROWS, ROW_WORDS] | dense rows |
| weights | s8[ROW_WORDS / 2, COLUMNS, 2] | a panel |
| dst | s32[BLOCK_ROWS, COLUMNS] | only written |
| prefetched | bytes[BLOCK_BYTES] | the next block |

The code is that of a product's tile, by a name of its own: who reads a network from the cache on disk finds it there
without the generators, whose import would take longer than the sum of a small network.
"""

from typing import TYPE_CHECKING, Final

from asmdnn.forking import importing
from asmdnn.generators.contract import Footprint
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import NARROWEST, vector_bytes
from asmdnn.records import dataclass
from asmdnn.types import s16, s32

if TYPE_CHECKING:
    from asmdnn.generators.dot.matmul import MatmulTileSpec
    from asmdnn.isa.assembler import Assembler

COLUMNS: Final = 16
ROW_BYTES: Final = 4032  # 63 lines, so that rows fall into different sets of L1
ROW_WORDS: Final = ROW_BYTES // s16.size_bytes
BLOCK_ROWS: Final = 24
BLOCK_BYTES: Final = BLOCK_ROWS * ROW_BYTES  # of a call
DST_ROW_BYTES: Final = COLUMNS * s32.size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteSumsSpec:
    """See above."""

    isa = NARROWEST  # for all levels, whose sums are equal so: half the speed of memory on a Zen 3
    name = f"byte_sums_{BLOCK_ROWS}x{ROW_BYTES}__{NARROWEST}"
    frame = ("src", "weights", "bias", "dst", "prefetched", "scale", "packed")

    def footprint(self) -> Footprint:
        return tile_spec().footprint()

    def generate(self, asm: "Assembler") -> None:
        tile_spec().generate(asm)


def tile_spec() -> "MatmulTileSpec":
    """The tile of a block, as high as registers allow, while the next block's lines come."""
    with importing():
        from asmdnn.generators.dot.matmul import UNROLL, MatmulTileSpec
        from asmdnn.generators.dot.matmul_shape import Items, MatmulTile
        from asmdnn.isa.dot import GROUP_BYTES, S16S8, blocks_of

    vectors = DST_ROW_BYTES // vector_bytes(NARROWEST)
    rows = blocks_of(S16S8, NARROWEST)[vectors]
    lines = BLOCK_BYTES // LINE_BYTES // (ROW_BYTES // GROUP_BYTES // UNROLL * (BLOCK_ROWS // rows))
    items = Items(BLOCK_ROWS // rows, rows * ROW_BYTES, 0, 0, rows * DST_ROW_BYTES)
    return MatmulTileSpec(
        tile=MatmulTile(
            NARROWEST, rows, COLUMNS, ROW_WORDS, src_row_bytes=ROW_BYTES, src_depth_bytes=GROUP_BYTES,
            weights_row_bytes=S16S8.group * COLUMNS, panel_vectors=vectors, panel_bytes=0, padded=True,
            dst_row_bytes=DST_ROW_BYTES, prefetch_lines=lines, items=items, types=S16S8, dst=s32,
        )
    )  # fmt: skip
