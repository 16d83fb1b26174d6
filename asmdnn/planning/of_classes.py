"""What planners choose by on CPU classes: the numbers that differ from the default, each with where it is from.

Emerald Rapids, Zen 4 and Zen 5 were measured: on a CPU of the class, in turns with the default in one process, one
thread.  Gains there are by the 10th percentile of many samples, unless a median is said.  Of three classes of Intel's
numbers are from Intel's manual, from LLVM's model, or measured on another CPU of the same core; nobody has timed what
they do to plans.  All others share the default: a manual says little about what a plan takes.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from asmdnn.isa.levels import AVX2
from asmdnn.isa.vectors import vector_bytes
from asmdnn.planning.move_tuning import ElementwiseTuning, MoveTuning, ReductionTuning, TopKTuning
from asmdnn.planning.product_tuning import ByDistance, ProductTuning
from asmdnn.planning.tuning import (
    DEFAULT,
    GROUPS,
    ConvolutionTuning,
    PhaseTuning,
    PoolingTuning,
    ResamplingTuning,
    Tuning,
    WinogradTuning,
)
from asmdnn.records import replace

MAX_BYTES: Final = 1 << 62  # no tensor has so many,
MAX_ROWS: Final = 1 << 30  # and none so many
FEW_BY_TILES: Final = ByDistance(1 << 16, 1 << 16, 1)  # one row to four by tiles; more weights are not timed so
PIECES_OF_ROWS: Final = ReductionTuning(whole_rows_bytes=MAX_BYTES, whole_rows_of_sums_bytes=MAX_BYTES)

# A virtual machine of Emerald Rapids class (L1 48 KB in 12 ways, L2 2 MB), AVX-512; equal plans were 0.9 to 1.05 apart.
# Of 260 MB of L3, which a socket shares, a core gets 30 GB/s, about what it reads from memory, where it writes lines
# without reading them first.  So from 8 MiB on dst goes past the caches: alone 1.2 to 1.3x, and with a function that
# reads it next 1.1x.  From 4 MiB on it would be 1.2x alone, but 0.9x with that reader.
EMERALD_RAPIDS: Final = Tuning(
    convolution=ConvolutionTuning(
        held_ahead_bytes=1 << 20,
        src_ahead_bytes=1 << 20,  # 16 images, 512 to 128 at 28x28: 1.20x, 1024 to 256 1.18x
        # Groups of 16, as tiles: ResNeXt-50's 28x28 to 14x14 1.19x, RegNetX-400MF's four with strides 1.2 to 1.26x, 7x7
        # 1.24x; 14x14 without strides are level.
        rows_of_whole=False,
        strided_ahead_bytes=1 << 20,  # 16 images, 256 to 128 at 56x56: 1.27x, 512 to 256 at 28x28 1.11x; one: 1.09x
    ),
    products=ProductTuning(
        tiles_elements=FEW_BY_TILES,
        pack_tiles=ByDistance(16, 7, 7),  # 32 rows times 1024x1024 1.35x faster unpacked, 48 rows 1.22, 64 1.06
        columns_depth=64,  # 16 rows times 4096x4096 1.5 to 1.7x faster, others level
        # 16 rows times 1024x1024 1.36x, 4096x4096 1.67x, 512x512 1.24x, 32 rows times 3072x768 1.21x; with 48 rows
        # 0.99 to 1.1x, with 64 0.8 to 1.1x.
        block_least_rows=33,
        along_rows_l2=0.125,  # not timed with weights that come from this L3,
        dst_ahead_l2=1e9,  # nor is this
        # 1.33 G VDPBF16PS a second, 5.3 G FMA.  As f32 16 rows times 768x768 run 1.47x faster, 512 rows 1.41x, 64 to
        # 256 channels 1x1 at 56x56 1.18x, 64 3x3 1.47x, 512 at 7x7 1.34x; 256 to 128 of stride 2, 2.75 times the
        # cycles, 0.77x.
        bf16_cycles=2.6,
        # Of 16 products from 64x64x64 to 1024x2048x2048; both in L1 a prototype took 61 to 73.
        amx_step_cycles=110.0,
    ),
    moves=MoveTuning(
        page_bytes=1024,  # nchw to nhwc 256x28x28 1.24x, 512x14x14 1.46x, ab to ba 512x512 1.48x faster
        streaming_bytes=8 << 20,  # 19 of 184 reorders 1.08 to 1.11x in the mean, 0.92 at least
        shuffle_streaming_bytes=4 << 20,  # of dst: 21 shuffles of 6 MB 1.18x in the mean
    ),
    elementwise=ElementwiseTuning(streaming_bytes=8 << 20),  # relu of 13 MB 1.18x, of 19 MB 1.18x, tanh 1.00 and 1.04x
    reduction=PIECES_OF_ROWS,  # whole ones are not timed with AVX-512, as little as on Zen 4 and 5
    resampling=ResamplingTuning(streaming_share=32),  # dst of 26 MB 1.14 to 2.8x, of 51 MB 2.6 to 3.2x
    topk=TopKTuning(narrow_elements=32),  # top 5 of 128x1000 1.7x faster by zmm, top 8 of 4096x64 1.35x, 4096x8 0.83x
)
# AMD EPYC (family 26, model 2), 2 cores of a virtual machine, 512 bits wide; AVX-512.
ZEN5: Final = Tuning(
    convolution=ConvolutionTuning(
        panel_share=6,  # atrous 3x3 1.07x, VGG's 3x3 1.02 to 1.03x, ResNet-50's 1.01 to 1.02x
        src_ahead_bytes=8 << 20,  # 16 images, 1x1 from 64 channels at 56x56: 1.11x
        held_ahead_bytes=8 << 20,  # less is not timed, as little as on Zen 4,
        held_strided_bytes=1 << 40,  # and so are strides
        part_turns=64,  # 64 channels to 368x640 with stride 2 1.27x, in 4 and 16 turns 1.15 and 1.21x; U-Net 1.05x
    ),
    # 16 rows times 4096x4096 1.41x, times 1024x1024 1.14x, all 20 of `matmul_plain` 1.05x; the last two are not timed
    products=ProductTuning(
        tiles_elements=FEW_BY_TILES,
        few_tiles_elements=FEW_BY_TILES,
        block_least_rows=128,
        along_rows_l2=0.125,
        dst_ahead_l2=1e9,
    ),
    reduction=PIECES_OF_ROWS,
    moves=MoveTuning(
        # VPERMT2PS takes 0.5 cycles, an unpack 0.25, and loads of zmm cross lines or come from L2 again: groups of 2, 3
        # and 4 in blocks are 1.3 to 2.4x by ymm units, 4 in nhwc 1.25x; 240 and 480 rows in blocks 0.65 to 0.72x.
        many_sources_cost=2.3,
        permute_cost=2.0,  # VPERMD takes as long, by a microbenchmark; it decided none of 348 shuffles
        # f32 nchw to s8 and u8 nhwc 512x14x14 2.1x, others near 1; 64 bytes of bf16 are 0.95 to
        # 1.1x.  A page apart it would be 0.5x.
        near_convert_bytes=32,
        convert_ahead_bytes=64,  # bf16 and s8 to f32 in L2 1.08 to 1.10x, level elsewhere
        streaming_bytes=24 << 20,  # bf16 to f32 of 19 MB 1.36x, f32 nchw to nhwc 1.23x
    ),
    # 48 functions in L2 1.04x in the mean (0.97 to 1.28; clip backward 0.79 in one process), 24 of two tensors 1.03x
    # (0.96 to 1.12); past the caches square 1.17x, relu 1.08x, products of two tensors 1.05x, sizes that 4 divides.
    elementwise=ElementwiseTuning(wide_interleaved=8, wide_streamed=4),
    pooling=PoolingTuning(wide_row=9),  # planes of 8 columns 0.89x with zmm
    # A zmm register is transformed in the time of a ymm: 16 channels a group at 14x14 1.39 to 1.67x, 32 at 7x7 1.08x.
    # Weights from memory come while products run, 9 bytes a cycle: 512 channels at 14x14 1.30x.
    winograd=WinogradTuning(transform_lanes=16, memory_overlapped=True),
    winograd_groups=replace(
        GROUPS, transform_lanes=16, memory_overlapped=True, far_bytes_per_cycle=25.0, memory_bytes_per_cycle=25.0
    ),
)
# AMD EPYC (family 25, model 17), 2 cores of a virtual machine beside other work; AVX-512, executed 256 bits at a time.
# All of a vector, multiplies too, then takes twice as long, and what counts is their ratio: Winograd's is that of ymm.
ZEN4: Final = Tuning(
    convolution=ConvolutionTuning(
        # f32 of 2 to 7 MB, 192 and 256 to 64 channels at 56x56 1.12 and 1.2x, 512 to 128 at 28x28, 2 images, 1.13x,
        # others 1.0 to 1.1x; bf16 0.99 to 1.03x.
        src_ahead_bytes=1 << 20,
        held_ahead_bytes=1 << 20,
        # f32 192 to 64 and 32 channels at 56x56, 4 images, 1.18 and 1.35x (bf16 1.21, 1.14x), 256 to 64 at 56x56 1.2x
        # (1.1x), 144 to 24 1.25x; u8 1.0 to 1.06x, strides 1.0 to 1.04x.
        far_pixels_l2=0.5,
        # 3 to 320 channels at 80x80, 4 images, f32 1.2x, bf16 1.46x, u8 to f32 1.18x (two threads 0.98, 1.4x), 16 to 64
        # at 160x160 f32 1.18x, u8 to f32 1.32x, 128 to 512 at 28x28 1.03, 1.22x; 60 others 0.97 to 1.3x, median 1.01x.
        dst_ahead_l2=0.5,
        # 144 channels at 56x56, 8 images, 3x3 f32 1.5x, bf16 1.9x, 128 at 147x147 1.5x, 96 at 112x112, stride 2, 1.7
        # and 2.4x, 320 at 80x80 1.3 and 1.5x, u8 1.0 to 1.3x.  Fewer bytes than two L2s of a thread would be 0.9 to
        # 1.1x on two threads.
        rows_ahead_l2=2.0,
        strided_ahead_bytes=1 << 20,  # 16 images, 256 to 128 at 56x56: 1.18x, 512 to 256 at 28x28 1.11x; one: 1.01x
        rows_of_whole=False,  # groups of 16 with strides 1.03 to 1.16x, of 7x7 1.09 to 1.15x
        narrow_cost=0.58,  # 8 channels 1.3 to 1.7x, 24 1.2 to 1.4x, 40 1.0 to 1.15x; 56 and 72 would be 0.94 to 1.03x
        part_turns=32,  # 64 channels to 368x640 with stride 2 1.10x, two threads 1.05x; 2 images to 320x320 1.12, 1.16x
        narrow_groups=True,  # 3x3 with strides, 256 channels at 56x56 1.16x, at 14x14 1.09x, 8 images at 20x20 1.22x
    ),
    products=ProductTuning(
        # One row times 400x400 1.12x, 512x320 1.14x, 200x1000 would be 0.92x; four rows times 512x512 1.22x, 768x768
        # 1.15x, 200x1000 1.17x, 1000x1000 1.05x, two 1.0 to 1.2x; on two threads 1.1 to 1.4x.
        tiles_elements=ByDistance(170_000, 1 << 16, 1),
        few_tiles_elements=ByDistance(1 << 20, 640 << 10, 1),
        # 17 to 40 rows times 768x768, 640x1280, 3072x768, 2048x512 and 4096x4096 as they lie 1.16 to 1.6x, two threads
        # 1.1 to 1.46x; 48 would be 0.93 to 1.08x, 64 0.8 to 1.0x.  Packing tiles would be 0.7 to 1.0x.
        block_least_rows=48,
        pack_tiles=ByDistance(16, 8, 8),
        # Weights whose lines share no sets of L1 are read where they lie, or the first tiles pack them: 64 to 200 rows
        # times 1000x1000, 1280x1500, 2048x1000 1.02 to 1.10x, two threads 1.05 to 1.19x.
        block_tiles=ByDistance(99, 2, 2),
        block_rows=ByDistance(256, 256, 256),  # 160 to 256 rows times 1024x1024 1.04 to 1.09x, others 0.98 to 1.05x
        # With lines of dst prefetched f32 of k 64 to 512 1.05 to 1.31x, u8 to f32 1.1 to 1.9x, bf16 1.0 to 1.1x; 44
        # others of 64 to 4096 rows, and k to 3072, 0.94 to 1.11x.
        far_dst_l2=1.0,
        dst_ahead_l2=1.0,
        # 3136x1280x16 1.2x (bf16 1.6x, u8 1.5x), batches of 384x16 1.35x, 4096x576x32 1.05x (1.4x), of 128 columns and
        # more 0.99 to 1.15x; 64, 256 and 512 bytes ahead gain less.
        far_src_l2=1.0,
        # 9 to 16 rows times 1024x4096 and 4096x4096 in tiles of 6, as they lie: 1.2 to 1.5x, 1024x1024 1.02 to 1.15x.
        alias_plain_rows=17,
        # Panels, of blocks too, with 16 to 1024 rows a multiple of 4 KiB apart: a copy is never worth it.  One thread
        # 0.98 to 1.05x, two 0.98 to 1.15x, 256 rows times plain 1024x1024 1.03 and 1.10x.  Tiles of 6 would be 0.91x.
        alias_rows=MAX_ROWS,
        panel_lines=8,
        memory_stream_bytes=256,  # one row of f32 and bf16 1.27 to 1.35x, of s8 1.5x; of 17 MB, from L3, 0.92 to 0.97x
    ),
    # 512 channels at 14x14 1.22x, before what follows.  Beside multiplies that take twice as long, loads and bytes from
    # L3 count half, and L2 holds less between the steps than on a Zen 3.  96 to 192 channels at 7x7 1.55 to 1.7x (two
    # threads 1.35 to 1.7x), 512 at 10x10 1.18x (1.12x), 256 to 512 at 28x28 1.10x (1.10x), 96 to 192 at 112x112 1.09x,
    # 256 at 56x56 1.07x (1.04x); 64 others from 10x10 on 1.026x in the mean, 0.97 at least (1.012x, 0.94).
    winograd=replace(
        ZEN5.winograd,
        far_bytes_per_cycle=24.0,
        held_share=0.25,
        block_cycles=10,
        weights_kib_cycles=6,
        weights_share=0.7,
        spilled_kib_cycles=150,
        between_share=0.2,
        phases_kib_cycles=200,
        reread_kib_cycles=1,
        multiplied_lanes=8,
    ),
    # Their latency and memory count half, too: 16 channels a group at 7x7 1.46 to 1.6x by Winograd, at 9x9 1.32x, 64 at
    # 7x7 1.17x; 22 of 23 in `winograd_groups` stay.  Without that row 16 a group at 14x14 were 1.74x, 32 at 7x7 1.84x,
    # 48 at 7x7 1.68x.
    phases=PhaseTuning(latency_cycles=2.0),
    winograd_groups=replace(ZEN5.winograd_groups, weights_kib_cycles=11, ends_kib_cycles=60),
    moves=MoveTuning(
        wide_cost=1.3,  # reorders to blocks of 8 channels: 1.03 to 1.26x
        wide_parts_cost=2.0,  # bf16 to blocks of 16 channels 1.23 to 1.41x, of 13 MB 1.04x
        # f32 nchw to s8 and u8 nhwc 512x14x14 1.40x, 64x56x56 1.05 to 1.10x, 16 images 0.99 to 1.01x.
        near_convert_bytes=32,
        wide_shuffle_cost=1.9,  # 204 of 576 shuffles, which then go by ymm units: 1.44x in the mean, 1.01 at least
        blocked_permute_cost=1.35,  # blocks of 8 and 16 channels by groups of 2, 3, 120 and 240: 1.0 to 1.9x
        streaming_bytes=24 << 20,  # bf16 to f32 of 19 MB 1.34 to 1.45x, f32 to bf16 0.98 to 1.04x
        convert_ahead_bytes=256,  # bf16 and s8 to f32, 1 to 19 MB: 1.02 to 1.28x, as without prefetching
    ),
    # Top 5 of 32x30522 1.8x, of 128x1000 2.5x, top 2 of 4096x8 4.8x; top 1 of 8 to 100 elements 1.13 to 2.1x, of 200 to
    # 2048 1.03 to 1.17x, of 50257 it would be 0.95x.
    topk=TopKTuning(narrow_elements=1 << 30, narrow_largest=4096),
    # Sums, maxima and means of 16 to 64 elements 1.16 to 2.2x; of 100 and 128 0.97 to 1.1x.
    reduction=replace(PIECES_OF_ROWS, narrow_elements=64),  # whole rows are not timed
    # 3x3 of 17 columns 1.68x, of 28 and 35 1.26x, of 100 1.15x, 5x5 of 20 1.86x, with strides of 2 1.05 to 1.18x.
    # Whole planes of 3x3 1.9x, 4x4 2x, 7x7 1.4 to 1.5x, 8x8 1.4x, 10x10 1.15x; of 14x14 1.0x, 28x28 0.97x.
    pooling=PoolingTuning(wide_row=MAX_BYTES, narrow_plane=100),
    # Linear rows of 38, 40, 56, 120 and 200 1.03 to 1.27x; of 28 it would be 0.82x, nearest 0.91 to 1.04x.
    resampling=ResamplingTuning(wide_row=MAX_BYTES),
)
SET_LINES: Final = 12  # 48 KiB of L1 in 12 ways: Intel's optimization manual, caches of Sunny Cove and Golden Cove
# LLVM's model skylake-avx512 (llvm-mca 14): VPERMD is one micro-operation of port 5, as VPSHUFB, VSHUFPS and unpacks.
SKYLAKE_SP: Final = Tuning(moves=MoveTuning(permute_cost=1.0))
# LLVM's model icelake-server: VPERMD is one of port 5, VPSHUFB, VSHUFPS and VPUNPCKLDQ are one of ports 1 and 5.
ICELAKE_SP: Final = Tuning(
    products=ProductTuning(set_lines=SET_LINES - 2, panel_lines=SET_LINES - 2),  # of 8 ways the default leaves 2 to dst
    moves=MoveTuning(set_lines=SET_LINES, permute_cost=2.0),
)
# Its large cores are those of Emerald Rapids, where page_bytes was measured by kernels with ymm registers.
ALDER_LAKE: Final = Tuning(
    products=ProductTuning(set_lines=SET_LINES - 2, panel_lines=SET_LINES - 2),
    moves=MoveTuning(set_lines=SET_LINES, page_bytes=EMERALD_RAPIDS.moves.page_bytes),
)


def _with_ymm(row: Tuning) -> Tuning:
    """The same for levels without zmm registers, whose kernels have other blocks: of products and Winograd's algorithm
    what was measured with zmm does not hold.  On Zen 4 it made 16 rows times 4096x4096 0.45x, times 1024x4096 0.52x, 12
    rows times 4096x4096 0.84x, 9 to 16 rows times 3072x768 1.13 to 1.17x (medians of three processes), and 64 channels
    a group at 7x7 0.93x (of eight).
    """
    # Tiles of 6 rows read src where it lies as fast as a copy: on Zen 4 16 shapes of products are 1.00 to 1.045x.
    kept = {name: getattr(row.products, name) for name in ("memory_stream_bytes", "far_src_l2")}
    products = replace(DEFAULT.products, **kept, alias_columns=1 << 30)
    # rows_of_whole=False made groups of 8 on Zen 4 0.8 to 0.93x; vectors that are all narrow cost one another the same.
    # Turns of parts are not timed with ymm.
    turns = DEFAULT.convolution.part_turns
    convolution = replace(row.convolution, rows_of_whole=True, narrow_cost=1.0, part_turns=turns)
    phases = replace(row.phases, latency_cycles=DEFAULT.phases.latency_cycles)
    row = replace(row, phases=phases, convolution=convolution, products=products)
    return replace(row, winograd=DEFAULT.winograd, winograd_groups=GROUPS)


_OF_CLASSES: Final[Mapping[str, Tuning]] = MappingProxyType(
    {
        "alder_lake": ALDER_LAKE,
        "skylake_sp": SKYLAKE_SP,
        "icelake_sp": ICELAKE_SP,
        "sapphire_rapids": EMERALD_RAPIDS,
        "zen4": ZEN4,
        "zen5": ZEN5,
    }
)
_WITH_YMM: Final[Mapping[str, Tuning]] = MappingProxyType(
    {
        # 16 rows times 1024x1024 1.19x, times 1024x4096 1.27x, 512x512 1.27x; 32 rows would be 0.81 to 1.07x.
        # Groups of 8 with strides run 1.34x faster by rows.
        "sapphire_rapids": replace(
            EMERALD_RAPIDS,
            convolution=replace(EMERALD_RAPIDS.convolution, rows_of_whole=True),
            products=replace(EMERALD_RAPIDS.products, block_least_rows=17),
        ),
        "zen4": _with_ymm(ZEN4),
        "zen5": _with_ymm(ZEN5),
    }
)


def tuning_of(machine: str, isa: str) -> Tuning:
    """What planners choose by on the CPU class of that name, for a level."""
    narrow = _WITH_YMM.get(machine) if vector_bytes(isa) == AVX2.vector_bytes else None
    return narrow or _OF_CLASSES.get(machine, DEFAULT)
