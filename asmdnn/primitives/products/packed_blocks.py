"""Products whose plain weights are packed a block at a time, by the thread that multiplies with it, and stay in its L2.

A group of records computes some columns of some rows of dst: for one range of k after the other it packs a block of
weights into scratch of the part that runs it, and multiplies with that, while the next block is prefetched where it
lies.  The blocks are those of Goto and van de Geijn ("Anatomy of high-performance matrix multiplication", 2008).
"""

from collections.abc import Iterator

import numpy as np

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.dot.matmul_shape import ARGUMENTS
from asmdnn.generators.dot.pack import PackSpec, most_summed
from asmdnn.isa.dot import GROUP_BYTES, blocks_of
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.cuts import balanced
from asmdnn.planning.phase import Phase, records_of
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.products.blocks import DEPTH_STEP, choose_block, weights_need_packing
from asmdnn.primitives.products.cut import Cut, DepthStep, Prefetch, lines_a_step, steps_of
from asmdnn.primitives.products.matrices import PANEL_VECTORS, Matrix, Panels, panel_columns
from asmdnn.primitives.products.prepare import with_near_src
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.rounds import ProductPiece, in_rounds
from asmdnn.primitives.products.schedule import Laid, tile_records
from asmdnn.primitives.products.target import Target
from asmdnn.primitives.products.vector_tiling import stream_bytes, vector_kernel
from asmdnn.records import replace
from asmdnn.types import s32

BLOCK, SUMS = "packed block", "sums of a block"  # of each part
MOST_PANELS = 2  # so many times larger may a block be if it has all of k


def check_blocks(p: Product, target: Target) -> None:
    """Raise Refused unless some tiles of rows, but not very many, read plain weights that do not fit L2."""
    tuning, x = target.products, p.weights
    if isinstance(x, Panels):
        raise Refused("weights are in panels already")
    if p.types.group == 1 and p.types.weights_bytes != GROUP_BYTES:
        raise Refused(f"a thread packs what is multiplied as stored in panels, {x.dtype} is widened")
    if p.batch or not x.is_dense:
        raise Refused("weights are no single matrix of dense rows")
    tiles, most = tuning.block_tiles.of(x.row_bytes), tuning.block_rows.of(x.row_bytes)
    least = max((tiles - 1) * blocks_of(p.types, target.isa)[PANEL_VECTORS] + 1, tuning.block_least_rows)
    if weights_need_packing(p):  # tiles cannot read them in place
        least = 1
        if p.k <= tuning.outer_depth:
            raise Refused(f"{p.k} steps of k take less time than to write dst, which is faster along all of its rows")
    if not least <= p.m <= most:
        raise Refused(f"there are {p.m} rows of src, blocks of such weights pay for {least} to {most}")
    columns = tuning.few_tiles * panel_columns(p.n, target.lanes)
    if p.n < columns or (p.k * p.n <= tuning.far_elements and not weights_need_packing(p)):
        raise Refused(f"weights of {p.k} x {p.n} stay in L2, or have fewer than {columns} columns for threads to share")
    if not holds_sums(p, target) and p.k > longest_range(p, target):
        raise Refused("dst cannot hold partial sums: a post-op reads it, or its type is not theirs")


def holds_sums(p: Product, target: Target) -> bool:
    """Whether dst may hold the partial sums of ranges of k."""
    return target.epilogue.may_split and p.sums_fit


def longest_range(p: Product, target: Target) -> int:
    """Of k, that one panel may have."""
    tuning = target.products
    return MOST_PANELS * tuning.block_depth * tuning.block_columns // panel_columns(p.n, target.lanes)


def add_blocks(assembly: Assembly, p: Product, target: Target) -> None:
    """The phases of a product with plain weights."""
    p, tuning = with_near_src(assembly, p, panels=True), target.products
    width = panel_columns(p.n, target.lanes)
    p = replace(p, adds_up=p.adds_up and p.k <= longest_range(p, target))
    whole = p.adds_up or not holds_sums(p, target)
    most = p.k if whole else tuning.block_depth // DEPTH_STEP
    depth = next(steps_of(p, most, target)).end
    size = tuning.block_columns * tuning.block_depth // max(tuning.block_depth, depth)
    panels = max(1, min(size // width, -(-p.n // width) // tuning.few_tiles))
    if p.adds_up and p.bias:
        assembly.drop(p.bias.buffer)
        panels = min(panels, most_summed(target.isa, p.types) // width)
        sums = assembly.room(SUMS, panels * width * s32.size_bytes)
        assembly.per_part += (sums,)
        p = replace(p, bias=replace(p.bias, buffer=sums))
    row_bytes = p.types.weights_bytes * width
    panel_bytes = row_bytes * depth + LINE_BYTES  # neighbours share no set of L1
    buffer, dtype = assembly.room(BLOCK, panels * panel_bytes), p.weights.dtype
    block = Panels(
        buffer=buffer,
        start_bytes=0,
        batch_bytes=(),
        row_bytes=row_bytes,
        panel_bytes=panel_bytes,
        columns=width,
        dtype=dtype,
        group=p.types.group,
    )
    assembly.per_part += (block.buffer,)
    phases: list[Phase] = []
    for piece in pieces_along(p, panels * width):
        made = group_of_blocks(piece.product, block, most, target)
        phases += in_rounds([made], piece, p.arguments, is_first=not phases)
    assembly.add(phases, "pack_blocks", "tiles")


def pieces_along(p: Product, columns: int) -> Iterator[ProductPiece]:
    """The product in pieces of so many columns, and the rest; each round begins at the start of its block."""
    times, rest = divmod(p.n, columns)
    of_block = {"weights": 0, "bias": 0} if p.adds_up else {"weights": 0}
    yield ProductPiece(p.columns(0, columns), ((times, p.distances(1, columns) | of_block),))
    if rest:
        last = p.columns(p.n - rest, p.n)
        yield ProductPiece(replace(last, bias=p.bias) if p.adds_up else last)


def group_of_blocks(p: Product, block: Panels, most: int, target: Target) -> Phase:
    """One group of records: all of a product whose columns are those of a block.  most: DEPTH_STEPs of a range of k."""
    specs = dict[KernelSpec, int]()
    laid: list[Laid] = []
    for step in steps_of(p, most, target):
        laid += [packing(p, step, block, target, specs), multiplying(p, step, block, target, specs)]
    records, cycles = (np.concatenate(arrays) for arrays in zip(*laid, strict=True))
    views = dict(zip(p.arguments, replace(p, weights=block).views(0, target.epilogue.scaled), strict=True))
    views["prefetched"] = views["prefetched"]._replace(buffer=p.weights.buffer)
    groups = np.array([0, len(records)])
    return Phase(tuple(specs), tuple(views.values()), records, cycles, flushes=True, groups=groups)


def packing(p: Product, step: DepthStep, block: Panels, target: Target, specs: dict[KernelSpec, int]) -> Laid:
    """The record that packs a range of k."""
    part, vectors = p.depths(step.begin, step.end), block.columns // target.lanes
    row_bytes, ahead = p.weights.row_bytes, target.products.block_ahead
    spec = PackSpec(
        isa=target.isa,
        depth=part.depth,
        columns=p.n,
        row_bytes=row_bytes,
        panel_vectors=vectors,
        panel_bytes=block.panel_bytes,
        prefetch_rows=ahead,
        types=p.types,
        sums=p.adds_up,
    )
    columns = {"prefetched": part.weights.start_bytes}
    record = records_of(p.arguments, columns, specs.setdefault(spec, len(specs)))
    return record, np.array([part.depth * spec.vectors + target.call_cycles], np.int32)


def multiplying(p: Product, step: DepthStep, block: Panels, target: Target, specs: dict[KernelSpec, int]) -> Laid:
    """The records of the tiles that read a range of k from the block, and prefetch the next one: further down, or the
    first one of the columns beside these."""
    cut = cut_of(p, step, block, target)
    (inside,) = cut.steps
    records, cycles = tile_records(cut, inside, specs)
    following = step.end * p.weights_step if step.end < p.k else p.n * p.weights.element_bytes
    records[:, 1 + ARGUMENTS.index("prefetched")] += p.weights.start_bytes + following
    return records, cycles


def cut_of(p: Product, step: DepthStep, block: Panels, target: Target) -> Cut:
    """All tiles of rows of a panel for a range of k, then the next panel: those rows of src stay in L2.  Where the
    block stays in L1, all panels for a tile of rows: short sums are written faster along the rows of dst."""
    assert isinstance(p.weights, Matrix)
    row_bytes = p.weights.row_bytes
    part = replace(p.depths(step.begin, step.end), weights=block)
    shape = choose_block(part, target)
    sizes, width = balanced(p.m, shape.rows), shape.vectors * target.lanes
    prefetch = Prefetch(stream_bytes=stream_bytes(part, shape, target, sizes == [1]))
    if shape.vectors == shape.panel_vectors:
        prefetch = Prefetch(lines_a_step(block.element_bytes * width, len(sizes)), row_bytes)
    groups = -(-p.n // width)
    along_rows = groups * block.panel_bytes <= target.products.outer_bytes
    return Cut(
        p=part,
        block=shape,
        target=target,
        kernel=vector_kernel,
        steps=(replace(step, begin=0, end=part.k),),
        sizes=sizes,
        groups=groups,
        at_once=groups,
        chunk=1 if along_rows else len(sizes),
        items=[],
        prefetch=prefetch,
    )
