"""ATen's functions of a number: those of angles, those that are exact near 0, remainders."""

from typing import Any, Final

import numpy as np

from asmdnn.aten.elementwise_rules import operands
from asmdnn.aten.values import RULES, Rewriter, Traced, rule

SAME: Final = {  # of one operand, with ONNX's name
    "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
}  # fmt: skip
NEAR: Final = 0.5  # to 0, where a sum with 1 loses digits


def _same(onnx: str) -> Any:
    return lambda c, x: c.apply(onnx, x)


for _name, _onnx in SAME.items():
    RULES[f"{_name}.default"] = _same(_onnx)


@rule("expm1.default")
def _expm1(c: Rewriter, x: Traced) -> Any:
    """exp(x) - 1; near 0 it is 2 t / (1 - t), t = tanh(x / 2)."""
    half = c.apply("Tanh", c.apply("Mul", x, np.float32(0.5)))
    near = c.apply("Div", c.apply("Add", half, half), c.apply("Sub", np.float32(1), half))
    far = c.apply("Sub", c.apply("Exp", x), np.float32(1))
    return c.apply("Where", _is_near(c, x), near, far)


@rule("log1p.default")
def _log1p(c: Rewriter, x: Traced) -> Any:
    """log(u), u = 1 + x; near 0 it is log(u) x / (u - 1), which takes back what the sum lost, or x (Kahan)."""
    u = c.apply("Add", x, np.float32(1))
    log = c.apply("Log", u)
    apart = c.apply("Sub", u, np.float32(1))
    is_one = c.apply("Equal", apart, np.float32(0))
    near = c.apply("Div", c.apply("Mul", log, x), c.apply("Where", is_one, np.float32(1), apart))
    return c.apply("Where", is_one, x, c.apply("Where", _is_near(c, x), near, log))


def _is_near(c: Rewriter, x: Traced) -> Any:
    return c.apply("Less", c.apply("Abs", x), np.float32(NEAR))


@rule("fmod.Tensor", "fmod.Scalar")
def _fmod(c: Rewriter, a: Any, b: Any) -> Any:
    """With the sign of the dividend."""
    return c.apply("Mod", *operands(c, a, b), fmod=1)


@rule("trunc.default", "fix.default")
def _trunc(c: Rewriter, x: Traced) -> Any:
    return c.apply("Mul", c.apply("Sign", x), c.apply("Floor", c.apply("Abs", x)))
