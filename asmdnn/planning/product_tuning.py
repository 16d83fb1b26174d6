"""The numbers by which planners of matrix products choose; tuning.py says where they were measured."""

from math import gcd

from asmdnn.exact import exact
from asmdnn.isa.lines import L1_SETS_BYTES
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class ByDistance:
    """A number that depends on how a column of weights falls into the sets of L1: into all 64 (`spread`), into 4 where
    rows are a multiple of 1 KiB apart (`quarter`), or into 1 where they are a multiple of 4 KiB apart (`whole`)."""

    spread: int
    quarter: int
    whole: int

    def of(self, row_bytes: int) -> int:
        common = gcd(row_bytes, L1_SETS_BYTES)
        return self.whole if common == L1_SETS_BYTES else self.quarter if common % 1024 == 0 else self.spread


@exact
@dataclass(frozen=True, slots=True, eq=False)
class ProductTuning:
    """Of matrix products; see the modules of `primitives/products` for what each is good for."""

    panel_share: int = 5  # of L2, for the rows of a panel that are summed at a time
    most_ranges: int = 1024  # of k, as a plan has a phase for each
    many_ranges: int = 64  # of k, whose records are written out once for all equal ones
    call_target_cycles: int = 4000  # small matrices of a batch share a call that takes about so long
    small_tile_cycles: int = 1000  # a tile that takes longer has a call of its own
    near_bytes: int = 6 << 10  # of several matrices that all tiles pass over in turn, which then find them in L1
    few_tiles: int = 16  # so many parts give threads work
    split_tiles: int = 8  # fewer, and the sum over k is split; 8 of 1x3072x768 are 1.06x faster whole, on 2 threads too
    few_matrices: int = 4  # of a batch, and they are not multiplied one by one, as threads would have too few
    split_cycles: int = 60_000  # and what all tiles must take for that
    least_split: int = 128  # steps of k in a part of a split sum
    # From so many tiles of rows on plain weights are packed: 20 rows times 3072x768 run 1.35x faster unpacked, 16 rows
    # times 1024x1024 1.15x faster packed.
    pack_tiles: ByDistance = ByDistance(16, 5, 3)
    plain_depth: ByDistance = ByDistance(256, 64, 64)  # steps of k of plain weights that stay in L1 and L2
    reread_cycles: float = 1.05  # for 32 bytes of weights that several tiles of rows read: 3x2 is 1.4x faster than 1x8
    pack_elements: int = 64 * 64  # so few weights stay in L1, and are not worth packing
    group_l2: int = 4  # weights are packed a group at a time that fills so many L2s; twice that for few tiles of rows
    few_row_tiles: int = 4  # of rows read each weight from beyond L2 a few times only: they prefetch next columns
    columns_depth: int = 128  # steps of k at a time then, whose lines fit into L1 beside the prefetched ones
    far_elements: int = 1 << 16  # fewer weights stay in L2
    narrow_panel_rows: int = 1 << 30  # more are packed into panels of a vector for so many rows of src, up to a tile
    # Plain weights that are packed a block at a time, by the thread that multiplies with it: 64 rows times 3072x768
    # run 1.18x faster than with packing tiles, 16 rows times 1024x1024 1.2x, 12 rows times 2048x1000 1.5x faster than
    # unpacked.
    block_depth: int = 256  # steps of k in a block,
    block_columns: int = 128  # and columns at most: 128 KiB of L2, and as much of the next block
    # More rows read a panel so often that packing hardly counts, and fewer partial sums do: 384 rows times 1024x1024
    # run 0.9x as fast by blocks, 256 rows times 3072x768 1.07x.
    block_rows: ByDistance = ByDistance(256, 256, 128)
    block_tiles: ByDistance = ByDistance(5, 2, 2)  # of rows at least: 16 rows times 2048x1000 are 0.7x as fast
    block_least_rows: int = 9  # fewer are two tiles that wait for their own sums, and read weights twice at no cost:
    # 8 rows times 1024x1024 are 1.14x, times 4096x1024 1.38x faster where weights lie
    block_ahead: int = 8  # rows of the block that a packing kernel prefetches
    weights_share: int = 8  # of L2: weights that stay there whatever the order of tiles
    # A dst of so many L2s is written along its rows, and each tile of rows reads all weights, up to so many L2s: panels
    # of columns would touch a page a row.  384 rows times 64x3000 run 1.37x faster, times 192x3000 1.13x, 1000
    # times 64x1536 1.3x, 2000 times 16x2000 1.8x; 384 times 384x3072 0.98 to 1.0x, 128 times 256x3072 would be 0.92x.
    far_dst_l2: float = 3.5
    along_rows_l2: float = 8.0
    dst_ahead_l2: float = 1.5  # and its lines are prefetched: 24 matrices 200x32x400 1.3x, 12 of 384x64x384 1.1x
    streaming_dst_bytes: int = 1 << 60  # larger ones go past the caches, if tiles write whole lines
    far_src_l2: float = 1e9  # lines of a src of so many L2s are prefetched: not timed on a Zen 3,
    src_ahead_bytes: int = 128  # and so far ahead of their use
    stream_bytes: int = 1024  # panels that a single row of dst reads are prefetched so far ahead,
    memory_stream_bytes: int = 1024  # and so far if they come from memory,
    memory_weights_bytes: int = 24 << 20  # as so many do
    stream_rows: int = 16  # and weights that are not packed so many rows ahead
    most_stream_bytes: int = 1 << 24  # but not further
    half_weights_rows: int = 2  # of src are as fast as weights come, which are f16 or bf16 where f32 may be rounded
    bf16_cycles: float = 1.0  # of FMA, that VDPBF16PS takes for a pair: with more than 2, plans weigh f32 in its place
    words_cycles: int = 1000  # that words instead of bytes must save beside the phase that makes them: scratch, a call
    amx_rows: int = 16  # fewer are left to vectors: beside one, 16 are the fewest that were measured
    amx_call_cycles: int = 1050  # that a call's configuration of tiles costs
    amx_call_share: float = 8.0  # times that, calls are long at least, by several panels if rows are few
    amx_most_share: float = 40.0  # and longer, as long as there are so many calls for threads to share:
    amx_calls: int = 8
    amx_step_cycles: float = 64.0  # of a block of 2 by 2 tiles over 16 groups of k: Intel's manual says 16 a product
    amx_end_cycles: int = 60  # of such a block: its sums to the stack; what follows takes multiplies no time
    amx_near_bytes: int = 48 << 10  # of L1: what a block and a panel of weights may have to stay there
    # What a step takes longer where rows of src are an even number of lines apart, or no whole one, and what copying a
    # line takes, out of L2 or from further away: on an Emerald Rapids, which has a row of its own for the others.
    amx_even_cycles: float = 33.0
    amx_split_cycles: float = 60.0
    amx_copied_cycles: float = 13.0
    amx_far_copied_cycles: float = 20.0
    # Of a line of a window that is copied for tiles, on an Emerald Rapids: a load of what is one run, and the store.
    im2col_load_cycles: float = 1.6
    im2col_store_cycles: float = 1.5
    latency_sums: int = 8  # of a single tile at least, which steps of k take in turn: 1x3136x10 2.4x (Zen 5, AVX2 2.2x)
    few_weights: int = 64 * 64  # which stay in L1 and need no prefetch
    strided_depth: int = 8  # more steps of k whose elements of src are strided are copied,
    strided_columns: int = 64  # if so many columns read them
    alias_once: int = 10  # rows of src, all in the same sets of L1, are one tile if it reads panels,
    alias_rows: int = 16  # and so many are copied: 2 to 7% faster,
    alias_plain_rows: int = 16  # or so many where weights are plain,
    alias_columns: int = 512  # if so many columns read them,
    alias_copy_bytes: int = 64 << 20  # and they are no more; more memory is not worth the gain
    vector_rows: int = 32  # of weights that a vector is multiplied with at a time
    few_vectors: int = 4  # rows of src with which far weights are multiplied by whole rows: 2 rows times 1024x1024 run
    # 2.2x faster than tiles, 4 times 2048x1000 1.3x; 5 times 300x3000 0.74x
    # So few weights tiles read as fast: 1 row times 400x400 runs 1.2x faster by them, 2 rows times 512x2000 too,
    # 4 times 1000x600 1.14x.  Rows more pages apart they read slower: 1 row times 256x4100 would be 0.9x, 2 rows 0.78x.
    tiles_elements: ByDistance = ByDistance(1 << 20, 1 << 16, 1)
    few_tiles_elements: ByDistance = ByDistance(1 << 20, 1 << 16, 1)  # of two rows and more
    tiles_apart: int = 12 << 10
    vector_columns: int = 128  # fewer are left to tiles,
    packed_columns: int = 16  # or so few if tiles read packed weights only
    vector_near: int = 4096  # columns whose sums stay in L1
    dot_depth: int = 8  # elements of a row that are worth adding up lanes, 4 rows at a time
    dot_rows: int = 8  # and so many rows; or fewer of so many elements in all, since a tile of 1 column has 1 lane:
    dot_elements_least: int = 96  # 2 rows of 64 take the same either way, 64 times 4 rows of 3136 43 us, tiles 202
    dot_elements_most: int = 1 << 20  # of few rows, since one thread reads them; more are cut along k for many
    dot_vectors: int = 3  # that so many rows of src are multiplied with, even if registers do not hold all their sums
    dot_row_bytes: int = 1 << 30  # of k are worth one more: to add up its lanes costs more than to pack less than that,
    dot_near_bytes: int = 1 << 40  # of vectors that are multiplied at once stay in L1: of longer ones a range of k does
    dot_elements: int = 1 << 15  # of src that a call reads
    many_dots: int = 1 << 9  # records that are written out
    scaled_rows: int = 3  # of src share what scales integers; sums of groups of fewer are scaled instead
    outer_depth: int = 8  # with more steps of k there is more to multiply than to store, and tiles are as fast,
    streamed_depth: int = 16  # with more also if dst is written past the caches
    outer_bytes: int = 16 << 10  # of weights, or of a block of packed ones, that each row of dst reads from L1 again
    set_lines: int = 6  # lines of src, or of weights, in a set of L1, which has 8 and takes others besides
    panel_lines: int = 6  # and of src where tiles read panels
    few_rows: int = 16  # read aliasing operands of outer products so seldom that no copy pays
    outer_cycles: int = 20_000  # of a call
    many_blocks: int = 1 << 5  # written out
    streaming_bytes: int = 16 << 20  # a larger dst is written past the caches (24 GB/s instead of 14; 32 MiB of L3)
    written_out: int = 1 << 14  # records that are all written out
    round_records: int = 1 << 12  # of more, those of a round: enough that the caches' first fill does not show
