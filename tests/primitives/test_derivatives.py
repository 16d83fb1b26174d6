"""Derivatives of functions that users write, on arrays: against differences of the functions themselves."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.primitives.attributes.derivatives import derivatives
from asmdnn.primitives.attributes.functions import FUNCTIONS

STEP = 1e-6

OF_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(dnn, name)
        for name in ("absolute", "ceil", "cos", "exp", "floor", "logistic", "rint", "sign", "sin", "square", "tanh")
    },
    "trunc": dnn.trunc,
    "log": lambda x: dnn.log(abs(x) + 0.5),
    "sqrt": lambda x: dnn.sqrt(x * x + 0.5),
    "clip": lambda x: dnn.clip(x, -0.5, 0.75),
    "maximum": dnn.maximum,
    "minimum": dnn.minimum,
    "fmod": lambda x, y: dnn.fmod(x, abs(y) + 0.3),
    "mod": lambda x, y: dnn.mod(x, y * y + 0.3),
    "power": lambda x, y: dnn.power(abs(x) + 0.5, y),
    "where": lambda x, y: dnn.where((x < y) & ~((x <= -1.0) | (y >= 1.0)), x * y, y / (abs(x) + 1.0)),
}
OTHERS: dict[str, Callable[..., Any]] = {
    "itself": lambda x: x,
    "a number's power": lambda x: dnn.power(abs(x) + 0.5, -1.5) + dnn.power(x, 3) + dnn.power(x, 1.0),
    "arithmetic": lambda x, y, z: (x - y) * z / (2.0 + x * x) - 3.0 * -y + (1.0 - z) / (y * y + 1.0),
    "read twice": lambda x, y: dnn.exp(-x * x) * x + dnn.tanh(x * y) * dnn.tanh(x * y),
    "equalities": lambda x, y: dnn.where(x == 0.25, y, dnn.where(y != 0.5, x * y, x)) + dnn.where(x > y, x, 2.0 * y),
    "an operand in conditions alone": lambda x, y: dnn.where(y > 0.0, dnn.sin(x), x),
    "twice": lambda x: twice(lambda v: dnn.exp(dnn.sin(v)) * v)(x),
}


def twice(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative of a function, as a function."""
    ((first, read),) = derivatives(function, 1)  # type: ignore[misc]
    assert read == (0,)
    return lambda x: first(x, 1.0)


@pytest.mark.parametrize("name", [*OF_FUNCTIONS, *OTHERS])
def test_against_differences(name: str) -> None:
    function = (OF_FUNCTIONS | OTHERS)[name]
    count = function.__code__.co_argcount
    rng = np.random.default_rng(3)
    operands, dy = [rng.uniform(-2, 2, 200) for _ in range(count)], rng.standard_normal(200)
    for i, found in enumerate(derivatives(function, count)):
        ends = [function(*(x + (j == i) * move for j, x in enumerate(operands))) for move in (STEP, -STEP)]
        expected = dy * (ends[0] - ends[1]) / (2 * STEP)
        of = np.zeros(200) if found is None else found[0](*(operands[j] for j in found[1]), dy)
        # differences: STEP^2 f''' / 6 of truncation, 2^-52 f / STEP of rounding; constants of a kernel are f32
        np.testing.assert_allclose(of, expected, rtol=1e-6, atol=1e-6, err_msg=f"operand {i}")


def test_every_function_has_one() -> None:
    assert {*OF_FUNCTIONS} == {*FUNCTIONS}


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "rint", "sign"])
def test_steps_are_flat(name: str) -> None:
    assert derivatives(getattr(dnn, name), 1) == [None]


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_corners() -> None:
    """Where two operands are the result the first one has the gradient; one at a bound of clip has it, too."""
    one = np.ones(1)

    def at(function: Callable[..., Any], *operands: float) -> list[float]:
        arrays = [np.array([x]) for x in operands]
        found = derivatives(function, len(operands))
        return [0.0 if f is None else float(f[0](*(arrays[j] for j in f[1]), one)[0]) for f in found]

    assert at(dnn.maximum, 2.0, 2.0) == at(dnn.minimum, 2.0, 2.0) == [1.0, 0.0]
    assert at(lambda x: dnn.maximum(0.0, x), 0.0) == [0.0]
    assert at(lambda x: dnn.maximum(x, 0.0), 0.0) == [1.0]
    assert at(lambda x: dnn.clip(x, -1.0, 1.0), 1.0) == [1.0]
    assert at(dnn.absolute, 0.0) == at(abs, 0.0) == [0.0]
    assert at(dnn.power, 0.0, 0.0) == [0.0, 0.0]


def test_equal_functions_have_equal_derivatives() -> None:
    assert derivatives(lambda x: x * 2, 1) == derivatives(lambda v: 2.0 * v, 1)


def test_what_is_no_function_of_the_words_has_none() -> None:
    with pytest.raises(dnn.Unimplemented, match="shl has no derivative"):
        derivatives(lambda x: x.builder.op("shl", x, immediate=1), 1)
