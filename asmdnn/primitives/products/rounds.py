"""Products of many tiles as few records that are repeated: pieces of rows, columns or matrices of the batch.

Planning takes time and memory in proportion to the records that are written out.  A round has so many of them that
what it loads into caches again costs next to nothing.
"""

from collections.abc import Iterable, Sequence
from math import prod

from asmdnn.planning.phase import Phase, Repeat
from asmdnn.primitives.products.product import Product
from asmdnn.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class ProductPiece:
    """A product that is repeated: each loop runs it `times`, every argument steps[name] bytes further; outermost
    first."""

    product: Product
    loops: tuple[tuple[int, dict[str, int]], ...] = ()


def pieces_of(p: Product, tile: tuple[int, int], most: int, together: int) -> list[ProductPiece]:
    """The product if it has at most `most` tiles of (rows, columns), else pieces of rounds of at most `together`.

    Pieces are of whole tiles, but for the last ones.
    """
    rows, columns = tile
    units = [*p.batch, p.m // rows, p.n // columns]
    tiles = -(-p.m // rows) * -(-p.n // columns) * prod(p.batch)
    axis = max(range(len(units)), key=units.__getitem__)
    if tiles <= most or units[axis] < 2:
        return [ProductPiece(p)]
    steps_of_one = max(1, min(most, together) * units[axis] // tiles)
    times, size = units[axis] // steps_of_one, steps_of_one * [*[1] * len(p.batch), rows, columns][axis]
    first, distances = p.part(axis, 0, size), p.distances(axis, size)
    end = [*p.batch, p.m, p.n][axis]
    rest = p.part(axis, times * size, end) if times * size < end else None
    pieces = pieces_of(first, tile, most, together)
    found = [replace(piece, loops=((times, distances), *piece.loops)) for piece in pieces]
    return found + (pieces_of(rest, tile, most, together) if rest else [])


def in_rounds(phases: Iterable[Phase], piece: ProductPiece, arguments: Sequence[str], is_first: bool) -> list[Phase]:
    """The phases of a piece, repeated; after the first piece they need no barrier."""
    repeats = tuple(Repeat(times, tuple(step.get(name, 0) for name in arguments)) for times, step in piece.loops)
    made = [replace(phase, repeats=repeats) for phase in phases] if repeats else list(phases)
    return made if is_first else [replace(made[0], independent=True), *made[1:]]
