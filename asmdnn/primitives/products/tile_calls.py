"""Second stage of planning a product: the kernels of its tiles, and the expected cost of their calls.

There is a kernel for each size of tiles, width of groups, range of k and number of matrices.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from asmdnn.forking import importing
from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.dot.matmul import MatmulTileSpec
from asmdnn.generators.dot.matmul_shape import ONE_ITEM, Bias, Items, MatmulTile
from asmdnn.planning.phase import Int64
from asmdnn.primitives.products.amx import call_cycles, far_operands, joined_rows, panels_at_once
from asmdnn.primitives.products.cut import Cut, DepthStep
from asmdnn.primitives.products.matrices import Panels
from asmdnn.types import f32

if TYPE_CHECKING:
    from asmdnn.generators.dot.amx import AmxTileSpec

# For a range of k and a number of matrices: the kernel numbers and the cycles of a call, both int64[groups, sizes].
TileCalls = Mapping[tuple[DepthStep, int], tuple[Int64, Int64]]


def tile_calls(cut: Cut, specs: dict[KernelSpec, int]) -> TileCalls:
    """The calls of all ranges of k.  specs: the table of kernels, extended by new ones."""
    counts = sorted(set(cut.items or [1]))
    return {(step, items): calls_of(cut, step, items, specs) for step in dict.fromkeys(cut.steps) for items in counts}


def calls_of(cut: Cut, step: DepthStep, items: int, specs: dict[KernelSpec, int]) -> tuple[Int64, Int64]:
    target, sizes = cut.target, sorted(set(cut.sizes), reverse=True)
    spec_of, cycles = (np.empty((cut.groups, len(sizes)), np.int64) for _ in range(2))
    last = cut.p.n - (cut.groups - 1) * cut.width
    alike = cut.groups if last == cut.width else cut.groups - 1
    for users, columns in ((slice(0, alike), cut.width), (slice(alike, cut.groups), last)):
        for i, rows in enumerate(sizes if users.start < users.stop else ()):
            spec = tile_spec(cut, step, (rows, columns), items)
            spec_of[users, i] = specs.setdefault(spec, len(specs))
            if target.tiled:
                size = (spec.tile.rows_of_src, 1) if spec.tile.items.joined else (rows, items)
                cycles[users, i] = int(call_cycles(size[0], columns, spec.tile.steps, target.products, size[1]))
                continue
            of_depth = spec.tile.steps * target.step_cycles(rows, spec.tile.vectors, cut.p.types)
            cycles[users, i] = items * (of_depth + target.call_cycles)
    return spec_of, cycles


def tile_spec(cut: Cut, step: DepthStep, tile: tuple[int, int], items: int) -> "AmxTileSpec | MatmulTileSpec":
    """The kernel of tiles of (rows, columns)."""
    p, block, (rows, columns) = cut.p, cut.block, tile
    assert isinstance(p.weights, Panels) or p.types.group == 1, "no tile reads plain rows of several elements of k"
    bias = None
    if p.bias is not None and step.bias:
        bias = Bias(p.bias.row_bytes if rows > 1 else 0, p.bias.is_dense)
    operand_types = tuple(x.dtype for x in p.post_op_operands)
    shape = MatmulTile(
        isa=cut.target.isa,
        rows=rows,
        columns=columns,
        depth=(step.end - step.begin) * p.types.group - step.missing,
        src_row_bytes=p.src.row_bytes if rows > 1 else 0,
        # Tiles read dense groups; of a single group src may say no distance.
        src_depth_bytes=p.src.element_bytes if cut.target.tiled else p.src.column_bytes,
        weights_row_bytes=p.weights.row_bytes,
        panel_vectors=block.panel_vectors,
        panel_bytes=cut.panel_bytes if block.vectors > block.panel_vectors else 0,
        padded=isinstance(p.weights, Panels),
        dst_row_bytes=p.dst.row_bytes if rows > 1 else 0,
        bias=bias,
        accumulate=step.accumulate,
        scaled=step.scaled,
        beta=step.beta,
        post_ops=step.post_ops,
        prefetch_lines=cut.prefetch.lines,
        prefetch_step_bytes=cut.prefetch.row_bytes,
        stream_bytes=cut.prefetch.stream_bytes,
        src_ahead_bytes=cut.prefetch.src_bytes,
        prefetches_dst=cut.prefetch.dst,
        packs=p.packed_weights is not None,
        near_row_bytes=p.packed_src.row_bytes if p.packed_src else 0,
        items=item_steps(cut, rows, items, bias is not None),
        pieces=p.pieces,
        types=p.types,
        dst=None if p.dst.dtype == f32 == p.types.sums else p.dst.dtype,
        operand_types=operand_types if set(operand_types) - {f32} else (),
    )
    if not cut.target.tiled:
        return MatmulTileSpec(tile=shape)
    with importing():
        from asmdnn.generators.dot.amx import AmxTileSpec  # other levels do without

    tuning = cut.target.products
    return AmxTileSpec(tile=shape, far=far_operands(shape, tuning), panels_at_once=panels_at_once(shape, tuning))


def item_steps(cut: Cut, rows: int, items: int, bias: bool) -> Items:
    """The distances between the matrices of one call, of so many rows."""
    p = cut.p
    if items == 1:
        return ONE_ITEM
    bias_bytes = p.bias.batch_bytes[-1] if bias and p.bias is not None else 0
    steps = p.src.batch_bytes[-1], p.weights.batch_bytes[-1], bias_bytes, p.dst.batch_bytes[-1]
    joined = cut.target.tiled and joined_rows(p, rows, items, cut.target.products) > 0
    return Items(items, *steps, joined=joined)
