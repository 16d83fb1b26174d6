"""What happens to the sums that tiles have left on the stack: row after row into vectors, and from there into dst."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from asmdnn.generators.dot.epilogue import TileEpilogue
from asmdnn.generators.dot.matmul_shape import ARGUMENTS, BIAS, DST, MatmulTile
from asmdnn.generators.functions.chain import operands_read
from asmdnn.generators.functions.pointers import copy_of_word
from asmdnn.generators.functions.postops import OLD_DST
from asmdnn.generators.stepping import unless_zero
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.elements import element_of
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.tiles import BLOCK_TILES, TILE_ROWS
from asmdnn.isa.vector import Lanes, Vector


@contextmanager
def outer_loop(asm: Assembler, count: int, name: str) -> Iterator[None]:
    """The body `count` times, with a counter on the stack: it has loops that need the registers."""
    if count == 1:
        yield
        return
    left = asm.stack(8)
    asm.MOV(left, count)
    with asm.loop(left, name):
        yield


class Rounds:
    """Pointers that move on by some bytes in every round of a loop.  outside: around other loops."""

    def __init__(self, asm: Assembler, bytes_of: Mapping[Register, int], outside: bool = False) -> None:
        self.asm, self.bytes_of, self.outside, self.done = asm, bytes_of, outside, 0

    @contextmanager
    def loop(self, count: int, stays: bool) -> Iterator[None]:
        """The body `count` times.  stays: nothing follows that needs pointers after the only round."""
        if count == 1:
            yield
            if not stays:
                self.move(1)
            return
        asm = self.asm
        with outer_loop(asm, count, "pieces") if self.outside else asm.repeated(count, "steps left", "steps"):
            yield
            self.move(1)
        self.done = count

    def move(self, rounds: int) -> None:
        for pointer, step in self.bytes_of.items():
            self.asm.ADD(pointer, rounds * step)
        self.done += rounds

    def back(self) -> None:
        """To where they were."""
        if self.done:
            self.move(-self.done)


class Finish:
    """Rows of sums become rows of dst: those of a block while the next one is multiplied, which takes vectors no time.

    The sums of a block end where the memory for them ends.  Pointers to dst and bias are in registers, those to
    operands in words of the stack, all at the next row that waits; other words have where the next block begins.

    sums: the memory for a block's sums.  rounds: in which a block is multiplied; `some` of the rows follow each.
    """

    def __init__(self, tile: MatmulTile, v: Vector, sums: Register, rounds: int) -> None:
        self.tile, self.v, self.asm, self.sums = tile, v, v.asm, sums
        self.rows_of_round = -(-BLOCK_TILES * TILE_ROWS // rounds)
        self.rows_of_item = 0  # in a block of two items
        operands = [operand for operand in operands_read(tile.post_ops) if operand is not OLD_DST]
        self.row_bytes, self.panel_bytes = {DST: tile.dst_row_bytes}, {DST: self.width_bytes(tile.dst_type.size_bytes)}
        if tile.bias:
            self.row_bytes[BIAS] = tile.bias.row_bytes
            self.panel_bytes[BIAS] = self.width_bytes(tile.types.sums.size_bytes) if tile.bias.columns else 0
        self.pointers = {argument: self.asm.gp.take(ARGUMENTS[argument]) for argument in self.row_bytes}
        self.item_bytes = {DST: tile.items.dst_bytes} | ({BIAS: tile.items.bias_bytes} if tile.bias else {})
        for operand in operands:
            self.row_bytes[operand.argument] = operand.row_bytes
            self.panel_bytes[operand.argument] = tile.panel_vectors * operand.vector_bytes
            self.item_bytes[operand.argument] = tile.items.operand_step(operand.argument)
        self.next = {argument: copy_of_word(v.asm, argument) for argument in self.row_bytes}
        self.homes = {operand.argument: self.asm.stack(8) for operand in operands}
        self.waiting = self.asm.gp.take("rows that wait, to the end of the sums")
        self.joined = tile.items.joined
        if self.joined:
            self.left = self.asm.gp.take("rows to the next item")
        self.begin()

    def width_bytes(self, element_bytes: int) -> int:
        """Of a panel's columns."""
        return self.tile.panel_vectors * self.v.lanes * element_bytes

    @contextmanager
    def columns(self, columns: int) -> Iterator[None]:
        """Around the rows of so many columns, at most a panel's."""
        vectors = -(-columns // self.v.lanes)
        self.asm.XOR(self.waiting, self.waiting)
        self.epilogue = TileEpilogue(self.v, self.tile.post_ops, self.homes, self.tile.epilogue_types)
        with self.v.parts(vectors, columns, halves=self.tile.has_halves) as self.parts:
            yield
            self.rest()
        self.epilogue.release()

    @contextmanager
    def two_items(self, rows: int) -> Iterator[None]:
        """Around blocks of two items, so many rows of each."""
        self.rest()
        self.rows_of_item = rows
        yield
        self.rest()
        self.rows_of_item = 0

    @contextmanager
    def joined_items(self) -> Iterator[None]:
        """Around the rows of a panel, which those between items are among: pointers move from row to row only."""
        self.begin()
        self.asm.MOV(self.left, self.tile.pitch)
        yield
        self.rest()

    def wait(self, count: int) -> None:
        """So many rows wait, the last ones of the sums; of the rows before none waits any more."""
        self.asm.role("finish")
        self.asm.MOV(self.waiting, -count * self.tile.weights_row_bytes)
        if not self.joined:
            self.begin()
            self.next_blocks(count, 1)

    def begin(self) -> None:
        """The pointers, where the next block begins."""
        for argument, pointer in self.pointers.items():
            self.asm.MOV(pointer, self.next[argument])
        with self.asm.gp.taken("post-op's operand") as pointer:
            for argument, home in self.homes.items():
                self.asm.MOV(pointer, self.next[argument])
                self.asm.MOV(home, pointer)

    def rest(self) -> None:
        """All that wait."""
        asm, rows = self.asm, self.asm.new_label("rows")
        asm.role("finish")
        with unless_zero(asm, self.waiting, "no row waits"):
            asm.bind(rows)
            self.row()
            asm.JNZ(rows)

    def some(self) -> None:
        """Those of a round, or fewer if no more wait."""
        asm, most = self.asm, self.rows_of_round
        asm.role("finish")
        with unless_zero(asm, self.waiting, "no row waits") as done:
            if most == 1:
                self.row()
            else:
                with asm.repeated(most, "rows of a round", "rows"):
                    self.row()
                    asm.JZ(done)

    def row(self) -> None:
        """The first that waits; ends with a flag that says whether it was the last."""
        between = self.asm.new_label("between items")
        if self.joined:
            self.asm.CMP(self.left, self.tile.pitch - self.tile.rows)
            self.asm.JBE(between)
        if self.tile.prefetches_dst:
            self.ask_ahead()
        self.store_row()
        self.move(self.row_bytes)
        self.asm.bind(between)
        if self.joined:
            self.to_next_item()
        self.asm.ADD(self.waiting, self.tile.weights_row_bytes)
        if self.rows_of_item:
            self.to_second_item()

    def ask_ahead(self) -> None:
        """For lines of the row as far down as a block has rows: of dst, and of what post-ops read by row."""
        asm, rows, share = self.asm, BLOCK_TILES * TILE_ROWS, len(self.parts)
        lines = range(0, share * self.v.lanes * self.tile.dst_type.size_bytes, LINE_BYTES)
        for line in lines:
            asm.PREFETCHT0(mem(self.pointers[DST], rows * self.row_bytes[DST] + line))
        for argument, home in self.homes.items():
            if step := self.row_bytes[argument]:
                width = self.panel_bytes[argument] * share // self.tile.panel_vectors
                with asm.gp.taken("post-op's operand") as pointer:
                    asm.MOV(pointer, home)
                    for line in range(0, max(width, 1), LINE_BYTES):
                        asm.PREFETCHT0(mem(pointer, rows * step + line))

    def store_row(self) -> None:
        tile, v = self.tile, self.v
        end = BLOCK_TILES * TILE_ROWS * tile.weights_row_bytes
        x, size = v.registers.take("sums"), v.lanes * tile.dst_type.size_bytes
        for j, part in enumerate(self.parts):
            at = mem(self.pointers[DST], j * size, size=size)
            v.load(x, mem(self.sums, end + j * v.bytes, index=self.waiting, size=v.bytes))
            self.start(x, j, part)
            self.epilogue.finish(x, 0, j, at, part, part)
        v.registers.free(x)

    def to_next_item(self) -> None:
        """Where its first row is next: the pointers go there, from behind the last one of an item."""
        same = self.asm.new_label("same item")
        self.asm.SUB(self.left, 1)
        self.asm.JNZ(same)
        self.asm.MOV(self.left, self.tile.pitch)
        self.move_item(self.tile.rows)
        self.asm.bind(same)

    def move_item(self, rows: int) -> None:
        """From behind so many rows of an item to the first ones of the next."""
        steps = {argument: -rows * step for argument, step in self.row_bytes.items()}
        self.move({argument: step + self.item_bytes.get(argument, 0) for argument, step in steps.items()})

    def to_second_item(self) -> None:
        """The pointers, where the rows of the first one end."""
        same = self.asm.new_label("same item")
        self.asm.CMP(self.waiting, -self.rows_of_item * self.tile.weights_row_bytes)
        self.asm.JNE(same)
        self.move_item(self.rows_of_item)
        self.asm.bind(same)
        self.asm.TEST(self.waiting, self.waiting)

    def start(self, x: Register, j: int, part: Lanes) -> None:
        """What sums start from is added to them: what dst holds, or a bias."""
        tile, v = self.tile, self.v
        start = self.epilogue.spare[0]
        if tile.accumulate:
            part.load(start, mem(self.pointers[DST], j * v.bytes, size=v.bytes))
        elif tile.bias and tile.bias.columns:
            part.load(start, mem(self.pointers[BIAS], j * v.bytes, size=v.bytes))
        elif tile.bias:
            v.broadcast(start, mem(self.pointers[BIAS], 0, size=tile.types.sums.size_bytes))
        else:
            return
        element_of(tile.types.sums).addition(v)(x, x, start)

    def move(self, bytes_of: Mapping[int, int]) -> None:
        """Every pointer of the rows that wait by so many bytes."""
        for argument, step in bytes_of.items():
            if step:
                self.asm.ADD(self.pointers.get(argument) or self.homes[argument], step)

    def move_next(self, bytes_of: Mapping[int, int], times: int) -> None:
        for argument, step in bytes_of.items():
            if step * times:
                self.asm.ADD(self.next[argument], times * step)

    def next_item(self, rows: int, items: int) -> None:
        """From after so many rows of an item to the first of these in another one."""
        self.move_next(self.row_bytes, -rows)
        self.move_next(self.item_bytes, items)

    def next_blocks(self, rows: int, blocks: int) -> None:
        """The next block begins so many blocks further down, of so many rows."""
        self.move_next(self.row_bytes, blocks * (self.rows_of_item or rows))

    def first_row(self) -> None:
        """From after the last row, or the last item, to the first."""
        if self.joined:
            return
        if (count := self.tile.items.count) > 1:
            self.move_next(self.item_bytes, -count)
        else:
            self.move_next(self.row_bytes, -self.tile.rows)

    def next_panels(self, count: int) -> None:
        """The next block begins so many panels further right."""
        self.move_next(self.panel_bytes, count)
