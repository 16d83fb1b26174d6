"""Runs of k: how far products are summed as a multiply leaves them, before they are added to a tile's sums.

Most dots add to the sums themselves, so all of k is one run.  Where a lane has two sums of 16 bits instead, a run ends
after RUN_GROUPS groups of k, about: then both are added, as f32, to what the runs before have left on the stack.  So
errors are those of a run, however long k is, and 28 accumulators need no more registers than those of other dots.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from struct import pack
from typing import Final

from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.vector import Row, Vector

RUN_GROUPS: Final = 64  # of k; what a run has beside whole rounds of a loop, less than two of them, is part of the last
END_CYCLES: Final = 2.5  # of an accumulator where a run ends, by llvm-mca's Sapphire Rapids
TURNS: Final = 4  # of places where halves wait to be widened
WORDS_BY_HALF: Final = (*range(0, 32, 2), *range(1, 32, 2))  # of a zmm register: even ones, then odd ones


def ends_of_walk(taps: Iterable[tuple[int, int]]) -> list[int]:
    """How many runs end before a tap of each group, of so many taps and groups of k in each."""
    found, room = [], RUN_GROUPS
    for count, groups in taps:
        fit = min(count, room // groups)
        whole, rest = divmod(count - fit, RUN_GROUPS // groups)
        found.append(whole + (rest > 0))
        if found[-1]:
            fit, room = rest or RUN_GROUPS // groups, RUN_GROUPS
        room -= fit * groups
    return found


class OneRun:
    """All of k is one run: accumulators are a tile's sums throughout."""

    def __init__(self, v: Vector, acc: Sequence[Row]) -> None:
        self.v, self.asm, self.acc = v, v.asm, acc

    def loop(self, rounds: int, groups: int, body: Callable[[], None], spare: Sequence[Register]) -> None:
        """The body `rounds` times, which multiplies so many groups of k.  spare: registers that it sets anew."""
        with self.asm.repeated(rounds, "steps left", "steps"):
            body()

    @contextmanager
    def walk(self) -> Iterator[None]:
        """Around loops over taps, whose numbers are data."""
        yield

    @contextmanager
    def taps(self, left: Register, name: str, groups: int, spare: Sequence[Register]) -> Iterator[None]:
        """Around the body of a loop over taps, which `left` counts down and each of which multiplies so many groups of
        k."""
        with self.asm.loop(left, name):
            yield

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

    @contextmanager
    def walk(self) -> Iterator[None]:
        with self.asm.gp.taken("groups left of a run") as self.room:
            self.asm.MOV(self.room, RUN_GROUPS)
            yield

    @contextmanager
    def taps(self, left: Register, name: str, groups: int, spare: Sequence[Register]) -> Iterator[None]:
        """Runs end before a tap that they have no room for, and go on from the taps of one group of pixels to those of
        the next one."""
        asm = self.asm
        next_run, tap, full, done = (asm.new_label(f"{name}{word}") for word in ("_run", "", "_full", "_over"))
        asm.JMP(tap)
        asm.bind(next_run)
        asm.MOV(self.room, RUN_GROUPS)
        asm.bind(tap)
        asm.SUB(self.room, groups)
        asm.JB(full)
        yield
        asm.SUB(left, 1)
        asm.JNZ(tap)
        asm.JMP(done)
        asm.bind(full)
        self.end(spare)
        self.begin()
        asm.JMP(next_run)
        asm.bind(done)

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
