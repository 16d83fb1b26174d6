"""Functions for user-written post-ops, under numpy's names: of numpy arrays, and of traced values alike.

On arrays they are numpy's (in the array's type), so the function of a post-op is its own reference.  On traced values
they become steps of the kernel, with the accuracy of the element-wise algorithms (docs/eltwise.md).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.generators.functions.eltwise.algorithms import ALGORITHMS
from asmdnn.generators.functions.eltwise.powers import power_of
from asmdnn.generators.functions.expression import Builder, Condition, Operable, Term, TraceError
from asmdnn.generators.functions.postops import BINARY
from asmdnn.generators.functions.program import Predicate, Step
from asmdnn.primitives.attributes.numbers import finite

NEGATED = {"xor": ("negative", 0x80000000), "and": ("absolute", 0x7FFFFFFF)}  # as a Term's - and abs() are written


class Recorder(Builder):
    """Keeps calls of the functions here as steps of their names, which kernels lack: derivatives are found of them."""

    def op(self, op: str, *args: Operable, immediate: int = 0) -> Term:
        name, mask = NEGATED.get(op, ("", 0))
        if name and isinstance(args[1], Term) and self.step_of(args[1]) == Step("constant", (), mask):
            return super().op(name, args[0])
        return super().op(op, *args, immediate=immediate)


def builder_of(*values: object) -> Builder | None:
    """Of the first traced value or condition; None if there is none."""
    for value in values:
        while isinstance(value, Condition):
            value = value.left
        if isinstance(value, Term):
            return value.builder
    return None


def eltwise_function(alg: str, name: str, on_arrays: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of one argument that is an element-wise algorithm without parameters."""

    def function(x: Any) -> Any:
        if isinstance(x, Term):
            if isinstance(x.builder, Recorder):
                return x.builder.op(name, x)
            return ALGORITHMS[alg].forward(x.builder, x, 0.0, 0.0)
        return on_arrays(x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{ALGORITHMS[alg].formula}, element by element."
    return function


def _logistic(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(np.asarray(x) > 0, 1, e) / (1 + e)


exp = eltwise_function("exp", "exp", np.exp)
log = eltwise_function("log", "log", np.log)
tanh = eltwise_function("tanh", "tanh", np.tanh)
logistic = eltwise_function("logistic", "logistic", _logistic)
sqrt = eltwise_function("sqrt", "sqrt", np.sqrt)
square = eltwise_function("square", "square", np.square)
absolute = eltwise_function("abs", "absolute", np.absolute)
rint = eltwise_function("round", "rint", np.rint)
floor = eltwise_function("floor", "floor", np.floor)
ceil = eltwise_function("ceil", "ceil", np.ceil)
trunc = eltwise_function("trunc", "trunc", np.trunc)
sign = eltwise_function("sign", "sign", np.sign)
sin = eltwise_function("sin", "sin", np.sin)
cos = eltwise_function("cos", "cos", np.cos)


def _remainder(build: Builder, name: str, a: Any, b: Any) -> Term:
    if isinstance(build, Recorder):
        return build.op(name, a, b)
    return BINARY[name](build, build.value(a), build.value(b))


def fmod(a: Any, b: Any) -> Any:
    """The remainder of a / b, with the sign of a; exact while |a / b| is below 2^46."""
    build = builder_of(a, b)
    return np.fmod(a, b) if build is None else _remainder(build, "fmod", a, b)


def mod(a: Any, b: Any) -> Any:
    """The remainder of a / b, with the sign of b, as a % b; exact while |a / b| is below 2^46."""
    build = builder_of(a, b)
    return np.mod(a, b) if build is None else _remainder(build, "mod", a, b)


def where(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b."""
    build = builder_of(condition, a, b)
    if build is None:
        return np.where(condition, a, b)
    if not isinstance(condition, Condition):
        if isinstance(condition, Term):
            raise TraceError("where's condition is a number: compare it, as in where(x != 0, a, b)")
        return build.value(a if condition else b)
    return build.where(condition, a, b)


def _extremum(op: str, a: Any, b: Any, on_arrays: Callable[[Any, Any], Any]) -> Any:
    build = builder_of(a, b)
    if build is None:
        return on_arrays(a, b)
    if isinstance(build, Recorder):
        return build.op(on_arrays.__name__, a, b)
    if not isinstance(b, Term):
        a, b = b, a
    if not isinstance(a, Term):
        return build.op(op, a, b)  # the instruction keeps a NaN of its second operand
    return build.where(Condition(Predicate.unordered, a, a), a, build.op(op, a, b))


def maximum(a: Any, b: Any) -> Any:
    """The larger one; NaN where either is NaN."""
    return _extremum("max", a, b, np.maximum)


def minimum(a: Any, b: Any) -> Any:
    """The smaller one; NaN where either is NaN."""
    return _extremum("min", a, b, np.minimum)


def multiply_add(a: Any, b: Any, c: Any) -> Any:
    """a * b + c; of traced values rounded once."""
    build = builder_of(a, b, c)
    return a * b + c if build is None else build.fma(a, b, c)


def clip(x: Any, least: Any, most: Any) -> Any:
    """x between two bounds; NaN stays."""
    return minimum(maximum(x, least), most)


def power(x: Any, exponent: Any) -> Any:
    """x to the power of a number, or of another value."""
    build = builder_of(x, exponent)
    if build is None:
        return np.power(x, exponent)
    if isinstance(build, Recorder):
        return build.op("power", x, exponent)
    if not isinstance(x, Term) or isinstance(exponent, Term):
        return power_of(build, build.value(x), build.value(exponent))
    try:
        beta = finite("exponent", exponent)
    except InvalidArguments as error:
        raise TraceError(str(error)) from None
    return ALGORITHMS["pow"].forward(x.builder, x, 1.0, beta)


FUNCTIONS = (
    "absolute", "ceil", "clip", "cos", "exp", "floor", "fmod", "log", "logistic", "maximum", "minimum", "mod", "power",
    "rint", "sign", "sin", "sqrt", "square", "tanh", "trunc", "where",
)  # fmt: skip
