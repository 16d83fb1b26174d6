"""f32 element-wise blocks: a chain of functions on a vector of src at a time, whatever else it reads.

    dst[r, c] = chain(src[r, c])

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | f32[rows, elements] | rows src.row_bytes apart, elements dense; with src.element one number a row |
| dst     | f32[rows, elements] | rows dst_row_bytes apart, elements dense; may be src itself; read by a sum |
| 2, 3 .. | f32[rows, elements] | operands of the chain, each laid out as its Operand says, as src is |

The main loop works on INTERLEAVED vectors at a time, instruction by instruction in turn: polynomials are chains of
multiplications of which each waits for the one before.  Rows of few whole vectors are worked on together.

With `streaming`, full vectors go past the caches if dst is aligned to a vector, as dst_row_bytes then must be, and is
not src itself, whose lines the caches hold.  If its function is LONG, such a kernel asks for what it reads AHEAD_BYTES
before: a CPU's own prefetchers stop at the end of a page, and computing fills the time until the next one arrives.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.chain import (
    compose,
    compose_all,
    names_of_operands,
    operands_of,
    operands_read,
    words_of,
)
from asmdnn.generators.functions.code import apply_to_each
from asmdnn.generators.functions.pointers import RowPointers
from asmdnn.generators.functions.postops import OLD_DST, Operand, PostOp
from asmdnn.generators.functions.rows import rows_touched
from asmdnn.generators.functions.values import Slots, Source
from asmdnn.generators.move.shuffle_body import if_aligned
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.vector import Broadcast, Lanes, Vector
from asmdnn.isa.vectors import vector_of

SRC, DST = range(2)
Store = Callable[[Any, Any], None]
Place = tuple[Lanes, int, int]  # of a vector: how it is accessed, its offset in bytes, its row
INTERLEAVED = 6  # 4 are slower, since too many multiplications wait, and 8 need the stack too often (Zen 3)
LINE_BYTES = 64
AHEAD_BYTES = 2048
LONG = 12  # steps of a function that computes for longer than a vector takes from memory
OTHER_REGISTERS = 3  # general-purpose ones: rows left, the place in a row, a tail's bits


@dataclass(frozen=True, slots=True)
class Result:
    """What a kernel stores: chain(src), in rows of argument number `argument`, row_bytes apart."""

    argument: int
    row_bytes: int
    chain: tuple[PostOp, ...]


@dataclass(frozen=True, slots=True)
class ElementwiseSpec:
    """Everything that the bytes of an element-wise kernel depend on; vector_bytes of operands are not used here."""

    isa: str
    rows: int
    elements: int
    src: Operand
    dst_row_bytes: int
    chain: tuple[PostOp, ...]
    streaming: bool = False

    @property
    def name(self) -> str:
        words = [*words_of(self.chain), *["streaming"] * self.streaming, f"{crc32(repr(self).encode()):08x}"]
        return f"map_f32_{self.rows}x{self.elements}_{'_'.join(words)}__{self.isa}"

    @property
    def results(self) -> tuple[Result, ...]:
        """What is stored, the first in dst."""
        return (Result(DST, self.dst_row_bytes, self.chain),)

    @property
    def together(self) -> tuple[PostOp, ...]:
        """The post-ops of all results."""
        return tuple(op for result in self.results for op in result.chain)

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        more = (f"dst{result.argument}" for result in self.results[1:])
        return ("src", "dst", *more, *names_of_operands(self.together))

    @property
    def prefetches(self) -> bool:
        """Whether to ask for src and operands ahead of time."""
        return self.streaming and compose(self.chain).size >= LONG

    def footprint(self) -> Footprint:
        dst, *more = (rows_touched(x.argument, self.rows, x.row_bytes, self.elements) for x in self.results)
        operands = dict.fromkeys(operand for result in self.results for operand in operands_read(result.chain))
        reads = [r for operand in (self.src, *operands) for r in self.reads(operand, dst)]
        return Footprint(tuple(dict.fromkeys(reads)), (*dst, *(r for ranges in more for r in ranges)))

    def reads(self, operand: Operand | None, dst: tuple[Range, ...]) -> tuple[Range, ...]:
        if operand is OLD_DST:
            return dst
        return rows_touched(operand.argument, self.rows, operand.row_bytes, 1 if operand.element else self.elements)

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 frame[])."""
        v = vector_of(self.isa, asm)
        code = MapCode(self, v)
        left = asm.gp.take("rows left")
        if self.streaming:
            plain = asm.new_label("plain")
            asm.CMP(code.pointers[SRC], code.pointers[DST])
            asm.JE(plain)
            with if_aligned(asm, code.pointers[DST], v.bytes, left):
                code.all_rows(left, v.stream)
                asm.SFENCE()
                asm.ret()
            asm.bind(plain)
        code.all_rows(left, v.store)
        asm.ret()


@dataclass(frozen=True, slots=True)
class SeveralResultsSpec(ElementwiseSpec):
    """A map with more results than dst, such as the state and the output of an LSTM's cell: argument 2, 3 and so on.

    What the chains have in common is computed once.  A sum reads what dst held, whichever result it is of; operands
    come behind the results.
    """

    more: tuple[Result, ...] = ()

    @property
    def results(self) -> tuple[Result, ...]:
        """What is stored, the first in dst."""
        return (Result(DST, self.dst_row_bytes, self.chain), *self.more)


class MapCode:
    """The emission of a kernel: pointers to src, the results and the operands, and the place in a row."""

    def __init__(self, spec: ElementwiseSpec, v: Vector) -> None:
        asm = v.asm
        self.spec, self.v, self.slots = spec, v, Slots(v)
        self.operands_read = operands_of(spec.together)
        self.steps = {operand.argument: operand.row_bytes for operand in self.operands_read if operand}
        self.program = compose_all(tuple(result.chain for result in spec.results))
        self.at_once = max(1, INTERLEAVED // len(spec.results))
        vectors, tail = divmod(spec.elements, v.lanes)
        self.together = max(1, min(spec.rows, self.at_once // vectors)) if vectors and not tail else 1
        self.pointers: dict[int, Register] = {}
        for argument in (SRC, *(result.argument for result in spec.results)):
            self.pointers[argument] = asm.gp.take(f"argument {argument}")
            asm.MOV(self.pointers[argument], mem(asm.frame, 8 * argument))
        moved = {argument: step * self.together for argument, step in self.steps.items()}
        self.operands = RowPointers(asm, moved, spec.rows, OTHER_REGISTERS)
        self.at = asm.gp.take("bytes into the row")

    def pointer(self, argument: int) -> Register:
        return self.pointers[argument] if argument in self.pointers else self.operands.register(argument)

    def all_rows(self, left: Register, store: Store) -> None:
        groups, rest = divmod(self.spec.rows, self.together)
        if groups == 1 and not rest:
            self.some_rows(self.together, store)
            return
        self.v.asm.MOV(left, groups)
        with self.v.asm.loop(left, "rows"):
            self.some_rows(self.together, store)
            self.next_rows()
        if rest:
            self.some_rows(rest, store)

    def some_rows(self, rows: int, store: Store) -> None:
        """One, or several of few whole vectors, which are computed in turn as those of a row are."""
        if self.together == 1:
            self.row(store)
            return
        self.v.asm.role("short rows")
        self.vectors([self.v] * (self.spec.elements // self.v.lanes), 0, None, store, rows)

    def row(self, store: Store) -> None:
        """Full vectors some at a time in a loop, then the rest, then the tail."""
        asm, v, elements = self.v.asm, self.v, self.spec.elements
        vectors, tail = divmod(elements, v.lanes)
        groups, rest = divmod(vectors, self.at_once)
        if groups:
            asm.role("vectors")
            start = asm.new_label("vectors")
            asm.XOR(self.at, self.at)
            asm.bind(start)
            if self.spec.prefetches:
                self.prefetch()
            self.vectors([v] * self.at_once, 0, self.at, store)
            if groups > 1:
                asm.ADD(self.at, self.at_once * v.bytes)
                asm.CMP(self.at, groups * self.at_once * v.bytes)
                asm.JB(start)
        done = groups * self.at_once * v.bytes
        if rest:
            asm.role("rest")
            self.vectors([v] * rest, done, None, store)
        if tail:
            asm.role("tail")
            with v.parts(1, tail) as parts:
                self.vectors(parts, done + rest * v.bytes, None, store)

    def vectors(
        self, parts: Sequence[Lanes], offset_bytes: int, index: Register | None, store: Store, rows: int = 1
    ) -> None:
        """Consecutive vectors from a place in the row on, of several rows."""
        v, spec = self.v, self.spec
        self.operands.forget()
        places = [(part, offset_bytes + j * v.bytes, r) for r in range(rows) for j, part in enumerate(parts)]
        registers = v.registers.take("map", v.registers.available)
        sources = [self.sources(operand, places, index) for operand in (spec.src, *self.operands_read)]
        values = apply_to_each(self.program, v, sources, registers, self.slots)
        for result, of_vectors in zip(spec.results, values, strict=True):
            for (part, start, r), value in zip(places, of_vectors, strict=True):
                at = start + r * result.row_bytes
                at_dst = mem(self.pointers[result.argument], at, size=v.bytes, index=index)
                (store if part is v else part.store)(at_dst, value)
        v.registers.free(*registers)

    def sources(self, operand: Operand | None, places: Sequence[Place], index: Register | None) -> list[Source]:
        """Of every vector; one for all where it is the same in all rows."""
        if operand and not operand.row_bytes and len({start for _, start, _ in places}) == 1:
            return [self.source(operand, *places[0], index)] * len(places)
        return [self.source(operand, *place, index) for place in places]

    def prefetch(self) -> None:
        """What the loop's vectors read, of src and operands, AHEAD_BYTES on."""
        v = self.v
        self.operands.forget()
        tensors = [operand for operand in self.operands_read if operand is not OLD_DST]
        for operand in dict.fromkeys((self.spec.src, *tensors)):
            for line in range(0, self.at_once * v.bytes, LINE_BYTES):
                if not operand.element:
                    v.asm.PREFETCHT0(mem(self.pointer(operand.argument), AHEAD_BYTES + line, index=self.at))

    def source(self, operand: Operand | None, part: Lanes, start: int, row: int, index: Register | None) -> Source:
        v = self.v
        if operand is OLD_DST:
            at = start + row * self.spec.dst_row_bytes
            return Source(lambda: mem(self.pointers[DST], at, size=v.bytes, index=index), part)
        argument, away = operand.argument, row * operand.row_bytes
        if operand.element:
            lanes = Broadcast(v) if self.together > 1 and operand.row_bytes else None  # rows differ in it
            return Source(lambda: mem(self.pointer(argument), away, size=4), lanes)
        return Source(lambda: mem(self.pointer(argument), start + away, size=v.bytes, index=index), part)

    def next_rows(self) -> None:
        results = {result.argument: result.row_bytes for result in self.spec.results}
        for argument, step in {SRC: self.spec.src.row_bytes, **results}.items():
            if step:
                self.v.asm.ADD(self.pointers[argument], step * self.together)
        self.operands.next_row()
