"""The order of tiles that read panels of weights, which brings least from beyond L2; and records in that order."""

import numpy as np
import numpy.typing as npt

from asmdnn.planning.phase import Int64
from asmdnn.planning.tuning import PhaseTuning
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class TileOrder:
    """panels_at_once: weight panels used for a chunk of tiles before the next one; chunks: parts of all tiles."""

    panels_at_once: int
    chunks: int


def choose_order(
    src_bytes: int, panel_bytes: int, panels: int, tiles: int, l2_bytes: int, tuning: PhaseTuning
) -> TileOrder:
    """The order that reads least from beyond L2, of which a working set may fill half; of equals the smallest chunks.

    All tiles of a chunk are computed for the panels of a group, then the next chunk; after the last chunk comes the
    next group.  The source is read once a group.  Weights are read once if a group fits, else once a chunk.
    """
    budget = l2_bytes // 2
    room = max(1, budget - 2 * panel_bytes if budget > 4 * panel_bytes else budget // 2)
    groups = [*(1 << k for k in range((panels - 1).bit_length())), panels]  # powers of two below, and all
    best, least = (panels, 1), float("inf")
    for chunk_bytes in (max(src_bytes, 1), room, max(1, l2_bytes // 8)):
        chunks = min(max(1, -(-src_bytes // chunk_bytes)), tiles)
        for group in groups:
            traffic = order_traffic(src_bytes, panel_bytes, panels, (group, chunks), budget, tuning)
            if traffic <= least:
                best, least = (group, chunks), traffic
    return TileOrder(*best)


def order_traffic(
    src_bytes: int, panel_bytes: int, panels: int, order: tuple[int, int], budget: int, tuning: PhaseTuning
) -> float:
    """Bytes read from beyond L2 by all tiles of all panels, in bytes of weights, which come in long runs.

    order: (panels at once, chunks).
    """
    at_once, chunks = order
    groups = -(-panels // at_once)
    chunk_stays = src_bytes / chunks + panel_bytes <= budget
    group_stays = at_once * panel_bytes + min(src_bytes / chunks, budget / 4) <= budget
    src = src_bytes * (groups if chunk_stays else panels)
    if chunks == 1 and chunk_stays:
        src = src_bytes
    weights = panels * panel_bytes * (1 if group_stays or chunks == 1 else chunks)
    return tuning.src_traffic * src + weights


def lay_out(
    tile_rows: Int64,
    panel_rows: Int64,
    pattern: Int64,
    spec_of: Int64,
    cycles: Int64,
    panels_at_once: int,
    chunk: int,
) -> tuple[Int64, npt.NDArray[np.int32]]:
    """Records and their costs, one for each panel and tile: for a group of panels, chunk after chunk of tiles.

    tile_rows, panel_rows: what each adds to a record; pattern: int64[tiles]; spec_of, cycles: int64[panels, patterns].
    """
    panels, (tiles, width) = len(panel_rows), tile_rows.shape
    records = np.empty((panels * tiles, width), np.int64)
    cost = np.empty(panels * tiles, np.int32)
    numbers, costs = spec_of.take(pattern, 1), cycles.astype(np.int32).take(pattern, 1)
    whole = tiles // chunk * chunk
    at = 0
    for first in range(0, panels, panels_at_once):
        group = slice(first, min(panels, first + panels_at_once))
        for begin, end, size in ((0, whole, chunk), (whole, tiles, tiles - whole)):  # equal chunks, then the rest
            if begin == end:
                continue
            block = slice(at, at + (end - begin) * (group.stop - first))
            shape = -1, group.stop - first, size
            out, of_panels = records[block].reshape(*shape, width), np.empty((*shape[1:], width), np.int64)
            of_panels[:] = panel_rows[group][:, None]  # a chunk of each, so that long runs of numbers are added
            rows = tile_rows[begin:end].reshape(-1, 1, size * width)
            np.add(rows, of_panels.reshape(shape[1], -1), out=out.reshape(len(rows), shape[1], -1))
            out[..., 0] = numbers[group, begin:end].reshape(shape[1], -1, size).swapaxes(0, 1)
            cost[block].reshape(shape)[:] = costs[group, begin:end].reshape(shape[1], -1, size).swapaxes(0, 1)
            at = block.stop
    return records, cost
