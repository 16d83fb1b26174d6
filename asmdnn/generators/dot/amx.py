"""Matrix tiles multiplied by AMX: many rows by a few panels of weights, in blocks of 32 rows and 32 columns.

    dst[r, c] = post_ops(bias[r, c] + sum over k of src[r, k] * weights[k, c])

The arguments are those of matmul.py, without `prefetched`, `scale` and `packed`.  Groups of k of src are dense, weights
lie in zero-padded panels of one or two vectors.  Sums start from zero; a bias or what dst holds is added after them.

The kernel configures the tiles itself, by its own sizes, so that nothing is padded or copied.  That costs some 1000
cycles, as the products before must end; those of a block take 1500 at a depth of 768 bf16.  So a call has up to
MOST_ROWS rows, and several panels where rows are few.  They are cut into tiles of equal size, so that one configuration
does for all.  Where they do not divide, the last tile begins before its turn and computes some rows again, which are
not stored again.  Sums reach vectors through a block's worth of stack, which TILESTORED writes.
"""

from collections.abc import Sequence
from typing import Final

from asmdnn.generators.checksum import checksum
from asmdnn.generators.dot.amx_rows import Finish, Rounds
from asmdnn.generators.dot.matmul_shape import ARGUMENTS, BIAS, DST, SRC, WEIGHTS, MatmulTile, TileKernel
from asmdnn.generators.functions.chain import words_of
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.dense import dense_of
from asmdnn.isa.tiles import (
    BLOCK_TILES,
    TILE_GROUPS,
    TILE_ROW_BYTES,
    TILE_ROWS,
    TileRegisters,
    configured,
    multiply_tiles,
)
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

MOST_ROWS: Final = 512  # of a call: 16 blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class AmxTileSpec(TileKernel):
    """The kernel of a tile with dense groups of src and weights in panels of one or two vectors."""

    tile: MatmulTile

    @property
    def name(self) -> str:
        """As that of a tile of vectors."""
        tile = self.tile
        words = [f"{tile.rows}x{tile.columns}x{tile.depth}", *["bias"] * bool(tile.bias), *["acc"] * tile.accumulate]
        return f"amx_{tile.types}_{'_'.join([*words, *words_of(tile.post_ops), checksum(self)])}__{tile.isa}"

    def generate(self, asm: Assembler) -> None:
        cut = EqualTiles.of(self.tile.rows)
        block = min(BLOCK_TILES, cut.tiles), min(self.tile.panel_vectors, self.tile.vectors)
        whole = self.tile.depth * self.tile.types.src.size_bytes // TILE_ROW_BYTES
        with configured(asm, cut.size, block, (whole, self.tile.steps - whole * TILE_GROUPS)) as tiles:
            AmxCode(self.tile, cut, vector_of(self.isa, asm), tiles).compute()
        asm.ret()


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


class AmxCode:
    """The code of a call; pointers stay in registers, and are at the rows and columns of the next block."""

    def __init__(self, tile: MatmulTile, cut: EqualTiles, v: Vector, tiles: TileRegisters) -> None:
        assert tile.depth and tile.padded and not (tile.scaled or tile.packs) and tile.items.count == 1
        self.tile, self.cut, self.v, self.asm, self.tiles = tile, cut, v, v.asm, tiles
        self.pointers: dict[int, Register] = {}
        for argument in (SRC, WEIGHTS, DST, *[BIAS] * (tile.bias is not None)):
            self.pointers[argument] = self.asm.gp.take(ARGUMENTS[argument])
            self.asm.MOV(self.pointers[argument], mem(self.asm.frame, 8 * argument))
        self.src, self.weights = self.pointers[SRC], self.pointers[WEIGHTS]
        # What is between rows of src; and between groups of weights, and so between rows of sums on the stack.
        self.src_step = self.asm.gp.take("from row to row of src")
        self.asm.MOV(self.src_step, tile.src_row_bytes)
        self.group_step = self.asm.gp.take("from group to group of weights")
        self.asm.MOV(self.group_step, tile.weights_row_bytes)
        self.sums = self.asm.stack(BLOCK_TILES * TILE_ROWS * tile.weights_row_bytes)
        whole, rest = divmod(tile.depth * tile.types.src.size_bytes, TILE_ROW_BYTES)
        self.whole_tiles, self.last_bytes = whole, rest
        self.is_cut = rest % tile.types.weights_bytes != 0  # the last group, of which src has a part only
        self.edge = self.asm.stack(TILE_ROWS * tile.weights_row_bytes) if self.is_cut else None
        self.finish = Finish(tile, v, self.pointers, self.sums)

    def compute(self) -> None:
        """Panel after panel of weights, whole ones in a loop; in each all rows."""
        tile = self.tile
        width = tile.panel_vectors * self.v.lanes
        whole, rest = divmod(tile.columns, width)
        if whole > 1:
            with self.asm.repeated(whole, "panels left", "panels"):
                self.panel(width)
                self.next_panel()
        elif whole:
            self.panel(width)
            if rest:
                self.next_panel()
        if rest:
            self.panel(rest)

    def panel(self, columns: int) -> None:
        """All rows, pair after pair of tiles; src and dst are left behind them."""
        cut, size = self.cut, self.cut.size
        pairs = (cut.tiles - 1) // BLOCK_TILES
        with self.finish.columns(columns):
            if pairs:
                with self.asm.repeated(pairs, "pairs of tiles left", "pairs of tiles"):
                    self.block((0, size), columns)
                    self.finish.rows(0, BLOCK_TILES * size)
                    self.asm.ADD(self.src, BLOCK_TILES * size * self.tile.src_row_bytes)
            last = cut.tiles - BLOCK_TILES * pairs
            if last == 1:
                self.block((-cut.again,), columns)
                self.finish.rows(cut.again, size - cut.again)
            else:
                self.block((0, size - cut.again), columns)
                self.finish.rows(0, BLOCK_TILES * size - cut.again)

    def next_panel(self) -> None:
        """Back to the first row, on to the next columns."""
        tile = self.tile
        pairs = (self.cut.tiles - 1) // BLOCK_TILES
        self.asm.SUB(self.src, pairs * BLOCK_TILES * self.cut.size * tile.src_row_bytes)
        self.asm.ADD(self.weights, tile.panel_bytes)
        self.finish.next_panel()

    def block(self, rows: Sequence[int], columns: int) -> None:
        """The sums of tiles that begin at these rows from here, in row-major order on the stack."""
        asm, tile, tiles = self.asm, self.tile, self.tiles
        vectors = -(-columns // self.v.lanes)
        acc = [row[:vectors] for row in tiles.acc[: len(rows)]]
        asm.role("start")
        for x in (x for row in acc for x in row):
            asm.TILEZERO(x)
        depth_bytes = TILE_GROUPS * tile.weights_row_bytes
        at_src = [mem(self.src, row * tile.src_row_bytes, index=self.src_step) for row in rows]
        at_weights = [mem(self.weights, j * TILE_ROW_BYTES, index=self.group_step) for j in range(vectors)]
        steps = Rounds(asm, {self.src: TILE_ROW_BYTES, self.weights: depth_bytes})
        if tiles.whole is not None:
            with steps.loop(self.whole_tiles, stays=tiles.last is None):
                multiply_tiles(asm, tile.types, acc, tiles.whole, (at_src, at_weights))
        if tiles.last is not None:
            self.last_groups(rows, acc, (at_src, at_weights))
        steps.back()
        asm.role("sums to the stack")
        for i, row in reversed(list(enumerate(acc))):  # the first tile has the rows that both have
            for j, x in enumerate(row):
                begin = (rows[i] - rows[0]) * tile.weights_row_bytes + j * TILE_ROW_BYTES
                asm.TILESTORED(mem(self.sums.form.base, self.sums.displacement + begin, index=self.group_step), x)

    def last_groups(
        self, rows: Sequence[int], acc: Sequence[Sequence[Register]], at: tuple[Sequence[Pointer], Sequence[Pointer]]
    ) -> None:
        """Those that fill no tile; of a last group that is not whole src has a part, after which zeros are put."""
        assert self.tiles.last is not None
        self.asm.role("last groups")
        if self.edge is None:
            multiply_tiles(self.asm, self.tile.types, acc, self.tiles.last, at)
            return
        edge = mem(self.edge.form.base, self.edge.displacement, index=self.group_step)
        for i, row in enumerate(rows):
            self.copy_edge(row)
            multiply_tiles(self.asm, self.tile.types, acc[i : i + 1], self.tiles.last, ([edge], at[1]))

    def copy_edge(self, first: int) -> None:
        """The last bytes of the rows of a tile, onto the stack, where the rows lie as those of sums."""
        assert self.edge is not None
        x = self.v.registers.take("last groups")
        dense = dense_of(self.v, x)
        for r in range(self.cut.size):
            dense.load_run(x, mem(self.src, (first + r) * self.tile.src_row_bytes), self.last_bytes)
            self.v.store(self.edge.shifted(r * self.tile.weights_row_bytes).sized(self.v.bytes), x)
        dense.forget()
        self.v.registers.free(x)
