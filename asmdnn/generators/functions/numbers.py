"""Numbers of post-ops that kernels read as data: chains that differ in these alone have one code.

A number is a constant that is only added, multiplied, compared and the like.  Zeros and masks of bits stay in the code,
which does without them or chooses instructions by them, and so does everything of longer functions, whose coefficients
are the same wherever they come.
"""

from collections.abc import Sequence
from functools import lru_cache
from struct import pack, unpack

from asmdnn.generators.functions.chain import compose, operands_of
from asmdnn.generators.functions.postops import ExpressionOp, PostOp
from asmdnn.generators.functions.program import Program, Step
from asmdnn.isa.vectors import vector_class
from asmdnn.types import f32

MOST_NUMBERS = 8
WORD_BYTES = 8
ARITHMETIC = frozenset(("add", "sub", "mul", "div", "min", "max", "fma", "fnma", "select"))


def numbers_of(chain: tuple[PostOp, ...]) -> tuple[int, ...]:
    """The bits of every number of a chain, in the order of `without_numbers`, which has zeros."""
    return taken_apart(chain)[1] if chain else ()


def without_numbers(chain: tuple[PostOp, ...]) -> tuple[PostOp, ...]:
    """The same for any numbers, which are steps `number` of one program; a chain without any as it is."""
    return taken_apart(chain)[0] if chain else ()


@lru_cache
def taken_apart(chain: tuple[PostOp, ...]) -> tuple[tuple[PostOp, ...], tuple[int, ...]]:
    program = compose(chain)
    if told := sum(step.op == "number" for step in program.steps):
        return chain, (0,) * told
    places = places_of(program)
    if not 0 < len(places) <= MOST_NUMBERS:
        return chain, ()
    steps = [*program.steps]
    for number, place in enumerate(places):
        steps[place] = Step("number", (), number)
    general = ExpressionOp(Program(tuple(steps), program.results), operands_of(chain))
    return (general,), tuple(program.steps[place].immediate for place in places)


def places_of(program: Program) -> list[int]:
    """The steps that are numbers."""
    elsewhere = {*program.results}.union(*(step.args for step in program.steps if step.op not in ARITHMETIC))
    every = enumerate(program.steps)
    return [i for i, step in every if step.op == "constant" and step.immediate and i not in elsewhere]


def words_of_numbers(numbers: Sequence[int], isa: str) -> tuple[int, ...]:
    """The numbers as instructions read them from memory, one after another, in words."""
    copies = vector_class(isa).splat_bytes // f32.size_bytes
    data = b"".join(pack("<I", bits) * copies for bits in numbers)
    data += bytes(-len(data) % WORD_BYTES)
    return unpack(f"<{len(data) // WORD_BYTES}q", data)
