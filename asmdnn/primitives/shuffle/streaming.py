"""Which kernels of a shuffle write past the caches: those whose stores are aligned, and fill line after line."""

from itertools import pairwise

from asmdnn.generators.move.permute import PermuteSpec
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.generators.move.shuffle import ShuffleSpec
from asmdnn.generators.move.shuffle_body import Tile
from asmdnn.generators.move.shuffle_elements import ElementsSpec
from asmdnn.isa.dense import QUARTER_BYTES
from asmdnn.records import replace

Units = ShuffleSpec | PermuteSpec | ElementsSpec


def with_streaming(spec: Units) -> Units:
    """The kernel with streaming stores, if all of them are aligned when the first is; else as it was."""
    return spec if isinstance(spec, ElementsSpec) else replace(spec, streaming=fills_lines(spec))


def fills_lines(spec: ShuffleSpec | PermuteSpec) -> bool:
    """Whether the kernel may have streaming stores, which fill line after line."""
    if isinstance(spec, PermuteSpec):
        places = [spec.pixel_bytes, *(unit.dst for unit in spec.units)]
        return all(at % spec.vector_bytes == 0 for at in places)
    # Lines that are left half written for long go out in pieces: of 8 rows of dst at a time, 4 times slower.
    together = spec.unit_bytes == spec.pixel_bytes or all(in_order(part.tile) for part in spec.parts)
    return spec.can_stream and together


def streaming_rows(spec: RowsSpec) -> RowsSpec:
    """With streaming stores if rows are whole vectors."""
    size = spec.vector_bytes
    return replace(spec, streaming=spec.row_bytes % size == spec.dst_step % size == 0)


def in_order(tile: Tile) -> bool:
    """Whether no more than half of the tile's units start a new place in dst."""
    breaks = sum(b - a != QUARTER_BYTES for a, b in pairwise(tile.dst))
    return 2 * breaks < len(tile.dst)
