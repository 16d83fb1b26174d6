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
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from asmdnn.generators.footprint import Footprint, Range
from asmdnn.generators.functions.chain import compose, names_of_operands, operands_of, operands_read, words_of
from asmdnn.generators.functions.code import apply_to_each
from asmdnn.generators.functions.postops import OLD_DST, Operand, PostOp
from asmdnn.generators.functions.values import Slots, Source
from asmdnn.generators.move.shuffle_body import if_aligned
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of

SRC, DST = range(2)
Store = Callable[[Any, Any], None]
INTERLEAVED = 6  # 4 are slower, since too many multiplications wait, and 8 need the stack too often (Zen 3)
LINE_BYTES = 64
AHEAD_BYTES = 2048
LONG = 12  # steps of a function that computes for longer than a vector takes from memory
MOST_OPERANDS = 8  # each has a pointer in a register


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
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return ("src", "dst", *names_of_operands(self.chain))

    @property
    def prefetches(self) -> bool:
        """Whether to ask for src and operands ahead of time."""
        return self.streaming and compose(self.chain).size >= LONG

    def footprint(self) -> Footprint:
        dst = tuple(
            Range(DST, r * self.dst_row_bytes, r * self.dst_row_bytes + 4 * self.elements) for r in range(self.rows)
        )
        reads = [r for operand in (self.src, *operands_read(self.chain)) for r in self.reads(operand, dst)]
        return Footprint(tuple(dict.fromkeys(reads)), dst)

    def reads(self, operand: Operand | None, dst: tuple[Range, ...]) -> tuple[Range, ...]:
        if operand is OLD_DST:
            return dst
        width = 4 if operand.element else 4 * self.elements
        starts = (r * operand.row_bytes for r in range(self.rows))
        return tuple(Range(operand.argument, begin, begin + width) for begin in starts)

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
            asm.bind(plain)
        code.all_rows(left, v.store)
        asm.ret()


@dataclass(frozen=True, eq=False)
class MapCode:
    """The emission of a kernel: a pointer for each argument, and the place in a row."""

    spec: ElementwiseSpec
    v: Vector
    slots: Slots = field(init=False)
    pointers: dict[int, Register] = field(init=False)
    at: Register = field(init=False)

    def __post_init__(self) -> None:
        asm, spec = self.v.asm, self.spec
        arguments = {SRC, DST, *(operand.argument for operand in operands_of(spec.chain) if operand is not OLD_DST)}
        object.__setattr__(self, "slots", Slots(self.v))
        object.__setattr__(self, "pointers", {a: asm.gp.take(f"argument {a}") for a in sorted(arguments)})
        object.__setattr__(self, "at", asm.gp.take("bytes into the row"))
        for argument, pointer in self.pointers.items():
            asm.MOV(pointer, mem(asm.frame, 8 * argument))

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
        groups, rest = divmod(vectors, INTERLEAVED)
        if groups:
            asm.role("vectors")
            start = asm.new_label("vectors")
            asm.XOR(self.at, self.at)
            asm.bind(start)
            if self.spec.prefetches:
                self.prefetch()
            self.vectors([v] * INTERLEAVED, 0, self.at, store)
            if groups > 1:
                asm.ADD(self.at, INTERLEAVED * v.bytes)
                asm.CMP(self.at, groups * INTERLEAVED * v.bytes)
                asm.JB(start)
        done = groups * INTERLEAVED * v.bytes
        if rest:
            asm.role("rest")
            self.vectors([v] * rest, done, None, store)
        if tail:
            asm.role("tail")
            with v.parts(1, tail) as parts:
                self.vectors(parts, done + rest * v.bytes, None, store)

    def vectors(self, parts: Sequence[Lanes], offset_bytes: int, index: Register | None, store: Store) -> None:
        """Consecutive vectors from a place in the row on."""
        v, spec = self.v, self.spec
        at = [offset_bytes + j * v.bytes for j in range(len(parts))]
        registers = v.registers.take("map", v.registers.available)
        sources = [
            [self.source(operand, part, start, index) for part, start in zip(parts, at, strict=True)]
            for operand in (spec.src, *operands_of(spec.chain))
        ]
        results = apply_to_each(compose(spec.chain), v, sources, registers, self.slots)
        for part, start, result in zip(parts, at, results, strict=True):
            at_dst = mem(self.pointers[DST], start, size=v.bytes, index=index)
            (store if part is v else part.store)(at_dst, result)
        v.registers.free(*registers)

    def prefetch(self) -> None:
        """What the loop's vectors read, of src and operands, AHEAD_BYTES on."""
        v = self.v
        tensors = [operand for operand in operands_of(self.spec.chain) if operand is not OLD_DST]
        for operand in dict.fromkeys((self.spec.src, *tensors)):
            for line in range(0, INTERLEAVED * v.bytes, LINE_BYTES):
                if not operand.element:
                    v.asm.PREFETCHT0(mem(self.pointers[operand.argument], AHEAD_BYTES + line, index=self.at))

    def source(self, operand: Operand | None, part: Lanes, at: int, index: Register | None) -> Source:
        v = self.v
        if operand is OLD_DST:
            return Source(mem(self.pointers[DST], at, size=v.bytes, index=index), part)
        pointer = self.pointers[operand.argument]
        if operand.element:
            return Source(mem(pointer, size=4), None)
        return Source(mem(pointer, at, size=v.bytes, index=index), part)

    def next_row(self) -> None:
        steps: dict[int, int] = {SRC: self.spec.src.row_bytes, DST: self.spec.dst_row_bytes}
        for operand in operands_of(self.spec.chain):
            if operand is not OLD_DST:
                steps[operand.argument] = operand.row_bytes
        for argument, step in steps.items():
            if step:
                self.v.asm.ADD(self.pointers[argument], step)
