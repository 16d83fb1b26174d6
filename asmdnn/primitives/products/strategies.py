"""The strategies for products, best first: each accepts a product or refuses it, and adds the phases of one."""

from collections.abc import Callable, Iterator, Sequence

from asmdnn.isa.dot import F32
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.cuts import balanced, runs_of
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.products.amx import check_amx, copy_pays
from asmdnn.primitives.products.blocks import (
    choose_block,
    choose_splits,
    reads_weights_often,
    shares_weights,
    weights_need_packing,
)
from asmdnn.primitives.products.copied_src import add_copying_tiles, add_tiles, copies_src
from asmdnn.primitives.products.dots import add_dots, check_dots
from asmdnn.primitives.products.matrices import Matrix, Panels, matrices_desc, panel_columns, panels_of, panels_tag
from asmdnn.primitives.products.one_by_one import WORD, add_one_by_one, check_batch, check_packed
from asmdnn.primitives.products.outer import check_outer, outer_phases, src_aliases, weights_alias
from asmdnn.primitives.products.packed_blocks import add_blocks, check_blocks
from asmdnn.primitives.products.partial import check_rows, rows_of_weights, split
from asmdnn.primitives.products.prepare import dense_copy, with_apart_src, with_near_src
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.schedule import schedule
from asmdnn.primitives.products.target import Target
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Strategy:
    """check: raises Refused for a product that it does not take.  add: adds the phases of one that it takes."""

    name: str
    check: Callable[[Product, Target], None]
    add: Callable[[Assembly, Product, Target], None]


def add_outer(assembly: Assembly, p: Product, target: Target) -> None:
    """A product with few steps of k, dst row by row."""
    if src_aliases(p, target):
        p = replace(p, src=dense_copy(assembly, p, p.src, p.k, ("src", "pack_src")))
    if weights_alias(p, target):
        ((part, columns),) = groups(assembly, p, target, at_once=True)
        p = packed(assembly, part, columns)
    assembly.add(outer_phases(p, target), "outer")


def add_rows(assembly: Assembly, p: Product, target: Target) -> None:
    """A vector times row-major weights, each of which is used once."""
    rows_of_weights(assembly, with_near_src(assembly, p), target)


def check_packing_tiles(p: Product, target: Target) -> None:
    """Raise Refused where few tiles read weights in place, and where several records would pack the same weights."""
    check_worth_packing(p, target)
    if p.types != F32:
        raise Refused(f"tiles pack weights of f32 only, these are {p.weights.dtype}")
    if weights_need_packing(p):
        raise Refused("columns of weights are not contiguous, tiles pack rows only")
    if shares_weights(p) or (isinstance(p.weights, Matrix) and not p.weights.is_dense):
        raise Refused("matrices of the batch share weights, which only one of them may pack")


def check_worth_packing(p: Product, target: Target) -> None:
    if isinstance(p.weights, Panels):
        raise Refused("weights are in panels already")
    if not weights_need_packing(p) and not reads_weights_often(p, target):
        tiles = -(-p.m // choose_block(p, target).rows)
        raise Refused(f"{p.k} x {p.n} weights, read by {tiles} tiles of rows, are not worth packing")


def add_packing_tiles(assembly: Assembly, p: Product, target: Target) -> None:
    """The first tiles that read a panel pack it; the others read the copy."""
    copies = copies_src(p, target)  # all columns: those of a group alone may be too few for that
    if not copies:
        p = with_near_src(assembly, p)
    at_once, near, rows = choose_splits(p, target) > 1 or bool(p.batch), None, 0
    for part, columns in groups(assembly, p, target, at_once):
        packing = replace(part, packed=columns)
        rows = rows or packing_rows(packing, target)  # of all groups, as the copy of src starts below them
        first = packing.rows(0, rows)
        assembly.add(schedule(first, target, one_range=True), "packing_tiles")
        if first.m == p.m:
            continue
        rest = replace(part.rows(first.m, p.m), weights=columns)
        if copies and not near:
            near = add_copying_tiles(assembly, rest, target)
        else:
            assembly.add(schedule(replace(rest, src=near or rest.src), target))
    assembly.add((), "tiles")


def packing_rows(packing: Product, target: Target) -> int:
    """So many rows are one tile, which packs: alone, rows of src may share the sets of L1 that a copy would spread."""
    most = runs_of(packing.m, choose_block(packing, target).rows)[0][0]
    return min(most, choose_block(packing.rows(0, most), target).rows)


def check_split(p: Product, target: Target) -> None:
    """Raise Refused where there are enough tiles for all threads, or they are too short to be split."""
    if choose_splits(p, target) == 1:
        raise Refused("there are enough tiles for many threads, or they are so short that a second phase costs more")


def add_split(assembly: Assembly, p: Product, target: Target) -> None:
    """Partial sums over ranges of k, then their sum."""
    p, splits = with_near_src(assembly, p), choose_splits(p, target)
    if not is_packed_before(p, target):
        split(assembly, p, target, splits)
        return
    for part, columns in groups(assembly, p, target, at_once=True):
        split(assembly, packed(assembly, part, columns), target, splits)


def is_packed_before(p: Product, target: Target) -> bool:
    """Whether a separate phase packs the weights, because tiles cannot read them or must not pack them."""
    if weights_need_packing(p):
        return True
    if isinstance(p.weights, Panels) or (p.weights.is_dense and not shares_weights(p)):
        return False
    return reads_weights_often(p, target)


def add_packed(assembly: Assembly, p: Product, target: Target) -> None:
    """A separate phase packs the weights, a group of columns at a time."""
    p = with_near_src(assembly, p)
    for part, columns in groups(assembly, p, target, at_once=bool(p.batch)):
        part = packed(assembly, part, columns)
        assembly.add(schedule(part, target), "tiles")


def check_tiles(p: Product, target: Target) -> None:
    if weights_need_packing(p):
        raise Refused("columns of weights are not contiguous, tiles read vectors of them")


def groups(assembly: Assembly, p: Product, target: Target, at_once: bool) -> Iterator[tuple[Product, Panels]]:
    """The product in groups of columns, and the scratch into which each group's weights are packed."""
    x, tuning, width = p.weights, target.products, panel_columns(p.n, target.lanes)
    assert isinstance(x, Matrix)
    panels, panel_bytes = -(-p.n // width), x.element_bytes * p.depth * width
    few = p.m <= tuning.few_row_tiles * choose_block(p, target).rows
    group = tuning.group_l2 * (1 + few) * target.l2_bytes
    most = panels if at_once else max(1, group // max(panel_bytes, 1))
    begin = 0
    for size in balanced(panels, most):
        end = min(p.n, begin + size * width)
        part = p.columns(begin, end)
        dims = matrices_desc(x, p.batch, p.depth, end - begin).dims
        desc = MemoryDesc(dims, x.dtype, panels_tag(len(dims), width, p.types.group))
        place = panels_of(assembly.room("packed weights", desc.size_bytes), desc, p.types.group)
        assert place
        yield part, place
        begin = end


def packed(assembly: Assembly, p: Product, panels: Panels) -> Product:
    """The product, with its weights packed by a separate phase."""
    assert isinstance(p.weights, Matrix)
    source = matrices_desc(p.weights, p.batch, p.depth, p.n)
    desc = MemoryDesc(source.dims, source.dtype, panels_tag(source.ndims, panels.columns, p.types.group))
    add_reorder(assembly, Reordering(p.weights.buffer, source, panels.buffer, desc), "pack_weights")
    return replace(p, weights=panels)


def add_amx(assembly: Assembly, p: Product, target: Target) -> None:
    """Tiles of AMX, on weights that are in panels or are packed before."""
    assembly.add((), "amx")
    if copy_pays(p, target):
        p = with_apart_src(assembly, p)
    (add_tiles if isinstance(p.weights, Panels) else add_packed)(assembly, p, target)


TILE_STRATEGIES = (Strategy("amx", check_amx, add_amx),)
OF_ONE = (
    Strategy("dots", check_dots, add_dots),
    Strategy("outer", check_outer, add_outer),
    Strategy("rows", check_rows, add_rows),
    Strategy("pack_blocks", check_blocks, add_blocks),
    Strategy("packing_tiles", check_packing_tiles, add_packing_tiles),
    Strategy("split_k", check_split, add_split),
    Strategy("pack_weights+tiles", check_worth_packing, add_packed),
    Strategy("tiles", check_tiles, add_tiles),
)


def check_each(p: Product, target: Target) -> None:
    check_batch(p, target)
    strategy = first_strategy(p.first_matrix, target, OF_ONE)
    if strategy.add in (add_tiles, add_outer):
        raise Refused("tiles and outer products of all matrices read the weights in place")
    if "pack" in strategy.name:
        check_packed(p, target)


def add_each(assembly: Assembly, p: Product, target: Target) -> None:
    """Matrices one by one, each as the best strategy has it."""
    add_one_by_one(assembly, p, target, first_strategy(p.first_matrix, target, OF_ONE).add)


def first_strategy(p: Product, target: Target, strategies: Sequence[Strategy]) -> Strategy:
    """The best that takes it.  Raises Refused with the last one's reason if none does."""
    *others, last = strategies
    for strategy in others:
        try:
            strategy.check(p, target)
        except Refused:
            continue
        return strategy
    last.check(p, target)
    return last


STRATEGIES = (Strategy(WORD, check_each, add_each), *OF_ONE)
