"""A time step by tiles of AMX: many rows by a few vectors of units, all gates of which are added up, then the cell.

What it computes, and its arguments, are tile.py's, without prefetches.  Products of two tiles of rows and two vectors
of gates at a time leave their sums on the stack.  When those of all gates are there, rows of them are loaded, what they
start from is added, and the cell follows as there.  As in dot/amx.py, rows are cut into tiles of equal size, of which
the last may compute some rows again; their cells are not, for states may be updated in place.
"""

from collections.abc import Sequence

from asmdnn.generators.contract import Footprint
from asmdnn.generators.dot.matmul_shape import MatmulTile
from asmdnn.generators.dot.tile_products import EqualTiles, TileProducts, depth_in_tiles
from asmdnn.generators.functions.pointers import copy_of_word
from asmdnn.generators.recurrent.cell_code import CellCode, Where
from asmdnn.generators.recurrent.cells import Place
from asmdnn.generators.recurrent.tile import RecurrentTileSpec
from asmdnn.generators.recurrent.tile_shape import SRC, WEIGHTS, CellOperand
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.dot import GROUP_BYTES
from asmdnn.isa.elements import element_of
from asmdnn.isa.tiles import BLOCK_TILES, TILE_ROW_BYTES, TILE_ROWS, TileRegisters, configured
from asmdnn.isa.vector import Lanes
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.records import dataclass

MOST_ROWS = 64  # of a call


@dataclass(frozen=True, slots=True, kw_only=True)
class AmxStepSpec:
    """The kernel of such a tile, of several rows and a depth above 0."""

    tile: RecurrentTileSpec

    @property
    def isa(self) -> str:
        return self.tile.isa

    @property
    def name(self) -> str:
        return f"amx_{self.tile.name}"

    @property
    def frame(self) -> tuple[str, ...]:
        return self.tile.frame

    @property
    def product(self) -> MatmulTile:
        """What is multiplied, of a vector of weights."""
        tile = self.tile
        return MatmulTile(
            isa=tile.isa,
            rows=tile.rows,
            columns=lanes_of(tile.isa),
            depth=tile.depth * tile.types.group - tile.missing,
            src_row_bytes=tile.src_row_bytes,
            src_depth_bytes=GROUP_BYTES,
            weights_row_bytes=tile.weights_row_bytes,
            panel_vectors=1,
            panel_bytes=0,
            padded=True,
            dst_row_bytes=0,
            types=tile.types,
        )

    def footprint(self) -> Footprint:
        return self.tile.footprint()

    def generate(self, asm: Assembler) -> None:
        cut, columns = EqualTiles.of(self.tile.rows), self.tile.vectors * self.tile.form.gates
        block = min(BLOCK_TILES, cut.tiles), min(BLOCK_TILES, columns)
        with configured(asm, cut.size, block, depth_in_tiles(self.product)) as tiles:
            AmxStepCode(self, cut, asm, tiles).compute()
        asm.ret()


class AmxStepCode:
    """The code of a call.  homes: the words of pointers that move from block to block, the stack's, or the frame's."""

    def __init__(self, spec: AmxStepSpec, cut: EqualTiles, asm: Assembler, tiles: TileRegisters) -> None:
        tile = spec.tile
        assert tile.depth and tile.rows > 1 and not tile.prefetch_lines and tile.sums == 1
        self.tile, self.cut, self.asm, self.v = tile, cut, asm, vector_of(spec.isa, asm)
        self.form = tile.form
        self.columns = [
            u * tile.panel_bytes + g * tile.gate_bytes for u in range(tile.vectors) for g in range(self.form.gates)
        ]
        self.sums_row_bytes = len(self.columns) * TILE_ROW_BYTES
        sums_bytes = BLOCK_TILES * TILE_ROWS * self.sums_row_bytes
        self.products = TileProducts(spec.product, cut.size, self.v, tiles, sums_bytes)
        self.arguments = {name: tile.operand(name)[0] for name in self.form.names}
        moving = (SRC, *self.arguments.values()) if cut.tiles > BLOCK_TILES else ()
        self.homes = {argument: copy_of_word(asm, argument) for argument in moving}
        self.pointers: dict[int, Register] = {}

    def compute(self) -> None:
        """Pairs of tiles in a loop, then one or two."""
        cut, size = self.cut, self.cut.size
        bytes_of, pairs = self.products.bytes_of, (cut.tiles - 1) // BLOCK_TILES
        if pairs:
            with self.asm.repeated(pairs, "pairs of tiles left", "pairs of tiles"):
                self.block((0, bytes_of(size)), size, (0, BLOCK_TILES * size))
                self.move_homes(BLOCK_TILES * size)
        if cut.tiles - BLOCK_TILES * pairs == 1:
            self.block((-bytes_of(cut.again),), size, (cut.again, size - cut.again))
        else:
            self.block((0, bytes_of(size - cut.again)), size - cut.again, (0, BLOCK_TILES * size - cut.again))

    def block(self, begins: Sequence[int], apart: int, rows: tuple[int, int]) -> None:
        """Tiles whose src begins at these bytes from here, so many rows apart; of their rows some have cells, from one
        on."""
        src, weights = self.pointer("src", SRC), self.pointer("weights", WEIGHTS)
        self.products.start(src, weights)
        step = self.asm.gp.take("from row to row of sums")
        self.asm.MOV(step, self.sums_row_bytes)
        for first in range(0, len(self.columns), BLOCK_TILES):
            acc = self.products.added(begins, self.columns[first : first + BLOCK_TILES])
            self.asm.role("sums to the stack")
            for i, row in reversed(list(enumerate(acc))):  # the first tile has the rows that both have
                for j, x in enumerate(row, first):
                    self.products.store(x, i * apart * self.sums_row_bytes + j * TILE_ROW_BYTES, step)
        self.products.release()
        self.asm.gp.free(src, weights, step)
        self.cells(*rows)

    def pointer(self, name: str, argument: int) -> Register:
        """Where an argument's rows of this block begin."""
        register: Register = self.asm.gp.take(name)
        self.asm.MOV(register, self.homes.get(argument) or mem(self.asm.frame, 8 * argument))
        return register

    def move_homes(self, rows: int) -> None:
        with self.asm.gp.taken("next block") as pointer:
            for argument, home in self.homes.items():
                step = self.tile.src_row_bytes if argument == SRC else self.operand_of(argument).row_bytes
                if step:
                    self.asm.MOV(pointer, home)
                    self.asm.ADD(pointer, rows * step)
                    self.asm.MOV(home, pointer)

    def operand_of(self, argument: int) -> CellOperand:
        return self.tile.operands[argument - WEIGHTS - 1]

    def cells(self, first: int, count: int) -> None:
        """Of so many rows, whose sums lie from that row of the stack on, and operands where this block begins."""
        asm, v, tile = self.asm, self.v, self.tile
        self.pointers = {argument: self.pointer(name, argument) for name, argument in self.arguments.items()}
        self.sums = asm.gp.take("sums")
        asm.MOV(self.sums, self.products.home)
        if first:
            asm.ADD(self.sums, first * self.sums_row_bytes)
        asm.role("cell")
        at_once = rows_at_once(count, max(1, tile.together // tile.vectors))
        with v.parts(tile.vectors, tile.units) as parts:
            code = CellCode(v, tile.isa, self.form, tile.types.sums, self.place, parts)
            rounds, rest = divmod(count, at_once)
            with asm.repeated(rounds, "rows left", "rows"):
                self.rows(code, parts, at_once)
                self.next_rows(at_once)
            if rest:
                self.rows(code, parts, rest)
        asm.gp.free(self.sums, *self.pointers.values())

    def rows(self, code: CellCode, parts: Sequence[Lanes], count: int) -> None:
        """So many from where pointers are, some vectors in turn."""
        every = [(r, u) for r in range(count) for u in range(self.tile.vectors)]
        for begin in range(0, len(every), self.tile.together):
            some = every[begin : begin + self.tile.together]
            gates = [[self.gate(g, where, parts) for where in some] for g in range(self.form.gates)]
            code.emit(some, gates)

    def gate(self, g: int, where: Where, parts: Sequence[Lanes]) -> Register:
        """A sum, with what it starts from."""
        v, (r, u) = self.v, where
        place = self.form.starts[g]
        x: Register = v.registers.take("gate")
        v.load(x, mem(self.sums, r * self.sums_row_bytes + (u * self.form.gates + g) * TILE_ROW_BYTES, size=v.bytes))
        if place is None:
            return x
        at, operand = self.place(place, where)
        start = v.registers.take("start")
        (v if operand.whole else parts[u]).load(start, at)
        element_of(self.tile.types.sums).addition(v)(x, x, start)
        v.registers.free(start)
        return x

    def place(self, place: Place, where: Where) -> tuple[Pointer, CellOperand]:
        """Where a part of an operand lies for a vector of a row."""
        argument, x = self.tile.operand(place[0])
        at = where[0] * x.row_bytes + place[1] * x.part_bytes + where[1] * x.vector_bytes
        return mem(self.pointers[argument], at, size=self.v.lanes * x.dtype.size_bytes), x

    def next_rows(self, count: int) -> None:
        self.asm.ADD(self.sums, count * self.sums_row_bytes)
        for argument, pointer in self.pointers.items():
            if step := self.operand_of(argument).row_bytes:
                self.asm.ADD(pointer, count * step)


def rows_at_once(count: int, most: int) -> int:
    """Of a loop's body: as many as divide the count, or the most if these are far fewer."""
    found = max(n for n in range(1, most + 1) if count % n == 0)
    return found if 2 * found > most else min(most, count)
