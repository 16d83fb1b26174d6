"""The records of a cut product: tiles for every matrix of the batch, in the order that reads least."""

from itertools import groupby

import numpy as np
import numpy.typing as npt

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.dot.matmul_shape import ARGUMENTS
from asmdnn.planning.order import lay_out
from asmdnn.planning.phase import Int64, records_of
from asmdnn.primitives.products.cut import Cut
from asmdnn.primitives.products.tile_specs import DepthStep, specs_of

Laid = tuple[Int64, npt.NDArray[np.int32]]  # records and their cycles


def tile_records(cut: Cut, step: DepthStep, specs: dict[KernelSpec, int]) -> Laid:
    """All records of a range of k: matrix after matrix, or runs of `items` of them."""
    rows, columns = tile_rows(cut, step), group_rows(cut)
    pattern = max(cut.sizes) - np.array(cut.sizes, np.int64)  # sizes differ by at most one
    base: dict[int, Laid] = {}
    for items in sorted(set(cut.items or [1])):
        spec_of, cycles = specs_of(cut, step, items, specs)
        base[items] = lay_out(
            tile_rows=rows,
            panel_rows=columns,
            pattern=pattern,
            spec_of=spec_of,
            cycles=cycles,
            panels_at_once=cut.at_once,
            chunk=cut.chunk,
        )
    return of_batch(cut, base) if cut.p.batch else base[1]


def of_batch(cut: Cut, base: dict[int, Laid]) -> Laid:
    """The records of calls of so many matrices, for every matrix of the batch at which such a call starts."""
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
    """int64[batch, 1 + arguments]: what each matrix adds to the records."""
    p, grid = cut.p, np.zeros((1, 1 + len(cut.arguments)), np.int64)
    for axis, size in enumerate(p.batch):
        step = np.zeros(grid.shape[1], np.int64)
        for name, x in p.operands().items():
            step[1 + cut.arguments.index(name)] = x.batch_bytes[axis]
        step[1 + ARGUMENTS.index("ahead")] = p.weights.batch_bytes[axis]
        grid = (grid[:, None] + np.arange(size)[:, None] * step).reshape(-1, grid.shape[1])
    return grid


def tile_rows(cut: Cut, step: DepthStep) -> Int64:
    """int64[tiles, 1 + arguments]: what each tile of rows adds."""
    p = cut.p
    first = np.cumsum(cut.sizes, dtype=np.int64) - cut.sizes
    weights = p.weights.start_bytes + step.begin * p.weights.row_bytes
    columns: dict[str, Int64 | int] = {
        "src": p.src.start_bytes + step.begin * p.src.column_bytes + first * p.src.row_bytes,
        "weights": weights,
        "dst": p.dst.start_bytes + first * p.dst.row_bytes,
        "ahead": weights + cut.ahead_shares(step.end - step.begin),
    }
    if p.bias is not None:
        columns["bias"] = p.bias.start_bytes + first * p.bias.row_bytes
    if p.packed is not None:
        columns["packed"] = p.packed.start_bytes + step.begin * p.packed.row_bytes
    for name, x in zip(p.other_names, p.others, strict=True):
        columns[name] = x.start_bytes + first * x.row_bytes
    return records_of(cut.arguments, columns)


def group_rows(cut: Cut) -> Int64:
    """int64[groups, 1 + arguments]: what each group of columns adds; ahead of it lies the next one."""
    p, number = cut.p, np.arange(cut.groups)
    step_bytes = cut.panel_bytes * (cut.block.vectors // cut.block.panel_vectors)
    columns = {
        "weights": number * step_bytes,
        "dst": number * p.dst.element_bytes * cut.width,
        "ahead": cut.ahead_groups(),
    }
    if p.bias is not None:
        columns["bias"] = number * cut.width * p.bias.column_bytes
    if p.packed is not None:
        columns["packed"] = number * p.packed.panel_bytes
    for name, x in zip(p.other_names, p.others, strict=True):
        columns[name] = number * cut.width * x.column_bytes
    return records_of(cut.arguments, columns)
