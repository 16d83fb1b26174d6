"""What calls of non-maximum suppression have in common, and the first and the last of them, see suppression.py."""

from struct import pack

from asmdnn.generators.functions.program import Predicate
from asmdnn.generators.functions.suppression_shape import (
    ARGUMENTS,
    DST,
    KEPT,
    LEAST,
    NUMBERS,
    SCORES,
    STATE,
    SuppressionShape,
)
from asmdnn.isa.assembler import Register, mem
from asmdnn.isa.vector import Vector
from asmdnn.types import F32_BYTES

NOBODY, NO_NUMBER, MOST_PLACE = 0xFF800000, 0x7FC00000, 0x7FFFFFFF  # -inf, NaN, and the largest s32


class Suppression:
    """What both have: pointers, -inf, and places in the state."""

    def __init__(self, spec: SuppressionShape, v: Vector) -> None:
        self.spec, self.v, self.asm, self.at = spec, v, v.asm, spec.layout
        self.pointers = [v.asm.gp.take(name) for name in ARGUMENTS]
        for argument, pointer in enumerate(self.pointers):
            v.asm.MOV(pointer, mem(v.asm.frame, 8 * argument))
        self.state = self.pointers[STATE]
        self.nobody = v.registers.take("-inf")
        self.bits(self.nobody, NOBODY)

    def emit(self) -> None:
        raise NotImplementedError

    def bits(self, dst: Register, bits: int) -> None:
        """In every lane."""
        self.v.broadcast(dst, self.asm.const(bits.to_bytes(4, "little"), 4, size=4))

    def from_zero(self, dst: Register) -> None:
        """The numbers of lanes."""
        v = self.v
        v.load(dst, v.asm.const(pack(f"<{v.lanes}i", *range(v.lanes)), v.bytes, size=v.bytes))


class Admission(Suppression):
    """Scores above the least become the state, a block at a time."""

    def emit(self) -> None:
        asm, v, at = self.asm, self.v, self.at
        asm.role("nothing is kept")
        x = v.registers.take("what all begins with")
        self.bits(x, NO_NUMBER)
        self.fill(at.row(0), KEPT * at.kept_vectors, x)
        self.bits(x, 0xFFFFFFFF)
        self.fill(at.row(KEPT), at.kept_vectors, x)
        self.fill(at.highest, at.block_vectors, self.nobody)
        v.registers.free(x)
        asm.role("scores above the least")
        self.highest, self.least = v.registers.take("highest of a block"), v.registers.take("least")
        v.broadcast(self.least, mem(self.pointers[NUMBERS], LEAST, size=F32_BYTES))
        self.scores()

    def fill(self, begin: int, vectors: int, x: Register) -> None:
        """So many vectors of the state."""
        with self.asm.gp.taken("place") as place:
            self.asm.LEA(place, mem(self.state, begin))
            with self.asm.repeated(vectors, "vectors left", "what all begins with"):
                self.v.store(mem(place, size=self.v.bytes), x)
                self.asm.ADD(place, self.v.bytes)

    def scores(self) -> None:
        asm, at = self.asm, self.at
        whole, rest = divmod(self.spec.boxes, at.block)
        with asm.gp.taken("highest scores") as highest:
            asm.LEA(highest, mem(self.state, at.highest))
            if whole:
                with asm.repeated(whole, "blocks left", "blocks"):
                    self.block(highest, at.block)
                    asm.ADD(self.pointers[SCORES], F32_BYTES * at.block)
                    asm.ADD(self.state, F32_BYTES * at.block)
                    asm.ADD(highest, F32_BYTES)
            if rest:
                self.block(highest, rest)

    def block(self, highest: Register, boxes: int) -> None:
        """Of which so many are boxes."""
        v, at = self.v, self.at
        x, spare = v.registers.take("scores", 2)
        v.move(self.highest, self.nobody)
        for j in range(at.vectors):
            count = min(v.lanes, boxes - j * v.lanes)
            place = mem(self.state, j * v.bytes, size=v.bytes)
            if count <= 0:
                v.store(place, self.nobody)
                continue
            tail = v.tail(count) if count < v.lanes else None
            (tail or v).load(x, mem(self.pointers[SCORES], j * v.bytes, size=v.bytes))
            with v.held_condition() as above:
                v.compare(above, x, self.least, Predicate.greater)
                v.select(x, above, x, self.nobody)
            if tail:
                tail.fill_rest(x, self.nobody)
                tail.release()
            v.asm.VMAXPS(self.highest, self.highest, x)
            v.store(place, x)
        v.across(self.highest, spare, v.asm.VMAXPS)
        v.asm.VMOVSS(mem(highest, size=F32_BYTES), self.highest.xmm)
        v.registers.free(x, spare)


class Delivery(Suppression):
    """Numbers of boxes from the state to where they are wanted."""

    def emit(self) -> None:
        asm, v = self.asm, self.v
        whole, rest = divmod(self.spec.most, v.lanes)
        dst, row, x = self.pointers[DST], self.pointers[SCORES], v.registers.take("numbers of boxes")
        asm.LEA(row, mem(self.state, self.at.row(KEPT)))
        if whole:
            with asm.repeated(whole, "vectors left", "results"):
                v.load(x, mem(row, size=v.bytes))
                v.store(mem(dst, size=v.bytes), x)
                for pointer in (row, dst):
                    asm.ADD(pointer, v.bytes)
        if rest:
            tail = v.tail(rest)
            tail.load(x, mem(row, size=v.bytes))
            tail.store(mem(dst, size=v.bytes), x)
