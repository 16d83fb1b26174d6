"""The register block of a matrix product, and whether packing its weights pays; from an explicit cost model.

The model of one step of depth is that of planning/cost.py.  Blocks of one row are wide: each weight is used once, so
several streams of them are read at a time, and there are enough accumulators to hide the latency of a multiply.
"""

from functools import lru_cache
from math import prod
from typing import Final

from asmdnn.generators.dot.matmul import UNROLL
from asmdnn.isa.dot import Types, blocks_of, dot_class
from asmdnn.isa.lines import L1_SETS_BYTES, LINE_BYTES, lines_that_stay
from asmdnn.isa.vectors import lanes_of, vector_bytes
from asmdnn.planning.cost import step_cycles
from asmdnn.planning.cuts import runs_of
from asmdnn.planning.product_tuning import ProductTuning
from asmdnn.planning.tuning import PhaseTuning
from asmdnn.primitives.products.matrices import PANEL_VECTORS, Matrix, Panels
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import Target
from asmdnn.records import dataclass
from asmdnn.types import f32

DEPTH_STEP: Final = UNROLL  # ranges of k are multiples of what kernels unroll


@dataclass(frozen=True, slots=True)
class Block:
    """rows x vectors accumulators; `panel_vectors` vectors of a row of weights are contiguous."""

    rows: int
    vectors: int
    panel_vectors: int


def choose_block(p: Product, target: Target) -> Block:
    """The block of vectors that the model expects to be fastest; it depends on shape, ISA and tuning alone."""
    return best_block(p, target)[0]


def expected_cycles(p: Product, target: Target) -> float:
    """The expected cycles of one matrix of the batch with that block."""
    return best_block(p, target)[1]


def best_block(p: Product, target: Target, most: int = 0) -> tuple[Block, float]:
    """most: rows of a block; 0: as many as pay."""
    panels = p.packed_weights or p.weights
    panel = panels.columns // target.lanes if isinstance(panels, Panels) else 0
    panels_read, phases = (panel, bool(p.packed_weights)), target.tuning.phases
    most = most or most_rows(p, target.products)
    return fastest_block((p.m, p.n, p.k), p.types, target.isa, panels_read, phases, target.products, most=most)


def most_rows(p: Product, tuning: ProductTuning) -> int:
    """So many rows of src a tile may read where they lie: the lines of more would share sets of L1, and leave them
    before all their elements are used.  On Zen 4, where AVX-512 has tiles of 14 rows, fewer make 64 to 384 rows times
    2048x256 to 4096x384 1.15 to 1.3x faster, 256 rows times 2048x10 3.8x.  Panels, and weights that stay in L2, are
    better read once by a few more: 8 rows times 1024x4096 would take 1.2x as long in two tiles.
    """
    few = p.m <= tuning.alias_once and (isinstance(p.weights, Panels) or p.k * p.n <= tuning.far_elements)
    if few or not p.src.row_bytes or not p.src.is_dense or src_needs_pack(p, tuning):
        return p.m
    return lines_that_stay(p.src.row_bytes, tuning.panel_lines if isinstance(p.weights, Panels) else tuning.set_lines)


def src_needs_pack(p: Product, tuning: ProductTuning, *, panels: bool = False) -> bool:
    """Whether reading src in place costs more than a copy: the elements of a row are strided and read often, or all
    rows of a tile share the sets of L1 and are read more often still.  panels: which plain weights are packed into."""
    strided = p.src.is_strided and p.k > tuning.strided_depth and p.n >= tuning.strided_columns
    alias = p.src.is_dense and not p.pieces and p.src.row_bytes > 0 and p.src.row_bytes % L1_SETS_BYTES == 0
    size = p.src.element_bytes * p.m * p.k * prod(p.batch)
    rows = tuning.alias_rows if panels or isinstance(p.weights, Panels) else tuning.alias_plain_rows
    often = p.m >= rows and p.n >= tuning.alias_columns
    return strided or (alias and often and size <= tuning.alias_copy_bytes)


@lru_cache(maxsize=1024)  # a product is asked for its block by every strategy, and by most of their parts
def fastest_block(
    sizes: tuple[int, int, int],
    types: Types,
    isa: str,
    panels: tuple[int, bool],
    phases: PhaseTuning,
    tuning: ProductTuning,
    *,
    most: int,
) -> tuple[Block, float]:
    """For (m, n, k), the block with the fewest expected cycles for one matrix of the batch, and those cycles.

    panels: vectors of those that tiles read (0: none), and whether the tiles pack them.  most: rows of a block.
    """
    (m, n, k), (panel, packs), lanes, dot = sizes, panels, lanes_of(isa), dot_class(types, isa)
    least = 1  # vectors; a whole line of plain weights beyond L2, else it is loaded twice: 7 rows times 1024x1024
    if k * n > tuning.far_elements:  # take 1.25 times as long by 12x1
        least = min(-(-n // lanes), -(-LINE_BYTES // vector_bytes(isa)))

    def cycles(b: Block) -> float:
        groups, last = divmod(-(-n // lanes), b.vectors)
        total = 0.0
        for rows, times in runs_of(m, b.rows):
            for count, vectors in ((groups, b.vectors),) * bool(groups) + ((1, last),) * bool(last):
                step = step_cycles(rows, vectors, lanes, phases, dot)
                if m > b.rows:  # weights are read from L2 again
                    step = max(step, tuning.reread_cycles * vectors * lanes / 8)
                total += times * count * (k * step + phases.call_cycles)
        return total

    candidates = [
        Block(min(rows, most), vectors, panel or vectors)
        for vectors, rows in blocks_of(types, isa).items()
        if (vectors >= least if not panel else vectors == panel if packs else vectors % panel == 0)
    ]
    best = min(candidates, key=cycles)
    return best, cycles(best)


def panel_vectors(m: int, n: int, k: int, types: Types, isa: str, tuning: ProductTuning) -> int:
    """Of panels that weights are packed into.  A tile of two vectors reads two panels of one, side by side: two runs of
    lines, each a line a step, may come from beyond L2 faster than one run of two lines."""
    far, rows = -(-k // types.group) * n > tuning.far_elements, blocks_of(types, isa)[1]
    return 1 if far and tuning.narrow_panel_rows <= m <= rows else PANEL_VECTORS


def choose_splits(p: Product, target: Target) -> int:
    """Into how many parts the sum over k is cut to have work for more threads; 1 if there is enough."""
    block, tuning = choose_block(p, target), target.products
    tiles = -(-p.m // block.rows) * -(-p.n // (block.vectors * target.lanes))
    cycles = p.k * target.step_cycles(min(p.m, block.rows), block.vectors, p.types) * tiles
    if p.types.sums != f32 or p.batch or tiles >= tuning.split_tiles or cycles < tuning.split_cycles:
        return 1
    return max(1, min(-(-tuning.few_tiles // tiles), p.k // tuning.least_split))


def weights_need_packing(p: Product) -> bool:
    """Whether no kernel can load a vector of weights in place: they are grouped along k, or columns are strided."""
    if not isinstance(p.weights, Matrix):
        return False
    return p.types.group > 1 or (not p.weights.is_dense and p.n > 1)


def reads_weights_often(p: Product, target: Target) -> bool:
    """Whether plain weights are read by so many tiles of rows that a copy in panels pays.

    Tiles of as many rows as registers hold: of the fewer that most_rows() allows, three times 1024x4096 that pack run
    half as fast."""
    tuning = target.products
    if isinstance(p.weights, Panels) or p.k <= DEPTH_STEP or p.k * p.n <= tuning.pack_elements:
        return False
    block, _ = best_block(p, target, most=max(p.m, 1))
    return -(-p.m // block.rows) >= tuning.pack_tiles.of(p.weights.row_bytes)


def shares_weights(p: Product) -> bool:
    """Whether several matrices of the batch have the same weights, which only one of them may pack."""
    return any(size > 1 and not step for size, step in zip(p.batch, p.weights.batch_bytes, strict=True))
