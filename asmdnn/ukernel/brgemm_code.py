"""The code of a brgemm: tiles of the results, each summed in registers over the whole batch.

    for each panel of columns, for each block of rows:
        sums = c or 0;   for each i of the batch: sums += a[i] * b[i];   dst = post_ops(sums)

The tiles are those of the library's own products (generators/dot/matmul.py).  Pointers of the panel and block at hand
lie in a frame of the call's own, and move on by constants.
"""

from typing import Any, Final

from asmdnn.asm import FunctionBuilder, Register, mem
from asmdnn.generators.dot.matmul import TileCode, looped_steps
from asmdnn.generators.dot.matmul_shape import SRC, WEIGHTS, MatmulTile
from asmdnn.generators.stepping import repeated, unless_zero
from asmdnn.isa.vectors import vector_of
from asmdnn.types import F32_BYTES
from asmdnn.ukernel.brgemm_shape import Brgemm
from asmdnn.ukernel.framed import WORD_BYTES, enter

PAIR_BYTES: Final = 2 * WORD_BYTES  # of offsets


class BrgemmCode:
    """Emits the body of a function whose arguments `names` says."""

    def __init__(self, shape: Brgemm, f: FunctionBuilder, arguments: dict[str, Register]) -> None:
        self.shape, self.asm, self.v = shape, f.asm, vector_of(shape.isa, f.asm)
        self.words = {name: WORD_BYTES * i for i, name in enumerate(shape.words)}
        enter(f, {shape.words.index(name): reg for name, reg in arguments.items()}, len(shape.words))
        if shape.kind == "address":  # then these words are distances of the tile from where addresses point
            with self.asm.gp.taken("0") as zero:
                self.asm.MOV(zero, 0)
                for name in ("src", "weights"):
                    self.asm.MOV(self.word(name), zero)

    def word(self, name: str) -> Any:
        """The place of a word in the frame."""
        return mem(self.asm.frame, self.words[name], size=WORD_BYTES)

    def emit(self) -> None:
        rows, columns, _ = self.shape.size
        high, wide = self.shape.cut()
        width = wide * self.v.lanes
        for count, some in _parts(columns, width):
            with repeated(self.asm, count, "panels"):
                for blocks, tall in _parts(rows, high):
                    with repeated(self.asm, blocks, "blocks of rows"):
                        self._tile(self.shape.tile(tall, some))
                        self._move(self._down(tall))
                self._move(self._down(-rows))
                self._move(self._right(wide))
        self.asm.ret()

    def _down(self, rows: int) -> dict[str, int]:
        """How far words move from a row of tiles to the next, in bytes."""
        shape = self.shape
        operands = {x.argument: x.row_bytes for op in shape.chain.post_ops for x in op.operands if x is not None}
        found = {"src": shape.a_row_bytes, "dst": shape.dst_row_bytes, "c": shape.c_row_bytes * shape.accumulate}
        found |= {shape.words[argument]: step for argument, step in operands.items()}
        return {name: rows * step for name, step in found.items()}

    def _right(self, vectors: int) -> dict[str, int]:
        """The same from a panel to the next."""
        shape, lanes = self.shape, self.v.lanes
        operands = {x.argument: x.vector_bytes for op in shape.chain.post_ops for x in op.operands if x is not None}
        found = {
            "weights": shape.types.weights_bytes * lanes,
            "dst": shape.dst.size_bytes * lanes,
            "c": F32_BYTES * lanes * shape.accumulate,
            "compensation": F32_BYTES * lanes * bool(shape.shift),
        }
        found |= {shape.words[argument]: step for argument, step in operands.items()}
        return {name: vectors * step for name, step in found.items()}

    def _move(self, distances: dict[str, int]) -> None:
        self.asm.role("to the next tile")
        with self.asm.gp.taken("pointer") as pointer:
            for name, distance in distances.items():
                if distance:
                    self.asm.MOV(pointer, self.word(name))
                    self.asm.ADD(pointer, distance)
                    self.asm.MOV(self.word(name), pointer)

    def _tile(self, tile: MatmulTile) -> None:
        code = BrgemmTile(tile, self.asm, self.v)
        code.start_from(self)
        with code.dot.ready():
            self._batch(code)
        code.finish()
        self.v.registers.free(code.acc)
        self.asm.gp.free(*code.pointers.values())

    def _batch(self, code: "BrgemmTile") -> None:
        """The loop over what is summed; no round at all if the batch is empty."""
        asm, kind = self.asm, self.shape.kind
        lists = {"stride": (), "offset": ("offsets",), "address": ("a_addresses", "b_addresses")}[kind]
        with asm.gp.taken("batch left") as left:
            walked = [asm.gp.take(name) for name in lists]
            for name, reg in zip(lists, walked, strict=True):
                asm.MOV(reg, self.word(name))
            asm.MOV(left, self.word("batch"))
            with unless_zero(asm, left, "after the batch"), asm.loop(left, "batch"):
                getattr(self, f"_enter_{kind}")(code, walked)
                code.multiply()
                if kind == "stride":
                    self._next_of_stride(code)
            asm.gp.free(*walked)

    def _enter_stride(self, code: "BrgemmTile", walked: list[Register]) -> None:
        """Pointers are those of the tile, and go on."""

    def _next_of_stride(self, code: "BrgemmTile") -> None:
        loops, tile = looped_steps(code.tile), code.tile
        walked = loops * tile.src_depth_bytes, loops * tile.weights_row_bytes
        for argument, step, done in zip((SRC, WEIGHTS), self.shape.steps, walked, strict=True):
            if step != done:
                self.asm.ADD(code.pointers[argument], step - done)

    def _enter_offset(self, code: "BrgemmTile", walked: list[Register]) -> None:
        (pairs,) = walked
        for argument, name, at in ((SRC, "src", 0), (WEIGHTS, "weights", WORD_BYTES)):
            self.asm.MOV(code.pointers[argument], self.word(name))
            self.asm.ADD(code.pointers[argument], mem(pairs, at, size=WORD_BYTES))
        self.asm.ADD(pairs, PAIR_BYTES)

    def _enter_address(self, code: "BrgemmTile", walked: list[Register]) -> None:
        for argument, name, addresses in zip((SRC, WEIGHTS), ("src", "weights"), walked, strict=True):
            self.asm.MOV(code.pointers[argument], mem(addresses))
            self.asm.ADD(code.pointers[argument], self.word(name))
            self.asm.ADD(addresses, WORD_BYTES)


class BrgemmTile(TileCode):
    """A tile whose sums start from c, less what the dot product adds."""

    def start_from(self, code: BrgemmCode) -> None:
        shape, v, asm = code.shape, self.v, self.asm
        asm.role("start")
        rows = range(self.tile.rows)
        with v.parts(self.tile.vectors, self.tile.columns, halves=True) as parts, asm.gp.taken("start") as at:
            if shape.accumulate:
                asm.MOV(at, code.word("c"))
            for j, part in enumerate(parts):
                for r in rows:
                    if shape.accumulate:
                        part.load(self.acc[r][j], mem(at, r * shape.c_row_bytes + j * v.bytes, size=v.bytes))
                    else:
                        v.zero(self.acc[r][j])
            if shape.shift:
                asm.MOV(at, code.word("compensation"))
                with v.registers.taken("compensation") as x:
                    for j, part in enumerate(parts):
                        part.load(x, mem(at, j * v.bytes, size=v.bytes))
                        for r in rows:
                            self.dot.add(self.acc[r][j], x)


def _parts(whole: int, size: int) -> list[tuple[int, int]]:
    """(count, size) of equal parts, and of the rest."""
    count, rest = divmod(whole, size)
    return [(count, size)] * bool(count) + [(1, rest)] * bool(rest)
