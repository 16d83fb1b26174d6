"""f32 element-wise blocks: a chain of functions on a vector of src at a time, whatever else it reads.

    dst[r, c] = chain(src[r, c])

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | f32[rows, elements] | rows src.row_bytes apart, elements dense; with src.element one number a row |
| dst     | f32[rows, elements] | rows dst_row_bytes apart, elements dense; may be src itself; read by a sum |
| 2, 3 .. | f32[rows, elements] | operands of the chain, each laid out as its Operand says, as src is |

The main loop works on INTERLEAVED vectors at a time, instruction by instruction in turn: polynomials are chains of
multiplications of which each waits for the one before.

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
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.types import SIZE_BYTES, typed_program
from asmdnn.generators.functions.values import Slots, Source
from asmdnn.generators.move.shuffle_body import if_aligned
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.typed import repeated, typed_lanes
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of

SRC, DST = range(2)
Store = Callable[[Any, Any], None]
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

    def type_of(self, argument: int) -> str:
        """The type of an argument's elements."""
        return "f32"

    def size_of(self, argument: int) -> int:
        """Bytes of an argument's element."""
        return SIZE_BYTES[self.type_of(argument)]

    @property
    def program(self) -> Program:
        """The function of src and the operands, with a value for each result."""
        return compose_all(tuple(result.chain for result in self.results))

    @property
    def prefetches(self) -> bool:
        """Whether to ask for src and operands ahead of time."""
        return self.streaming and compose(self.chain).size >= LONG

    def footprint(self) -> Footprint:
        dst, *more = (
            rows_of(x.argument, self.rows, x.row_bytes, self.size_of(x.argument) * self.elements) for x in self.results
        )
        operands = dict.fromkeys(operand for result in self.results for operand in operands_read(result.chain))
        reads = [r for operand in (self.src, *operands) for r in self.reads(operand, dst)]
        return Footprint(tuple(dict.fromkeys(reads)), (*dst, *(r for ranges in more for r in ranges)))

    def reads(self, operand: Operand | None, dst: tuple[Range, ...]) -> tuple[Range, ...]:
        if operand is OLD_DST:
            return dst
        width = self.size_of(operand.argument) * (1 if operand.element else self.elements)
        return rows_of(operand.argument, self.rows, operand.row_bytes, width)

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


def rows_of(argument: int, rows: int, row_bytes: int, width: int) -> tuple[Range, ...]:
    """The first `width` bytes of every row."""
    return tuple(Range(argument, r * row_bytes, r * row_bytes + width) for r in range(rows))


@dataclass(frozen=True, slots=True)
class TypedElementwiseSpec(ElementwiseSpec):
    """A map of elements of other types than f32, in which it computes; types: of every argument."""

    types: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        words = [*words_of(self.chain), f"{crc32(repr(self).encode()):08x}"]
        types = "".join(dict.fromkeys(self.types))
        return f"map_{types}_{self.rows}x{self.elements}_{'_'.join(words)}__{self.isa}"

    def type_of(self, argument: int) -> str:
        return self.types[argument]

    @property
    def program(self) -> Program:
        kinds = (self.type_of(DST if x is OLD_DST else x.argument) for x in (self.src, *operands_of(self.chain)))
        return typed_program(self.chain, tuple(kinds), self.type_of(DST))

    @property
    def prefetches(self) -> bool:
        return False


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
    """The emission of a kernel: pointers to src, the results and the operands, and the place in a row.

    That counts bytes where all elements have 4, else elements.
    """

    def __init__(self, spec: ElementwiseSpec, v: Vector) -> None:
        asm = v.asm
        self.spec, self.v, self.slots = spec, v, Slots(v)
        self.operands_read = operands_of(spec.together)
        self.steps = {operand.argument: operand.row_bytes for operand in self.operands_read if operand}
        self.program = spec.program
        self.at_once = max(1, INTERLEAVED // len(spec.results))
        self.pointers: dict[int, Register] = {}
        for argument in (SRC, *(result.argument for result in spec.results)):
            self.pointers[argument] = asm.gp.take(f"argument {argument}")
            asm.MOV(self.pointers[argument], mem(asm.frame, 8 * argument))
        self.operands = RowPointers(asm, self.steps, spec.rows, OTHER_REGISTERS)
        arguments = range(len(spec.frame))
        self.unit = 4 if all(spec.size_of(argument) == 4 for argument in arguments) else 1
        self.at = asm.gp.take("bytes into the row" if self.unit == 4 else "elements into the row")

    def place(self, pointer: Register, argument: int, element: int, index: Register | None) -> Pointer:
        """A vector from an element of the row on, counted from `index`."""
        size = self.spec.size_of(argument)
        scale = size // self.unit if index is not None else 1
        return mem(pointer, size * element, size=self.v.lanes * size, index=index, scale=scale)

    def pointer(self, argument: int) -> Register:
        return self.pointers[argument] if argument in self.pointers else self.operands.register(argument)

    def all_rows(self, left: Register, store: Store) -> None:
        if self.spec.rows == 1:
            self.row(store)
        else:
            self.v.asm.MOV(left, self.spec.rows)
            with self.v.asm.loop(left, "rows"):
                self.row(store)
                self.next_row()

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
                asm.ADD(self.at, self.at_once * v.lanes * self.unit)
                asm.CMP(self.at, groups * self.at_once * v.lanes * self.unit)
                asm.JB(start)
        done = groups * self.at_once * v.lanes
        if rest:
            asm.role("rest")
            self.vectors([v] * rest, done, None, store)
        if tail:
            asm.role("tail")
            with v.parts(1, tail) as parts:
                self.vectors(parts, done + rest * v.lanes, None, store)

    def vectors(self, parts: Sequence[Lanes], first: int, index: Register | None, store: Store) -> None:
        """Consecutive vectors from a place in the row on."""
        v, spec = self.v, self.spec
        self.operands.forget()
        at = [first + j * v.lanes for j in range(len(parts))]
        registers = v.registers.take("map", v.registers.available)
        sources = [
            [self.source(operand, part, start, index) for part, start in zip(parts, at, strict=True)]
            for operand in (spec.src, *self.operands_read)
        ]
        values = apply_to_each(self.program, v, sources, registers, self.slots)
        for result, of_vectors in zip(spec.results, values, strict=True):
            for part, start, value in zip(parts, at, of_vectors, strict=True):
                at_dst = self.place(self.pointers[result.argument], result.argument, start, index)
                lanes = typed_lanes(v, part, spec.type_of(result.argument))
                (store if lanes is v else lanes.store)(at_dst, value)
        v.registers.free(*registers)

    def prefetch(self) -> None:
        """What the loop's vectors read, of src and operands, AHEAD_BYTES on."""
        v = self.v
        self.operands.forget()
        tensors = [operand for operand in self.operands_read if operand is not OLD_DST]
        for operand in dict.fromkeys((self.spec.src, *tensors)):
            for line in range(0, self.at_once * v.bytes, LINE_BYTES):
                if not operand.element:
                    v.asm.PREFETCHT0(mem(self.pointer(operand.argument), AHEAD_BYTES + line, index=self.at))

    def source(self, operand: Operand | None, part: Lanes, at: int, index: Register | None) -> Source:
        v, argument = self.v, DST if operand is OLD_DST else operand.argument
        kind = self.spec.type_of(argument)
        if operand is not OLD_DST and operand.element:
            size = self.spec.size_of(argument)
            return Source(lambda: mem(self.pointer(argument), size=size), repeated(v, kind))
        return Source(lambda: self.place(self.pointer(argument), argument, at, index), typed_lanes(v, part, kind))

    def next_row(self) -> None:
        results = {result.argument: result.row_bytes for result in self.spec.results}
        for argument, step in {SRC: self.spec.src.row_bytes, **results}.items():
            if step:
                self.v.asm.ADD(self.pointers[argument], step)
        self.operands.next_row()
