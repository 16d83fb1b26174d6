"""The specs of shuffles: interleaves, unpacked and gathered; zeros; tiles in a loop; small units; rows; elements.

Every window of a tile is used: kernels load no other one, while a footprint has all that the spec lists.
"""

from collections.abc import Iterator
from functools import partial

from asmdnn.generators.move.permute import PermuteSpec, Unit
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.generators.move.shuffle import ShuffleSpec
from asmdnn.generators.move.shuffle_body import Part, Tile
from asmdnn.generators.move.shuffle_elements import ElementsSpec
from asmdnn.generators.move.shuffle_network import ZERO, Lanes
from asmdnn.isa.permute import NOWHERE
from asmdnn.isa.vectors import lanes_of
from asmdnn.records import replace

ShuffleKernel = ShuffleSpec | PermuteSpec | RowsSpec | ElementsSpec
SHUFFLE_ISA = "avx2"  # serves every level
WIDE_ISA = "avx512_core"
ELEMENT_BYTES = (1, 2, 4)
UNIT_BYTES = 16


def interleave(rows: int, element_bytes: int) -> tuple[Lanes, ...]:
    """Units of the interleave of `rows` whole windows."""
    lanes = UNIT_BYTES // element_bytes
    order = [UNIT_BYTES * row + element_bytes * i for i in range(lanes) for row in range(rows)]
    return tuple(tuple(order[k * lanes : (k + 1) * lanes]) for k in range(rows))


def interleaved(rows: int, element_bytes: int) -> Tile:
    """Windows apart, units dense."""
    windows, units = tuple(100 * k for k in range(rows)), tuple(UNIT_BYTES * k for k in range(rows))
    return Tile(windows, units, interleave(rows, element_bytes))


def of_pixels(element_bytes: int, tile: Tile, pixels: int, streaming: bool = False) -> ShuffleSpec:
    """One tile; the units of pixels lie together."""
    pixel_bytes = UNIT_BYTES * len(tile.dst)
    return ShuffleSpec(
        isa=SHUFFLE_ISA, element_bytes=element_bytes, unit_bytes=UNIT_BYTES, pixels=pixels, pixel_bytes=pixel_bytes,
        parts=(Part(tile),), streaming=streaming,
    )  # fmt: skip


def unit_specs() -> Iterator[ShuffleSpec]:
    """Numbers of rows on both sides of unpacking and gathering; pixels that fill vectors, that do not, in a loop."""
    for element_bytes in ELEMENT_BYTES:
        for rows in (1, 2, 3, 4, 5, 6, 7, 8, 12):
            for pixels in (1, 2, 5):
                yield of_pixels(element_bytes, interleaved(rows, element_bytes), pixels)
        some_zero = replace(
            interleaved(3, element_bytes),
            lanes=tuple((ZERO, *unit[1:-1], ZERO) for unit in interleave(3, element_bytes)),
        )
        all_zero = Tile((), (0, 16), ((ZERO,) * (16 // element_bytes),) * 2)
        for tile in (some_zero, all_zero):
            yield of_pixels(element_bytes, tile, 3)
        dst_bytes = 4 * UNIT_BYTES
        looped = Part(interleaved(4, element_bytes), src=8, dst=0, count=3, src_step=16, dst_step=dst_bytes)
        last = Part(interleaved(2, element_bytes), src=3, dst=3 * dst_bytes)
        for pixels in (1, 4):
            yield ShuffleSpec(
                isa=SHUFFLE_ISA, element_bytes=element_bytes, unit_bytes=UNIT_BYTES, pixels=pixels,
                pixel_bytes=3 * dst_bytes + 39, parts=(looped, last),
            )  # fmt: skip
        for pixels in (1, 2, 7):
            yield of_pixels(element_bytes, interleaved(3, element_bytes), pixels, streaming=True)
            whole = Tile((3,), (0,), (tuple(reversed(range(0, UNIT_BYTES, element_bytes))),))
            yield of_pixels(element_bytes, whole, pixels, streaming=True)


def small_unit_specs() -> Iterator[ShuffleSpec]:
    """Units of 4 and 8 bytes: several pixels fill a vector."""
    for unit_bytes in (4, 8):
        for element_bytes in (size for size in ELEMENT_BYTES if 2 * size <= unit_bytes):
            tile = Tile((5,), (0,), (tuple(reversed(range(0, unit_bytes, element_bytes))),))
            for pixels in (1, 3, 8, 15, 33):
                spec = ShuffleSpec(
                    isa=SHUFFLE_ISA, element_bytes=element_bytes, unit_bytes=unit_bytes, pixels=pixels,
                    pixel_bytes=unit_bytes, parts=(Part(tile),),
                )  # fmt: skip
                yield spec
            yield replace(spec, streaming=True)


def wide_unit_specs() -> Iterator[ShuffleSpec]:
    """What four quarters change: groups of four pixels, two and one, apart and touching; gathers with zeros, unpacks,
    more windows than the first 16 registers; small units; streaming."""
    for element_bytes, rows, pixels in ((1, 3, 4), (1, 8, 7), (2, 5, 6), (2, 4, 9), (4, 3, 5), (4, 4, 12), (1, 12, 4)):
        yield replace(of_pixels(element_bytes, interleaved(rows, element_bytes), pixels), isa=WIDE_ISA)
    for element_bytes in ELEMENT_BYTES:
        tile = interleaved(3, element_bytes)
        some_zero = replace(tile, lanes=tuple((ZERO, *unit[1:-1], ZERO) for unit in tile.lanes))
        yield replace(of_pixels(element_bytes, some_zero, 5), isa=WIDE_ISA)
        yield replace(of_pixels(element_bytes, tile, 7, streaming=True), isa=WIDE_ISA)
        turned = Tile((5,), (0,), (tuple(reversed(range(0, UNIT_BYTES, element_bytes))),))
        for streaming in (False, True):
            yield replace(of_pixels(element_bytes, turned, 15, streaming), isa=WIDE_ISA)
    yield replace(of_pixels(1, Tile((), (0, 16), ((ZERO,) * 16,) * 2), 4), isa=WIDE_ISA)
    for unit_bytes, element_bytes in ((4, 1), (8, 2)):
        turned = Tile((5,), (0,), (tuple(reversed(range(0, unit_bytes, element_bytes))),))
        yield ShuffleSpec(
            isa=WIDE_ISA, element_bytes=element_bytes, unit_bytes=unit_bytes, pixels=31, pixel_bytes=unit_bytes,
            parts=(Part(turned),),
        )  # fmt: skip


def permute_specs(isa: str) -> Iterator[PermuteSpec]:
    """One to four vectors for a unit; more orders than registers; pixels in a loop, with a rest; streaming."""
    lanes, size = lanes_of(isa), 4 * lanes_of(isa)
    for vectors in (1, 2, 3, 4):
        for pixels in (1, 2, 9, 40):
            units = permuted(lanes, vectors, vectors, pixels)
            yield PermuteSpec(isa=isa, pixels=pixels, pixel_bytes=size * vectors + 4 * (pixels % 4), units=units)
        yield PermuteSpec(
            isa=isa, pixels=5, pixel_bytes=size * vectors, units=permuted(lanes, vectors, vectors, 1), streaming=True
        )
    yield PermuteSpec(isa=isa, pixels=3, pixel_bytes=size * 24, units=permuted(lanes, 24, 2, 5))


def permuted(lanes: int, count: int, vectors: int, step: int) -> tuple[Unit, ...]:
    """So many units, each of lanes in turn from `vectors` vectors, in orders of their own."""
    units = []
    for unit in range(count):
        sources = [
            tuple((i * (2 * step + 1) + unit) % lanes if i % vectors == vector else NOWHERE for i in range(lanes))
            for vector in range(vectors)
        ]
        places = [4 * lanes * ((unit + vector) % count) for vector in range(vectors)]
        units.append(Unit(4 * lanes * unit, tuple(zip(places, sources, strict=True))))
    return tuple(units)


def row_specs() -> Iterator[RowsSpec]:
    """What copies of the reorders do not have: more than a block of the loop, and streaming."""
    for row_bytes in (511, 513, 1024, 1025, 1500):
        yield RowsSpec(isa=SHUFFLE_ISA, rows=3, row_bytes=row_bytes, src_step=row_bytes + 7, dst_step=row_bytes + 2)
    for row_bytes in (32, 512, 544, 3136):
        yield RowsSpec(
            isa=SHUFFLE_ISA, rows=3, row_bytes=row_bytes, src_step=row_bytes + 7, dst_step=row_bytes + 32,
            streaming=True,
        )  # fmt: skip


def element_specs() -> Iterator[ElementsSpec]:
    """Fewer moves than are in flight, as many, and more; one step and several."""
    for element_bytes in ELEMENT_BYTES:
        for count in (1, 5):
            for moves in (1, 8, 19):
                pairs = tuple((element_bytes * (7 * k % 19), element_bytes * k) for k in range(moves))
                yield ElementsSpec(
                    isa=SHUFFLE_ISA, element_bytes=element_bytes, count=count, step=20 * element_bytes, moves=pairs
                )


FAMILIES = {
    f"shuffle-units-{SHUFFLE_ISA}": unit_specs,
    f"shuffle-small-units-{SHUFFLE_ISA}": small_unit_specs,
    f"shuffle-units-{WIDE_ISA}": wide_unit_specs,
    f"shuffle-permute-{SHUFFLE_ISA}": partial(permute_specs, SHUFFLE_ISA),
    f"shuffle-permute-{WIDE_ISA}": partial(permute_specs, WIDE_ISA),
    f"shuffle-rows-{SHUFFLE_ISA}": row_specs,
    f"shuffle-elements-{SHUFFLE_ISA}": element_specs,
}
