"""The phases of a matrix product: one for each range of k, in rounds where there are many tiles."""

from collections.abc import Sequence
from dataclasses import replace

from asmdnn.generators.contract import KernelSpec
from asmdnn.planning.phase import NOTHING, Phase, View, views
from asmdnn.primitives.products.blocks import choose_block, choose_ranges
from asmdnn.primitives.products.cut import Cut, cut
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.records import Laid, tile_records
from asmdnn.primitives.products.rounds import in_rounds, pieces_of
from asmdnn.primitives.products.target import Target
from asmdnn.primitives.products.tile_specs import DepthStep, steps_of


def schedule(p: Product, target: Target, one_range: bool = False) -> list[Phase]:
    """A phase for each range of k; each continues the one before.  dst's columns are dense."""
    ending, block = target.ending, choose_block(p, target)
    whole = one_range or not ending.may_split or not p.sums_fit
    ranges = [(0, p.k)] if whole else choose_ranges(p, block, target)
    steps = list(steps_of(p, ranges, target))
    phases: list[Phase] = []
    by = target.products
    for piece in pieces_of(p, (block.rows, block.vectors * target.lanes), by.written_out, by.round_records):
        tiles = cut(piece.product, block, target, ranges)
        phases += in_rounds(phases_of(tiles, steps), piece, tiles.arguments, is_first=not phases)
    return phases


def phases_of(tiles: Cut, steps: Sequence[DepthStep]) -> list[Phase]:
    """A phase for each range of k.

    Where there are very many, those of equal kernels share their records: only their views lie further.
    """
    specs: dict[KernelSpec, int] = {}
    shared = len(steps) > tiles.target.products.many_ranges
    made: dict[DepthStep, Laid] = {}
    starts = []
    for step in steps:
        key = replace(step, begin=0, end=step.end - step.begin) if shared else step
        if key not in made:
            made[key] = tile_records(tiles, key, specs)
        starts.append((made[key], step.begin - key.begin))
    kernels, arguments = tuple(specs), views_of(tiles)
    return [
        Phase(
            kernels, further(tiles, arguments, begin) if begin else arguments, *laid_out, continues=i > 0, flushes=True
        )
        for i, (laid_out, begin) in enumerate(starts)
    ]


def views_of(tiles: Cut) -> tuple[View, ...]:
    """What the arguments point into."""
    names = {name: x.buffer for name, x in tiles.p.operands().items()}
    names |= {"ahead": names["weights"]} | ({"scale": "scale"} if tiles.target.ending.scaled else {})
    return views([names.get(name, "") for name in tiles.arguments])


def further(tiles: Cut, arguments: tuple[View, ...], steps: int) -> tuple[View, ...]:
    """The views behind so many steps of k."""
    if not steps:
        return arguments
    p = tiles.p
    moves = {"src": p.src.column_bytes, "weights": p.weights.row_bytes, "ahead": p.weights.row_bytes}
    moves |= {"packed": p.packed.row_bytes} if p.packed else {}
    return tuple(
        View(view.buffer, steps * moves[name]) if name in moves and view is not NOTHING else view
        for name, view in zip(tiles.arguments, arguments, strict=True)
    )
