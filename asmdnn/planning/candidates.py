"""Numbers of a tuning that `asmdnn tune --machine` measures, each with the values that it may take.

They are those that differ between the CPUs that were measured (of_classes.py), and values that gained on one of them.
A row that is read from disk has none but these, so that whatever is in the file, plans stay sound.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from asmdnn.planning.product_tuning import ByDistance
from asmdnn.planning.tuning import Tuning
from asmdnn.records import replace

MB: Final = 1 << 20
STREAMING: Final = (4 * MB, 8 * MB, 16 * MB, 24 * MB, 64 * MB)
CANDIDATES: Final[Mapping[str, tuple[Any, ...]]] = MappingProxyType(
    {
        "phases.inline_cycles": (6_000, 12_000, 24_000, 48_000),
        "phases.latency_cycles": (2.0, 4.0),
        "elementwise.streaming_bytes": STREAMING,
        "elementwise.whole_row": (4096, 16384),
        "elementwise.interleaved": (4, 6, 8),
        "elementwise.wide_interleaved": (4, 6, 8),
        "elementwise.wide_streamed": (4, 6, 8),
        "moves.streaming_bytes": STREAMING,
        "moves.shuffle_streaming_bytes": (2 * MB, *STREAMING),
        "moves.wide_cost": (1.0, 1.5, 2.0),
        "moves.wide_parts_cost": (1.0, 2.0),
        "moves.wide_shuffle_cost": (1.0, 1.9, 3.0),
        "moves.many_sources_cost": (1.0, 1.5, 2.3),
        "moves.far_sources_cost": (1.0, 2.5),
        "moves.blocked_permute_cost": (1.0, 1.35),
        "moves.convert_ahead_bytes": (64, 256, 1024),
        "moves.page_bytes": (1024, 4096),
        "moves.near_convert_bytes": (16, 32),
        "convolution.streaming_bytes": (2 * MB, *STREAMING),
        "convolution.plane_copy_cycles": (0.1, 0.25, 0.5),
        "convolution.panel_share": (3, 6, 12, 24),
        "convolution.src_ahead_bytes": (MB, 8 * MB, 16 * MB),
        "convolution.held_ahead_bytes": (MB, 2 * MB, 8 * MB),
        "convolution.far_pixels_l2": (0.5, 1e9),
        "convolution.dst_ahead_l2": (0.5, 1e9),
        "convolution.rows_ahead_l2": (2.0, 13.0, 1e9),
        "convolution.strided_ahead_bytes": (MB, 8 * MB, 1 << 40),
        "convolution.windows_ahead_bytes": (4 * MB, 1 << 40),
        "convolution.held_strided_bytes": (16 * MB, 1 << 40),
        "convolution.dst_runs_bytes": (MB, 1 << 60),
        "convolution.streaming_tile_bytes": (16 * MB, 1 << 60),
        "convolution.part_turns": (1, 16, 32, 64),
        "convolution.rows_of_whole": (False, True),
        "convolution.narrow_cost": (0.58, 1.0),
        "convolution.narrow_groups": (False, True),
        "products.panel_share": (3, 5, 8),
        "products.along_rows_l2": (0.125, 2.0, 8.0),
        "products.far_dst_l2": (1.0, 3.5),
        "products.dst_ahead_l2": (1.0, 1.5, 1e9),
        "products.streaming_dst_bytes": (4 * MB, 1 << 60),
        "products.far_src_l2": (1.0, 1e9),
        "products.block_least_rows": (9, 17, 33, 48, 65, 128),
        "products.pack_tiles": (ByDistance(16, 5, 3), ByDistance(16, 7, 7), ByDistance(16, 8, 8)),
        "products.tiles_elements": (
            ByDistance(1 << 20, 1 << 16, 1),
            ByDistance(1 << 16, 1 << 16, 1),
            ByDistance(170_000, 1 << 16, 1),
        ),
        "products.few_tiles_elements": (
            ByDistance(1 << 20, 1 << 16, 1),
            ByDistance(170_000, 1 << 16, 1),
            ByDistance(1 << 20, 640 << 10, 1),
        ),
        "products.plain_depth": (ByDistance(256, 64, 64), ByDistance(512, 64, 64)),
        "products.narrow_panel_rows": (8, 1 << 30),
        "products.dot_row_bytes": (48, 1 << 30),
        "products.dot_near_bytes": (24 << 10, 40 << 10, 1 << 40),
        "products.set_lines": (6, 8, 10),
        "products.block_tiles": (ByDistance(5, 2, 2), ByDistance(99, 2, 2)),
        "products.block_rows": (ByDistance(256, 256, 128), ByDistance(256, 256, 256)),
        "products.alias_plain_rows": (16, 17),
        "products.alias_rows": (16, 1 << 30),
        "products.panel_lines": (6, 8, 10),
        "products.columns_depth": (64, 128),
        "products.memory_stream_bytes": (256, 1024),
        "winograd.memory_overlapped": (False, True),
        "winograd.first_tile_waits": (False, True),
        "winograd_groups.transform_lanes": (8, 16),
        "winograd_groups.memory_overlapped": (False, True),
        "winograd_groups.far_bytes_per_cycle": (9.0, 25.0),
        "recurrent.starts_last": (False, True),
        "topk.narrow_elements": (1, 32, 4096, 1 << 30),
        "topk.narrow_largest": (1, 64, 4096),
        "topk.most_listed_long": (6, 10),
        "resampling.streaming_share": (2, 8, 32),
        "resampling.pieces_stream": (False, True),
        "resampling.channels_cycles": (200, 4000),
        "reduction.whole_rows_bytes": (1, 12 * MB, 1 << 62),
        "reduction.whole_rows_of_sums_bytes": (1, 12 * MB, 1 << 62),
        "reduction.narrow_elements": (1, 64),
        "reduction.row_elements": (8192, 16384),
        "reduction.prefetched_bytes": (1 << 20, 1 << 62),
        "resampling.wide_row": (1, 1 << 62),
        "pooling.wide_row": (1, 9, 1 << 62),
        "pooling.narrow_plane": (1, 100),
        "pooling.strided_results": (1, 4),
        "pooling.padded_strided_results": (1, 4, 8),
        "pooling.padded_results": (1, 14),
        "pooling.rows_ahead_l2": (4.0, 1e9),
    }
)


def number_of(tuning: Tuning, name: str) -> Any:
    """The number of a name such as "moves.page_bytes"."""
    group, _, number = name.partition(".")
    return getattr(getattr(tuning, group), number)


def with_number(tuning: Tuning, name: str, value: Any) -> Tuning:
    """The tuning with another number of that name."""
    group, _, number = name.partition(".")
    return replace(tuning, **{group: replace(getattr(tuning, group), **{number: value})})
