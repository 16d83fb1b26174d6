"""What planners choose by where memory decides: of moves, element-wise functions, pooling, work along an axis.

tuning.py says where numbers were measured, and has the others.
"""

from typing import Final

from asmdnn.exact import exact
from asmdnn.records import dataclass

MAX_BYTES: Final = 1 << 62  # no tensor has so many


@exact
@dataclass(frozen=True, slots=True, eq=False)
class MoveTuning:
    """Of reorders and shuffles."""

    call_cycles: int = 20  # of a kernel
    bytes_per_cycle: int = 8  # moved by a shuffle
    # Of reorders, fitted to the 10th percentiles of 254 of them (primitives/reorder/cost.py):
    near_bytes_per_cycle: float = 20.0  # of src and dst, from caches
    run_cycles: float = 1.5  # of what is dense, in src and in dst
    conflict_cycles: float = 7.0  # of a line in a set of L1 that holds fewer lines than fall into it
    convert_cycles: float = 0.03  # of an element of another type
    round_cycles: float = 0.2  # of one that no instruction rounds, such as bf16's
    far_bytes_per_cycle: float = 15.0  # from memory, besides
    far_run_cycles: float = 5.0
    wide_cost: float = 1.0  # of a move with zmm registers, in those with ymm: measured on Zen 5, by 3 0.5 to 0.9x
    wide_parts_cost: float = 1.0  # the same where a register has parts of several rows of dst,
    wide_shuffle_cost: float = 1.0  # or where a shuffle's units are built,
    many_sources_cost: float = 1.0  # times that for f32 from more than two places, or from blocks that are read again
    far_sources_cost: float = 1.0  # times that where results go past the caches,
    blocked_permute_cost: float = 1.0  # of permuted vectors where channels lie in blocks, in those where they are dense
    permute_cost: float = 4.0  # of VPERMD with ymm registers, in other vector instructions
    record_bytes: int = 16 << 10  # of dst, and as much of src: both stay in L1, and threads get equal shares
    row_bytes: int = 8 << 10  # of a row that is copied or converted in a piece
    strided_bytes: int = 128 << 10  # of rows that share lines of dst with other records: the lines wait in L2
    most_row_bytes: int = 256  # of a row that a transpose writes whole: longer ones are too much code
    near_row_bytes: int = 64  # and where f32 stay in the caches: 24 channels 1.3x faster by lines, 64 1.1x
    page_bytes: int = 4096  # rows of dst so far apart are transposed a few lines at a time,
    page_lines: int = 4  # so many, while the page is at hand
    conflict_bytes: int = 1024  # and these, if their lines conflict in L1: nchw to nhwc 512x14x14 1.5x, 256x28x28 1.15x
    set_lines: int = 8  # lines that a set of L1 holds: more rows are read a line at a time, 64x64x64 3x faster
    convert_rows: int = 16  # unrolled side of a transpose that converts,
    near_convert_bytes: int = 16  # and at least so much of a row of dst, where rows are near one another
    least_across: int = 4  # units of a line that a transpose unrolls, where they are so large that few make one
    unrolled_bytes: int = 512  # of a row that is copied, in a turn of its loop
    convert_ahead_bytes: int = 1024  # lines of dst are prefetched so far ahead of conversions to wider types
    streamed_row_bytes: int = 128  # shorter rows of a concatenation are not worth to go past the caches: two lines
    unrolled_rows: int = 64  # of one element; of longer rows fewer
    permuted_units: int = 64  # vectors of a pixel in one kernel of a shuffle: more are too much code
    streaming_bytes: int = 16 << 20  # src and dst of a reorder so large go past the caches
    division_cycles: int = 2  # for a scale that is divided by another one, eight at a time
    compensation_vectors: int = 64  # that a tap of a compensation adds, unrolled
    fewest_pixels: int = 8  # of a shuffle's kernel
    shuffle_moves: int = 64  # elements that one kernel of a shuffle moves one by one
    # Units of 16 bytes that a row of dst has where they are taken from within it, though they do not divide it; and of
    # elements of 1 or 2 bytes in 8 rows, which are unpacked, fewer (u8 of 20 rows of 30: 12 us instead of 106).
    row_units: float = 2.0
    unpacked_row_units: float = 1.5
    few_shuffle_rows: int = 16  # with more columns than that, units that come from the same place are built together
    shuffle_streaming_bytes: int = 8 << 20  # a dst so large will not be read from cache (of 12 MiB, 32 MiB of L3)
    many_positions: int = 1 << 16  # of a shuffle, whose records are written out
    round_positions: int = 1 << 12  # of more, those of a round


@dataclass(frozen=True, slots=True)
class GatherTuning:
    """Of gathers and scatters."""

    call_cycles: int = 20  # of a kernel
    row_cycles: int = 4  # of a row: its index, bounded and multiplied
    bytes_per_cycle: int = 8  # copied
    record_bytes: int = 16 << 10  # of dst: threads get equal shares
    row_bytes: int = 64 << 10  # of a row that is copied in one piece
    most_rows: int = 1 << 10  # of a record: where rows lie apart, its footprint is listed row by row
    scattered_bytes: int = 256  # of each row at least in a record of a scatter, which has all indices
    scattered_rows: int = 1 << 14  # at most where rows are cut: their footprints are listed, too


@dataclass(frozen=True, slots=True)
class TreeTuning:
    """Of sums over decision trees."""

    call_cycles: int = 60  # of a kernel
    step_cycles: int = 3  # of a row in a tree
    codes_rows: int = 16  # of a record that makes codes of rows
    codes_per_cycle: int = 4


@dataclass(frozen=True, slots=True)
class DropoutTuning:
    """Of dropout, and of random numbers."""

    call_cycles: int = 60  # of a kernel
    vector_cycles: int = 20  # of a vector: half of what a turn of the generator takes
    normal_cycles: int = 20  # more of a vector of normal numbers
    record_elements: int = 4096  # 16 KiB of src and of dst: stays in L1, and balances threads; a multiple of 32


@dataclass(frozen=True, slots=True)
class ElementwiseTuning:
    """Of element-wise functions."""

    call_cycles: int = 20  # of a kernel
    row_cycles: int = 4  # of a row
    steps_per_cycle: int = 3  # of a function, for a vector
    bytes_per_cycle: int = 16  # of vectors that come from L2
    record_elements: int = 4096  # 16 KiB of each tensor: stays in L1, and balances threads
    whole_row: int = 4096  # elements of a row of many that is not cut: a piece by another kernel begins its prefetching
    most_rows: int = 64  # of a record: their footprint is listed row by row
    repeated_bytes: int = 16 << 10  # of what is the same in all rows of a record
    least_elements: int = 256  # of a call whose rows follow one another in dst; with fewer, others that are more
    interleaved: int = 6  # vectors in turn: 4 are slower, since too many multiplications wait; 8 need the stack often
    wide_interleaved: int = 6  # with zmm registers, of which there are twice as many,
    wide_streamed: int = 6  # and of short functions where dst goes past the caches
    ahead_bytes: int = 2048  # src of long functions is prefetched so far ahead, where dst goes past the caches
    # Tensors that come to so much leave nothing of dst in 32 MiB of L3.  On Zen 4 relu of 19 MB is 1.18x faster through
    # the caches, of 26 MB 1.03x, of 32 MB 1.06x past them, a sum of two of 29 MB 1.4x, though one of 19 MB is 1.18x; on
    # Zen 5 relu of 19 MB 1.53x through them, of 39 MB 1.08x past them, a sum of two of 29 MB 1.15x.
    streaming_bytes: int = 24 << 20


@dataclass(frozen=True, slots=True)
class SoftmaxTuning:
    """Of softmax; `elementwise` says how many rows a record has."""

    call_cycles: int = 30  # of a kernel
    row_cycles: int = 40  # of a row, besides its vectors: the latency of two reductions
    vector_cycles: int = 9  # of a vector
    prefetched_bytes: int = 8 << 20  # a src so large comes from memory


@exact
@dataclass(frozen=True, slots=True, eq=False)
class NormalizationTuning:
    """Of normalizations; `elementwise` says how many rows a record has, and when dst goes past the caches."""

    call_cycles: int = 30  # of a kernel
    row_cycles: int = 50  # of a row, besides its vectors: the latency of two reductions
    vector_cycles: int = 4  # of a vector
    power_cycles: int = 16  # of a vector of local response normalization, besides its window
    lrn_row: int = 512  # of pixels with channels apart: some rows of src, and one of dst, stay in L1
    lrn_record: int = 1 << 14  # elements of a call
    # Of group norms of f32 that go unit by unit, a group or an image: so many units at least, which threads share,
    least_units: int = 16
    # of so many bytes, that L1 holds: on Zen 4 1.05 to 1.2x; of 4 KiB and less 0.64 to 0.98x, of 32 KiB 0.96x,
    near_unit_bytes: int = 8 << 10
    far_unit_bytes: int = 16 << 10
    # or of up to this share of L2, where dst goes past the caches: on Zen 4 1.0 to 1.5x.  In L3 these are 0.8 to 1.0x.
    unit_l2: float = 1.0


@dataclass(frozen=True, slots=True)
class ReductionTuning:
    """Of reductions; `elementwise` says how many rows a record has at most."""

    call_cycles: int = 30  # of a kernel
    row_cycles: int = 12  # of a row, besides its vectors
    row_elements: int = 8192  # of a chunk along dense rows: what a sum adds up before the tree begins
    prefetched_bytes: int = MAX_BYTES  # rows of a src so large are asked for before they are read
    chunk_elements: int = 16384  # of a chunk of rows apart
    lanes: int = 512  # of the rows of such a chunk
    sum_cycles: int = 4  # of a vector of cumulative sums, each of which waits for the one before
    merged: int = 64  # results that a level of the tree makes one of: longer chains round more
    narrow_elements: int = 1  # of dense rows so short take ymm registers: a wide reduction has a step more
    # Of gradients down rows whose sums registers do not hold: so large tensors are read by whole rows, with one sum in
    # memory, or several.  PReLU of 256 channels at 56x56 runs 2.2x faster, of 144 2.1x, batch norm of both 1.4x.  Of
    # 5 MB, in the cache, they take 0.95 and 1.06 of the time.
    whole_rows_bytes: int = 1
    whole_rows_of_sums_bytes: int = 12 << 20


@dataclass(frozen=True, slots=True)
class TopKTuning:
    """Of the k best along an axis; `elementwise` says how many rows a record has."""

    call_cycles: int = 30  # of a kernel
    vector_cycles: int = 4  # of a vector
    level_cycles: int = 2  # of a vector, for each of several results
    result_cycles: int = 40  # of a result of a row: the latency of two reductions
    lanes: int = 64  # of a record of rows apart, at least: four lines of each row
    narrow_elements: int = 4096  # of rows whose lists take ymm registers: Zen 5, top 2 of 4096x8 1.8x, 8 of 4096x64 1.4
    narrow_largest: int = 1  # the same for one result of each row
    most_listed: int = 10  # results of rows, more are sorted: lists of 8 took 0.7 to 1.1x as long, of 16 1.4 to 2.6x
    listed_elements: int = 16  # or fewer; of longer rows so many results are listed,
    most_listed_long: int = 10  # which is not timed apart on a Zen 3
    most_listed_lanes: int = 16  # of lanes: top 32 of 1x1000x256 along 1000 by lists 0.7x, of 4x100x64 0.4 to 0.55x


@exact
@dataclass(frozen=True, slots=True, eq=False)
class PoolingTuning:
    """Of pooling: register blocks where channels are dense, and how much a record does."""

    record_cycles: int = 20_000  # of whole planes or lines, so that threads get equal shares
    few_vectors: int = 2  # of channels, where neighbouring results share columns: a line of 64 bytes with AVX2
    conflict_vectors: int = 8  # if their lines conflict in L1, so that none stays that came ahead: 3x3 of 512 to 2048
    # channels 1.6 to 1.9x faster, measured on Zen 4
    most_vectors: int = 8  # where they do not: long stretches of every pixel; 4 are 4% slower from L3
    walked_vectors: int = 4  # of a window in loops
    indexed_vectors: int = 4  # of results with indices, of one pixel or of several
    indexed_positions: int = 16  # of a window, above which columns are reduced before rows if neighbours share them
    most_pixels: int = 8  # that share columns
    few_calls: int = 16  # fewer, and channels are shared out, too,
    fewest_elements: int = 128  # so many at a time: whole lines, and their neighbours that a CPU fetches with them
    short_rows_share: int = 2  # of L2: so small src and dst are reordered if rows fill half of a vector at most,
    short_rows_channels: int = 64  # and there are so many channels: 64x7x7 1.13x faster, 32x8x8 0.86x
    strided_results: int = 4  # of a row whose windows have stride 2, so few are short,
    padded_strided_results: int = 4  # and of one that reaches beyond edges,
    padded_results: int = 1  # and with stride 1
    # Channels of short rows that a thread makes dense at a time, and what their copies are at most.  On Zen 4 256 are
    # 0.85 to 1.06x as fast, 64 0.9 to 1.15x.  A larger part of L3 is no faster so: 16x1280x8x8 0.7 to 1.07x.
    near_channels: int = 128
    near_bytes: int = 128 << 10
    near_l3_share: int = 8
    overlap: int = 3  # times that a column is covered, from which on reducing rows before columns pays
    wide_row: int = 1  # of results: shorter ones that fill no whole zmm registers take ymm registers
    narrow_plane: int = 1  # elements of a whole plane, and of fewer, that take ymm registers
    rows_ahead_l2: float = 1e9  # gradients of maxima ask for rows of windows in front, of so many L2s of each thread
    # Estimates of cycles, so that threads get equal shares; nobody has measured them:
    plane_cycles: int = 25  # of a whole plane, to call its kernel and make one number of a vector,
    plane_vector_cycles: int = 2  # and of each of its vectors
    row_cycles: int = 8  # of a row of results, to call its kernel,
    row_vector_cycles: int = 3  # and of each vector of results, beside its columns


PIECES_OF_ROWS: Final = ReductionTuning(whole_rows_bytes=MAX_BYTES, whole_rows_of_sums_bytes=MAX_BYTES)
