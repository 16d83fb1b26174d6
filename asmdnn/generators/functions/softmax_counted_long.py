"""Softmax of long rows that reads how many elements, how many rows there are, and how far apart these lie.

    dst = e^(x - max x) / sum of e^(x - max x),   of x = before(src), element by element

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | f32[rows, elements] | rows src_row_bytes apart, elements dense; whole vectors are read |
| dst     | f32[rows, elements] | rows dst_row_bytes apart; maybe src; after the elements zeros, to whole vectors |
| words   | int64[5] | elements of the last vector; bytes of whole rounds; rows; bytes from row to row of src, dst |

Registers do not hold such rows: they are walked as in softmax.py, whose sums are in the same order.  A round is as many
vectors as registers take at a time; one kernel serves all numbers of elements that leave as many vectors after rounds.
"""

from collections.abc import Callable

from asmdnn.generators.contract import Footprint, KernelWords, Range
from asmdnn.generators.functions.rows import Vectors, Walk
from asmdnn.generators.functions.softmax_code import REGISTERS_OF_VECTOR, SoftmaxOfLongRows, rows_held
from asmdnn.generators.functions.softmax_counted import WORD_BYTES, WORDS, is_plain, word
from asmdnn.generators.functions.softmax_shape import SoftmaxShape
from asmdnn.isa.assembler import Assembler, Pointer, Register
from asmdnn.isa.counted import SomeLanes
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import lanes_of, vector_class, vector_of
from asmdnn.records import dataclass, replace
from asmdnn.types import F32_BYTES

LAST, ROUNDS, ROWS, SRC_ROW, DST_ROW = range(5)  # words


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedLongSoftmaxSpec(SoftmaxShape):
    """A softmax of f32; see `is_countable`.  Its bytes depend on `code_spec`."""

    @property
    def name(self) -> str:
        return f"counted_{self.code_spec.named(f'{self.left}v')}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ("src", "dst", "words")

    @property
    def together(self) -> int:
        """Vectors of a round."""
        return vector_class(self.isa).count // REGISTERS_OF_VECTOR

    @property
    def vectors(self) -> int:
        """Of a row."""
        return -(-self.elements // lanes_of(self.isa))

    @property
    def left(self) -> int:
        """Vectors after whole rounds: one or more."""
        return (self.vectors - 1) % self.together + 1

    @property
    def code_spec(self) -> "CountedLongSoftmaxSpec":
        """What the bytes depend on: the same without the numbers."""
        return replace(self, rows=1, elements=self.left * lanes_of(self.isa), src_row_bytes=0, dst_row_bytes=0)

    @property
    def numbers(self) -> tuple[int, ...]:
        """What the code reads."""
        lanes = lanes_of(self.isa)
        last = self.elements - (self.vectors - 1) * lanes
        return last, F32_BYTES * lanes * (self.vectors - self.left), self.rows, self.src_row_bytes, self.dst_row_bytes

    def footprint(self) -> Footprint:
        """Whole vectors of all rows, and the numbers."""
        whole = replace(self, elements=self.vectors * lanes_of(self.isa)).touched(rereads=True)
        words = Range(WORDS, 0, WORD_BYTES * len(self.numbers))
        return replace(whole, reads=(*whole.reads, words), words=KernelWords(WORDS, self.numbers))

    def generate(self, asm: Assembler) -> None:
        CountedLongRows(self.code_spec, vector_of(self.isa, asm)).all_rows()
        asm.ret()


def is_countable(shape: SoftmaxShape) -> bool:
    """Whether such a softmax is one of long rows, which can be counted."""
    return is_plain(shape) and not rows_held(shape.isa, shape.elements)


class CountedLongRows(SoftmaxOfLongRows):
    """The emission: all numbers are words."""

    def __init__(self, spec: CountedLongSoftmaxSpec, v: Vector) -> None:
        super().__init__(spec, v, prefetches=False)
        with v.asm.gp.taken("numbers") as numbers:
            last = WholeLast(v, v.lanes_said(word(v.asm, numbers, LAST)))
        self.walk = CountedWalk(self.walk, [*[v] * (spec.left - 1), last], self.load_rounds)

    def load_rounds(self, register: Register) -> None:
        self.v.asm.MOV(register, word(self.v.asm, register, ROUNDS))

    def all_rows(self) -> None:
        asm = self.v.asm
        asm.MOV(self.left, word(asm, self.left, ROWS))
        with asm.loop(self.left, "rows"):
            self.some(1)
            for pointer, number in ((self.src, SRC_ROW), (self.dst, DST_ROW)):
                with asm.gp.taken("row") as row:
                    asm.ADD(pointer, word(asm, row, number))


class CountedWalk(Walk):
    """Over rounds, as many bytes as a word says, then over the vectors that are left."""

    def __init__(self, walk: Walk, rest: list[Lanes], load_rounds: Callable[[Register], None]) -> None:
        self.v, self.unit, self.place = walk.v, walk.unit, walk.place
        self.rest, self.load_rounds = rest, load_rounds

    def each(self, together: int, name: str, body: Callable[[Vectors], None]) -> None:
        v, asm = self.v, self.v.asm
        start, end = asm.new_label(name), asm.new_label(f"{name}, the last ones")
        with asm.gp.taken("bytes of rounds") as rounds:
            self.load_rounds(rounds)
            asm.XOR(self.place, self.place)
            asm.TEST(rounds, rounds)
            asm.JZ(end)
            asm.bind(start)
            body(Vectors(v, [v] * together, 0, self.place, self.unit))
            asm.ADD(self.place, together * v.lanes * self.unit)
            asm.CMP(self.place, rounds)
            asm.JB(start)
            asm.bind(end)
        body(Vectors(v, self.rest, 0, self.place, self.unit))


class WholeLast(Lanes):
    """The last vector of a row, which src and dst have room for: masked stores are slow (microcode on Zen), and nothing
    proves what a mask leaves out that is known when the code runs."""

    def __init__(self, v: Vector, said: SomeLanes) -> None:
        self.v, self.said = v, said

    def load(self, dst: Register, src: Pointer) -> None:
        self.v.load(dst, src)

    def store(self, dst: Pointer, src: Register) -> None:
        self.v.store(dst, src)

    def clear_rest(self, x: Register) -> None:
        self.said.clear_rest(x)

    def fill_rest(self, x: Register, filler: Register) -> None:
        self.said.fill_rest(x, filler)
