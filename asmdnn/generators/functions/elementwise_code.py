"""The code of elementwise.py: several vectors of a row, or rows of few vectors, in turn."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Protocol

from asmdnn.generators.functions.chain import operands_of
from asmdnn.generators.functions.code import apply_to_each
from asmdnn.generators.functions.pointers import RowPointers
from asmdnn.generators.functions.postops import OLD_DST, Operand, PostOp
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.values import Slots, Source
from asmdnn.generators.stores import ROUNDING_REGISTERS, store_rounded
from asmdnn.isa.assembler import Pointer, Register, mem
from asmdnn.isa.elements import element_of, storing_element
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vector import Broadcast, Lanes, Vector
from asmdnn.records import dataclass
from asmdnn.types import f32

SRC, DST = range(2)
Store = Callable[[Any, Any], None]
Place = tuple[Lanes, int, int]  # of a vector: how it is accessed, its first element, its row
INTERLEAVED = 6  # vectors in turn, if planners say nothing else,
AHEAD_BYTES = 2048  # and how far ahead they are prefetched
OTHER_REGISTERS = 3  # general-purpose ones: rows left, the place in a row, a tail's bits


@dataclass(frozen=True, slots=True)
class Result:
    """What a kernel stores: chain(src), in rows of argument number `argument`, row_bytes apart."""

    argument: int
    row_bytes: int
    chain: tuple[PostOp, ...]


class MapFields(Protocol):
    """What the code is of; see ElementwiseSpec."""

    @property
    def isa(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def elements(self) -> int: ...
    @property
    def src(self) -> Operand: ...
    @property
    def dst_row_bytes(self) -> int: ...
    @property
    def results(self) -> tuple[Result, ...]: ...
    @property
    def together(self) -> tuple[PostOp, ...]: ...
    @property
    def frame(self) -> tuple[str, ...]: ...
    @property
    def program(self) -> Program: ...
    @property
    def prefetches(self) -> bool: ...
    @property
    def interleaved(self) -> int: ...
    @property
    def ahead_bytes(self) -> int: ...
    @property
    def zeroed(self) -> int: ...
    def type_of(self, argument: int) -> str: ...
    def size_of(self, argument: int) -> int: ...


class MapCode:
    """The emission of a kernel: pointers to src, the results and the operands, and the place in a row.

    That counts bytes where all elements have as many as f32, else elements.
    """

    def __init__(self, spec: MapFields, v: Vector) -> None:
        asm = v.asm
        self.spec, self.v, self.slots = spec, v, Slots(v)
        self.operands_read = operands_of(spec.together)
        self.steps = {operand.argument: operand.row_bytes for operand in self.operands_read if operand}
        self.program = spec.program
        self.at_once = max(1, spec.interleaved // len(spec.results))
        self.pointers: dict[int, Register] = {}
        for argument in (SRC, *(result.argument for result in spec.results)):
            self.pointers[argument] = asm.gp.take(f"argument {argument}")
            asm.MOV(self.pointers[argument], mem(asm.frame, 8 * argument))
        vectors, tail = divmod(spec.elements + spec.zeroed, v.lanes)
        self.together = max(1, min(spec.rows, self.at_once // vectors)) if vectors and not tail else 1
        moved = {argument: step * self.together for argument, step in self.steps.items()}
        self.operands = RowPointers(asm, moved, spec.rows, OTHER_REGISTERS)
        by_bytes = all(spec.size_of(argument) == f32.size_bytes for argument in range(len(spec.frame)))
        self.unit = f32.size_bytes if by_bytes else 1
        self.at = asm.gp.take("bytes into the row" if by_bytes else "elements into the row")

    def place(self, pointer: Register, argument: int, element: int, index: Register | None) -> Pointer:
        """A vector from an element of the row on, counted from `index`."""
        size = self.spec.size_of(argument)
        scale = size // self.unit if index is not None else 1
        return mem(pointer, size * element, size=self.v.lanes * size, index=index, scale=scale)

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
        if self.together == 1 and not self.spec.zeroed:
            self.row(store)
            return
        self.v.asm.role("short rows")
        with self.v.parts((self.spec.elements + self.spec.zeroed) // self.v.lanes, self.spec.elements) as parts:
            self.vectors(parts, 0, None, store, rows)

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

    def vectors(self, parts: Sequence[Lanes], first: int, index: Register | None, store: Store, rows: int = 1) -> None:
        """Consecutive vectors from a place in the row on, of several rows."""
        v, spec = self.v, self.spec
        self.operands.forget()
        places = [(part, first + j * v.lanes, r) for r in range(rows) for j, part in enumerate(parts)]
        registers = v.registers.take("map", v.registers.available)
        sources = [self.sources(operand, places, index) for operand in (spec.src, *self.operands_read)]
        values = apply_to_each(self.program, v, sources, registers, self.slots, shares=True)
        is_last = len(set(self.program.results)) == len(self.program.results)  # nothing is stored twice
        for result, of_vectors in zip(spec.results, values, strict=True):
            kind, pointer = spec.type_of(result.argument), self.pointers[result.argument]
            at = [
                self.place(pointer, result.argument, start, index).shifted(r * result.row_bytes)
                for _, start, r in places
            ]
            if spec.zeroed:
                for (part, *_), value in zip(places, of_vectors, strict=True):
                    part.clear_rest(value)
            at_parts = [(here, v if spec.zeroed else part) for here, (part, *_) in zip(at, places, strict=True)]
            element = storing_element(kind, spec.isa)
            if element.narrows_pairs:
                spare = [x for x in registers if x not in chain.from_iterable(values)][:ROUNDING_REGISTERS]
                store_rounded(v, element, of_vectors, at_parts, spare)
                continue
            for (at_dst, part), value in zip(at_parts, of_vectors, strict=True):
                lanes = element.lanes(v, part)
                stores = lanes.store_last if is_last else lanes.store
                (store if lanes is v else stores)(at_dst, value)
        v.registers.free(*registers)

    def prefetch(self) -> None:
        """What the loop's vectors read, of src and operands, ahead_bytes on."""
        v = self.v
        self.operands.forget()
        tensors = [operand for operand in self.operands_read if operand is not OLD_DST]
        for operand in dict.fromkeys((self.spec.src, *tensors)):
            for line in range(0, self.at_once * v.bytes, LINE_BYTES):
                if not operand.element:
                    v.asm.PREFETCHT0(mem(self.pointer(operand.argument), self.spec.ahead_bytes + line, index=self.at))

    def sources(self, operand: Operand | None, places: Sequence[Place], index: Register | None) -> list[Source]:
        """Of every vector; one for all where it is the same in all rows, or one element for all of a row."""
        rows, starts = {row for *_, row in places}, {start for _, start, _ in places}
        if operand and ((not operand.row_bytes and len(starts) == 1) or (operand.element and len(rows) == 1)):
            return [self.source(operand, *places[0], index)] * len(places)
        return [self.source(operand, *place, index) for place in places]

    def source(self, operand: Operand | None, part: Lanes, at: int, row: int, index: Register | None) -> Source:
        v, argument = self.v, DST if operand is OLD_DST else operand.argument
        of = element_of(self.spec.type_of(argument))
        away = row * (operand.row_bytes if operand else self.spec.dst_row_bytes)
        if operand is not OLD_DST and operand.element:
            size, lanes = of.size_bytes, of.repeated(v)
            if lanes is None and self.together > 1 and operand.row_bytes:
                lanes = Broadcast(v)  # rows differ in it
            return Source(lambda: mem(self.pointer(argument), away, size=size), lanes)
        return Source(lambda: self.place(self.pointer(argument), argument, at, index).shifted(away), of.lanes(v, part))

    def next_rows(self) -> None:
        results = {result.argument: result.row_bytes for result in self.spec.results}
        for argument, step in {SRC: self.spec.src.row_bytes, **results}.items():
            if step:
                self.v.asm.ADD(self.pointers[argument], step * self.together)
        self.operands.next_row()
