"""What planners choose by: the numbers that measurements decided, of a CPU class.

The defaults are those of Zen 3 (AMD EPYC, family 25, model 1; 2 cores, a virtual machine), where every number was
measured unless its line says otherwise; of_classes.py says what is different elsewhere.  Numbers of an ISA level, a
format or an encoding stand where they are used.  Sizes are elements unless the name says bytes; a share of n is 1/n.
"""

from collections.abc import Iterator
from typing import Any, Final

from asmdnn.errors import InvalidArguments, shown
from asmdnn.exact import exact
from asmdnn.planning.move_tuning import (
    DropoutTuning,
    ElementwiseTuning,
    GatherTuning,
    MoveTuning,
    NormalizationTuning,
    PoolingTuning,
    ReductionTuning,
    SoftmaxTuning,
    TopKTuning,
    TreeTuning,
)
from asmdnn.planning.product_tuning import ProductTuning
from asmdnn.records import dataclass, fields


@exact
@dataclass(frozen=True, slots=True, eq=False)
class PhaseTuning:
    """What all planners share: costs, the order of tiles, when to wake a team, how much to write out."""

    call_cycles: int = 30  # of a kernel: executor, prologue, and the stores that do not overlap
    latency_cycles: float = 4.0  # of a multiply, where two start in a cycle
    weights_stream_cycles: float = 0.15  # for 32 bytes of a weights row from L2
    src_traffic: int = 3  # what a source byte from beyond L2 costs, in weights bytes: short strided runs
    tiles_to_hide: int = 64  # more tiles than these hide the first one's wait for a panel, and prefetching costs 1%
    least_depth: int = 128  # rows of weights summed at a time: fewer, and partial sums show
    inline_cycles: int = 12_000  # below, a team costs more than it saves: a fork-join is 3,000 cycles when all is warm
    written_out: int = 1 << 14  # records of loops that are all written out; more are rounds, which plan in less time
    round_records: int = 1 << 9  # of a round


@exact
@dataclass(frozen=True, slots=True, eq=False)
class ConvolutionTuning:
    """Of convolutions."""

    panel_share: int = 12  # of L2, for the rows of a panel that are summed at a time (docs/architecture.md)
    near_panel_bytes: int = 24 << 10  # of a panel's rows that stay in L1 from tile to tile, beside src and dst
    source_stream_cycles: float = 0.3  # for 32 bytes of src from L2, which every panel reads: 256 to 512 channels at
    # 28x28, 1x1 with stride 2, run 1.08x faster by panels of 24 than of 16, 32 to 192 at 28x28 1.02x
    planar_channels: int = 16  # with more, channels a whole plane apart cost more than a reorder of the source
    plane_copy_cycles: float = 0.25  # of an element between dense channels and planes, which 1x1 ones of planes save,
    plane_product_share: float = 0.03  # and what these lose as products: 64 to 64 at 56x56 take 107 us and 129
    strip_pixels: int = 64  # a strip of rows may have so many: each of its tiles is a kernel of its own
    grouped_cycles: int = 8_000  # of a call of rows of a grouped one: enough to hide it, few enough to balance threads
    rows_issue_cycles: float = 0.3  # of an instruction of rows with few input channels,
    rows_segment_cycles: float = 20.0  # and of a segment of such a row, besides: bias, stores, loops
    few_sum_cycles: float = 3.0  # to add the lanes of a sum of few output channels, and to store it
    few_direct_share: float = 1.4  # that direct convolution takes, of what ports allow: 9.7 cycles of 12x1, not 6.5
    few_weights_stream_cycles: float = 0.7  # for 32 bytes of weights of few output channels that L1 does not hold,
    few_src_stream_cycles: float = 1.5  # and of src, in short runs: 256 to 4 at 14x14 and 28x28, 64 to 1 at 128x128
    far_image: int = 4  # times L2: rows of a larger image with channels last take two lines of a pixel at a time
    streaming_bytes: int = 8 << 20  # a larger dst of rows, depthwise ones and first layers, goes past the caches
    rows_of_whole: bool = True  # groups that fill a vector go by rows also with strides, and in rows of few pixels
    narrow_cost: float = 1.0  # of a cycle with ymm registers: below 1 they may be faster where f32 channels of dst fill
    # no more than half of the last zmm register, and half of that is multiplied in tiles of other types
    narrow_groups: bool = False  # groups of 8 channels with strides go by ymm registers, one group in each
    grouped_pixel_cycles: int = 3  # of a pixel of rows at least: a load, a store, and what it takes to get on
    cut_step_cycles: float = 1.0  # that a pixel's step takes longer if not all of its bytes exist,
    padded_pixel_cycles: float = 0.5  # and of a copy of a pixel of src, with all of them: 0.27 in L2 on Zen 4
    src_ahead_bytes: int = 16 << 20  # a larger src of a 1x1 one is prefetched a tile ahead: 1.05 to 1.08x faster,
    held_ahead_bytes: int = 2 << 20  # and one of these where weights leave room in L2: 1.1x in the mean
    strided_ahead_bytes: int = 1 << 40  # and of a 1x1 one with strides a row ahead,
    held_strided_bytes: int = 16 << 20  # where weights leave room in L2: 16 images, 256 to 128 at 56x56: 1.13x
    windows_ahead_bytes: int = 1 << 40  # a larger src of windows with strides is, in blocks a row, else in each pixel
    far_pixels_l2: float = 1e9  # src of so many L2s, channels last, is prefetched by 1x1 ones: not timed on a Zen 3,
    pixel_ahead_bytes: int = 128  # so far ahead in each pixel
    rows_ahead_l2: float = 1e9  # src and dst of rows are, of so many L2s of each thread, channels last; nor is this,
    rows_ahead_bytes: int = 1 << 40  # if the rows of src that a window moves on by are no more
    dst_ahead_l2: float = 1e9  # lines of a dst of so many L2s, channels last: nor this
    dst_run_cycles: float = 3.0  # of a run of lines that a tile writes, of a pixel or of several that touch,
    dst_runs_bytes: int = 1 << 60  # in images of so many bytes of dst: not timed on a Zen 3,
    streaming_tile_bytes: int = 1 << 60  # larger ones go past the caches, if tiles write whole lines
    part_turns: int = 1  # of each part of a deconvolution for a panel of weights,
    part_turns_bytes: int = 32 << 20  # where dst is larger
    worth_a_kernel: float = 0.98  # taller strips make more kernels, so they must save 2%
    written_out: int = 1 << 15  # records that are all written out
    round_records: int = 1 << 13  # of more, those of a round


@exact
@dataclass(frozen=True, slots=True, eq=False)
class WinogradTuning:
    """Of Winograd's convolution; cycles of transforms are for 32 bytes of channels of a tile.

    In groups, products are short and what is between the steps of a block may stay in L1: GROUPS has what differs.
    """

    source2_cycles: int = 60  # of a tile of the source, for 2x2 results
    source4_cycles: int = 140  # for 4x4
    products2_cycles: int = 18  # of the products of a tile
    products4_cycles: int = 62
    widen2_cycles: int = 5  # more for a tile of the source in bf16 or f16, which is converted; for 2x2 results
    widen4_cycles: int = 70  # for 4x4
    weights2_cycles: int = 30  # of a pair of channels, for 32 bytes of output channels
    weights4_cycles: int = 70
    weights_vectors: int = 64  # of a call that transforms weights: 9 of them are read, up to 36 written for each
    phase_vectors: int = 16  # of a transform in a phase of its own, which threads share
    direct_busy: float = 0.92  # share of the time in which direct convolution multiplies
    far_bytes_per_cycle: float = 9.0  # of weights from beyond L2: products take at least that long
    memory_bytes_per_cycle: float = 14.0  # of weights that exceed (6 when others use memory)
    held_share: float = 1.0  # of L3: that much longer,
    memory_overlapped: bool = False  # or at least that long, if they come while products run:
    first_tile_waits: bool = False  # those of the first of several tiles of rows that read them, or of all
    block_cycles: int = 30  # of a register block of products, besides its steps
    phases_cycles: int = 10_000  # of three phases instead of one: 2 to 4 us with 8 to 48 channels at 14x14 and 28x28
    # Cycles for a KiB that comes from beyond L2, or goes there,
    weights_kib_cycles: int = 22  # of weights, which are prefetched, and exceed
    weights_share: float = 1.0  # of L2
    ends_kib_cycles: int = 180  # of src and dst
    spilled_kib_cycles: int = 115  # between the steps of a block,
    between_share: float = 0.4  # beyond this share of L2,
    near_kib_cycles: int = 10  # or, within a block, beyond
    near_share: float = 1e6  # of L1, which is never without groups
    phases_kib_cycles: int = 400  # and between phases,
    phases_near_bytes: int = 7 << 17  # beyond this: less comes from L3 in time, as it is written once and read in order
    reread_kib_cycles: int = 14  # of a block's transformed tiles, for panels that do not come at once
    transform_lanes: int = 8  # that are transformed in the cycles above; more take as many times as long
    multiplied_lanes: int = 16  # that two ports multiply at once: of more, loads count less beside their multiplies

    def turns(self, lanes: int) -> int:
        """What a vector of so many lanes takes in a transform, in the cycles above."""
        return max(1, lanes // self.transform_lanes)

    def load_share(self, lanes: int) -> float:
        """Of half a cycle, what a load takes beside multiplies of so many lanes that count as half a cycle."""
        return 1 / max(1, lanes // self.multiplied_lanes)

    def source_cycles(self, m: int, lanes: int) -> int:
        """For a vector."""
        return {2: self.source2_cycles, 4: self.source4_cycles}[m] * self.turns(lanes)

    def widen_cycles(self, m: int, lanes: int) -> int:
        """For a vector."""
        return {2: self.widen2_cycles, 4: self.widen4_cycles}[m] * self.turns(lanes)

    def products_cycles(self, m: int, lanes: int) -> int:
        """For a vector."""
        return {2: self.products2_cycles, 4: self.products4_cycles}[m] * self.turns(lanes)


# Of 25 convolutions in groups of 8 to 232 channels, 7x7 to 56x56, on Zen 3, the choices took 1.024 times as long as the
# fastest cuts of up to 11, the worst 1.08; by the numbers without groups 1.06, the worst 1.5.
GROUPS: Final = WinogradTuning(
    held_share=0.5,
    block_cycles=10,
    ends_kib_cycles=120,
    near_share=2.0,
    phases_kib_cycles=215,
    phases_near_bytes=200 << 10,
)


@exact
@dataclass(frozen=True, slots=True, eq=False)
class WinogradGradientTuning:
    """Of Winograd's gradients of weights, measured on a Zen 4 with AVX2 and AVX-512."""

    chunk_tiles: int = 128  # of a chunk: 64 to 256 are 0.95 to 1.05x as fast
    chunk_share: float = 0.5  # of L3, for its transformed tiles
    sums_share: float = 0.6  # of L2, for the sums of a unit
    diff_dst_cycles: int = 100  # of the transform of a tile of diff_dst, for 32 bytes of channels
    taps_cycles: int = 75  # of that of sums into gradients, for 32 bytes of output channels of a pair
    block_cycles: int = 15  # of a register block of products, besides its steps
    busy: float = 0.85  # share of the time in which products multiply


@exact
@dataclass(frozen=True, slots=True, eq=False)
class PairTuning:
    """Of a convolution and the depthwise one after it."""

    strip_share: float = 0.5  # of L2, for a strip of what is between them, and of src
    least_groups: int = 8  # of records: each is one thread's, and fewer would leave threads without work
    # Cycles for a KiB that comes from beyond L2, or goes there,
    middle_kib_cycles: int = 24  # of what is between them: 1.13x faster by strips with 16 to 96 channels at 112x112
    source_kib_cycles: int = 8  # of src, in long runs: 0.97x with 128 channels at 56x56, whose panels each read it


@dataclass(frozen=True, slots=True)
class AttentionTuning:
    """Of attention."""

    scores_share: int = 2  # of L2, for the scores of a block of rows
    most_rows: int = 128  # of a block: more do not fit L2 with long rows, and balance threads worse
    least_rows: int = 32  # fewer read each packed key and value too often
    few_rows: int = 64  # so many read keys and values where they lie: 5 to 64 rows run 1.03 to 5x faster on Zen 4,
    far_tiles: int = 2  # or two tiles, where rows are apart: on AVX2 64 rows of 8 heads of 128 would take 1.2x as long


@dataclass(frozen=True, slots=True)
class RecurrentTuning:
    """Of recurrent layers."""

    function_cycles: int = 12  # of a gate of a vector of units, after the products
    alone_cycles: int = 3000  # a phase that takes fewer is over before a second thread has come
    ahead_bytes: int = 1 << 20  # fewer weights stay in L2, or come from L3 in time
    starts_last: bool = False  # what gates start from is prefetched by a tile, and added behind its products
    gradient_elements: int = 512  # of a record of a gradient: a step has few, and threads share them
    gradient_rate: int = 2  # operations on vectors in a cycle
    latency_sums: int = 8  # independent sums of one row: they hide the latency of a multiply,
    latency_columns: int = 4  # but for so many vectors of columns, which weights keep waiting: LBR GRU 1.01x as long


@dataclass(frozen=True, slots=True)
class ResamplingTuning:
    """Of resampling."""

    record_cycles: int = 4000  # planes whose rows take less share a record,
    channels_cycles: int = 4000  # and where channels are dense: lines of dst then come plane by plane
    streaming_share: int = 2  # of L3: a larger dst goes past the caches
    pieces_stream: bool = False  # also where pieces of a row are written one after the other, each of whole lines
    wide_row: int = 1  # of linear results: shorter ones that end in a half-empty zmm register take ymm registers


@dataclass(frozen=True, slots=True)
class Tuning:
    """The numbers of a CPU class, by who uses them.  Raises InvalidArguments unless all are above zero, and what is
    yes or no is a bool."""

    phases: PhaseTuning = PhaseTuning()
    products: ProductTuning = ProductTuning()
    convolution: ConvolutionTuning = ConvolutionTuning()
    winograd: WinogradTuning = WinogradTuning()
    winograd_groups: WinogradTuning = GROUPS
    winograd_gradient: WinogradGradientTuning = WinogradGradientTuning()
    pairs: PairTuning = PairTuning()
    moves: MoveTuning = MoveTuning()
    gather: GatherTuning = GatherTuning()
    dropout: DropoutTuning = DropoutTuning()
    trees: TreeTuning = TreeTuning()
    elementwise: ElementwiseTuning = ElementwiseTuning()
    softmax: SoftmaxTuning = SoftmaxTuning()
    normalization: NormalizationTuning = NormalizationTuning()
    reduction: ReductionTuning = ReductionTuning()
    topk: TopKTuning = TopKTuning()
    attention: AttentionTuning = AttentionTuning()
    recurrent: RecurrentTuning = RecurrentTuning()
    pooling: PoolingTuning = PoolingTuning()
    resampling: ResamplingTuning = ResamplingTuning()

    def __post_init__(self) -> None:
        for name, value, kind in _values(self, "", given=True):
            if kind is bool:
                if not isinstance(value, bool):
                    raise InvalidArguments(f"tuning.{name} must be True or False, not {shown(value)}")
            elif not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
                raise InvalidArguments(f"tuning.{name} must be a number above zero, not {shown(value)}")

    def numbers(self) -> Iterator[tuple[str, Any]]:
        """All by their names, such as "products.pack_tiles.whole"."""
        return ((name, value) for name, value, _ in _values(self, ""))


def _values(group: Any, name: str, given: bool = False) -> Iterator[tuple[str, Any, Any]]:
    """Their names, values and types; given: without those that are the default."""
    for each in fields(group):
        value, path = getattr(group, each.name), f"{name}{each.name}"
        if given and value is each.default:
            continue
        if hasattr(type(value), "__dataclass_fields__"):
            yield from _values(value, f"{path}.", given)
        else:
            yield path, value, each.type


DEFAULT: Final = Tuning()  # of_classes.py has what classes have instead
