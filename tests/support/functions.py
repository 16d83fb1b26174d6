"""The element-wise functions in float64, written from their formulas, and chains of post-ops."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

import asmdnn as dnn
from asmdnn.generators.functions.postops import (
    BinaryOp,
    EltwiseOp,
    ExpressionOp,
    GradientOp,
    OffsetSumOp,
    Operand,
    PostOp,
    PReluOp,
    ReluOp,
    SelectOp,
    SumOp,
)
from asmdnn.generators.functions.program import Predicate, Program
from asmdnn.isa.formula import float_of
from tests.support.arena import Doubles
from tests.support.slopes import GELU, slope


def limited(x: Doubles, at: Callable[[Doubles], Doubles]) -> Doubles:
    """x at(x), and its limit 0 where that is -infinity times 0."""
    return np.where(x == -np.inf, -0.0, x * at(x))


FORWARD: dict[str, Callable[[Doubles, float, float], Doubles]] = {
    "relu": lambda x, a, b: np.where(x > 0, x, a * x) if a else np.where(x < 0, 0.0, x),
    "tanh": lambda x, a, b: np.tanh(x),
    "elu": lambda x, a, b: np.where(x >= 0, x, a * np.expm1(x)),
    "square": lambda x, a, b: x * x,
    "abs": lambda x, a, b: np.abs(x),
    "sqrt": lambda x, a, b: np.sqrt(x),
    "linear": lambda x, a, b: a * x + b,
    "clip": lambda x, a, b: np.clip(x, a, b),
    "clip_v2": lambda x, a, b: np.clip(x, a, b),
    "soft_relu": lambda x, a, b: np.logaddexp(0, a * x) / a,
    "logistic": lambda x, a, b: special.expit(x),
    "exp": lambda x, a, b: np.exp(x),
    "gelu_tanh": lambda x, a, b: limited(x, lambda s: special.expit(2 * GELU * (s + 0.044715 * s**3))),
    "gelu_erf": lambda x, a, b: limited(x, special.ndtr),
    "swish": lambda x, a, b: np.where(x * np.sign(a) == -np.inf, 0.0, x * special.expit(a * x)),
    "log": lambda x, a, b: np.log(x),
    "pow": lambda x, a, b: a * np.power(x, b),
    "round": lambda x, a, b: np.rint(x),
    "mish": lambda x, a, b: limited(x, lambda s: np.tanh(np.logaddexp(0, s))),
    "hardswish": lambda x, a, b: x * np.clip(a * x + b, 0, 1),
    "hardsigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "erf": lambda x, a, b: special.erf(x),
    "reciprocal": lambda x, a, b: 1 / x,
    "rsqrt": lambda x, a, b: 1 / np.sqrt(x),
    "sign": lambda x, a, b: np.where(x == 0, x, np.sign(x)),
    "sin": lambda x, a, b: np.where(np.abs(x) <= 2.0**20, np.sin(x), np.nan),
    "cos": lambda x, a, b: np.where(np.abs(x) <= 2.0**20, np.cos(x), np.nan),
    "floor": lambda x, a, b: np.floor(x),
    "ceil": lambda x, a, b: np.ceil(x),
    "trunc": lambda x, a, b: np.trunc(x),
    "not": lambda x, a, b: np.where(x == 0, 1.0, 0.0),
}
BINARY: dict[str, Callable[[Doubles, Doubles], Doubles]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
    "ge": np.greater_equal, "gt": np.greater, "le": np.less_equal, "lt": np.less, "eq": np.equal, "ne": np.not_equal,
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "fmod": np.fmod, "mod": np.mod,
}  # fmt: skip


def forward(alg: str, x: Doubles, alpha: float = 0.0, beta: float = 0.0) -> Doubles:
    """alpha and beta as f32 has them."""
    with np.errstate(all="ignore"):
        return FORWARD[alg](x, float(np.float32(alpha)), float(np.float32(beta)))


def evaluate(program: Program, inputs: Sequence[Doubles]) -> Doubles:
    """A program of arithmetic in float64, without the tricks on bits that the algorithms use."""
    values: list[Any] = []
    operations: dict[str, Callable[..., Any]] = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt,
        "max": lambda a, b: np.where(a > b, a, b), "min": lambda a, b: np.where(a < b, a, b),
        "fma": lambda a, b, c: a * b + c, "fnma": lambda a, b, c: c - a * b,
    }  # fmt: skip
    relations = {Predicate.less: np.less, Predicate.greater: np.greater, Predicate.equal: np.equal}
    for step in program.steps:
        args = [values[a] for a in step.args]
        if step.op == "input":
            values.append(inputs[step.immediate])
        elif step.op == "constant":
            values.append(float_of(step.immediate))
        elif step.op == "and":
            values.append(np.abs(args[0]))  # with all bits but the sign
        elif step.op == "xor":
            values.append(-args[0])  # with the sign
        elif step.op == "select":
            values.append(np.where(relations[Predicate(step.immediate)](args[0], args[1]), args[2], args[3]))
        else:
            values.append(operations[step.op](*args))
    (result,) = program.results
    return np.asarray(values[result], np.float64)


def apply(chain: Sequence[PostOp], x: Doubles, old: Doubles | None, operands: Mapping[Operand, Doubles]) -> Doubles:
    """The chain on the results x; `old` is what dst held."""
    for op in chain:
        match op:
            case SumOp(scale):
                assert old is not None
                x = x + np.float32(scale) * old
            case OffsetSumOp(scale, zero_point):
                assert old is not None
                x = x + np.float32(scale) * (old - np.float32(zero_point))
            case ReluOp(alpha):
                x = np.where(x > 0, x, np.float32(alpha) * x)
            case EltwiseOp(alg, alpha, beta, scale):
                x = np.float32(scale) * forward(alg, x, alpha, beta)
            case GradientOp(alg, alpha, beta, from_dst, data):
                values = operands.get(data, np.zeros_like(x))  # linear's slope needs none
                x = x * slope(alg, values, alpha, beta, from_dst)
            case BinaryOp(alg, operand):
                x = BINARY[alg](x, operands[operand]).astype(np.float64)
            case SelectOp(other, condition):
                x = np.where(operands[condition] != 0, x, operands[other])
            case PReluOp(weights):
                x = np.where(x > 0, x, x * operands[weights])
            case ExpressionOp(program, inputs):
                x = evaluate(program, (x, *(operands[o] for o in inputs)))  # type: ignore[index]
    return x


def swirl(x: Any, c: Any, slope: float) -> Any:
    """A user's own post-op."""
    return dnn.where(x > 0, x, c * dnn.tanh(slope * x))
