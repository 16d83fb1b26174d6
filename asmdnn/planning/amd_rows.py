"""What planners choose by on AMD's CPUs with AVX-512: a CPU of each class was measured, as of_classes.py says."""

from typing import Final

from asmdnn.planning.move_tuning import (
    MAX_BYTES,
    PIECES_OF_ROWS,
    ElementwiseTuning,
    MoveTuning,
    PoolingTuning,
    TopKTuning,
)
from asmdnn.planning.product_tuning import ByDistance, ProductTuning
from asmdnn.planning.tuning import (
    GROUPS,
    ConvolutionTuning,
    PhaseTuning,
    RecurrentTuning,
    ResamplingTuning,
    Tuning,
    WinogradTuning,
)
from asmdnn.records import replace

MAX_ROWS: Final = 1 << 30  # no tensor has so many

# AMD EPYC (family 26, model 2), 2 cores of a virtual machine, 512 bits wide; AVX-512.
ZEN5: Final = Tuning(
    convolution=ConvolutionTuning(
        panel_share=6,  # atrous 3x3 1.07x, VGG's 3x3 1.02 to 1.03x, ResNet-50's 1.01 to 1.02x
        src_ahead_bytes=8 << 20,  # 16 images, 1x1 from 64 channels at 56x56: 1.11x
        held_ahead_bytes=8 << 20,  # less is not timed, as little as on Zen 4,
        held_strided_bytes=1 << 40,  # and so are strides
        strided_ahead_bytes=8 << 20,  # 16 images, 256 to 128 at 56x56: 1.07x, others level
        # Windows with strides: 320 channels at 112x112, 2x2 and 3x3, 1.45 and 1.07x, channels last 1.1 to 1.3x, 8
        # images of 128 at 56x56 1.16x, 16 of 64 1.06x; others, bf16 and bytes 0.97 to 1.09x; without strides 1.0x.
        windows_ahead_bytes=4 << 20,
        # Depthwise, channels last, from L3's end on: bf16 144 channels at 56x56, 8 to 16 images, 1.4 to 2.15x, 96 at
        # 112x112 with stride 2 1.5x, 7x7 1.3x, f32 0.96 to 1.2x; less would be 0.86 to 0.98x, longer rows 0.81 to 0.9x.
        rows_ahead_l2=13.0,
        rows_ahead_bytes=48 << 10,
        # dst of direct tiles: 1x1 16 to 96 channels at 112x112, 8 images, 1.2 and 1.5x, 24 to 144 at 56x56, 16 images,
        # 1.15 to 1.22x, deconvolutions 1.02 to 1.07x (0.95x of three).  What reads less finds it in L3.
        # 1x1 of 3 to 16 channels to 160 to 512, from 3 MB of dst on: f32 1.02 to 1.7x, bf16 1.05 to 3x, u8 to f32 1.1
        # to 1.7x, u8 1.0 to 1.16x; to 64 and 96 0.97 to 1.15x, of 64 channels 0.97 to 1.03x.
        dst_runs_bytes=1 << 20,
        streaming_tile_bytes=16 << 20,
        part_turns=64,  # 64 channels to 368x640 with stride 2 1.27x, in 4 and 16 turns 1.15 and 1.21x; U-Net 1.05x
    ),
    products=ProductTuning(
        tiles_elements=ByDistance(170_000, 1 << 16, 1),  # one row times 300x500, 400x400 and 512x320 1.48 to 1.68x
        few_tiles_elements=ByDistance(170_000, 1 << 16, 1),  # two times 400x400 1.44x, 512x512 0.96x
        plain_depth=ByDistance(512, 64, 64),  # 11 shapes of 32 to 256 rows 1.015x, 1.00 to 1.03x
        block_tiles=ByDistance(99, 2, 2),  # 128 rows times 1500x700 1.06x, three others level
        # Panels of one vector, 8 to 24 rows: inner products 1.04 to 1.11x, 16 rows times 768x3072 1.12x, bf16 1.02 to
        # 1.37x, bytes 1.0 to 1.07x, 4 MiB and more 0.96 to 1.0x.  With 2 to 6 rows they would be 0.92 to 1.0x.
        narrow_panel_rows=8,
        dot_row_bytes=48,
        dot_near_bytes=40 << 10,
        # L1 has 12 ways: 8 rows times 3072x128 1.31x, 20 times 5120x200 1.23x, 9 times 4096x512 1.20x, all 31 of
        # `matmul_deep` and `matmul_plain` that differ 1.03x in the mean, 0.97 at least.
        set_lines=10,
        # Panels where src lies, whose rows are a multiple of 4 KiB apart: 17 shapes of 16 to 1024 rows in f32, bf16 and
        # bytes 1.02x, 0.99 to 1.05x.
        alias_rows=MAX_ROWS,
        panel_lines=10,
        # Lines of dst would push src and weights out of the caches: 512 rows times 1024x1024 1.09x (bf16 1.04x, bytes
        # 1.02x), times 1024x4096 1.08x (1.11, 1.16x), 20 others 0.99 to 1.04x; LSTM with gates of 6 to 100 MB 1.03 to
        # 1.06x, 0.95x with 128 units.  Of 64 KiB it would be as fast, but what reads it slower: networks 0.95 to 1.0x.
        streaming_dst_bytes=4 << 20,
        block_least_rows=128,  # 16 rows times 4096x4096 1.41x, times 1024x1024 1.14x, 20 of `matmul_plain` 1.05x
        along_rows_l2=0.125,  # not timed,
        dst_ahead_l2=1e9,  # nor is this
    ),
    # LSTM of 16 and 64 sequences, 128, 512 and 1024 units: 1.02 to 1.03x.
    recurrent=RecurrentTuning(starts_last=True),
    # Sums, means and maxima of planes of nchw from 2 to 80 MB: bf16 1.0 to 2.6x, f32 1.0 to 1.5x, ymm as well.
    # PReLU's gradients, 2x256x56x56 channels last 1.13x; sums of whole rows would be 0.80x.
    reduction=replace(PIECES_OF_ROWS, whole_rows_bytes=12 << 20, row_elements=16384, prefetched_bytes=1 << 20),
    moves=MoveTuning(
        # VPERMT2PS takes 0.5 cycles, an unpack 0.25, and loads of zmm cross lines or come from L2 again: groups of 2, 3
        # and 4 in blocks are 1.3 to 2.4x by ymm units, 4 in nhwc 1.25x; 240 and 480 rows in blocks 0.65 to 0.72x.
        many_sources_cost=2.3,
        # 240 channels of 16 images at 28x28, past the caches: groups of 3, 4, 8 and 16 1.9 to 3.1x by permuted ymm
        # vectors, of 2 level.
        far_sources_cost=2.5,
        permute_cost=2.0,  # VPERMD takes as long, by a microbenchmark; it decided none of 348 shuffles
        # f32 nchw to s8 and u8 nhwc 512x14x14 2.1x, others near 1; 64 bytes of bf16 are 0.95 to
        # 1.1x.  A page apart it would be 0.5x.
        near_convert_bytes=32,
        convert_ahead_bytes=64,  # bf16 and s8 to f32 in L2 1.08 to 1.10x, level elsewhere
        streaming_bytes=24 << 20,  # bf16 to f32 of 19 MB 1.36x, f32 nchw to nhwc 1.23x
    ),
    # 48 functions in L2 1.04x in the mean (0.97 to 1.28; clip backward 0.79 in one process), 24 of two tensors 1.03x
    # (0.96 to 1.12); past the caches square 1.17x, relu 1.08x, products of two tensors 1.05x, sizes that 4 divides.
    # Planes of 97x78 and 112x112 with a weight a channel, 32 to 120 MB: f32 1.25x, bf16 1.6 to 2.1x, as every piece by
    # another kernel waits for its first lines; in order of dst, but in pieces, f32 1.1x, bf16 1.0 to 1.2x.  By ymm f32
    # 1.0 to 1.2x.
    elementwise=ElementwiseTuning(wide_interleaved=8, wide_streamed=4, whole_row=4 * 4096),
    # Rows of 32 to 30522 elements, fresh ones for each call: lists of 8 take 1.08 to 1.84x as long as sorts, of 6 0.78
    # to 1.45x, of 5 0.6 to 1.26x.  The same rows again and again would have branches of both foreseen.
    topk=TopKTuning(most_listed_long=6),
    # Planes of 8 columns 0.89x with zmm.  Whole planes of 4x4 and 5x5 1.16 to 1.20x by ymm, 7x7 1.06 to 1.1x, 10x10
    # 1.02x, 14x14 would be 0.93x; rows of 10 to 28 0.79 to 0.96x.
    # Short rows: 256 and 64 channels, 3x3 and 5x5, beside rows as they lie: padded 1.1 to 3.5x, stride 2 1.06 to 4.5x.
    # Gradients of maxima of f32, channels last, 3x3 of 192 and 256 at 80x80 and 112x112 1.1 to 1.9x, 5x5 of 512
    # at 28x28, 4 images, 1.6x, 64 at 160x160 1.3x, 7x7 1.0x; of two L2s 3x3 of 256 at 40x40 would be 0.83x.
    pooling=PoolingTuning(wide_row=9, narrow_plane=100, padded_strided_results=8, padded_results=14, rows_ahead_l2=4.0),
    # Fitted to all cuts of 46 layers, 24 to 1024 channels at 7x7 to 224x224, and of 26 in groups, by a random search:
    # what is chosen took 1.07 times as long as the best cut in the mean before, 1.05 in groups, and 1.015 and 1.01 now;
    # expected cycles were 0.26 off, 0.067 now (logarithms).  Weights of 1.3 MB and more beyond L2, F(4x4) by phases at
    # 7x7 and 10x10, and one panel at a time make most of it.
    winograd=WinogradTuning(
        source2_cycles=30,
        source4_cycles=160,
        products2_cycles=12,
        products4_cycles=35,
        direct_busy=0.94,
        far_bytes_per_cycle=20.0,
        memory_bytes_per_cycle=10.7,
        held_share=0.47,
        block_cycles=8,
        phases_cycles=3500,
        weights_kib_cycles=8,
        weights_share=1.1,
        ends_kib_cycles=54,
        spilled_kib_cycles=25,
        between_share=0.27,
        phases_kib_cycles=144,
        phases_near_bytes=7 << 18,
        reread_kib_cycles=4,
        transform_lanes=16,
        memory_overlapped=True,
        first_tile_waits=True,
    ),
    winograd_groups=replace(
        GROUPS,
        source2_cycles=30,
        source4_cycles=80,
        products2_cycles=12,
        products4_cycles=40,
        direct_busy=0.94,
        far_bytes_per_cycle=17.0,
        memory_bytes_per_cycle=12.4,
        held_share=0.29,
        block_cycles=8,
        phases_cycles=4700,
        weights_kib_cycles=4,
        weights_share=0.07,
        ends_kib_cycles=10,
        spilled_kib_cycles=20,
        between_share=0.7,
        phases_kib_cycles=52,
        phases_near_bytes=96 << 10,
        reread_kib_cycles=1,
        near_kib_cycles=41,
        near_share=2.6,
        transform_lanes=16,
        memory_overlapped=True,
        first_tile_waits=True,
    ),
    # Blocks of 16 channels at 4x4 to 16x16 doubled 1.4 to 2.5x, 28x28 to 80x80 1.2 to 1.37x, 512 at 42x35, 2 images,
    # 1.04 to 1.08x.  Pieces of rows of 24 to 75 MB: factors 2.01 to 2.03 1.4 to 1.9x, by ymm 1.3 to 1.6x.
    resampling=ResamplingTuning(channels_cycles=200, pieces_stream=True),
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
    winograd=WinogradTuning(
        transform_lanes=16,
        memory_overlapped=True,
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
    winograd_groups=replace(
        GROUPS,
        transform_lanes=16,
        memory_overlapped=True,
        far_bytes_per_cycle=25.0,
        memory_bytes_per_cycle=25.0,
        weights_kib_cycles=11,
        ends_kib_cycles=60,
    ),
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
