"""The end of a tile as turns: which rows are computed side by side, and what stays in registers from turn to turn.

A core loads one whole vector a cycle, and an element for all lanes costs as much.  So an end that reads its scales, its
bias and its constants from memory for every row waits for loads.  And a long function waits for its own steps: a core
looks no further than a row or two ahead.  But a tile has few registers left until its first accumulators are stored.
So the first rows come one by one and read most from memory.  Registers that fall free after them bring two rows side
by side, then hold what rows share, then bring four.  The plan depends on the tile alone, not on what was emitted, so
that code may be copied.
"""

from collections.abc import Sequence
from itertools import islice

from asmdnn.generators.functions.postops import OLD_DST, Operand
from asmdnn.generators.functions.program import Program
from asmdnn.isa.assembler import Register
from asmdnn.records import dataclass

FEWEST_READERS = 2  # rows that a register must serve, one of which loads it
PAIR, QUARTET = 2, 4  # rows side by side
Held = dict[int, Register]  # by the steps of a program


@dataclass(frozen=True, slots=True)
class EpilogueTurn:
    """One vector of `rows` rows.  loaded: what it brings into registers first; held: all that it finds there then;
    spare: registers to overwrite."""

    rows: int
    loaded: Held
    held: Held
    spare: tuple[Register, ...]


@dataclass(frozen=True, slots=True)
class EpilogueTile:
    """acc: registers of sums by row and vector, each free after its turn.  others: free from the beginning.
    alone: how many more a turn of one row may overwrite; beside: a turn of several.  pairs: results of every other
    vector stay where they are until those of the next one are there."""

    acc: Sequence[Sequence[Register]]
    others: Sequence[Register]
    alone: int
    beside: int
    pairs: bool = False

    def waits(self, vector: int) -> bool:
        """Whether its results stay."""
        return self.pairs and waits(vector, len(self.acc[0]))


def waits(vector: int, vectors: int) -> bool:
    """Whether of so many vectors one is the first of a pair."""
    return vector % 2 == 0 and vector + 1 < vectors


def turns_of(
    program: Program, operands: Sequence[Operand | None], tile: EpilogueTile
) -> dict[tuple[int, int], EpilogueTurn]:
    """By the first row, and vector, for ends that go down the rows of a vector, then on to the next."""
    plan, rows = TilePlan(program, operands, tile), len(tile.acc)
    for j in range(len(tile.acc[0])):
        plan.next_vector()
        done = 0
        while done < rows:
            done += plan.turn(done, j)
    return plan.turns


class TilePlan:
    """Turn by turn; `free` has the registers that hold nothing."""

    def __init__(self, program: Program, operands: Sequence[Operand | None], tile: EpilogueTile) -> None:
        self.tile, self.turns = tile, dict[tuple[int, int], EpilogueTurn]()
        self.free, self.held = [*tile.others], Held()
        self.temporaries = most_alive(program)
        common = {i + 1 for i, operand in enumerate(operands) if operand is not OLD_DST and not operand.row_bytes}
        uses = [0] * len(program.steps)
        for arg in (arg for step in program.steps for arg in step.args):
            uses[arg] += 1
        steps = range(len(program.steps))
        self.of_vector = [i for i in steps if program.steps[i].op == "input" and program.steps[i].immediate in common]
        constants = [i for i in steps if program.steps[i].op in ("constant", "number")]
        self.candidates = [*self.of_vector, *sorted(constants, key=lambda i: -uses[i])]

    def next_vector(self) -> None:
        self.free += [self.held.pop(i) for i in self.of_vector if i in self.held]

    def needed(self, rows: int) -> int:
        """How many of the free registers so many rows overwrite; they share one for what an instruction cannot read
        from memory."""
        if rows == 1:
            return max(0, self.temporaries + 1 - self.tile.alone)
        return max(0, rows * self.temporaries + 1 - self.tile.beside)

    def rows_now(self, left: int) -> int:
        missing = len(self.candidates) - len(self.held)
        if left >= QUARTET and self.needed(QUARTET) + missing <= len(self.free):
            return QUARTET
        return PAIR if left >= PAIR and self.needed(PAIR) <= len(self.free) else 1

    def turn(self, row: int, vector: int) -> int:
        """The next turn of a vector; how many rows it has."""
        left = len(self.tile.acc) - row
        rows = 1 if self.tile.waits(vector) else self.rows_now(left)
        room = max(0, len(self.free) - self.needed(rows)) if left >= FEWEST_READERS else 0
        wanted = islice((i for i in self.candidates if i not in self.held), room)
        loaded = {i: self.free.pop() for i in wanted}
        self.held |= loaded
        self.turns[row, vector] = EpilogueTurn(rows, loaded, dict(self.held), tuple(self.free))
        for of_row in self.tile.acc[row : row + rows]:
            if not self.tile.waits(vector):
                self.free += of_row[vector - 1 if self.tile.waits(vector - 1) else vector : vector + 1]
        return rows


def most_alive(program: Program) -> int:
    """How many registers beside that of the first input a program overwrites, if constants and operands that rows share
    are in others."""
    last = [i for i, _ in enumerate(program.steps)]
    first: dict[int, int] = {}
    for i, step in enumerate(program.steps):
        for arg in step.args:
            last[arg] = i
            first.setdefault(arg, i)
    for result in program.results:
        last[result] = len(program.steps)
    alive = [0] * (len(program.steps) + 1)
    for i, step in enumerate(program.steps):
        if step.op not in ("constant", "number"):
            begin = i if step.op != "input" or step.immediate == 0 else first.get(i, i)
            for k in range(begin, last[i]):
                alive[k] += 1
    return max(0, max(alive) - 1)
