"""The plan of a tile's end: no register is overwritten that still holds sums, or what a later turn finds held."""

import pytest

from asmdnn.generators.dot.held import QUARTET, EpilogueTile, turns_of
from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.postops import Operand
from asmdnn.generators.functions.program import Program
from asmdnn.isa.operands import Register, register

SHARED, OWN = Operand(6, 0, 64, element=False), Operand(7, 64, 64, element=False)


def registers(first: int, count: int) -> list[Register]:
    return [register("zmm", first + i) for i in range(count)]


def polynomial(terms: int) -> Program:
    """Of x, with an operand that rows share and one of each row's own."""
    build = Builder(3)
    x, shared, own = build.inputs
    return build.finish(build.fma(build.horner(x, [0.5 + i for i in range(terms)]), shared, own * 3.0))


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("terms", [2, 9, 30])
@pytest.mark.parametrize(
    ("rows", "vectors", "others"), [(14, 2, 2), (6, 4, 4), (1, 4, 20), (9, 3, 3), (24, 1, 6), (3, 1, 0)]
)
def test_what_is_overwritten(rows: int, vectors: int, others: int, terms: int, pairs: bool) -> None:
    flat, free = registers(0, rows * vectors), registers(rows * vectors, others)
    acc = [flat[r * vectors : (r + 1) * vectors] for r in range(rows)]
    program = polynomial(terms)
    turns = turns_of(program, (SHARED, OWN), EpilogueTile(acc, free, 2, 0, pairs))
    shared = next(i for i, step in enumerate(program.steps) if step.op == "input" and step.immediate == 1)
    sums, holding, ended = set(flat), {}, 0
    for j in range(vectors):
        row = 0
        while row < rows:
            turn = turns[row, j]
            own = {acc[row + i][j] for i in range(turn.rows)}
            stay = pairs and j % 2 == 0 and j + 1 < vectors  # in their registers, row after row
            assert turn.rows == 1 or not stay
            assert turn.rows in (1, 2, QUARTET) and own <= sums
            assert turn.loaded.items() <= turn.held.items()
            carried = {i: x for i, x in turn.held.items() if i not in turn.loaded}
            assert carried.items() <= holding.items()  # it finds what an earlier turn left
            taken = [*turn.held.values(), *turn.spare, *sums]
            assert len(taken) == len(set(taken))
            done = own | {acc[row + i][j - 1] for i in range(turn.rows)} if pairs and j % 2 else own
            holding, row, ended = dict(turn.held), row + turn.rows, ended + 1
            sums -= set() if stay else done
        holding = {i: x for i, x in holding.items() if i != shared}  # another vector's
    assert not sums and ended == len(turns)


def test_a_long_tile_holds_all_and_takes_rows_side_by_side() -> None:
    flat = registers(0, 28)
    acc = [flat[2 * r : 2 * r + 2] for r in range(14)]
    turns = turns_of(polynomial(5), (SHARED, OWN), EpilogueTile(acc, registers(28, 2), 2, 2))
    last = turns[8, 1]
    assert last.rows == QUARTET
    assert len(last.held) == 1 + 6  # the shared operand, the coefficients and the factor
