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
from asmdnn.generators.dot.amx_rows import Finish
from asmdnn.generators.dot.matmul_shape import ARGUMENTS, BIAS, DST, SRC, WEIGHTS, MatmulTile, TileKernel
from asmdnn.generators.dot.tile_products import EqualTiles, TileProducts, depth_in_tiles
from asmdnn.generators.functions.chain import words_of
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.tiles import BLOCK_TILES, TILE_ROW_BYTES, TILE_ROWS, TileRegisters, configured
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AmxTileSpec(TileKernel):
    """The kernel of a tile with dense groups of src and weights in panels of one or two vectors."""

    tile: MatmulTile

    @property
    def name(self) -> str:
        """As that of a tile of vectors."""
        tile = self.tile
        words = [f"{tile.rows}x{tile.columns}x{tile.depth}", *[f"i{tile.items.count}"] * (tile.items.count > 1)]
        words += [*["bias"] * bool(tile.bias), *["acc"] * tile.accumulate]
        return f"amx_{tile.types}_{'_'.join([*words, *words_of(tile.post_ops), checksum(self)])}__{tile.isa}"

    def generate(self, asm: Assembler) -> None:
        cut = EqualTiles.of(self.tile.rows)
        tiles_of_rows = cut.tiles * self.tile.items.count
        block = min(BLOCK_TILES, tiles_of_rows), min(self.tile.panel_vectors, self.tile.vectors)
        with configured(asm, cut.size, block, depth_in_tiles(self.tile)) as tiles:
            AmxCode(self.tile, cut, vector_of(self.isa, asm), tiles).compute()
        asm.ret()


class AmxCode:
    """The code of a call; pointers stay in registers, and are at the rows and columns of the next block."""

    def __init__(self, tile: MatmulTile, cut: EqualTiles, v: Vector, tiles: TileRegisters) -> None:
        assert tile.depth and tile.padded and not (tile.scaled or tile.packs) and not tile.items.weights_bytes
        assert not tile.pieces or tile.piece_depth % tile.types.group == 0, "weights have whole groups of every piece"
        self.tile, self.cut, self.v, self.asm = tile, cut, v, v.asm
        self.pointers: dict[int, Register] = {}
        for argument in (SRC, WEIGHTS, DST, *[BIAS] * (tile.bias is not None)):
            self.pointers[argument] = self.asm.gp.take(ARGUMENTS[argument])
            self.asm.MOV(self.pointers[argument], mem(self.asm.frame, 8 * argument))
        self.src, self.weights = self.pointers[SRC], self.pointers[WEIGHTS]
        # Rows of sums on the stack are as far apart as groups of weights.
        sums_bytes = BLOCK_TILES * TILE_ROWS * tile.weights_row_bytes
        self.products = TileProducts(tile, cut.size, v, tiles, sums_bytes)
        self.products.start(self.src, self.weights)
        self.bytes_of = self.products.bytes_of
        self.finish = Finish(tile, v, self.pointers, self.products.sums)

    def compute(self) -> None:
        """Panel after panel of weights, whole ones in a loop; in each all rows."""
        tile = self.tile
        width = tile.panel_vectors * self.v.lanes
        whole, rest = divmod(tile.columns, width)
        if whole > 1:
            with self.asm.repeated(whole, "panels left", "panels"):
                self.next_panel(self.panel(width))
        elif whole:
            passed = self.panel(width)
            if rest:
                self.next_panel(passed)
        if rest:
            self.panel(rest)

    def panel(self, columns: int) -> int:
        """All rows of all items; by how many bytes src is left behind the first."""
        count, step = self.tile.items.count, self.tile.items.src_bytes
        with self.finish.columns(columns):
            if count == 1:
                return self.item(columns)
            together = BLOCK_TILES if self.cut.tiles % BLOCK_TILES else 1
            with self.asm.repeated(count // together, "items left", "items"):
                passed = self.two_items(columns) if together > 1 else self.item(columns)
                self.asm.ADD(self.src, together * step - passed)
                self.finish.next_item(self.tile.rows, together)
            if count % together:
                passed = self.item(columns)
                self.asm.ADD(self.src, step - passed)
                self.finish.next_item(self.tile.rows, 1)
        return count * step

    def item(self, columns: int) -> int:
        """All rows, pair after pair of tiles; src and dst are left behind them."""
        cut, size = self.cut, self.cut.size
        pairs = (cut.tiles - 1) // BLOCK_TILES
        if pairs:
            with self.asm.repeated(pairs, "pairs of tiles left", "pairs of tiles"):
                self.block((0, self.bytes_of(size)), size, columns)
                self.finish.rows(0, BLOCK_TILES * size)
                self.asm.ADD(self.src, self.bytes_of(BLOCK_TILES * size))
        last = cut.tiles - BLOCK_TILES * pairs
        if last == 1:
            self.block((-self.bytes_of(cut.again),), size, columns)
            self.finish.rows(cut.again, size - cut.again)
        else:
            self.block((0, self.bytes_of(size - cut.again)), size - cut.again, columns)
            self.finish.rows(0, BLOCK_TILES * size - cut.again)
        return self.bytes_of(BLOCK_TILES * pairs * size)

    def two_items(self, columns: int) -> int:
        """All rows of two, a tile of each at a time; src and dst are left behind those of the first."""
        cut, size = self.cut, self.cut.size
        whole = cut.tiles - bool(cut.again)
        if whole:
            with self.asm.repeated(whole, "tiles left", "tiles"):
                self.tile_of_two(0, columns)
                self.asm.ADD(self.src, self.bytes_of(size))
        if cut.again:
            self.tile_of_two(cut.again, columns)
        return self.bytes_of(whole * size)

    def tile_of_two(self, again: int, columns: int) -> None:
        """again: rows of it that the tile before has stored."""
        begin, size = -self.bytes_of(again), self.cut.size
        self.block((begin, begin + self.tile.items.src_bytes), size, columns)
        self.finish.rows(again, size - again)
        self.finish.next_item(size - again, 1)
        self.finish.rows(size + again, size - again)
        self.finish.next_item(0, -1)

    def next_panel(self, passed: int) -> None:
        """Back to the first row, on to the next columns."""
        self.asm.SUB(self.src, passed)
        self.asm.ADD(self.weights, self.tile.panel_bytes)
        self.finish.next_panel()

    def block(self, begins: Sequence[int], apart: int, columns: int) -> None:
        """The sums of tiles whose src begins at these bytes from here, in row-major order on the stack, so many rows
        apart."""
        products, vectors = self.products, -(-columns // self.v.lanes)
        acc = products.added(begins, [j * TILE_ROW_BYTES for j in range(vectors)])
        self.asm.role("sums to the stack")
        for i, row in reversed(list(enumerate(acc))):  # the first tile has the rows that both have
            for j, x in enumerate(row):
                begin = i * apart * self.tile.weights_row_bytes + j * TILE_ROW_BYTES
                products.store(x, begin, products.group_step)
