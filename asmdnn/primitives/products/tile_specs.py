"""The kernels of a cut product: one for each size of tiles, width of groups, range of k and run of matrices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.dot.matmul import MatmulTileSpec
from asmdnn.generators.dot.matmul_shape import Bias, Items, MatmulTile
from asmdnn.generators.functions.postops import PostOp
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.planning.depths import make_depths
from asmdnn.planning.phase import Int64
from asmdnn.primitives.products.blocks import prefetches_columns
from asmdnn.primitives.products.cut import Cut
from asmdnn.primitives.products.product import Panels, Product
from asmdnn.primitives.products.target import Target
from asmdnn.types import f32

ONE_ITEM = Items(1, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class DepthStep:
    """What the kernels of one range of k do."""

    begin: int
    end: int
    missing: int  # elements of its last group
    bias: bool
    accumulate: bool
    scaled: bool
    beta: bool
    post_ops: tuple[PostOp, ...]


def steps_of(p: Product, ranges: Sequence[tuple[int, int]], target: Target) -> Iterator[DepthStep]:
    """The first range starts from the bias (or beta * dst), later ones from dst, post-ops run in the last."""
    ending = target.ending
    for depth in make_depths(ranges, p.bias is not None, ending.on_registers(p.others, target.lanes)):
        first = depth.begin == 0
        accumulate = depth.accumulate or (first and ending.beta == "one")
        beta = first and ending.beta == "any"
        yield DepthStep(
            begin=depth.begin,
            end=depth.end,
            missing=p.missing if depth.end == p.k else 0,
            bias=depth.bias,
            accumulate=accumulate,
            scaled=ending.scaled,
            beta=beta,
            post_ops=depth.post_ops,
        )


def specs_of(cut: Cut, step: DepthStep, items: int, specs: dict[KernelSpec, int]) -> tuple[Int64, Int64]:
    """int64[groups, sizes]: the number of the spec in `specs`, and the cycles that a call is expected to take."""
    target, sizes = cut.target, sorted(set(cut.sizes), reverse=True)
    spec_of, cycles = (np.empty((cut.groups, len(sizes)), np.int64) for _ in range(2))
    last = cut.p.n - (cut.groups - 1) * cut.width
    for users, columns in ((slice(0, cut.groups - 1), cut.width), (slice(cut.groups - 1, cut.groups), last)):
        for i, rows in enumerate(sizes if users.start < users.stop else ()):
            spec = tile_spec(cut, step, rows, columns, items)
            spec_of[users, i] = specs.setdefault(spec, len(specs))
            of_depth = spec.tile.steps * target.step_cycles(rows, spec.tile.vectors)
            cycles[users, i] = items * (of_depth + target.call_cycles)
    return spec_of, cycles


def tile_spec(cut: Cut, step: DepthStep, rows: int, columns: int, items: int) -> MatmulTileSpec:
    p, block = cut.p, cut.block
    assert isinstance(p.weights, Panels) or p.types.group == 1, "no tile reads plain rows of several elements of k"
    bias = None
    if p.bias is not None and step.bias:
        bias = Bias(p.bias.row_bytes if rows > 1 else 0, p.bias.is_dense)
    tile = MatmulTile(
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
        bias=bias,
        accumulate=step.accumulate,
        scaled=step.scaled,
        beta=step.beta,
        post_ops=step.post_ops,
        ahead_lines=cut.ahead_lines(),
        ahead_bytes=cut.ahead_row_bytes,
        stream_bytes=stream_bytes(cut),
        packs=p.packed is not None,
        items=item_steps(cut, items, bias is not None),
        types=p.types,
        dst=None if p.dst.dtype == f32 == p.types.sums else p.dst.dtype,
        operand_types=tuple(x.dtype for x in p.others) if any(x.dtype != f32 for x in p.others) else (),
    )
    return MatmulTileSpec(tile)


def stream_bytes(cut: Cut) -> int:
    """How far ahead of their use weights are prefetched that no tile before has brought."""
    p, block, by = cut.p, cut.block, cut.target.products
    if isinstance(p.weights, Panels):
        return by.stream_bytes if cut.sizes == [1] and block.vectors > block.panel_vectors else 0
    if prefetches_columns(p, block, by):
        return max(LINE_BYTES, cut.row_bytes)  # of the same rows: in pages in use
    ahead = by.stream_rows * p.weights.row_bytes
    return ahead if p.k * p.n >= by.few_weights and ahead <= by.most_stream_bytes else 0


def item_steps(cut: Cut, items: int, bias: bool) -> Items:
    """How far the operands of the next matrix of a call lie."""
    p = cut.p
    if items == 1:
        return ONE_ITEM
    bias_bytes = p.bias.batch_bytes[-1] if bias and p.bias is not None else 0
    return Items(items, p.src.batch_bytes[-1], p.weights.batch_bytes[-1], bias_bytes, p.dst.batch_bytes[-1])
