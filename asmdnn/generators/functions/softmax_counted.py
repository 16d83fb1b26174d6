"""Softmax of rows that have room for whole vectors: it reads how many elements there are in the last one, and rows.

    dst = e^(x - max x) / sum of e^(x - max x),   of x = before(src), element by element

| argument | dtype[shape] | what it is |
|---|---|---|
| src    | f32[rows, elements] | rows src_row_bytes apart, elements dense; whole vectors are read |
| dst    | f32[rows, elements] | rows dst_row_bytes apart; maybe src; after the elements 0 is stored, or NaN |
| words  | int64[4] | elements of the last vector; rounds of as many rows as registers hold, of SOME rows, of one |

So one kernel serves rows of a number of vectors, such as the scores of an attention.  Sums are in an order that depends
on the number of elements alone.
"""

from typing import cast

from asmdnn.generators.contract import Footprint, KernelWords, Range
from asmdnn.generators.functions.chain import operands_of
from asmdnn.generators.functions.rows import F32_TYPES
from asmdnn.generators.functions.softmax_code import HeldRows, rows_held
from asmdnn.generators.functions.softmax_shape import SoftmaxShape
from asmdnn.generators.stepping import unless_zero
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.vector import TailLanes, Vector
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.records import dataclass, replace

WORD_BYTES = 8
WORDS = 2  # the argument
SOME = 4  # rows at a time, of those that are no whole round


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedSoftmaxSpec(SoftmaxShape):
    """A softmax of f32 without operands; its bytes depend on `code_spec`."""

    @property
    def name(self) -> str:
        return f"counted_{self.code_spec.named(f'{self.vectors}v')}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ("src", "dst", "words")

    @property
    def vectors(self) -> int:
        """Of a row."""
        return -(-self.elements // lanes_of(self.isa))

    @property
    def code_spec(self) -> "CountedSoftmaxSpec":
        """What the bytes depend on: the same without the numbers."""
        return replace(self, rows=1, elements=self.vectors * lanes_of(self.isa))

    @property
    def rounds(self) -> tuple[int, ...]:
        """How many rows are in registers at a time, most first."""
        most = rows_held(self.isa, self.elements)
        return tuple(dict.fromkeys((most, min(most, SOME), 1)))

    @property
    def numbers(self) -> tuple[int, ...]:
        """What the code reads."""
        found, left = [self.elements - (self.vectors - 1) * lanes_of(self.isa)], self.rows
        for together in self.rounds:
            times, left = divmod(left, together)
            found.append(times)
        return tuple(found)

    def footprint(self) -> Footprint:
        """Whole vectors of all rows, and the numbers."""
        whole = replace(self, elements=self.vectors * lanes_of(self.isa)).touched(rereads=False)
        words = Range(WORDS, 0, WORD_BYTES * len(self.numbers))
        return replace(whole, reads=(*whole.reads, words), words=KernelWords(WORDS, self.numbers))

    def generate(self, asm: Assembler) -> None:
        CountedRows(self, vector_of(self.isa, asm)).all_rows()
        asm.ret()


def is_countable(shape: SoftmaxShape) -> bool:
    """Whether such a softmax can be counted here."""
    return is_plain(shape) and rows_held(shape.isa, shape.elements) > 0


def is_plain(shape: SoftmaxShape) -> bool:
    """Whether it has no other tensors and forms than those that are counted."""
    plain = shape.types == F32_TYPES and not shape.after and not shape.log and shape.logsumexp is None
    return plain and not operands_of(shape.before)


def word(asm: Assembler, register: Register, number: int) -> Pointer:
    """A word, through a pointer that the register has then."""
    asm.MOV(register, mem(asm.frame, WORD_BYTES * WORDS))
    return mem(register, WORD_BYTES * number, size=WORD_BYTES)


class CountedRows(HeldRows):
    """Rows in registers, whose last vector has as many elements as a word says."""

    def __init__(self, spec: CountedSoftmaxSpec, v: Vector) -> None:
        whole = spec.code_spec
        super().__init__(replace(whole, rows=spec.rounds[0]), v)
        self.rounds = spec.rounds
        with v.asm.gp.taken("numbers") as numbers:
            self.last = cast(TailLanes, v.lanes_said(word(v.asm, numbers, 0)))

    def all_rows(self) -> None:
        asm = self.v.asm
        for number, rows in enumerate(self.rounds, 1):
            asm.MOV(self.left, word(asm, self.left, number))
            with unless_zero(asm, self.left, f"no more of {rows} rows"), asm.loop(self.left, f"{rows} rows"):
                self.some(rows)
                asm.ADD(self.src, rows * self.src_row_bytes)
                asm.ADD(self.dst, rows * self.dst_row_bytes)
