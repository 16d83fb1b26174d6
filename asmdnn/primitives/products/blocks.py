"""How to cut a matrix product: the register block, ranges of k, items of a call; from an explicit cost model.

The model of one step of depth is that of planning/cost.py.  Blocks of one row are wide: each weight is used once, so
several streams of them are read at a time, and there are enough accumulators to hide the latency of a multiply.
"""

from dataclasses import dataclass
from math import gcd

from asmdnn.generators.dot.matmul_shape import BLOCKS
from asmdnn.planning.cost import CALL_CYCLES, step_cycles
from asmdnn.planning.cuts import balanced, ranges_of, runs_of
from asmdnn.planning.depths import LEAST_DEPTH
from asmdnn.primitives.products.product import Matrix, Panels, Product
from asmdnn.primitives.products.target import Target

PANEL_VECTORS = 2  # of weights that this library packs
L1_SETS_BYTES = 4096  # addresses that differ by a multiple share a set, on x86-64 CPUs of today
PANEL_SHARE = 5  # of L2, for the rows of a panel that are summed at a time
DEPTH_STEP = 8  # ranges of k are multiples of it
MOST_RANGES = 1024  # and a plan has a phase for each
CALL_TARGET_CYCLES = 4000  # small matrices of a batch share a call that takes about so long
SMALL_TILE_CYCLES = 1000
NEAR_BYTES = 6 << 10  # of several matrices that all tiles pass over in turn, which then find them in L1
FEW_TILES = 16  # fewer tiles than these, and the sum over k is split, so that more threads have work
SPLIT_CYCLES = 60_000  # and what a tile must take for that
LEAST_SPLIT = 128  # steps of k
# From so many tiles of rows on plain weights are packed, by what their rows' distance has in common with L1's 4 KiB: a
# column of them then has 64, 4 and 1 sets of L1.  (Zen 3: 20 rows times 3072x768 run 1.35x faster unpacked, 16 rows
# times 1024x1024 1.15x faster packed.)
PACK_TILES = {1: 16, 1024: 5, 4096: 3}
# And steps of k that keep the columns of a tile in L1 and L2 where weights are not packed.
PLAIN_DEPTH = {1: 256, 1024: 64, 4096: 64}
# Weights whose rows share sets of L1 share few of L2, too.  Where few tiles of rows read them, packing takes longest: a
# pass takes so many steps of k that the lines beside its own, which it prefetches, stay in half of L2's ways.
L2_SETS_BYTES, L2_LINES, LEAST_PACKED = 1 << 16, 4, 16
PACK_ELEMENTS = 64 * 64  # and so few weights stay in L1
# Few tiles of rows read each weight from behind L2 a few times only.  They take so many steps of k at a time, such that
# the lines of the next columns, which they prefetch from the same pages, fit into L1 beside their own.
FEW_ROW_TILES, COLUMNS_DEPTH = 4, 128
FAR_ELEMENTS = 1 << 16  # fewer weights stay in L2


@dataclass(frozen=True, slots=True)
class Block:
    """rows x vectors accumulators; `panel_vectors` of a row of weights lie together."""

    rows: int
    vectors: int
    panel_vectors: int


def panel_columns(n: int, lanes: int) -> int:
    """The width of the panels that this library packs."""
    return lanes * min(PANEL_VECTORS, -(-n // lanes))


def choose_block(p: Product, target: Target) -> Block:
    """The block that the model expects to be fastest; it depends on the shape and the ISA alone."""
    lanes = target.lanes
    panels = p.packed or p.weights
    panel = panels.columns // lanes if isinstance(panels, Panels) else 0
    candidates = [
        Block(rows, vectors, panel or vectors)
        for vectors, rows in BLOCKS[target.isa].items()
        if not panel or (vectors == panel if p.packed else vectors % panel == 0)
    ]
    return min(candidates, key=lambda b: block_cycles(p, b, lanes))


def block_cycles(p: Product, b: Block, lanes: int) -> float:
    """Expected cycles of one matrix of the batch."""
    groups, last = divmod(-(-p.n // lanes), b.vectors)
    total = 0.0
    for rows, times in runs_of(p.m, b.rows):
        total += times * groups * (p.k * step_cycles(rows, b.vectors, lanes) + CALL_CYCLES)
        total += times * bool(last) * (p.k * step_cycles(rows, last, lanes) + CALL_CYCLES)
    return total


def choose_ranges(p: Product, b: Block, target: Target) -> list[tuple[int, int]]:
    """Ranges of k that are summed at a time: the rows of a panel that fill a fifth of L2.

    Convolutions take a twelfth; here rows of dst lie apart, and partial sums cost more.  A single tile of rows reads
    its panel once, so it takes all of k.
    """
    if packs_aliases(p):
        distance = gcd(p.weights.row_bytes, L2_SETS_BYTES)
        return depths_of(p.k, max(L2_LINES * L2_SETS_BYTES // distance, LEAST_PACKED) // DEPTH_STEP)
    if p.packed:
        return [(0, p.k)]
    if prefetches_columns(p, b):
        return depths_of(p.k, COLUMNS_DEPTH // DEPTH_STEP)
    if p.m <= b.rows:
        return [(0, p.k)]
    if isinstance(p.weights, Matrix) and not p.packed:
        return depths_of(p.k, PLAIN_DEPTH[common_bytes(p.weights)] // DEPTH_STEP)
    rows = max(target.l2_bytes // PANEL_SHARE // (4 * target.lanes * b.vectors), LEAST_DEPTH)
    return depths_of(p.k, rows // DEPTH_STEP)


def prefetches_columns(p: Product, b: Block) -> bool:
    """Whether plain weights are read a few columns at a time, from rows that lie in many pages, and from behind L2."""
    is_plain = isinstance(p.weights, Matrix) and not p.packed and p.weights.column_bytes == 4
    return is_plain and b.rows > 2 and p.m <= FEW_ROW_TILES * b.rows and p.k * p.n > FAR_ELEMENTS


def packs_aliases(p: Product) -> bool:
    """Whether tiles leave a copy of weights whose rows share sets of L1."""
    return p.packed is not None and isinstance(p.weights, Matrix) and common_bytes(p.weights) == L1_SETS_BYTES


def depths_of(k: int, most_steps: int) -> list[tuple[int, int]]:
    """[0, k) in nearly equal ranges of at most `most_steps` DEPTH_STEPs, of more where they would be too many."""
    return ranges_of(k, max(most_steps, -(-k // (DEPTH_STEP * MOST_RANGES))), DEPTH_STEP)


def choose_items(p: Product, tiles: int, cycles: float) -> list[int]:
    """How many matrices of the innermost batch dim the calls take, in turn, if one of its tiles takes `cycles`."""
    if not p.batch:
        return []
    size = p.batch[-1]
    if cycles > SMALL_TILE_CYCLES:
        return [1] * size
    most = int(CALL_TARGET_CYCLES // max(cycles, 1))
    if tiles > 1:
        most = min(most, NEAR_BYTES // (4 * (p.m * p.k + p.k * p.n + p.m * p.n)))
    return balanced(size, max(1, most))


def choose_splits(p: Product, target: Target) -> int:
    """In how many parts the sum over k is cut so that there is work for more threads; 1 if there is enough."""
    block, lanes = choose_block(p, target), target.lanes
    tiles = -(-p.m // block.rows) * -(-p.n // (block.vectors * lanes))
    if (
        p.batch
        or tiles >= FEW_TILES
        or p.k * step_cycles(min(p.m, block.rows), block.vectors, lanes) * tiles < SPLIT_CYCLES
    ):
        return 1
    return max(1, min(-(-FEW_TILES // tiles), p.k // LEAST_SPLIT))


def columns_are_apart(p: Product) -> bool:
    """Whether no kernel reads a vector of a row of weights as they lie."""
    return isinstance(p.weights, Matrix) and p.weights.column_bytes != 4 and p.n > 1


def reads_weights_often(p: Product, b: Block) -> bool:
    """Whether so many tiles of rows read plain weights that a copy in panels pays; few rows share no sets of L1."""
    if isinstance(p.weights, Panels) or p.k <= DEPTH_STEP or p.k * p.n <= PACK_ELEMENTS:
        return False
    return -(-p.m // b.rows) >= PACK_TILES[common_bytes(p.weights)]


def shares_weights(p: Product) -> bool:
    """Whether several matrices of the batch have the same weights, which one of them alone may pack."""
    return any(size > 1 and not step for size, step in zip(p.batch, p.weights.batch_bytes, strict=True))


def common_bytes(x: Matrix) -> int:
    """What the distance of rows has in common with the distance of addresses that share a set of L1: a key above."""
    return max(size for size in PACK_TILES if gcd(x.row_bytes, L1_SETS_BYTES) % size == 0)
