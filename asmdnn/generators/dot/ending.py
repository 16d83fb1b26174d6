"""What happens to the accumulators of a tile behind the sums: post-ops, then the stores.

Of a convolution's tile and of a matrix product's alike: a row is a pixel there, a column a channel.  Streaming stores
have no fence here: lines of dst are filled by several tiles.  The executor has one, when a thread is through a phase.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from asmdnn.generators.contract import Range
from asmdnn.generators.functions.chain import apply_composed, operands_of
from asmdnn.generators.functions.pointers import OperandPointers
from asmdnn.generators.functions.postops import OLD_DST, Operand, PostOp
from asmdnn.generators.functions.values import Slots, Source
from asmdnn.generators.stores import if_aligned
from asmdnn.isa.assembler import Pointer, Register, mem
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.types import f32


class TileEnding:
    """The code for one accumulator after the other; `spare` are two registers to overwrite.

    homes: where the pointers to operands lie, by argument, if not in the frame.  streams: whole vectors go past the
    caches.
    """

    def __init__(self, v: Vector, chain: tuple[PostOp, ...], homes: Mapping[int, Pointer] | None = None) -> None:
        self.v, self.chain, self.slots = v, chain, Slots(v)
        words = [x.argument for x in operands_of(chain) if x is not OLD_DST]
        self.homes = homes or {argument: mem(v.asm.frame, 8 * argument, size=8) for argument in words}
        self.spare: list[Register] = v.registers.take("post-ops", 2)
        self.streams = False

    def emit(self, dst: Pointer | Register, streaming: bool, body: Callable[[], None]) -> None:
        """`body` with streaming stores where that is asked for and dst is a multiple of a vector, else with plain ones.
        dst: what the stores of `body` are whole vectors away from, or the word that has it."""
        if not streaming:
            body()
            return
        asm = self.v.asm
        done, bits = asm.new_label("stored"), asm.gp.take("bytes past a vector")
        with if_aligned(asm, dst, self.v.bytes, bits):
            asm.gp.free(bits)
            self.streams = True
            body()
            self.streams = False
            asm.JMP(done)
        body()
        asm.bind(done)

    def finish(self, x: Register, row: int, vector: int, at: Pointer, stored: Lanes, real: Lanes) -> None:
        """dst's vector of a row, which lies `at`, is what x becomes; x may be overwritten.

        Of the `stored` lanes those that are not `real` are padding, stored as zero whatever the source holds: 0 * inf
        would be NaN.
        """
        if self.chain:
            # What a tail has left; the last ones are taken first, and those of low numbers have shorter encodings.
            others = self.v.registers.take("post-ops", self.v.registers.available)
            with self.sources(row, vector, Source(lambda: at, stored), real) as sources:
                apply_composed(self.chain, self.v, x, sources, [*reversed(others), *self.spare], self.slots)
            self.v.registers.free(*others)
        if stored is not real:
            real.clear_rest(x)
        store = self.v.stream if self.streams and stored is self.v else stored.store_last
        store(at, x)

    @contextmanager
    def sources(self, row: int, vector: int, old: Source, real: Lanes) -> Iterator[Sequence[Source]]:
        """Where a vector of a row finds the operands; pointers are loaded here, or when needed, and given back."""
        operands = operands_of(self.chain)
        pointers = OperandPointers(self.v.asm, self.homes)

        def source(operand: Operand) -> Source:
            place = row * operand.row_bytes + vector * operand.vector_bytes
            size, lanes = (f32.size_bytes, None) if operand.element else (self.v.bytes, real)
            return Source(lambda: mem(pointers.register(operand.argument), place, size=size), lanes)

        yield [old if operand is OLD_DST else source(operand) for operand in operands]
        pointers.release()

    def release(self) -> None:
        """Give the registers back."""
        self.v.registers.free(*self.spare)


def operand_ranges(operand: Operand, rows: int, columns: int, lanes: int) -> tuple[Range, ...]:
    """What the end of a tile reads of an operand, of vectors of real columns."""
    found: dict[Range, None] = {}
    for j, first in enumerate(range(0, columns, lanes)):
        width = f32.size_bytes * (1 if operand.element else min(lanes, columns - first))
        for r in range(rows):
            begin = r * operand.row_bytes + j * operand.vector_bytes
            found[Range(operand.argument, begin, begin + width)] = None
    return tuple(found)
