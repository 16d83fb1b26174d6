"""Numbers of post-ops that code reads: which constants are, and what chains are without them."""

import numpy as np
import pytest

from asmdnn.generators.functions.chain import compose
from asmdnn.generators.functions.numbers import MOST_NUMBERS, numbers_of, without_numbers, words_of_numbers
from asmdnn.generators.functions.postops import BinaryOp, EltwiseOp, Operand, PostOp, ReluOp, SumOp
from asmdnn.generators.functions.program import Program, Step
from asmdnn.isa.formula import bits_of

LINEAR, CLIP, LEAKY = EltwiseOp("linear", 2.0, 1.0, 1.0), EltwiseOp("clip", -3.0, 5.0, 1.0), ReluOp(0.25)
ADD = BinaryOp("add", Operand(5, 4, 0, False))


@pytest.mark.parametrize(
    ("chain", "numbers"),
    [
        ((LINEAR,), (2.0, 1.0)),
        ((LINEAR, CLIP), (2.0, 1.0, -3.0, 5.0)),
        ((SumOp(0.5), ADD, LEAKY), (0.5, 0.25)),
        ((ReluOp(0.0),), ()),
        ((ADD, SumOp(1.0)), ()),
        ((EltwiseOp("abs", 0.0, 0.0, 1.0),), ()),
        ((EltwiseOp("gelu_erf", 0.0, 0.0, 1.0),), ()),
        ((), ()),
    ],
)
def test_which_constants_are_numbers(chain: tuple[PostOp, ...], numbers: tuple[float, ...]) -> None:
    """Not zeros, masks of bits, or the coefficients of long functions, whose chains stay as they are."""
    assert sorted(numbers_of(chain)) == sorted(map(bits_of, numbers))
    assert (without_numbers(chain) == chain) == (not numbers)


def test_other_numbers_have_the_same_rest() -> None:
    other = EltwiseOp("linear", -7.0, 0.5, 1.0)
    assert without_numbers((LINEAR, CLIP)) == without_numbers((other, CLIP))
    assert without_numbers((LINEAR, CLIP)) != without_numbers((CLIP, LINEAR))


@pytest.mark.parametrize("chain", [(LINEAR, CLIP), (SumOp(0.5), ADD, LEAKY), (LEAKY, ADD)])
def test_numbers_put_back_are_the_chain(chain: tuple[PostOp, ...]) -> None:
    rest, numbers = without_numbers(chain), numbers_of(chain)
    program = compose(rest)
    steps = (Step("constant", (), numbers[s.immediate]) if s.op == "number" else s for s in program.steps)
    assert Program(tuple(steps), program.results) == compose(chain)
    assert without_numbers(rest) == rest
    assert numbers_of(rest) == (0,) * len(numbers)


def test_most_numbers() -> None:
    """Of a chain with more all stay in the code."""
    steps = [EltwiseOp("linear", 2.0 + i, 1.0, 1.0) for i in range(MOST_NUMBERS)]
    assert len(numbers_of((*steps[: MOST_NUMBERS - 1],))) == MOST_NUMBERS
    assert numbers_of((*steps,)) == ()


@pytest.mark.parametrize(("isa", "copies"), [("avx2", 8), ("avx512_core", 1)])
def test_words(isa: str, copies: int) -> None:
    numbers = [bits_of(x) for x in (2.0, -1.0, 0.5)]
    found = np.array(words_of_numbers(numbers, isa), np.int64).view(np.float32)
    wanted = np.repeat(np.array((2.0, -1.0, 0.5), np.float32), copies)
    assert np.array_equal(found[: len(wanted)], wanted)
    assert len(found) == len(wanted) + len(wanted) % 2
