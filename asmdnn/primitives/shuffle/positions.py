"""Where the positions of a shuffle lie: the offsets of all dims but the axis, which src and dst have alike.

They fall into runs of equal distance; what lies together along the axis is a unit.
"""

from collections.abc import Iterator
from functools import reduce

import numpy as np

from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Int64

Runs = list[tuple[int, int]]  # (start, count), in bytes and steps
SMALL_UNITS = (4, 8)  # bytes of units that vectors are permuted by


def positions_of(desc: MemoryDesc, dim: int) -> Int64:
    """Sorted offsets of all combinations of the other dims' indices."""
    tables = [desc.dim_offsets(d)[:n] for d, n in enumerate(desc.dims) if d != dim]
    return np.sort(reduce(np.add.outer, tables, np.array(desc.offset0, np.int64)).ravel())


def runs_of(positions: Int64) -> tuple[int, Runs]:
    """The step of the positions and their runs at this step; a single position has the step 0."""
    if len(positions) == 1:
        return 0, [(int(positions[0]), 1)]
    distances = np.diff(positions)
    step = int(distances.min())
    starts = np.concatenate(([0], np.flatnonzero(distances != step) + 1))
    counts = np.diff(np.append(starts, len(positions)))
    return step, list(zip(positions[starts].tolist(), counts.tolist(), strict=True))


def unit_of(offsets: Int64, axis_size: int, element_bytes: int, step: int) -> tuple[int, int]:
    """The bytes of a unit, 0 if the layout has none, and of the runs that elements of the axis form."""
    breaks = np.flatnonzero(np.diff(offsets) != element_bytes) + 1
    run = int(breaks[0]) if len(breaks) else len(offsets)
    run_bytes = run * element_bytes
    if len(breaks) and (len(offsets) % run or not np.array_equal(breaks, np.arange(run, len(offsets), run))):
        return 0, element_bytes
    without_padding = run == axis_size
    if run_bytes >= 16 and (without_padding or run_bytes % 16 == 0):
        return 16, run_bytes
    # several pixels of a small block fill a vector if they lie together
    together = run_bytes in SMALL_UNITS and step in (0, run_bytes)
    return (run_bytes, run_bytes) if together and run > 1 else (0, element_bytes)


def chunks(runs: Runs, step: int, most: int) -> Iterator[tuple[int, int]]:
    """The runs in pieces of at most `most` steps."""
    for start, count in runs:
        for done in range(0, count, most):
            yield start + done * step, min(most, count - done)
