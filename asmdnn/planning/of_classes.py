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
from asmdnn.planning.amd_rows import ZEN4, ZEN5
from asmdnn.planning.move_tuning import PIECES_OF_ROWS, ElementwiseTuning, MoveTuning, TopKTuning
from asmdnn.planning.product_tuning import ByDistance, ProductTuning
from asmdnn.planning.tuning import (
    DEFAULT,
    GROUPS,
    ConvolutionTuning,
    ResamplingTuning,
    Tuning,
)
from asmdnn.records import replace

FEW_BY_TILES: Final = ByDistance(1 << 16, 1 << 16, 1)  # one row to four by tiles; more weights are not timed so

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
    # Turns of parts, and runs of dst, are not timed with ymm.
    untimed = {name: getattr(DEFAULT.convolution, name) for name in ("part_turns", "dst_runs_bytes")}
    convolution = replace(row.convolution, rows_of_whole=True, narrow_cost=1.0, **untimed)
    phases = replace(row.phases, latency_cycles=DEFAULT.phases.latency_cycles)
    row = replace(row, phases=phases, convolution=convolution, products=products, recurrent=DEFAULT.recurrent)
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
