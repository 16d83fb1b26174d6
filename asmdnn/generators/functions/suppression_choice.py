"""The call of non-maximum suppression that keeps boxes, one after the other, see suppression.py."""

from asmdnn.generators.functions.program import Predicate
from asmdnn.generators.functions.suppression_code import MOST_PLACE, NO_NUMBER, NOBODY, Suppression
from asmdnn.generators.functions.suppression_shape import AXES, CORNERS, KEPT, NUMBERS, SHARE
from asmdnn.isa.assembler import Label, Pointer, Register, low32, mem
from asmdnn.types import F32_BYTES

UNROLLED = 2  # vectors of blocks, at most


class BoxChoice(Suppression):
    """Box by box, the best first."""

    def emit(self) -> None:
        asm, v, spec = self.asm, self.v, self.spec
        take = v.registers.take
        self.block, self.box, self.other, self.row, self.kept = (
            asm.gp.take(name) for name in ("block", "box", "another number", "vector of boxes", "boxes kept")
        )
        self.now, self.best, self.place, self.score = take("numbers"), take("best"), take("place"), take("score")
        self.corners, self.area, self.share = take("corner", 2 * AXES), take("area"), take("share")
        v.broadcast(self.share, mem(self.pointers[NUMBERS], SHARE, size=F32_BYTES))
        asm.XOR(self.kept, self.kept)
        turn, done = asm.new_label("boxes"), asm.new_label("none is left")
        asm.bind(turn)
        asm.role("the best block")
        self.find_block(done)
        asm.role("its best box")
        self.find_box()
        asm.role("corners")
        self.load_box()
        asm.role("what it shares with boxes that were kept")
        self.compare_kept(turn)
        asm.role("one more is kept")
        self.keep()
        asm.ADD(self.kept, 1)
        asm.CMP(self.kept, spec.most)
        asm.JB(turn)
        asm.bind(done)

    def number(self, dst: Register, x: Register, limit: int) -> None:
        """That of lane 0, cut to what is below the limit."""
        asm = self.asm
        asm.XOR(dst, dst)  # a number from here on: the proof knows what was there as a place
        asm.VMOVD(low32(dst), x.xmm)
        self.cut(dst, limit)

    def cut(self, dst: Register, limit: int) -> None:
        asm = self.asm
        asm.MOV(low32(self.other), limit - 1)
        asm.CMP(dst, limit)
        asm.CMOVAE(dst, self.other)

    def find_block(self, done: Label) -> None:
        """The first one that has the highest score; `done`: where none is left."""
        asm, v, at = self.asm, self.v, self.at
        self.from_zero(self.now)
        v.move(self.best, self.nobody)
        self.bits(self.place, MOST_PLACE)
        if at.block_vectors <= UNROLLED:
            for j in range(at.block_vectors):
                self.better_of(mem(self.state, at.highest + j * v.bytes, size=v.bytes))
        else:
            asm.LEA(self.row, mem(self.state, at.highest))
            with asm.repeated(at.block_vectors, "vectors left", "blocks"):
                self.better_of(mem(self.row, size=v.bytes))
                asm.ADD(self.row, v.bytes)
        spare = v.registers.take("spare")
        v.move(self.score, self.best)
        v.across(self.score, spare, asm.VMAXPS)
        asm.VMOVD(low32(self.box), self.score.xmm)
        asm.MOV(low32(self.other), NOBODY)
        asm.CMP(low32(self.box), low32(self.other))
        asm.JZ(done)
        self.bits(spare, MOST_PLACE)
        with v.held_condition() as equal:
            v.compare(equal, self.best, self.score, Predicate.equal)
            v.select(self.place, equal, self.place, spare)
        v.across(self.place, spare, asm.VPMINSD)
        v.registers.free(spare)
        self.number(self.block, self.place, at.blocks)

    def better_of(self, place: Pointer) -> None:
        """A vector's highest scores, and where they are."""
        v = self.v
        x = v.registers.take("highest scores")
        v.load(x, place)
        with v.held_condition() as better:
            v.compare(better, x, self.best, Predicate.greater)
            v.select(self.place, better, self.now, self.place)
        v.asm.VMAXPS(self.best, x, self.best)
        v.asm.VPADDD(self.now, self.now, v.splat(v.lanes))
        v.registers.free(x)

    def find_box(self) -> None:
        """The first one of a block that has the score; what is the highest without it."""
        asm, v, at = self.asm, self.v, self.at
        first, x, chosen = v.registers.take("numbers of the block, scores, the best box", 3)
        asm.VPSLLD(first, self.place, (at.block - 1).bit_length())
        self.from_zero(self.now)
        asm.VPADDD(first, first, self.now)
        asm.MOV(self.row, self.block)
        asm.IMUL(self.row, self.row, F32_BYTES * at.block)
        self.bits(chosen, MOST_PLACE)
        v.move(self.now, first)
        for j in range(at.vectors):
            self.bits(x, MOST_PLACE)
            with v.held_condition() as equal:
                v.compare(equal, self.score, self.scores(j), Predicate.equal)
                v.select(x, equal, self.now, x)
            asm.VPMINSD(chosen, chosen, x)
            asm.VPADDD(self.now, self.now, v.splat(v.lanes))
        v.across(chosen, x, asm.VPMINSD)
        v.move(self.best, self.nobody)
        for j in range(at.vectors):
            v.load(x, self.scores(j))
            with v.held_condition() as itself:
                asm.VPCMPEQD(itself, first, chosen)
                v.select(x, itself, self.nobody, x)
            asm.VMAXPS(self.best, self.best, x)
            asm.VPADDD(first, first, v.splat(v.lanes))
        v.across(self.best, x, asm.VMAXPS)
        asm.VMOVSS(mem(self.state, at.highest, index=self.block, scale=4, size=F32_BYTES), self.best.xmm)
        self.number(self.box, chosen, self.spec.boxes)
        asm.VMOVSS(mem(self.state, index=self.box, scale=4, size=F32_BYTES), self.nobody.xmm)
        v.registers.free(first, x, chosen)

    def scores(self, j: int) -> Pointer:
        """A vector of the block's."""
        return mem(self.state, j * self.v.bytes, index=self.row, size=self.v.bytes)

    def load_box(self) -> None:
        """Corners and area in every lane."""
        asm, v = self.asm, self.v
        for i, x in enumerate(self.corners):
            v.broadcast(x, mem(self.pointers[CORNERS], i * self.spec.plane_bytes, index=self.box, scale=4, size=4))
        side, zero, nothing = v.registers.take("side", 3)
        asm.VSUBPS(self.area, self.corners[AXES], self.corners[0])
        asm.VSUBPS(side, self.corners[AXES + 1], self.corners[1])
        asm.VMULPS(self.area, self.area, side)
        v.zero(zero)
        self.bits(nothing, NO_NUMBER)
        with v.held_condition() as positive:
            v.compare(positive, self.area, zero, Predicate.greater)
            v.select(self.area, positive, self.area, nothing)
        v.registers.free(side, zero, nothing)

    def compare_kept(self, rejected: Label) -> None:
        """A vector of boxes that were kept at a time; `rejected`: where one shares too much."""
        asm, v, at = self.asm, self.v, self.at
        vectors, passed = asm.new_label("vectors of boxes"), asm.new_label("nothing shares too much")
        asm.XOR(self.row, self.row)
        asm.bind(vectors)
        asm.MOV(self.block, self.row)
        asm.IMUL(self.block, self.block, v.lanes)
        asm.CMP(self.block, self.kept)
        asm.JAE(passed)
        asm.MOV(self.block, self.row)
        self.cut(self.block, at.kept_vectors)
        asm.IMUL(self.block, self.block, v.bytes)
        both, side = self.best, self.place
        self.shared_sides(0, both)
        self.shared_sides(1, side)
        asm.VMULPS(both, both, side)
        asm.VADDPS(side, self.area, self.kept_row(2 * AXES))
        asm.VSUBPS(side, side, both)
        asm.VDIVPS(both, both, side)
        with v.held_condition() as too_much:
            v.compare(too_much, both, self.share, Predicate.greater)
            asm.ADD(self.row, 1)
            v.jump_unless_any(too_much, vectors)
        asm.JMP(rejected)
        asm.bind(passed)

    def shared_sides(self, axis: int, dst: Register) -> None:
        """Of what both have along an axis, 0 if there is nothing."""
        asm, v = self.asm, self.v
        lower = self.score
        asm.VMAXPS(lower, self.corners[axis], self.kept_row(axis))
        asm.VMINPS(dst, self.corners[AXES + axis], self.kept_row(AXES + axis))
        asm.VSUBPS(dst, dst, lower)
        v.zero(lower)
        asm.VMAXPS(dst, dst, lower)

    def kept_row(self, i: int) -> Pointer:
        """A vector of what was kept."""
        return mem(self.state, self.at.row(i), index=self.block, size=self.v.bytes)

    def keep(self) -> None:
        asm = self.asm
        asm.MOV(self.block, self.kept)
        self.cut(self.block, self.spec.most)
        asm.MOV(mem(self.state, self.at.row(KEPT), index=self.block, scale=4, size=4), low32(self.box))
        for i, x in enumerate((*self.corners, self.area)):
            asm.VMOVSS(mem(self.state, self.at.row(i), index=self.block, scale=4, size=F32_BYTES), x.xmm)
