"""Matrix tiles multiplied by AMX: many rows by a few panels of weights, in blocks of 32 rows and 32 columns.

    dst[r, c] = post_ops(bias[r, c] + sum over k of src[r, k] * weights[k, c])

The arguments are those of matmul.py, without `prefetched`, `scale` and `packed`.  Groups of k of src are dense, weights
lie in zero-padded panels of one or two vectors.  Sums start from zero; a bias or what dst holds is added after them.

The kernel configures the tiles itself, by its own sizes, so that nothing is padded or copied.  That costs some 1000
cycles, as the products before must end; those of a block take 1500 at a depth of 768 bf16.  So a call has up to
MOST_ROWS rows, and several panels where rows are few.  They are cut into tiles of equal size, so that one configuration
does for all.  Where they do not divide, the last tile begins before its turn and computes some rows again, which are
not stored again.  Sums reach vectors through a block's worth of stack, which TILESTORED writes.

Items are matrices that share weights, such as rows of an image: where each has an odd number of tiles, blocks are of
two items.  k may lie in pieces, such as what a kernel covers of each row of an image.
"""

from collections.abc import Sequence

from asmdnn.generators.checksum import checksum
from asmdnn.generators.dot.amx_rows import Finish, outer_loop
from asmdnn.generators.dot.matmul_shape import ARGUMENTS, SRC, WEIGHTS, MatmulTile, TileKernel
from asmdnn.generators.dot.tile_products import EqualTiles, TileProducts, depth_in_tiles
from asmdnn.generators.functions.chain import chain_words
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.tiles import (
    BLOCK_TILES,
    NEAR,
    TILE_ROW_BYTES,
    TILE_ROWS,
    Far,
    TileRegisters,
    configured,
    order_of_products,
)
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AmxTileSpec(TileKernel):
    """The kernel of a tile with dense groups of src and weights in panels of one or two vectors.

    far: operands that are read from L2, so that others stay in L1.  panels_at_once: whole ones that a block's src is
    multiplied with before the next block, a divisor of their number.
    """

    tile: MatmulTile
    far: Far = NEAR
    panels_at_once: int = 1

    @property
    def name(self) -> str:
        """As that of a tile of vectors."""
        tile = self.tile
        words = [f"{tile.rows}x{tile.columns}x{tile.depth}", *[f"i{tile.items.count}"] * (tile.items.count > 1)]
        words += [*["bias"] * bool(tile.bias), *["acc"] * tile.accumulate]
        return f"amx_{tile.types}_{'_'.join([*words, *chain_words(tile.post_ops), checksum(self)])}__{tile.isa}"

    def generate(self, asm: Assembler) -> None:
        tile = self.tile
        cut = EqualTiles.of(tile.rows_of_src)
        tiles_of_rows = cut.tiles * (1 if tile.items.joined else tile.items.count)
        block = min(BLOCK_TILES, tiles_of_rows), min(tile.panel_vectors, tile.vectors)
        with configured(asm, cut.size, block, depth_in_tiles(tile)) as tiles:
            AmxCode(self, cut, vector_of(self.isa, asm), tiles).compute()
        asm.ret()


class AmxCode:
    """The code of a call.  src and weights stay in registers, at the rows and columns of the next block."""

    def __init__(self, spec: AmxTileSpec, cut: EqualTiles, v: Vector, tiles: TileRegisters) -> None:
        tile = spec.tile
        assert tile.depth and tile.padded and not (tile.scaled or tile.packs) and not tile.items.weights_bytes
        assert not tile.pieces or tile.piece_depth % tile.types.group == 0, "weights have whole groups of every piece"
        self.tile, self.cut, self.v, self.asm = tile, cut, v, v.asm
        self.src, self.weights = self.pointer(SRC), self.pointer(WEIGHTS)
        # Rows of sums on the stack are as far apart as groups of weights.
        sums_bytes = BLOCK_TILES * TILE_ROWS * tile.weights_row_bytes
        self.products = TileProducts(tile, cut.size, v, tiles, sums_bytes, spec.far)
        self.products.start(self.src, self.weights)
        self.bytes_of = self.products.bytes_of
        self.finish = Finish(tile, v, self.products.sums, self.products.rounds)
        self.at_once = spec.panels_at_once

    def pointer(self, argument: int) -> Register:
        register: Register = self.asm.gp.take(ARGUMENTS[argument])
        self.asm.MOV(register, mem(self.asm.frame, 8 * argument))
        return register

    def compute(self) -> None:
        """Panel after panel of weights, whole ones in a loop; in each all rows."""
        tile = self.tile
        width = tile.panel_vectors * self.v.lanes
        whole, rest = divmod(tile.columns, width)
        if whole:
            with self.finish.columns(width), outer_loop(self.asm, whole // self.at_once, "panels"):
                passed = self.panel(width)
                if whole > self.at_once or rest:
                    self.asm.SUB(self.src, passed)
                    self.next_panels(self.at_once)
                    self.finish.first_row()
        self.at_once = 1
        if rest:
            with self.finish.columns(rest):
                self.panel(rest)

    def panel(self, columns: int) -> int:
        """All rows of all items; by how many bytes src is left behind the first."""
        count, step = self.tile.items.count, self.tile.items.src_bytes
        if count == 1:
            return self.item(columns)
        if self.tile.items.joined:
            with self.finish.joined_items():
                return self.item(columns)
        together = BLOCK_TILES if self.cut.tiles % BLOCK_TILES else 1
        with outer_loop(self.asm, count // together, "items"):
            passed = self.two_items(columns) if together > 1 else self.item(columns)
            self.asm.ADD(self.src, together * step - passed)
            self.finish.next_item(self.tile.rows, together)
        if count % together:
            passed = self.item(columns)
            self.asm.ADD(self.src, step - passed)
            self.finish.next_item(self.tile.rows, 1)
        return count * step

    def item(self, columns: int) -> int:
        """All rows, pair after pair of tiles; src is left behind them."""
        cut, size = self.cut, self.cut.size
        pairs = (cut.tiles - 1) // BLOCK_TILES
        if pairs:
            with outer_loop(self.asm, pairs, "pairs of tiles"):
                self.block((0, self.bytes_of(size)), BLOCK_TILES * size, columns)
                self.asm.ADD(self.src, self.bytes_of(BLOCK_TILES * size))
        if cut.tiles - BLOCK_TILES * pairs == 1:
            self.block((-self.bytes_of(cut.again),), size - cut.again, columns)
        else:
            self.block((0, self.bytes_of(size - cut.again)), BLOCK_TILES * size - cut.again, columns)
        return self.bytes_of(BLOCK_TILES * pairs * size)

    def two_items(self, columns: int) -> int:
        """All rows of two, a tile of each at a time; src is left behind those of the first."""
        cut, size = self.cut, self.cut.size
        whole = cut.tiles - bool(cut.again)
        if whole:
            with self.finish.two_items(size), outer_loop(self.asm, whole, "tiles"):
                self.block((0, self.tile.items.src_bytes), BLOCK_TILES * size, columns)
                self.asm.ADD(self.src, self.bytes_of(size))
        if cut.again:
            begin, rows = -self.bytes_of(cut.again), size - cut.again
            with self.finish.two_items(rows):
                self.block((begin, begin + self.tile.items.src_bytes), BLOCK_TILES * rows, columns)
        return self.bytes_of(whole * size)

    def next_panels(self, count: int) -> None:
        """On to other columns."""
        self.asm.ADD(self.weights, count * self.tile.panel_bytes)
        self.finish.next_panels(count)

    def block(self, begins: Sequence[int], rows: int, columns: int) -> None:
        """As `block_of_panel`, of so many panels as are at once."""
        if self.at_once == 1:
            self.block_of_panel(begins, rows, columns)
            return
        with outer_loop(self.asm, self.at_once, "panels at once"):
            self.block_of_panel(begins, rows, columns)
            self.next_panels(1)
            self.finish.next_blocks(rows, -1)
        self.next_panels(-self.at_once)
        self.finish.next_blocks(rows, 1)

    def block_of_panel(self, begins: Sequence[int], rows: int, columns: int) -> None:
        """The sums of tiles whose src begins at these bytes from here; so many rows of them are new, each tile's last
        ones, and wait for vectors.  Of rows that tiles share the first tile has them."""
        products, vectors, step = self.products, -(-columns // self.v.lanes), self.tile.weights_row_bytes
        acc = products.added(begins, [j * TILE_ROW_BYTES for j in range(vectors)], self.finish.some)
        self.asm.role("sums to the stack")
        end = BLOCK_TILES * TILE_ROWS - self.cut.size
        apart = rows // BLOCK_TILES if self.finish.rows_of_item else rows - self.cut.size
        order = order_of_products(len(acc), vectors)  # the first ones are ready first
        if rows < len(acc) * self.cut.size:
            order.sort(reverse=True)
        for i, j in order:
            begin = end - (len(acc) - 1 - i) * apart
            products.store(acc[i][j], begin * step + j * TILE_ROW_BYTES, products.group_step)
        self.finish.wait(rows)
