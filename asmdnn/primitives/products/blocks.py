"""How to cut a matrix product: the register block, ranges of k, items of a call; from an explicit cost model.

The model of one step of depth is that of planning/cost.py.  Blocks of one row are wide: each weight is used once, so
several streams of them are read at a time, and there are enough accumulators to hide the latency of a multiply.
"""

from dataclasses import dataclass
from functools import lru_cache

from asmdnn.isa.dot import Types, blocks_of
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import lanes_of, vector_bytes
from asmdnn.planning.cost import step_cycles
from asmdnn.planning.cuts import balanced, ranges_of, runs_of
from asmdnn.planning.product_tuning import ProductTuning
from asmdnn.planning.tuning import PhaseTuning
from asmdnn.primitives.products.product import Matrix, Panels, Product
from asmdnn.primitives.products.target import Target
from asmdnn.types import f32

PANEL_VECTORS = 2  # of weights that this library packs
DEPTH_STEP = 8  # ranges of k are multiples of it, as kernels unroll so many steps


@dataclass(frozen=True, slots=True)
class Block:
    """rows x vectors accumulators; `panel_vectors` of a row of weights lie together."""

    rows: int
    vectors: int
    panel_vectors: int


@dataclass(frozen=True, slots=True)
class Kernels:
    """What blocks are chosen for: panels of so many vectors (0: none), which the tiles pack or read."""

    isa: str
    types: Types
    panel: int
    packs: bool


def panel_columns(n: int, lanes: int) -> int:
    """The width of the panels that this library packs."""
    return lanes * min(PANEL_VECTORS, -(-n // lanes))


def choose_block(p: Product, target: Target) -> Block:
    """The block that the model expects to be fastest; it depends on shape, ISA and tuning alone."""
    panels = p.packed or p.weights
    panel = panels.columns // target.lanes if isinstance(panels, Panels) else 0
    kernels = Kernels(target.isa, p.types, panel, bool(p.packed))
    return fastest_block((p.m, p.n, p.k), kernels, target.tuning.phases, target.products)


@lru_cache(maxsize=1024)  # a product is asked for its block by every strategy, and by most of their parts
def fastest_block(sizes: tuple[int, int, int], kernels: Kernels, phases: PhaseTuning, products: ProductTuning) -> Block:
    """Of m, n, k."""
    isa, panel, (_, n, k) = kernels.isa, kernels.panel, sizes
    lanes = lanes_of(isa)
    least = 1  # vectors; of plain weights behind L2 a line at least, which else comes twice: 7 rows times 1024x1024
    if k * n > products.far_elements:  # take 1.25 times as long by 12x1
        least = min(-(-n // lanes), -(-LINE_BYTES // vector_bytes(isa)))
    candidates = [
        Block(rows, vectors, panel or vectors)
        for vectors, rows in blocks_of(kernels.types, isa).items()
        if (vectors >= least if not panel else vectors == panel if kernels.packs else vectors % panel == 0)
    ]
    return min(candidates, key=lambda b: block_cycles(*sizes, b, lanes, phases, products.reread_cycles))


def block_cycles(m: int, n: int, k: int, b: Block, lanes: int, tuning: PhaseTuning, reread_cycles: float) -> float:
    """Expected cycles of one matrix of the batch."""
    groups, last = divmod(-(-n // lanes), b.vectors)
    total = 0.0
    for rows, times in runs_of(m, b.rows):
        for count, vectors in ((groups, b.vectors),) * bool(groups) + ((1, last),) * bool(last):
            step = step_cycles(rows, vectors, lanes, tuning)
            if m > b.rows:  # weights come from L2 again
                step = max(step, reread_cycles * vectors * lanes / 8)
            total += times * count * (k * step + tuning.call_cycles)
    return total


def choose_ranges(p: Product, b: Block, target: Target) -> list[tuple[int, int]]:
    """Ranges of k that are summed at a time: the rows of a panel that fill its share of L2.

    Convolutions take a smaller one; here rows of dst lie apart, and partial sums cost more.  A single tile of rows
    reads its panel once, so it takes all of k.
    """
    by = target.products
    if p.packed:
        return [(0, p.k)]
    if prefetches_columns(p, b, by):
        return depths_of(p.k, by.columns_depth // DEPTH_STEP, by)
    if p.m <= b.rows:
        return [(0, p.k)]
    if isinstance(p.weights, Matrix) and not p.packed:
        return depths_of(p.k, by.plain_depth.of(p.weights.row_bytes) // DEPTH_STEP, by)
    row_bytes = p.weights.element_bytes * target.lanes * b.vectors
    rows = max(target.l2_bytes // by.panel_share // row_bytes, target.tuning.phases.least_depth)
    return depths_of(p.k, rows // DEPTH_STEP, by)


def prefetches_columns(p: Product, b: Block, tuning: ProductTuning) -> bool:
    """Whether plain weights are read a few columns at a time, from rows that lie in many pages, and from behind L2."""
    is_plain = isinstance(p.weights, Matrix) and not p.packed and p.weights.is_dense
    few = b.rows > 2 and p.m <= tuning.few_row_tiles * b.rows
    return is_plain and few and p.k * p.n > tuning.far_elements


def depths_of(k: int, most_steps: int, tuning: ProductTuning) -> list[tuple[int, int]]:
    """[0, k) in nearly equal ranges of at most `most_steps` DEPTH_STEPs, of more where they would be too many."""
    return ranges_of(k, max(most_steps, -(-k // (DEPTH_STEP * tuning.most_ranges))), DEPTH_STEP)


def choose_items(p: Product, tiles: int, cycles: float, tuning: ProductTuning) -> list[int]:
    """How many matrices of the innermost batch dim the calls take, in turn, if one of its tiles takes `cycles`."""
    if not p.batch:
        return []
    size = p.batch[-1]
    if cycles > tuning.small_tile_cycles:
        return [1] * size
    most = int(tuning.call_target_cycles // max(cycles, 1))
    if tiles > 1:
        most = min(most, tuning.near_bytes // p.matrix_bytes)
    return balanced(size, max(1, most))


def choose_splits(p: Product, target: Target) -> int:
    """In how many parts the sum over k is cut so that there is work for more threads; 1 if there is enough."""
    block, by = choose_block(p, target), target.products
    tiles = -(-p.m // block.rows) * -(-p.n // (block.vectors * target.lanes))
    cycles = p.k * target.step_cycles(min(p.m, block.rows), block.vectors) * tiles
    if p.types.sums != f32 or p.batch or tiles >= by.few_tiles or cycles < by.split_cycles:
        return 1
    return max(1, min(-(-by.few_tiles // tiles), p.k // by.least_split))


def columns_are_apart(p: Product) -> bool:
    """Whether no kernel reads a vector of a row of weights as they lie."""
    if not isinstance(p.weights, Matrix):
        return False
    return p.types.group > 1 or (not p.weights.is_dense and p.n > 1)


def reads_weights_often(p: Product, b: Block, tuning: ProductTuning) -> bool:
    """Whether so many tiles of rows read plain weights that a copy in panels pays; few rows share no sets of L1."""
    if isinstance(p.weights, Panels) or p.k <= DEPTH_STEP or p.k * p.n <= tuning.pack_elements:
        return False
    return -(-p.m // b.rows) >= tuning.pack_tiles.of(p.weights.row_bytes)


def shares_weights(p: Product) -> bool:
    """Whether several matrices of the batch have the same weights, which one of them alone may pack."""
    return any(size > 1 and not step for size, step in zip(p.batch, p.weights.batch_bytes, strict=True))
