"""A product as phases, from top to bottom: pieces, which are cut into tiles; kernels of tiles; records of their calls.

There is a phase for each range of k, in rounds where there are many tiles.  A record is the sum of the offsets of its
tile of rows, its group of columns and its matrix of the batch.
"""

from itertools import groupby

import numpy as np
import numpy.typing as npt

from asmdnn.forking import importing
from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.dot.matmul_shape import ONE_ITEM, Bias, Items, MatmulTile
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.planning.order import lay_out
from asmdnn.planning.phase import Int64, Phase, records_of
from asmdnn.primitives.products.blocks import DEPTH_STEP
from asmdnn.primitives.products.cut import Cut, DepthStep, ProductTiling
from asmdnn.primitives.products.matrices import Matrix, Panels
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.rounds import in_rounds, pieces_of
from asmdnn.primitives.products.target import Target
from asmdnn.primitives.products.vector_tiling import vector_tiling
from asmdnn.types import f32

Laid = tuple[Int64, npt.NDArray[np.int32]]  # records and their cycles


def schedule(p: Product, target: Target, one_range: bool = False) -> list[Phase]:
    """A phase for each range of k; each continues the one before.  dst's columns are dense."""
    tiling = tiling_of(p, target, one_range)
    tile = (tiling.block.rows, tiling.block.vectors * target.lanes)
    phases: list[Phase] = []
    for piece in pieces_of(p, tile, target.products.written_out, target.products.round_records):
        cut = tiling.cut(piece.product)
        phases += in_rounds(phases_of(cut), piece, p.arguments, is_first=not phases)
    return phases


def tiling_of(p: Product, target: Target, one_range: bool) -> ProductTiling:
    if not target.tiled:
        return vector_tiling(p, target, one_range)
    with importing():
        from asmdnn.primitives.products.amx_tiling import amx_tiling  # other levels do without

    return amx_tiling(p, target)


def phases_of(cut: Cut) -> list[Phase]:
    """A phase for each range of k.  Equal ranges share their records and differ in their views."""
    specs = dict[KernelSpec, int]()
    laid = {step: tile_records(cut, step, specs) for step in dict.fromkeys(cut.steps)}
    kernels, scaled = tuple(specs), cut.target.epilogue.scaled
    return [
        Phase(kernels, cut.p.views(step.skipped, scaled), *laid[step], continues=i > 0, flushes=True)
        for i, step in enumerate(cut.steps)
    ]


def tile_records(cut: Cut, step: DepthStep, specs: dict[KernelSpec, int]) -> Laid:
    """All records of a range of k, matrix after matrix, or `items` matrices a record.

    specs: the table of kernels, extended by new ones."""
    rows, groups, base = tile_rows(cut, step), group_rows(cut), dict[int, Laid]()
    pattern = max(cut.sizes) - np.array(cut.sizes, np.int64)  # sizes differ by at most one
    for items in sorted(set(cut.items or [1])):
        spec_of, cycles = tile_calls(cut, step, items, specs)
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


def tile_calls(cut: Cut, step: DepthStep, items: int, specs: dict[KernelSpec, int]) -> tuple[Int64, Int64]:
    """The numbers of kernels and the cycles of a call, both int64[groups, sizes]: the last group may be narrower."""
    sizes = sorted(set(cut.sizes), reverse=True)
    spec_of, cycles = (np.empty((cut.groups, len(sizes)), np.int64) for _ in range(2))
    last = cut.p.n - (cut.groups - 1) * cut.width
    alike = cut.groups if last == cut.width else cut.groups - 1
    for users, columns in ((slice(0, alike), cut.width), (slice(alike, cut.groups), last)):
        for i, rows in enumerate(sizes if users.start < users.stop else ()):
            spec, cycles[users, i] = cut.kernel(tile_shape(cut, step, (rows, columns), items), cut.target)
            spec_of[users, i] = specs.setdefault(spec, len(specs))
    return spec_of, cycles


def tile_shape(cut: Cut, step: DepthStep, size: tuple[int, int], items: int) -> MatmulTile:
    """Tiles of (rows, columns) of so many matrices."""
    p, block, (rows, columns) = cut.p, cut.block, size
    assert isinstance(p.weights, Panels) or p.types.group == 1, "no tile reads plain rows of several elements of k"
    bias = p.bias if step.bias else None
    operand_types = tuple(x.dtype for x in p.post_op_operands)
    return MatmulTile(
        isa=cut.target.isa,
        rows=rows,
        columns=columns,
        depth=(step.end - step.begin) * p.types.group - step.missing,
        src_row_bytes=p.src.row_bytes if rows > 1 else 0,
        src_depth_bytes=p.src.column_bytes,
        weights_row_bytes=p.weights.row_bytes,
        panel_vectors=block.panel_vectors,
        panel_bytes=cut.panel_bytes if block.vectors > block.panel_vectors else 0,
        padded=isinstance(p.weights, Panels),
        dst_row_bytes=p.dst.row_bytes if rows > 1 else 0,
        bias=None if bias is None else Bias(bias.row_bytes if rows > 1 else 0, bias.is_dense),
        accumulate=step.accumulate,
        scaled=step.scaled,
        beta=step.beta,
        post_ops=step.post_ops,
        prefetch_lines=cut.prefetch.lines,
        prefetch_step_bytes=cut.prefetch.row_bytes,
        stream_bytes=cut.prefetch.stream_bytes,
        src_ahead_bytes=cut.prefetch.src_bytes,
        prefetches_dst=cut.prefetch.dst and not step.streams,
        streams=step.streams,
        packs=p.packed_weights is not None,
        near_row_bytes=p.packed_src.row_bytes if p.packed_src else 0,
        items=items_of_call(p, items, bias),
        pieces=p.pieces,
        types=p.types,
        dst=None if p.dst.dtype == f32 == p.types.sums else p.dst.dtype,
        operand_types=operand_types if set(operand_types) - {f32} else (),
    )


def items_of_call(p: Product, count: int, bias: Matrix | None) -> Items:
    """So many matrices, and how far apart they are."""
    if count == 1:
        return ONE_ITEM
    bias_bytes = 0 if bias is None else bias.batch_bytes[-1]
    steps = (p.src.batch_bytes[-1], p.weights.batch_bytes[-1], bias_bytes, p.dst.batch_bytes[-1])
    operand_bytes = tuple(x.batch_bytes[-1] for x in p.post_op_operands)
    return Items(count, *steps, operand_bytes=operand_bytes if any(operand_bytes) else ())


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
