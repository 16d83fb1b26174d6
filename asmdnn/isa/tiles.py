"""Tiles of AMX: what is multiplied by them, their configurations, and the registers that a block takes.

    acc[m, n] += sum over the groups k of a tile of src[m, k] . weights[k, n]

A tile has up to 16 rows of 64 bytes.  Of src a row holds 16 groups of k, of weights a group of 16 columns, of sums 16
columns: so weights lie in the panels that vectors of 512 bits read, a group of every column side by side (dot_base.py).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from struct import pack
from typing import Final

from asmdnn.isa.assembler import Assembler, Pointer, Register
from asmdnn.isa.dot import GROUP_BYTES, Types, dot_class, levels_of
from asmdnn.isa.levels import AVX512_CORE_AMX, isa_of
from asmdnn.records import dataclass
from asmdnn.types import IsaName

TILE_ROWS: Final = 16
TILE_ROW_BYTES: Final = 64
TILE_GROUPS: Final = TILE_ROW_BYTES // GROUP_BYTES  # of k in a row of src; as many rows of weights
TILE_COLUMNS: Final = TILE_ROW_BYTES // GROUP_BYTES
MOST_ROWS: Final = 512  # of a call: 16 blocks
BLOCK_TILES: Final = 2  # of rows and of columns in a block: four of sums leave four registers to src and weights

Shape = tuple[int, int]  # rows, bytes of a row
_PALETTE: Final = 1  # eight tiles, each of up to 1 KiB


@cache
def tile_product(types: Types) -> str:
    """The instruction that multiplies tiles of these types; "" if there is none."""
    level = AVX512_CORE_AMX.name
    return dot_class(types, level).tile_product if levels_of(types, level) else ""


def tile_level(types: Types, isa: str) -> IsaName | None:
    """The level whose tiles multiply these types, if a CPU of level `isa` has them."""
    has_tiles = tile_product(types) and AVX512_CORE_AMX.features <= isa_of(isa).features
    return AVX512_CORE_AMX.name if has_tiles else None


def palette(shapes: Sequence[Shape]) -> bytes:
    """What LDTILECFG reads: the rows of every tile, and the bytes of a row; (0, 0) for one that is not used."""
    rows, row_bytes = zip(*shapes, strict=True)
    return pack("<B15x8H16x8B8x", _PALETTE, *row_bytes, *rows)


@dataclass(frozen=True, slots=True)
class Factors:
    """Registers for factors of one depth, by tiles of rows and of columns; neighbours may share one.

    With one register for each tile of a block, nothing is loaded twice.
    """

    src: Sequence[Register]
    weights: Sequence[Register]


@dataclass(frozen=True, slots=True)
class Far:
    """Operands whose tiles are loaded by TILELOADDT1, which leaves L1 to the others."""

    src: bool = False
    weights: bool = False


NEAR: Final = Far()


@dataclass(frozen=True, slots=True)
class TileRegisters:
    """acc: by tiles of rows and columns.  whole, last: factors of 16 groups of k, and of those of the last ones, which
    are fewer; None for one that a product has not."""

    acc: Sequence[Sequence[Register]]
    whole: Factors | None
    last: Factors | None


@contextmanager
def configured(asm: Assembler, rows: int, block: tuple[int, int], depth: tuple[int, int]) -> Iterator[TileRegisters]:
    """Around code that multiplies: the tiles of a block of so many tiles (of rows, of columns), each of `rows` rows.

    depth: how many tiles of 16 groups of k there are, and how many groups after them.  The configuration is
    loaded in front and released after, so that the code between must not leave.  Tiles of the last groups have a size
    of their own, so that nothing is padded; to make room for them one register for src and one for weights serve the
    others.
    """
    whole, rest = depth
    shapes: dict[int, Shape] = {}

    def take(purpose: str, count: int, shape: Shape) -> list[Register]:
        found: list[Register] = asm.tiles.take(purpose, count)
        shapes.update((register.id, shape) for register in found)
        return found

    def factors(kind: str, depth: int, counts: tuple[int, int]) -> Factors:
        src = take(f"tile of src{kind}", counts[0], (rows, GROUP_BYTES * depth))
        weights = take(f"tile of weights{kind}", counts[1], (depth, TILE_ROW_BYTES))
        return Factors(src * (block[0] // counts[0]), weights * (block[1] // counts[1]))

    flat = take("tile of sums", block[0] * block[1], (rows, TILE_ROW_BYTES))
    acc = [flat[i * block[1] : (i + 1) * block[1]] for i in range(block[0])]
    of_whole = factors("", TILE_GROUPS, (1, 1) if rest else block) if whole else None
    of_last = factors(", last groups", rest, (1, 1)) if rest else None
    asm.LDTILECFG(asm.const(palette([shapes.get(n, (0, 0)) for n in range(8)]), TILE_ROW_BYTES, size=TILE_ROW_BYTES))
    yield TileRegisters(acc, of_whole, of_last)
    asm.TILERELEASE()
    asm.tiles.free(*(register for register, _ in asm.tiles.holders()))


def multiply_tiles(
    asm: Assembler,
    types: Types,
    acc: Sequence[Sequence[Register]],
    factors: Factors,
    at: tuple[Sequence[Pointer], Sequence[Pointer]],
    far: Far = NEAR,
) -> None:
    """acc[i][j] += src[i] . weights[j] of one depth, for all tiles of rows and columns that `at` says the place of.

    Each tile is loaded when it is first needed, and again only if its register has served another one.
    """
    instruction = getattr(asm, tile_product(types))
    holds: dict[Register, Pointer] = {}

    def loaded(register: Register, place: Pointer, is_far: bool) -> Register:
        if holds.get(register) is not place:
            (asm.TILELOADDT1 if is_far else asm.TILELOADD)(register, place)
            holds[register] = place
        return register

    for i, j in order_of_products(len(at[0]), len(at[1])):
        right = loaded(factors.weights[j], at[1][j], far.weights)
        instruction(acc[i][j], loaded(factors.src[i], at[0][i], far.src), right)


def order_of_products(rows: int, columns: int) -> list[tuple[int, int]]:
    """Of a block of so many tiles: down a column, then up the next."""
    return [(i, j) for j in range(columns) for i in range(rows)[:: -1 if j % 2 else 1]]
