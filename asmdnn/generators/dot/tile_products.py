"""Products of tiles of AMX, added up in the registers of a block: what kernels of tiles have in common."""

from collections.abc import Callable, Sequence
from math import prod

from asmdnn.generators.dot.amx_rows import Rounds
from asmdnn.generators.dot.matmul_shape import MatmulTile, PieceLoop
from asmdnn.isa.assembler import Pointer, Register, mem
from asmdnn.isa.dense import dense_of
from asmdnn.isa.registers import flat
from asmdnn.isa.tiles import NEAR, TILE_GROUPS, TILE_ROW_BYTES, TILE_ROWS, Far, TileRegisters, multiply_tiles
from asmdnn.isa.vector import Vector
from asmdnn.records import dataclass

Places = tuple[Sequence[Pointer], Sequence[Pointer]]  # of a block's tiles of src, and of weights
Sums = Sequence[Sequence[Register]]  # by tiles of rows and of columns


def nothing() -> None:
    """Emits no code."""


@dataclass(frozen=True, slots=True)
class EqualTiles:
    """Rows as so many tiles of one size; `again` of the last one are rows of the one before."""

    tiles: int
    size: int
    again: int

    @classmethod
    def of(cls, rows: int) -> "EqualTiles":
        tiles = -(-rows // TILE_ROWS)
        size = -(-rows // tiles)
        return cls(tiles, size, tiles * size - rows)


def depth_in_tiles(tile: MatmulTile) -> tuple[int, int]:
    """Of a piece: how many tiles of 16 groups of k it has, and how many groups after them."""
    whole = tile.piece_depth * tile.types.src.size_bytes // TILE_ROW_BYTES
    return whole, tile.piece_steps - whole * TILE_GROUPS


class TileProducts:
    """tile: the types, the depth, and distances of rows.  size: rows of a tile.  sums_bytes: of the stack, where sums
    wait for vectors.  Between `start` and `release` src and weights are in registers, which are left as they are."""

    def __init__(
        self, tile: MatmulTile, size: int, v: Vector, tiles: TileRegisters, sums_bytes: int, far: Far = NEAR
    ) -> None:
        self.tile, self.size, self.v, self.asm, self.tiles, self.far = tile, size, v, v.asm, tiles, far
        whole, rest = divmod(tile.piece_depth * tile.types.src.size_bytes, TILE_ROW_BYTES)
        self.whole_tiles, self.last_bytes = whole, rest
        self.is_cut = rest % tile.types.weights_bytes != 0  # the last group, of which src has a part only
        edge_bytes = TILE_ROWS * tile.weights_row_bytes if self.is_cut else 0
        self.edge_begin = sums_bytes
        self.home = self.aligned(sums_bytes + edge_bytes)

    def aligned(self, size_bytes: int) -> Pointer:
        """A word with the address of so much of the stack, a multiple of a line: no row of a tile lies in two."""
        memory, home = self.asm.stack(size_bytes + TILE_ROW_BYTES), self.asm.stack(8)
        with self.asm.gp.taken("sums") as begin:
            self.asm.LEA(begin, mem(memory.form.base, memory.displacement + TILE_ROW_BYTES - 1))
            self.asm.AND(begin, -TILE_ROW_BYTES)
            self.asm.MOV(home, begin)
        return home

    def start(self, src: Register, weights: Register) -> None:
        """From where these point; what is between rows of src, and between groups of weights, goes into registers."""
        self.src, self.weights = src, weights
        self.src_step = self.asm.gp.take("from row to row of src")
        self.asm.MOV(self.src_step, self.tile.src_row_bytes)
        self.group_step = self.asm.gp.take("from group to group of weights")
        self.asm.MOV(self.group_step, self.tile.weights_row_bytes)
        self.sums = self.asm.gp.take("sums")
        self.asm.MOV(self.sums, self.home)

    def release(self) -> None:
        self.asm.gp.free(self.src_step, self.group_step, self.sums)

    def bytes_of(self, rows: int) -> int:
        """Of src."""
        return rows * self.tile.src_row_bytes

    @property
    def rounds(self) -> int:
        """In how many a block is multiplied."""
        return prod(loop.count for loop in self.tile.pieces) * (self.whole_tiles + (self.tiles.last is not None))

    def added(self, begins: Sequence[int], columns: Sequence[int], between: Callable[[], None] = nothing) -> Sums:
        """The sums of tiles whose src begins at these bytes from here, and whose weights at these.  between: code for
        the vectors, which it emits after the products of each round."""
        asm, tiles = self.asm, self.tiles
        acc = [row[: len(columns)] for row in tiles.acc[: len(begins)]]
        asm.role("start")
        for x in flat(acc):
            asm.TILEZERO(x)
        at_src = [mem(self.src, begin, index=self.src_step) for begin in begins]
        at_weights = [mem(self.weights, begin, index=self.group_step) for begin in columns]
        self.pieces(self.tile.pieces, lambda: self.piece(begins, acc, (at_src, at_weights), between))
        return acc

    def store(self, x: Register, begin: int, step: Register) -> None:
        """Sums to the stack, from that byte on, their rows so far apart."""
        self.asm.TILESTORED(mem(self.sums, begin, index=step), x)

    def pieces(self, loops: Sequence[PieceLoop], multiply: Callable[[], None]) -> None:
        """What `multiply` does, for every piece of k."""
        if not loops:
            multiply()
            return
        loop, *inner = loops
        around = Rounds(self.asm, {self.src: loop.src_bytes, self.weights: loop.weights_bytes}, outside=True)
        with around.loop(loop.count, stays=True):
            self.pieces(inner, multiply)
        around.back()

    def piece(self, begins: Sequence[int], acc: Sums, at: Places, between: Callable[[], None]) -> None:
        """Adds a piece of k, from where src and weights are, which is where they are left."""
        tiles, depth_bytes = self.tiles, TILE_GROUPS * self.tile.weights_row_bytes
        steps = Rounds(self.asm, {self.src: TILE_ROW_BYTES, self.weights: depth_bytes})
        if tiles.whole is not None:
            with steps.loop(self.whole_tiles, stays=tiles.last is None):
                multiply_tiles(self.asm, self.tile.types, acc, tiles.whole, at, self.far)
                between()
        if tiles.last is not None:
            self.last_groups(begins, acc, at)
            between()
        steps.back()

    def last_groups(self, begins: Sequence[int], acc: Sums, at: Places) -> None:
        """Those that fill no tile; of a last group that is not whole src has a part, after which zeros are put."""
        assert self.tiles.last is not None
        self.asm.role("last groups")
        if not self.is_cut:
            multiply_tiles(self.asm, self.tile.types, acc, self.tiles.last, at, self.far)
            return
        edge = mem(self.sums, self.edge_begin, index=self.group_step)
        for i, begin in enumerate(begins):
            self.copy_edge(begin)
            multiply_tiles(self.asm, self.tile.types, acc[i : i + 1], self.tiles.last, ([edge], at[1]))

    def copy_edge(self, begin: int) -> None:
        """The last bytes of the rows of a tile that begins there, onto the stack, as far apart as groups of weights."""
        x = self.v.registers.take("last groups")
        dense = dense_of(self.v, x)
        for r in range(self.size):
            dense.load_run(x, mem(self.src, begin + self.bytes_of(r)), self.last_bytes)
            at = self.edge_begin + r * self.tile.weights_row_bytes
            self.v.store(mem(self.sums, at, size=self.v.bytes), x)
        dense.forget()
        self.v.registers.free(x)
