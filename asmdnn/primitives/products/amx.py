"""Products by tiles of AMX: the cost of a call, its block, and the products for which they pay.

The model: of each step products of tiles one after another, or the lines that they load; the end of a block,
and the configuration, which each call has once.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from asmdnn.generators.dot.matmul_shape import PieceLoop
from asmdnn.isa.dot import GROUP_BYTES, dot_level
from asmdnn.isa.lines import LINE_BYTES, MAX_OFFSET
from asmdnn.isa.tiles import BLOCK_TILES, MOST_ROWS, TILE_COLUMNS, TILE_GROUPS, TILE_ROW_BYTES, TILE_ROWS
from asmdnn.planning.cuts import balanced, runs_of
from asmdnn.planning.product_tuning import ProductTuning
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.products.blocks import Block, expected_cycles
from asmdnn.primitives.products.matrices import Matrix, Panels, panel_columns
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import Target
from asmdnn.records import dataclass
from asmdnn.types import HALF_FLOATS

LEAST_CYCLES = 9.0  # of a tile product with few rows
CYCLES_OF_ROWS = (4.0, 0.725)  # of one with more: a constant, and a summand for each row
TILES_OF_BLOCK = BLOCK_TILES * BLOCK_TILES
BLOCK_ROWS, BLOCK_COLUMNS = BLOCK_TILES * TILE_ROWS, BLOCK_TILES * TILE_COLUMNS


def call_cycles(rows: int, columns: int, groups: int, tuning: ProductTuning, items: int = 1) -> float:
    """Expected cycles of a call, of so many rows and columns of dst and groups of k in each item."""
    tiles_of_rows = -(-rows // TILE_ROWS)
    tiles, size = items * tiles_of_rows * -(-columns // TILE_COLUMNS), -(-rows // tiles_of_rows)
    base, slope = CYCLES_OF_ROWS
    multiplied = TILES_OF_BLOCK * max(LEAST_CYCLES, base + slope * size)
    loaded = tuning.amx_step_cycles * (TILE_ROWS + size) / (2 * TILE_ROWS)  # as many rows of weights as a tile has
    of_block = -(-groups // TILE_GROUPS) * max(multiplied, loaded) + tuning.amx_end_cycles
    return tuning.amx_call_cycles + tiles * of_block / TILES_OF_BLOCK


def whole_groups(groups: int, pieces: Sequence[PieceLoop]) -> int:
    """So many groups of k, each piece of them filled up to whole tiles: a step takes as long with fewer."""
    count = prod(loop.count for loop in pieces)
    return count * TILE_GROUPS * -(-(groups // count) // TILE_GROUPS)


def copy_pays(p: Product, target: Target) -> bool:
    """Whether a copy of src, with rows an odd number of lines apart, takes less time than it saves."""
    if p.src.is_strided or not p.src.row_bytes or p.pieces or p.m * prod(p.batch) <= BLOCK_ROWS:
        return False
    tuning, panels = target.products, -(-p.n // BLOCK_COLUMNS)
    if p.src.row_bytes % LINE_BYTES:
        saved = panels * tuning.amx_split_cycles  # of every step of a block
    elif p.src.row_bytes % (2 * LINE_BYTES) == 0:
        saved = panels / near_panels(p.k, tuning) * tuning.amx_even_cycles  # out of L1 they are as fast
    else:
        return False
    size = p.m * p.depth * p.src.dtype.size_bytes * prod(p.batch)
    copied = BLOCK_ROWS * (tuning.amx_copied_cycles if size <= target.l2_bytes else tuning.amx_far_copied_cycles)
    return saved > copied and size <= tuning.alias_copy_bytes


def tile_block(p: Product, target: Target) -> Block:
    """Rows whose src fits half of L2, and so many panels that configuring the tiles costs next to nothing."""
    columns = p.weights.columns if isinstance(p.weights, Panels) else panel_columns(p.n, target.lanes)
    rows, batches = most_rows(p, target), (prod(p.batch), most_items(p, target))
    return _block((p.m, p.n, p.k), columns, rows, batches, target.products)


def most_rows(p: Product, target: Target) -> int:
    """Of a call; rows whose k lies in pieces overlap."""
    row_bytes = p.src.row_bytes if p.pieces else p.k * p.src.element_bytes
    near_rows = target.l2_bytes // 2 // row_bytes
    return min(MOST_ROWS, max(BLOCK_TILES * TILE_ROWS, near_rows // TILE_ROWS * TILE_ROWS))


def most_items(p: Product, target: Target) -> int:
    """Matrices of a call: where rows are few, those of the innermost batch dim that share weights, and that code steps
    over."""
    if not p.batch or p.weights.batch_bytes[-1]:
        return 1
    return max(1, min(p.batch[-1], most_rows(p, target) // p.m, p.near_items))


@lru_cache(maxsize=1024)
def _block(
    sizes: tuple[int, int, int], columns: int, most: int, batches: tuple[int, int], tuning: ProductTuning
) -> Block:
    """Calls are long, but some for every thread: of panels that stay in L1 beside a block there are rather all.
    batches: matrices, and how many a call has."""
    m, n, k = sizes
    matrices, items = batches
    panels, rows = -(-n // columns), max(balanced(m, most))
    near = min(panels, near_panels(k, tuning))

    def panels_for(calls: float) -> float:
        return calls * tuning.amx_call_cycles / (call_cycles(rows, columns, k, tuning, items) - tuning.amx_call_cycles)

    while near > 1 and rows > BLOCK_ROWS and near > 2 * panels_for(tuning.amx_call_share):
        if -(-m // rows) * -(-panels // near) * -(-matrices // items) >= tuning.amx_calls:
            break
        rows = max(balanced(m, max(BLOCK_ROWS, rows // 2)))
    calls = panels * -(-m // rows) * -(-matrices // items)
    for_threads = min(calls // tuning.amx_calls, round(panels_for(tuning.amx_most_share)))
    wanted = min(panels, max(1, near, for_threads, round(panels_for(tuning.amx_call_share))))
    together = -(-panels // -(-panels // wanted))
    vectors = columns // TILE_COLUMNS
    return Block(rows, together * vectors, vectors)


def near_panels(groups: int, tuning: ProductTuning) -> int:
    """How many panels stay in L1 beside a block of src, each with so many groups of k; at least 1."""
    return max(1, tuning.amx_near_bytes // (BLOCK_COLUMNS * GROUP_BYTES * groups) - 1)


@dataclass(frozen=True, slots=True)
class SrcDistances:
    """Bytes from row to row of src, and from item to item; has_gaps: what lies between items may be another's."""

    row: int
    item: int
    has_gaps: bool


def src_distances(p: Product) -> SrcDistances:
    return SrcDistances(p.src.row_bytes, p.src.batch_bytes[-1] if p.batch else 0, p.src.has_gaps)


def joined_rows(rows: int, groups: int, items: int, src: SrcDistances, tuning: ProductTuning) -> int:
    """The rows of src from the first of so many items to the end of the last, if all are multiplied in less time than
    those of items; else 0."""
    if items == 1 or rows == 1 or not src.row or src.item % src.row:
        return 0
    pitch = src.item // src.row
    joined = (items - 1) * pitch + rows
    if pitch < rows or joined > MOST_ROWS or (pitch > rows and src.has_gaps):
        return 0
    cycles = call_cycles(joined, BLOCK_COLUMNS, groups, tuning)
    return joined if cycles < call_cycles(rows, BLOCK_COLUMNS, groups, tuning, items) else 0


def total_cycles(p: Product, target: Target) -> float:
    """The expected cycles of one matrix of the batch."""
    block, items = tile_block(p, target), most_items(p, target)
    width, distances = block.vectors * target.lanes, src_distances(p)
    (groups, rest), depth = divmod(p.n, width), whole_groups(p.k, p.pieces)

    def cycles(rows: int) -> float:
        joined = joined_rows(rows, p.k, items, distances, target.products)
        size = (joined, 1) if joined else (rows, items)
        calls = [(width, groups), (rest, int(rest > 0))]
        return sum(n * call_cycles(size[0], w, depth, target.products, size[1]) for w, n in calls if n)

    return sum(times * cycles(rows) for rows, times in runs_of(p.m, block.rows)) / items


def check_amx(p: Product, target: Target) -> None:
    """Raise Refused for few rows, and for what vectors are expected to multiply in less time."""
    tuning = target.products
    if not p.k:
        raise Refused("there are no steps of k")
    if (rows := p.m * most_items(p, target)) < tuning.amx_rows:
        raise Refused(f"{rows} rows are left to vectors: tiles take {tuning.amx_rows} or more")
    row_bytes = max(x.row_bytes for x in p.operands().values() if isinstance(x, Matrix) and x is not p.weights)
    panel_bytes = p.k * BLOCK_TILES * TILE_ROW_BYTES
    if max(MOST_ROWS * row_bytes, TILE_GROUPS * p.weights.row_bytes, panel_bytes) > MAX_OFFSET:
        raise Refused("the rows of a call are more than 2 GiB apart")
    vectors = expected_cycles(p, target.of_vectors(dot_level(p.types, target.isa)))
    if p.types.src in HALF_FLOATS:
        vectors *= tuning.bf16_cycles
    if (tiles := total_cycles(p, target)) >= vectors:
        raise Refused(f"{tiles:.0f} cycles are expected, {vectors:.0f} of vectors")
