"""Third stage of planning a product: the records of its calls, in the order that reads least.

A record is the sum of the offsets of its tile of rows, its group of columns and its matrix of the batch.
"""

from collections.abc import Iterator
from itertools import groupby

import numpy as np
import numpy.typing as npt

from asmdnn.generators.contract import KernelSpec
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.planning.order import lay_out
from asmdnn.planning.phase import Int64, Phase, records_of
from asmdnn.primitives.products.blocks import DEPTH_STEP
from asmdnn.primitives.products.cut import Cut, DepthStep
from asmdnn.primitives.products.tile_calls import TileCalls

Laid = tuple[Int64, npt.NDArray[np.int32]]  # records and their cycles


def phases_of(cut: Cut, kernels: tuple[KernelSpec, ...], calls: TileCalls) -> Iterator[Phase]:
    """A phase for each range of k.  Equal ranges share their records and differ in their views."""
    groups, made = group_rows(cut), dict[DepthStep, Laid]()
    for i, step in enumerate(cut.steps):
        if step not in made:
            made[step] = tile_records(cut, step, groups, calls)
        views = cut.p.views(step.skipped, cut.target.epilogue.scaled)
        yield Phase(kernels, views, *made[step], continues=i > 0, flushes=True)


def tile_records(cut: Cut, step: DepthStep, groups: Int64, calls: TileCalls) -> Laid:
    """All records of a range of k, matrix after matrix, or `items` matrices a record."""
    rows, base = tile_rows(cut, step), dict[int, Laid]()
    pattern = max(cut.sizes) - np.array(cut.sizes, np.int64)  # sizes differ by at most one
    for items in sorted(set(cut.items or [1])):
        spec_of, cycles = calls[step, items]
        base[items] = lay_out(
            tile_rows=rows,
            panel_rows=groups,
            pattern=pattern,
            spec_of=spec_of,
            cycles=cycles,
            panels_at_once=cut.at_once,
            chunk=cut.chunk,
        )
    return of_batch(cut, base) if cut.p.batch else base[1]


def of_batch(cut: Cut, base: dict[int, Laid]) -> Laid:
    """The records for all matrices of the batch.  base: for each number of matrices in a call, the records of the
    first."""
    matrices = matrix_rows(cut)
    width = matrices.shape[1]
    starts, runs = np.concatenate(([0], np.cumsum(cut.items)))[:-1], []
    for size, run in groupby(zip(cut.items, starts, strict=True), key=lambda pair: pair[0]):
        where = np.array([start for _, start in run])
        runs.append((size, matrices.reshape(-1, cut.p.batch[-1], width)[:, where]))
    records = [(base[size][0] + at[:, :, None]).reshape(-1, width) for size, at in runs]
    costs = [np.broadcast_to(base[size][1], (*at.shape[:2], len(base[size][1]))).ravel() for size, at in runs]
    return np.ascontiguousarray(np.concatenate(records)), np.concatenate(costs)


def matrix_rows(cut: Cut) -> Int64:
    """int64[batch, 1 + arguments]: the offsets of each matrix."""
    p = cut.p
    grid = np.zeros((1, 1 + len(p.arguments)), np.int64)
    for axis, size in enumerate(p.batch):
        step = records_of(p.arguments, p.distances(axis))
        grid = (grid[:, None] + np.arange(size)[:, None] * step).reshape(-1, grid.shape[1])
    return grid


def tile_rows(cut: Cut, step: DepthStep) -> Int64:
    """int64[tiles, 1 + arguments]: the offsets of each tile of rows."""
    p = cut.p
    first = np.cumsum(cut.sizes, dtype=np.int64) - cut.sizes
    weights = p.weights.start_bytes + step.begin * p.weights.row_bytes
    columns: dict[str, Int64 | int] = {
        "src": p.src.start_bytes + step.begin * p.src.column_bytes + first * p.src.row_bytes,
        "weights": weights,
        "dst": p.dst.start_bytes + first * p.dst.row_bytes,
        "prefetched": weights + prefetched_shares(cut, step.end - step.begin),
    }
    if p.bias is not None:
        columns["bias"] = p.bias.start_bytes + first * p.bias.row_bytes
    if p.packed_weights:
        columns["packed"] = p.packed_weights.start_bytes + step.begin * p.packed_weights.row_bytes
    if p.packed_src:
        x = p.packed_src
        columns["packed"] = x.start_bytes + step.begin * x.column_bytes + first * x.row_bytes
    for name, x in zip(p.post_op_names, p.post_op_operands, strict=True):
        columns[name] = x.start_bytes + first * x.row_bytes
    return records_of(p.arguments, columns)


def group_rows(cut: Cut) -> Int64:
    """int64[groups, 1 + arguments]: the offsets of each group of columns; it prefetches the next one."""
    p, number = cut.p, np.arange(cut.groups)
    columns = {
        "weights": number * cut.group_bytes,
        "dst": number * p.dst.element_bytes * cut.width,
        "prefetched": cut.row_bytes * number if cut.prefetch.row_bytes else (number + 1) % cut.groups * cut.group_bytes,
    }
    if p.bias is not None:
        columns["bias"] = number * cut.width * p.bias.column_bytes
    if p.packed_weights:
        columns["packed"] = number * p.packed_weights.panel_bytes
    for name, x in zip(p.post_op_names, p.post_op_operands, strict=True):
        columns[name] = number * cut.width * x.column_bytes
    return records_of(p.arguments, columns)


def prefetched_shares(cut: Cut, depth: int) -> Int64:
    """int64[tiles]: where the share of each tile begins in the panel that is prefetched."""
    tiles, row_bytes = np.arange(len(cut.sizes)), cut.prefetch.row_bytes
    lines = cut.prefetch.lines * (depth // DEPTH_STEP)
    if not row_bytes or not lines:
        panel_bytes = cut.row_bytes * depth if lines else 0
        return tiles % cut.chunk * panel_bytes // cut.chunk
    row_lines = -(-cut.row_bytes // LINE_BYTES)
    line, row = np.divmod(tiles * lines % (row_lines * depth), depth)  # all rows' first line, then the next
    begins: Int64 = line * LINE_BYTES + row * row_bytes
    return begins
