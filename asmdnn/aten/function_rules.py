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


@rule("remainder.Tensor", "remainder.Scalar")
def _remainder(c: Rewriter, a: Any, b: Any) -> Any:
    """With the sign of the divisor."""
    x, y = operands(c, a, b)
    if c.dtype.kind != "f":
        return c.apply("Mod", x, y, fmod=0)
    rest, zero = c.apply("Mod", x, y, fmod=1), np.float32(0)
    apart = c.apply("Xor", *(c.apply("Less", part, zero) for part in (rest, y)))
    wrong = c.apply("And", apart, c.apply("Not", c.apply("Equal", rest, zero)))
    return c.apply("Where", wrong, c.apply("Add", rest, y), rest)


@rule("trunc.default", "fix.default")
def _trunc(c: Rewriter, x: Traced) -> Any:
    return c.apply("Mul", c.apply("Sign", x), c.apply("Floor", c.apply("Abs", x)))


@rule("clamp.Tensor", "clamp_min.Tensor", "clamp_max.Tensor")
def _clamp(c: Rewriter, x: Traced, *limits: Any, min: Any = None, max: Any = None) -> Any:
    """By numbers that are data: first from below, as torch does."""
    if c.name.startswith("clamp_"):
        low, high = (limits[0], None) if "min" in c.name else (None, limits[0])
    else:
        low, high = (*limits, *(min, max)[len(limits) :])
    found = c.cast(x, c.dtype)
    for onnx, limit in (("Max", low), ("Min", high)):
        found = found if limit is None else c.apply(onnx, found, c.cast(limit, c.dtype))
    return found


@rule("_cdist_forward.default", "cdist.default")
def _cdist(c: Rewriter, x: Traced, y: Traced, order: float = 2.0, mode: Any = None) -> Any:
    """Of all pairs of rows, by their differences."""
    apart = c.apply("Sub", c.reshape(x, (*x.shape[:-1], 1, x.shape[-1])), c.reshape(y, _between(y.shape)))
    last = np.array([-1], np.int64)
    if order == np.inf:
        return c.apply("ReduceMax", c.apply("Abs", apart), last, keepdims=0)
    if order not in (1, 2):
        raise c.refuse(f"distances of order {order:g}")
    return c.apply("ReduceL1" if order == 1 else "ReduceL2", apart, last, keepdims=0)


def _between(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], 1, *shape[-2:])


@rule("rrelu.default", "rrelu_with_noise_functional.default")
def _rrelu(c: Rewriter, x: Traced, *rest: Any) -> Any:
    """In evaluation mode: the mean slope."""
    given = rest[c.name.startswith("rrelu_with") :][:3]
    defaults: tuple[Any, ...] = (1 / 8, 1 / 3, False)
    low, high, training = (*given, *defaults[len(given) :])
    if training:
        raise c.refuse("a module in training mode: call eval() first")
    found = c.apply("LeakyRelu", x, alpha=(low + high) / 2)
    return (found, None) if "noise" in c.name else found
