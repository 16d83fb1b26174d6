"""Shuffles by whole vectors: which lanes of which vectors of src make each vector of dst."""

from asmdnn.generators.move.permute import PermuteSpec, Unit
from asmdnn.isa.permute import NOWHERE
from asmdnn.isa.vectors import lanes_of
from asmdnn.primitives.shuffle.tiles import ShuffledAxis, overlapped, tile_of
from asmdnn.records import replace

ELEMENT_BYTES = 4  # permutations of smaller ones would need AVX512_VBMI, or several instructions


def permute_kernels(isa: str, axis: ShuffledAxis, step: int, most_units: int) -> list[tuple[PermuteSpec, int, int]]:
    """The kernels for one pixel, or for as many as fill a vector if they are smaller and touch, each with where in the
    axis its pointers point; none if vectors do not fit.  most_units: of a kernel."""
    size = ELEMENT_BYTES * lanes_of(isa)
    pixels = max(1, size // step) if step == axis.run_bytes and size % step == 0 else 1
    lanes = lanes_of(isa) // pixels
    units = units_of(axis, lanes, pixels)
    most = most_units if axis.is_dense else max(1, axis.run_bytes // (ELEMENT_BYTES * lanes))
    if len(units) > most and axis.is_dense and axis.size % lanes:
        return []  # units overlap, which those of different kernels must not
    return [kernel_of(isa, pixels * step or size, units[i : i + most]) for i in range(0, len(units), most)]


def units_of(axis: ShuffledAxis, lanes: int, pixels: int) -> list[Unit]:
    """Vectors of some lanes of each of some pixels that together write all of the axis; none if it has padding, or runs
    that are no whole numbers of so many lanes."""
    wide = replace(axis, unit_bytes=ELEMENT_BYTES * lanes)
    if axis.element_bytes != ELEMENT_BYTES or axis.size < lanes or len(axis.offsets) != axis.size:
        return []
    if not axis.is_dense and axis.run_bytes % wide.unit_bytes:
        return []
    return [unit_of(wide, start, pixels) for start in overlapped(axis.size, lanes)]


def unit_of(axis: ShuffledAxis, start: int, pixels: int) -> Unit:
    """The unit of dst that begins at an element, of pixels one after another."""
    tile, size = tile_of(axis, [start]), axis.unit_bytes
    (origins,) = tile.lanes
    sources = []
    for number, at in enumerate(tile.windows):
        own = [(origin - number * size) // ELEMENT_BYTES for origin in origins]
        lanes = (pixel * axis.lanes + x if 0 <= x < axis.lanes else NOWHERE for pixel in range(pixels) for x in own)
        sources.append((at, tuple(lanes)))
    return Unit(tile.dst[0], tuple(sources))


def kernel_of(isa: str, step: int, units: list[Unit]) -> tuple[PermuteSpec, int, int]:
    src, dst = min(at for unit in units for at, _ in unit.sources), min(unit.dst for unit in units)
    moved = tuple(Unit(unit.dst - dst, tuple((at - src, lanes) for at, lanes in unit.sources)) for unit in units)
    return PermuteSpec(isa=isa, pixels=1, pixel_bytes=step, units=moved), src, dst
