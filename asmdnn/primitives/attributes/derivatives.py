"""Derivatives of functions that are written with operators and dnn.where, dnn.exp, ...: of one function others.

The function is recorded as steps, each of which has its derivative; they are multiplied from the result back to the
operands.  Source: Griewank and Walther, Evaluating Derivatives (2008), chapter 3.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

from asmdnn.errors import Unimplemented
from asmdnn.generators.functions.expression import Term
from asmdnn.generators.functions.program import Predicate, Program, Step
from asmdnn.isa.formula import float_of
from asmdnn.primitives.attributes import functions as f
from asmdnn.records import dataclass, replace

Parts = Sequence[Term | None]  # by each argument, None for 0
Derivative = Callable[..., Parts]  # (dy, y, *arguments)

COMPARED: dict[int, Callable[[Any, Any], Any]] = {
    Predicate.less: operator.lt, Predicate.less_equal: operator.le, Predicate.greater: operator.gt,
    Predicate.greater_equal: operator.ge, Predicate.equal: operator.eq, Predicate.not_equal: operator.ne,
}  # fmt: skip
CALLS: dict[str, Callable[..., Any]] = {
    **{name: getattr(f, name) for name in f.FUNCTIONS},
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "negative": operator.neg,
    "fma": f.multiply_add,
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class RecordedFunction:
    """A function of arrays and traced values, by the steps of a Recorder."""

    program: Program

    def __repr__(self) -> str:
        return f"a derivative, {len(self.program.steps)} words long"

    def __call__(self, *operands: Any) -> Any:
        known: list[Any] = []
        for step in self.program.steps:
            args = [known[a] for a in step.args]
            if step.op == "input":
                known.append(operands[step.immediate])
            elif step.op == "constant":
                known.append(float_of(step.immediate))
            elif step.op == "select":
                known.append(f.where(COMPARED[step.immediate](args[0], args[1]), args[2], args[3]))
            else:
                known.append(CALLS[step.op](*args))
        return known[self.program.results[0]]


def derivatives(function: Callable[..., Any], operands: int) -> list[tuple[RecordedFunction, tuple[int, ...]] | None]:
    """For each operand what its gradient is, as a function of some operands and dy, and the numbers of these.

    dy, the gradient of the result, is the last argument.  None stands for a gradient of 0.  Raises Unimplemented for
    steps without a derivative.
    """
    build = f.Recorder(operands + 1)
    *inputs, dy = build.inputs
    result = function(*inputs)
    parts: dict[int, Term] = {result.number: dy}
    for number, step in reversed(list(enumerate(build.steps[: result.number + 1]))):
        if number not in parts or not step.args:
            continue
        arguments = [Term(build, a) for a in step.args]
        found = derivative_of(step)(parts[number], Term(build, number), *arguments)
        for argument, part in zip(step.args, found, strict=True):
            if part is not None:
                parts[argument] = parts[argument] + part if argument in parts else part
    return [of_operands(build.finish(parts[x.number])) if x.number in parts else None for x in inputs]


def of_operands(program: Program) -> tuple[RecordedFunction, tuple[int, ...]]:
    """A program of what it reads alone; the last input is dy, on which every gradient depends."""
    *read, dy = sorted({step.immediate for step in program.steps if step.op == "input"})
    number = {old: new for new, old in enumerate((*read, dy))}
    steps = (replace(s, immediate=number[s.immediate]) if s.op == "input" else s for s in program.steps)
    return RecordedFunction(Program(tuple(steps), program.results)), tuple(read)


def derivative_of(step: Step) -> Derivative:
    if step.op == "select" and step.immediate in COMPARED:
        return lambda d, y, a, b, then, otherwise: selected(step.immediate, d, a, b)
    if step.op not in DERIVATIVES:
        raise Unimplemented(f"{step.op} has no derivative: write the function with dnn's functions")
    return DERIVATIVES[step.op]


def selected(predicate: int, d: Term, a: Term, b: Term) -> Parts:
    chosen = COMPARED[predicate](a, b)
    return None, None, f.where(chosen, d, 0.0), f.where(chosen, 0.0, d)


def number_of(x: Term) -> float | None:
    """The value of a constant."""
    step = x.builder.step_of(x)
    return float_of(step.immediate) if step.op == "constant" else None


def power(d: Term, y: Term, x: Term, p: Term) -> Parts:
    """An exponent of 0 has no slope by x, and x = 0 none by an exponent from 0 on, as in torch."""
    number = number_of(p)
    if number is not None:
        return (d * (number * f.power(x, number - 1.0)) if number else None), None
    by_x = d * (p * f.power(x, p - 1.0))
    at_zero = (x == 0.0) & (p >= 0.0)
    return f.where(p == 0.0, 0.0, by_x), f.where(at_zero, 0.0, d * (y * f.log(x)))


def quotient(d: Term, y: Term, a: Term, b: Term) -> Parts:
    share = d / b
    return share, -(share * y)


def remainder(d: Term, y: Term, a: Term, b: Term) -> Parts:
    """Of a - n b, n whole."""
    return d, d * f.rint((y - a) / b)


def extremum(d: Term, y: Term, a: Term, b: Term) -> Parts:
    """To the first operand that is the result."""
    return f.where(a == y, d, 0.0), f.where(a == y, 0.0, d)


def flat(d: Term, y: Term, x: Term) -> Parts:
    return (None,)


DERIVATIVES: dict[str, Derivative] = {
    "add": lambda d, y, a, b: (d, d),
    "sub": lambda d, y, a, b: (d, -d),
    "mul": lambda d, y, a, b: (d * b, d * a),
    "div": quotient,
    "fma": lambda d, y, a, b, c: (d * b, d * a, d),
    "negative": lambda d, y, x: (-d,),
    "absolute": lambda d, y, x: (d * f.sign(x),),
    "square": lambda d, y, x: (d * (x + x),),
    "sqrt": lambda d, y, x: (0.5 * d / y,),
    "exp": lambda d, y, x: (d * y,),
    "log": lambda d, y, x: (d / x,),
    "tanh": lambda d, y, x: (d * ((1.0 - y) * (1.0 + y)),),
    "logistic": lambda d, y, x: (d * (y * (1.0 - y)),),
    "sin": lambda d, y, x: (d * f.cos(x),),
    "cos": lambda d, y, x: (-(d * f.sin(x)),),
    "power": power,
    **dict.fromkeys(("maximum", "minimum"), extremum),
    **dict.fromkeys(("fmod", "mod"), remainder),
    **dict.fromkeys(("floor", "ceil", "trunc", "rint", "sign"), flat),
}  # fmt: skip
