"""f32 element-wise blocks: a chain of functions on a vector of src at a time, whatever else it reads.

    dst[r, c] = chain(src[r, c])

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | f32[rows, elements] | rows src.row_bytes apart, elements dense; with src.element one number a row |
| dst     | f32[rows, elements] | rows dst_row_bytes apart, elements dense; may be src itself; read by a sum |
| 2, 3 .. | f32[rows, elements] | operands of the chain, each laid out as its Operand says, as src is |

The main loop works on INTERLEAVED vectors at a time, instruction by instruction in turn: polynomials are chains of
multiplications of which each waits for the one before.  Rows of few whole vectors are worked on together.

With `streaming`, full vectors go past the caches if dst is aligned to a vector, and so are further results, as the
distances of their rows then must be, and none of them is src itself, whose lines the caches hold.  If its function is
LONG, such a kernel asks for what it reads AHEAD_BYTES before: a CPU's own prefetchers stop at the end of a page, and
computing fills the time until the next one arrives.
"""

from contextlib import ExitStack

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range, rows_of
from asmdnn.generators.functions.chain import (
    chain_words,
    compose,
    compose_all,
    names_of_operands,
    operands_of,
    operands_read,
)
from asmdnn.generators.functions.elementwise_code import AHEAD_BYTES, DST, INTERLEAVED, SRC, MapCode, Result
from asmdnn.generators.functions.postops import OLD_DST, Operand, PostOp
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.typed_program import typed_program
from asmdnn.generators.stores import if_aligned
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.elements import element_of, storing_element
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass, field
from asmdnn.types import F32_BYTES

LONG = 12  # steps of a function that computes for longer than a vector takes from memory


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementwiseSpec:
    """Everything that the bytes of an element-wise kernel depend on; vector_bytes of operands are not used here.

    interleaved: vectors in turn.  ahead_bytes: how far ahead a kernel prefetches that does.  zeroed: elements behind
    each row of results that become 0, as padding of blocks is: with them rows are whole vectors.
    """

    isa: str
    rows: int
    elements: int
    src: Operand
    dst_row_bytes: int
    chain: tuple[PostOp, ...]
    streaming: bool = False
    interleaved: int = field(default=INTERLEAVED, kw_only=True)
    ahead_bytes: int = field(default=AHEAD_BYTES, kw_only=True)
    zeroed: int = field(default=0, kw_only=True)

    @property
    def name(self) -> str:
        words = [*chain_words(self.chain), *["streaming"] * self.streaming, checksum(self)]
        return f"map_f32_{self.rows}x{self.elements}_{'_'.join(words)}__{self.isa}"

    @property
    def results(self) -> tuple[Result, ...]:
        """What is stored, the first in dst."""
        return (Result(DST, self.dst_row_bytes, self.chain),)

    @property
    def streamed(self) -> tuple[Result, ...]:
        """What goes past the caches: elements that are stored as whole vectors."""
        return tuple(x for x in self.results if self.size_of(x.argument) == F32_BYTES)

    @property
    def together(self) -> tuple[PostOp, ...]:
        """The post-ops of all results."""
        return tuple(op for result in self.results for op in result.chain)

    @property
    def frame(self) -> tuple[str, ...]:
        more = (f"dst{result.argument}" for result in self.results[1:])
        return ("src", "dst", *more, *names_of_operands(self.together))

    def type_of(self, argument: int) -> str:
        """The type of an argument's elements."""
        return "f32"

    def size_of(self, argument: int) -> int:
        """Bytes of an argument's element."""
        return element_of(self.type_of(argument)).size_bytes

    @property
    def program(self) -> Program:
        """The function of src and the operands, with a value for each result."""
        return compose_all(tuple(result.chain for result in self.results))

    @property
    def prefetches(self) -> bool:
        """Whether to ask for src and operands ahead of time."""
        return self.streaming and compose(self.chain).size >= LONG

    def footprint(self) -> Footprint:
        written = [
            rows_of(x.argument, self.rows, x.row_bytes, self.size_of(x.argument) * (self.elements + self.zeroed))
            for x in self.results
        ]
        operands = dict.fromkeys(operand for result in self.results for operand in operands_read(result.chain))
        reads = [r for operand in (self.src, *operands) for r in self.reads(operand)]
        return Footprint(tuple(dict.fromkeys(reads)), tuple(r for ranges in written for r in ranges))

    def reads(self, operand: Operand | None) -> tuple[Range, ...]:
        if operand is OLD_DST:
            operand = Operand(DST, self.dst_row_bytes, 0, element=False)
        width = self.size_of(operand.argument) * (1 if operand.element else self.elements)
        return rows_of(operand.argument, self.rows, operand.row_bytes, width)

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        code = MapCode(self, v)
        left = asm.gp.take("rows left")
        if self.streaming:
            plain = asm.new_label("plain")
            for result in self.streamed:
                asm.CMP(code.pointers[SRC], code.pointers[result.argument])
                asm.JE(plain)
            with ExitStack() as aligned:
                for result in self.streamed:
                    aligned.enter_context(if_aligned(asm, code.pointers[result.argument], v.bytes, left))
                code.all_rows(left, v.stream)
                asm.ret()
            asm.bind(plain)
        code.all_rows(left, v.store)
        asm.ret()


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedElementwiseSpec(ElementwiseSpec):
    """A map of elements of other types than f32, in which it computes; types: of every argument."""

    types: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        words = [*chain_words(self.chain), checksum(self)]
        types = "".join(dict.fromkeys(self.types))
        return f"map_{types}_{self.rows}x{self.elements}_{'_'.join(words)}__{self.isa}"

    def type_of(self, argument: int) -> str:
        return self.types[argument]

    @property
    def program(self) -> Program:
        kinds = (self.type_of(DST if x is OLD_DST else x.argument) for x in (self.src, *operands_of(self.together)))
        chains = tuple(result.chain for result in self.results)
        results = (storing_element(self.type_of(result.argument), self.isa).stored_as for result in self.results)
        return typed_program(chains, tuple(kinds), tuple(results))

    @property
    def prefetches(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedResultsSpec(TypedElementwiseSpec):
    """A typed map with more results than dst, such as a mask of bytes: argument 2, 3 and so on."""

    more: tuple[Result, ...] = ()

    @property
    def results(self) -> tuple[Result, ...]:
        """What is stored, the first in dst."""
        return (Result(DST, self.dst_row_bytes, self.chain), *self.more)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralResultsSpec(ElementwiseSpec):
    """A map with more results than dst, such as the state and the output of an LSTM's cell: argument 2, 3 and so on.

    What the chains have in common is computed once.  A sum reads what dst held, whichever result it is of; operands
    come after the results.
    """

    more: tuple[Result, ...] = ()

    @property
    def results(self) -> tuple[Result, ...]:
        """What is stored, the first in dst."""
        return (Result(DST, self.dst_row_bytes, self.chain), *self.more)
