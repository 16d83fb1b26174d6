"""What happens to the sums that tiles have left on the stack: row after row into vectors, and from there into dst."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from asmdnn.generators.dot.epilogue import TileEpilogue
from asmdnn.generators.dot.matmul_shape import BIAS, DST, MatmulTile
from asmdnn.generators.functions.chain import operands_read
from asmdnn.generators.functions.pointers import copy_of_word
from asmdnn.generators.functions.postops import OLD_DST
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.elements import element_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.types import s32


class Rounds:
    """Pointers that move on by some bytes in every round of a loop."""

    def __init__(self, asm: Assembler, bytes_of: Mapping[Register, int]) -> None:
        self.asm, self.bytes_of, self.done = asm, bytes_of, 0

    @contextmanager
    def loop(self, count: int, stays: bool) -> Iterator[None]:
        """The body `count` times.  stays: nothing follows that needs pointers after the only round."""
        if count == 1:
            yield
            if not stays:
                self.move(1)
            return
        with self.asm.repeated(count, "steps left", "steps"):
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
    """Rows of sums become rows of dst.  The pointers to dst, bias and operands move from row to row.

    pointers: in registers, by argument; those to operands lie on the stack, in copies of the frame's words.
    """

    def __init__(self, tile: MatmulTile, v: Vector, pointers: Mapping[int, Register], sums: Pointer) -> None:
        self.tile, self.v, self.asm, self.pointers, self.sums = tile, v, v.asm, pointers, sums
        operands = [operand for operand in operands_read(tile.post_ops) if operand is not OLD_DST]
        self.row_bytes, self.panel_bytes = {DST: tile.dst_row_bytes}, {DST: self.width_bytes(tile.dst_type.size_bytes)}
        if tile.bias:
            self.row_bytes[BIAS] = tile.bias.row_bytes
            self.panel_bytes[BIAS] = self.width_bytes(tile.types.sums.size_bytes) if tile.bias.columns else 0
        self.homes: dict[int, Pointer] = {}
        for operand in operands:
            self.row_bytes[operand.argument] = operand.row_bytes
            self.panel_bytes[operand.argument] = tile.panel_vectors * operand.vector_bytes
        self.item_bytes = {DST: tile.items.dst_bytes} | ({BIAS: tile.items.bias_bytes} if tile.bias else {})
        for argument in sorted({operand.argument for operand in operands}):
            self.homes[argument] = copy_of_word(v.asm, argument)

    def width_bytes(self, element_bytes: int) -> int:
        """Of a panel's columns."""
        return self.tile.panel_vectors * self.v.lanes * element_bytes

    @contextmanager
    def columns(self, columns: int) -> Iterator[None]:
        """Around the rows of so many columns, at most a panel's."""
        vectors = -(-columns // self.v.lanes)
        self.epilogue = TileEpilogue(self.v, self.tile.post_ops, self.homes, self.tile.epilogue_types())
        with self.v.parts(vectors, columns, halves=self.tile.has_halves) as self.parts:
            yield
        self.epilogue.release()

    def rows(self, first: int, count: int) -> None:
        """So many rows of sums from there on."""
        asm = self.asm
        asm.role("finish")
        left, at = asm.gp.take("rows left"), asm.gp.take("sums")
        base = self.sums.form.base
        asm.LEA(at, mem(base, self.sums.displacement + first * self.tile.weights_row_bytes))
        asm.MOV(left, count)
        with asm.loop(left, "rows"):
            self.row(at)
            asm.ADD(at, self.tile.weights_row_bytes)
            self.move(self.row_bytes, 1)
        asm.gp.free(left, at)

    def row(self, sums: Register) -> None:
        tile, v = self.tile, self.v
        x, size = v.registers.take("sums"), v.lanes * tile.dst_type.size_bytes
        for j, part in enumerate(self.parts):
            at = mem(self.pointers[DST], j * size, size=size)
            v.load(x, mem(sums, j * v.bytes, size=v.bytes))
            self.start(x, j, part)
            if tile.works_in_f32:
                element_of(tile.types.sums).widen(v, x, x)
            self.epilogue.finish(x, 0, j, at, part, part)
        v.registers.free(x)

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
        (self.asm.VPADDD if tile.types.sums == s32 else self.asm.VADDPS)(x, x, start)

    def move(self, bytes_of: Mapping[int, int], times: int) -> None:
        """Every pointer by so many bytes."""
        for argument, step in bytes_of.items():
            if not step * times:
                continue
            if argument in self.pointers:
                self.asm.ADD(self.pointers[argument], times * step)
            else:
                with self.asm.gp.taken("post-op's operand") as pointer:
                    self.asm.MOV(pointer, self.homes[argument])
                    self.asm.ADD(pointer, times * step)
                    self.asm.MOV(self.homes[argument], pointer)

    def next_item(self, rows: int, items: int) -> None:
        """From after so many rows of an item to the first of these in another one."""
        self.move(self.row_bytes, -rows)
        self.move(self.item_bytes, items)

    def next_panel(self) -> None:
        """From after the last row of a panel, or its last item, to the first of the next."""
        if (count := self.tile.items.count) > 1:
            self.next_item(0, -count)
        else:
            self.move(self.row_bytes, -self.tile.rows)
        self.move(self.panel_bytes, 1)
