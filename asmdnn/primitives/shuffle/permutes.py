"""Shuffles by whole vectors: which lanes of which vectors of src make each vector of dst."""

from dataclasses import replace

from asmdnn.generators.move.permute import PermuteSpec, Unit
from asmdnn.isa.permute import NOWHERE
from asmdnn.isa.vectors import lanes_of
from asmdnn.primitives.shuffle.tiles import Axis, overlapped, tile_of

ELEMENT_BYTES = 4  # permutations of smaller ones would need AVX512_VBMI, or several instructions
MOST_UNITS = 64  # of a kernel: more are too much code


def permute_kernels(isa: str, axis: Axis, step: int) -> list[tuple[PermuteSpec, int, int]]:
    """The kernels for one pixel, each with where in the axis its pointers point; none if vectors do not fit."""
    size, units = ELEMENT_BYTES * lanes_of(isa), units_of(axis, lanes_of(isa))
    together = MOST_UNITS if axis.is_dense else max(1, axis.run_bytes // size)
    if len(units) > together and axis.is_dense and axis.size % lanes_of(isa):
        return []  # units overlap, which those of different kernels must not
    return [kernel_of(isa, step or size, units[i : i + together]) for i in range(0, len(units), together)]


def units_of(axis: Axis, lanes: int) -> list[Unit]:
    """Vectors that together write all of the axis; none if it has padding, or runs that are no whole vectors."""
    wide = replace(axis, unit_bytes=ELEMENT_BYTES * lanes)
    if axis.element_bytes != ELEMENT_BYTES or axis.size < lanes or len(axis.offsets) != axis.size:
        return []
    if not axis.is_dense and axis.run_bytes % wide.unit_bytes:
        return []
    return [unit_of(wide, start) for start in overlapped(axis.size, lanes)]


def unit_of(axis: Axis, start: int) -> Unit:
    """The unit of dst that begins at an element."""
    tile, size = tile_of(axis, [start]), axis.unit_bytes
    (origins,) = tile.lanes
    sources = []
    for number, at in enumerate(tile.windows):
        own = (origin - number * size for origin in origins)
        sources.append((at, tuple(x // ELEMENT_BYTES if 0 <= x < size else NOWHERE for x in own)))
    return Unit(tile.dst[0], tuple(sources))


def kernel_of(isa: str, step: int, units: list[Unit]) -> tuple[PermuteSpec, int, int]:
    src, dst = min(at for unit in units for at, _ in unit.sources), min(unit.dst for unit in units)
    moved = tuple(Unit(unit.dst - dst, tuple((at - src, lanes) for at, lanes in unit.sources)) for unit in units)
    return PermuteSpec(isa, 1, step, moved), src, dst
