"""Every element-wise function within the bound that docs/eltwise.md states, over the whole range of f32.

The bounds are read from its table: one for forward, backward, and backward from dst, with the alpha and beta below.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.corpus.elementwise import PARAMETERS
from asmdnn.generators.functions.eltwise.algorithms import ALGORITHMS
from asmdnn.primitives.elementwise.eltwise import BACKWARD_ALGS, USE_DST
from tests.support import functions
from tests.support.plans import emulate_plan
from tests.support.slopes import slope, terms
from tests.support.ulp import Floats, edges, errors, every, spread

PAGE = Path(__file__).parents[2] / "docs" / "eltwise.md"
MORE: dict[str, tuple[tuple[float, float], ...]] = {
    "relu": ((0.0, 0.0), (-1.5, 0.0)), "elu": ((1.0, 0.0), (-2.0, 0.0), (128.0, 0.0)),
    "linear": ((3.3, 1.1), (1e30, 0.0), (0.0, 1.5)),
    "soft_relu": ((1.0, 0.0), (-1.0, 0.0), (3.3, 0.0)), "hardswish": ((1 / 6, 0.5), (0.0, 0.5)),
    "swish": ((1.0, 0.0), (-1.7, 0.0), (0.0, 0.0), (1e-4, 0.0), (1e20, 0.0)),
    "hardsigmoid": ((1 / 6, 0.5), (0.2, 0.5), (0.0, 0.5)),
    "pow": ((1.0, 0.0), (3.0, 1.0), (1.0, 2.0), (-2.0, 3.0), (1.0, -1.0), (0.5, -2.0), (1.0, 0.5), (1.0, -0.5),
            (1.0, 1 / 3), (2.0, -3.7), (1.0, 20.0), (1.0, 0.001), (1e-10, -7.0),
            *((0.0, beta) for beta in (0.0, 0.5, 1.0, 2.0, 3.0, 1.5, -0.5, -1.0, -2.0, -3.0))),
}  # fmt: skip
# Where some function changes its formula, saturates, underflows or overflows.
THRESHOLDS = (0.2, 0.25, 0.41421356, 0.75, 2, 3, 5.5, 9, 10, 11.5, 13.2, 14.5, 16.6, 17.3, 20, 30, 87.33654, 88.376,
              88.72283, 103.97208, 104, 112, 170)  # fmt: skip
FAST_STRIDE, SLOW_STRIDE, CHUNK, SPREAD, EMULATED = 60_013, 251, 1 << 22, 40_000, 256
TIE = 1e-6  # float64 rounds too
FORWARD, BACKWARD, FROM_DST = "forward", "backward", "from dst"
COLUMNS = (FORWARD, BACKWARD, FROM_DST)


@dataclass(frozen=True)
class Function:
    """A forward function, or diff_dst times a derivative, of x or of dst."""

    column: str
    alg: str
    alpha: float
    beta: float
    more: float = 0.0  # than the page's table allows

    def __str__(self) -> str:
        return f"{self.alg} {self.alpha:.3g} {self.beta:.3g} {self.column}"

    @property
    def bound(self) -> float:
        return bounds()[self.alg][COLUMNS.index(self.column)] + self.more

    def describe(self, count: int) -> tuple[Any, list[str]]:
        """The primitive, and its arguments' names: x, diff_dst if there is one, the result."""
        desc, numbers = dnn.MemoryDesc((count,), dnn.f32, "a"), (self.alpha, self.beta)
        if self.column == FORWARD:
            return dnn.EltwiseForward(dnn.PropKind.forward_inference, self.alg, desc, desc, *numbers), ["src", "dst"]
        alg = self.alg + USE_DST * (self.column == FROM_DST)
        names = ["dst" if self.column == FROM_DST else "src", "diff_dst", "diff_src"]
        return dnn.EltwiseBackward(alg, desc, desc, desc, *numbers), names

    def check(self, x: Floats, engine: dnn.Engine, execute: Callable[[dnn.PrimitiveDesc, Any], None]) -> float:
        """Assert the bound, and that odd functions keep the zero's sign; the largest error."""
        factor = np.random.default_rng(1).uniform(1, 2, x.size).astype(np.float32)
        desc, names = self.describe(x.size)
        arrays = [x, *[factor] * (self.column != FORWARD), np.zeros_like(x)]
        memories = {name: dnn.Memory.from_array(array) for name, array in zip(names, arrays, strict=True)}
        execute(dnn.primitive_desc(desc, engine=engine), memories)
        result, scale = memories[names[-1]].numpy(), 0.0
        with np.errstate(all="ignore"):
            exact = x.astype(np.float64)
            if self.column == FORWARD:
                wanted = functions.forward(self.alg, exact, self.alpha, self.beta)
            else:
                wanted = factor * slope(self.alg, exact, self.alpha, self.beta, self.column == FROM_DST)
                scale = factor * terms(self.alg, exact, self.alpha) if self.column == BACKWARD else 0.0
            error = errors(result, wanted, scale)
        worst = int(np.argmax(error))
        message = f"{self}: {error[worst]:.2f} ulp at {x[worst]!r}: {result[worst]!r} instead of {wanted[worst]!r}"
        assert error[worst] <= self.bound + TIE, message
        zero = (x == 0) & (wanted == 0)
        assert self.column != FORWARD or np.array_equal(np.signbit(result[zero]), np.signbit(wanted[zero]))
        return float(error[worst])


def all_functions() -> Iterator[Function]:
    for alg in ALGORITHMS:
        for numbers in (PARAMETERS.get(alg, (0.0, 0.0)), *MORE.get(alg, ())):
            yield Function(FORWARD, alg, *numbers)
            if alg in BACKWARD_ALGS:
                yield Function(BACKWARD, alg, *numbers)
            if alg + USE_DST in BACKWARD_ALGS and not (numbers[0] < 0 and alg in ("relu", "elu")):
                yield Function(FROM_DST, alg, *numbers)


@cache
def bounds() -> dict[str, tuple[float, ...]]:
    """By algorithm, in ulp, for each of COLUMNS; NaN where there is no such function."""
    rows = re.findall(r"^\| `(\w+)` \|.*\| (\S+) \| (\S+) \| (\S+) \|$", PAGE.read_text(), re.MULTILINE)
    return {alg: tuple(float(word.replace("-", "nan")) for word in words) for alg, *words in rows}


def run(pd: dnn.PrimitiveDesc, memories: Any) -> None:
    dnn.Primitive(pd).execute(**memories)


@cache
def points() -> Floats:
    return np.concatenate((edges(THRESHOLDS), every(FAST_STRIDE), spread(SPREAD)))


def test_every_algorithm_has_a_bound() -> None:
    stated = {(alg, column) for alg, row in bounds().items() for column, b in zip(COLUMNS, row, strict=True) if b == b}
    assert stated == {(f.alg, f.column) for f in all_functions()}


@pytest.mark.parametrize("function", [*all_functions()], ids=str)
def test_bound(isa: str, function: Function) -> None:
    function.check(points(), dnn.Engine(threads=1), run)


@pytest.mark.parametrize("alpha", [0.7, 1.67, -1.3, 1e-30])
def test_elu_with_another_factor(isa: str, alpha: float) -> None:
    Function(FORWARD, "elu", float(np.float32(alpha)), 0.0, more=1.0).check(points(), dnn.Engine(threads=1), run)


@pytest.mark.parametrize("alpha", [1e27, -1e27, 1e-30, 1.0])
def test_swish_at_infinity(isa: str, alpha: float) -> None:
    x = np.float32([-np.inf, np.inf]) * np.float32(np.sign(alpha))
    desc = dnn.MemoryDesc((2,), dnn.f32, "a")
    swish = dnn.EltwiseForward(dnn.PropKind.forward_inference, "swish", desc, desc, alpha)
    src, dst = dnn.Memory.from_array(x), dnn.Memory.from_array(np.ones_like(x))
    run(dnn.primitive_desc(swish, engine=dnn.Engine(threads=1)), {"src": src, "dst": dst})
    np.testing.assert_array_equal(dst.numpy(), [0.0, x[1]])


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("function", [f for f in all_functions() if f.alg not in MORE or f.alpha < 1], ids=str)
@pytest.mark.one_in(3)
def test_bound_emulated(function: Function) -> None:
    """Thresholds and their neighbours, and some numbers between them."""
    x = np.concatenate((edges(THRESHOLDS, around=1), spread(EMULATED)))[: 16 * 16 + 3]

    def emulated(pd: dnn.PrimitiveDesc, memories: Any) -> None:
        emulate_plan(pd.plan, memories)

    function.check(x, dnn.Engine(isa="avx512_core", threads=1), emulated)


@pytest.mark.slow
@pytest.mark.parametrize("function", [*all_functions()], ids=str)
def test_bound_everywhere(isa: str, function: Function) -> None:
    """17 million numbers by their bits, and 4 million where functions bend."""
    numbers = every(SLOW_STRIDE)
    for x in (*np.split(numbers, range(CHUNK, numbers.size, CHUNK)), spread(CHUNK, seed=1)):
        function.check(x, dnn.Engine(threads=1), run)
