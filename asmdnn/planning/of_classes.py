"""What planners choose by on CPU classes where somebody has measured: the numbers that differ from the default.

Each was measured on a CPU of its class, in turns with the default in one process, one thread, by the 10th percentile of
many samples.  Classes that are not here share the default: features and caches of a manual say nothing about what a
plan takes.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from asmdnn.planning.move_tuning import MoveTuning
from asmdnn.planning.product_tuning import ByDistance, ProductTuning
from asmdnn.planning.tuning import DEFAULT, GROUPS, ConvolutionTuning, TopKTuning, Tuning, WinogradTuning

# A virtual machine of Emerald Rapids class (L1 48 KB in 12 ways, L2 2 MB), AVX-512; equal plans were 0.9 to 1.05 apart.
EMERALD_RAPIDS: Final = Tuning(
    convolution=ConvolutionTuning(src_ahead_bytes=1 << 20),  # 16 images, 512 to 128 at 28x28: 1.20x, 1024 to 256 1.18x
    products=ProductTuning(
        pack_tiles=ByDistance(16, 7, 7),  # 32 rows times 1024x1024 1.35x faster unpacked, 48 rows 1.22, 64 1.06
        columns_depth=64,  # 16 rows times 4096x4096 1.5 to 1.7x faster, others level
    ),
    moves=MoveTuning(page_bytes=1024),  # nchw to nhwc 256x28x28 1.24x, 512x14x14 1.46x, ab to ba 512x512 1.48x faster
)
# AMD EPYC (family 26, model 2), 2 cores of a virtual machine, 512 bits wide; AVX-512.
ZEN5: Final = Tuning(
    convolution=ConvolutionTuning(
        panel_share=6,  # atrous 3x3 1.07x, VGG's 3x3 1.02 to 1.03x, ResNet-50's 1.01 to 1.02x
        src_ahead_bytes=8 << 20,  # 16 images, 1x1 from 64 channels at 56x56: 1.11x
    ),
    # 16 rows times 4096x4096 1.41x, times 1024x1024 1.14x, all 20 of `matmul_plain` 1.05x
    products=ProductTuning(block_least_rows=128),
    moves=MoveTuning(streaming_bytes=24 << 20),  # bf16 to f32 of 19 MiB 1.36x, f32 nchw to nhwc 1.23x
    # A zmm register is transformed in the time of a ymm: 16 channels a group at 14x14 1.39 to 1.67x, 32 at 7x7 1.08x.
    # Weights from memory come while products run, 9 bytes a cycle: 512 channels at 14x14 1.30x.
    winograd=WinogradTuning(transform_lanes=16, memory_bytes_per_cycle=1e9),
    winograd_groups=replace(GROUPS, transform_lanes=16, memory_bytes_per_cycle=1e9, far_bytes_per_cycle=25.0),
)
# AMD EPYC (family 25, model 17), 2 cores of a virtual machine beside other work; AVX-512, executed 256 bits at a time.
# All of a vector, multiplies too, then takes twice as long, and what counts is their ratio: Winograd's is that of ymm.
ZEN4: Final = Tuning(
    convolution=ConvolutionTuning(src_ahead_bytes=8 << 20),  # 16 images, 1x1 of 64 channels at 56x56: 1.07x
    products=ProductTuning(block_least_rows=17),  # 16 rows times 1024x1024 1.34x, others 1.16x; 64 rows 0.95 to 1.07x
    # 16 channels a group at 14x14 1.74x, 32 at 7x7 1.84x, 48 at 7x7 1.68x, 512 channels at 14x14 1.22x.
    winograd=ZEN5.winograd,
    winograd_groups=ZEN5.winograd_groups,
    moves=MoveTuning(
        wide_shuffle_cost=1.9,  # of 576 shuffles, those by ymm units instead of zmm: 1.4x in the mean, 1.01 at least
        streaming_bytes=24 << 20,  # bf16 to f32 of 19 MiB 1.34x, f32 to bf16 1.04x
    ),
    topk=TopKTuning(narrow_elements=1 << 30),  # top 5 of 32x30522: 1.8x; of 128x1000 2.5x, top 2 of 4096x8 4.8x
)
_OF_CLASSES: Final[Mapping[str, Tuning]] = MappingProxyType(
    {"sapphire_rapids": EMERALD_RAPIDS, "zen4": ZEN4, "zen5": ZEN5}
)


def tuning_of(machine: str) -> Tuning:
    """What planners choose by on the CPU class of that name."""
    return _OF_CLASSES.get(machine, DEFAULT)
