"""Runs of k: how far products are summed as a multiply leaves them, before they are added to a tile's sums.

Most dots add to the sums themselves, so all of k is one run.  Where a lane has two sums of 16 bits instead, a run ends
after RUN_GROUPS groups of k, about: then both are added, as f32, to what the runs before have left on the stack.  So
errors are those of a run, however long k is, and 28 accumulators need no more registers than those of other dots.
"""

from collections.abc import Callable, Sequence
from struct import pack
from typing import Final

from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.vector import Row, Vector

RUN_GROUPS: Final = 64  # of k; what a run has beside whole rounds of a loop, less than two of them, is part of the last
TURNS: Final = 4  # of places where halves wait to be widened
WORDS_BY_HALF: Final = (*range(0, 32, 2), *range(1, 32, 2))  # of a zmm register: even ones, then odd ones


class OneRun:
    """All of k is one run: accumulators are a tile's sums throughout."""

    def __init__(self, v: Vector, acc: Sequence[Row]) -> None:
        self.v, self.asm, self.acc = v, v.asm, acc

    def loop(self, rounds: int, groups: int, body: Callable[[], None], spare: Sequence[Register]) -> None:
        """The body `rounds` times, which multiplies so many groups of k.  spare: registers that it sets anew."""
        with self.asm.repeated(rounds, "steps left", "steps"):
            body()

    def end(self, spare: Sequence[Register]) -> None:
        """After the last step: accumulators are the sums."""


class HalfRuns(OneRun):
    """Accumulators have two f16 in a lane; f32 wait on the stack, at first what the sums start from."""

    def __init__(self, v: Vector, acc: Sequence[Row]) -> None:
        super().__init__(v, acc)
        self.asm.role("sums wait")
        self.sums: list[tuple[Register, Pointer]] = [(x, self.asm.stack(v.bytes)) for row in acc for x in row]
        self.halves = [self.asm.stack(v.bytes) for _ in range(TURNS)]
        self.begin()

    def begin(self) -> None:
        """Of a run: accumulators are put away."""
        for x, place in self.sums:
            self.v.store(place, x)
            self.v.zero(x)

    def loop(self, rounds: int, groups: int, body: Callable[[], None], spare: Sequence[Register]) -> None:
        most = RUN_GROUPS // groups
        whole = (rounds - 1) // most  # the last run is not put away
        if whole:
            with self.asm.repeated(whole, "runs left", "runs"):
                super().loop(most, groups, body, spare)
                self.end(spare)
                self.begin()
        super().loop(rounds - whole * most, groups, body, spare)

    def end(self, spare: Sequence[Register]) -> None:
        """acc = the sums before this run + its even elements of k + its odd ones.

        Half a register of f16 is widened by a shuffle and a conversion, half a vector in memory by the latter alone.
        """
        asm, v, (order, y, *_) = self.asm, self.v, spare
        asm.role("end of a run")
        v.load(order, asm.const(pack("<32H", *WORDS_BY_HALF), v.bytes, size=v.bytes))
        for i, (x, place) in enumerate(self.sums):
            both = self.halves[i % TURNS]
            asm.VPERMW(y, order, x)
            v.store(both, y)
            for half, widened in enumerate((x, y)):
                asm.VCVTPH2PS(widened, both.shifted(half * v.bytes // 2).sized(v.bytes // 2))
            v.add(x, x, y)
            v.add(x, x, place)
