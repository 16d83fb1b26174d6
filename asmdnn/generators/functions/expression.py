"""A small language for functions of f32 vectors, lane by lane: the element-wise algorithms, and what users write.

A Builder makes a Program; equal steps are one:

    build = Builder(inputs=1)
    x = build.inputs[0]
    program = build.finish(build.where(x > 0, x, 0.25 * x))
"""

from collections.abc import Sequence
from typing import NoReturn

from asmdnn.errors import InvalidArguments
from asmdnn.generators.functions.program import Predicate, Program, Step
from asmdnn.isa.formula import bits_of

MAX_STEPS = 2000


class TraceError(InvalidArguments):
    """A traced value was used as a number; who traces adds the user's file and line."""


class Term:
    """A step's value while a program is built: arithmetic on it makes further steps."""

    __slots__ = ("builder", "number")

    def __init__(self, builder: "Builder", number: int) -> None:
        self.builder, self.number = builder, number

    def __add__(self, other: "Operable") -> "Term":
        return self.builder.op("add", self, other)

    __radd__ = __add__

    def __sub__(self, other: "Operable") -> "Term":
        return self.builder.op("sub", self, other)

    def __rsub__(self, other: "Operable") -> "Term":
        return self.builder.op("sub", other, self)

    def __mul__(self, other: "Operable") -> "Term":
        return self.builder.op("mul", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: "Operable") -> "Term":
        return self.builder.op("div", self, other)

    def __rtruediv__(self, other: "Operable") -> "Term":
        return self.builder.op("div", other, self)

    def __neg__(self) -> "Term":
        return self.builder.op("xor", self, self.builder.bits(0x80000000))

    def __abs__(self) -> "Term":
        return self.builder.op("and", self, self.builder.bits(0x7FFFFFFF))

    def __lt__(self, other: "Operable") -> "Condition":
        return Condition(Predicate.less, self, self.builder.value(other))

    def __le__(self, other: "Operable") -> "Condition":
        return Condition(Predicate.less_equal, self, self.builder.value(other))

    def __gt__(self, other: "Operable") -> "Condition":
        return Condition(Predicate.greater, self, self.builder.value(other))

    def __ge__(self, other: "Operable") -> "Condition":
        return Condition(Predicate.greater_equal, self, self.builder.value(other))

    def __eq__(self, other: "Operable") -> "Condition":  # type: ignore[override]
        return Condition(Predicate.equal, self, self.builder.value(other))

    def __ne__(self, other: "Operable") -> "Condition":  # type: ignore[override]
        return Condition(Predicate.not_equal, self, self.builder.value(other))

    __hash__ = None  # type: ignore[assignment]

    def __pow__(self, exponent: object) -> NoReturn:
        raise TraceError("** is not an operation of a traced value: use dnn.power(x, exponent) or a product")

    def __bool__(self) -> NoReturn:
        raise TraceError("a traced value has no truth while the kernel is made: use dnn.where(condition, a, b)")

    def __float__(self) -> NoReturn:
        raise TraceError("a traced value is no number yet: compute with dnn's functions, not with float() or math's")

    __int__ = __index__ = __complex__ = __float__

    def __str__(self) -> NoReturn:
        raise TraceError("a traced value cannot be printed or formatted: it becomes a number inside the kernel")

    def __format__(self, spec: str) -> NoReturn:
        str(self)
        raise AssertionError

    def __repr__(self) -> str:
        return f"<traced value {self.number}>"

    def __iter__(self) -> NoReturn:
        raise TraceError("a traced value has no elements to index or to iterate over: it is one lane of every vector")

    __len__ = __getitem__ = __iter__

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise TraceError("numpy cannot compute with a traced value: use the function of the same name in dnn")

    __array_ufunc__ = None  # numpy's operators give way to those above


Operable = Term | float


class Condition:
    """A comparison of two values, or conditions combined with & | ~; only `where` takes it."""

    __slots__ = ("left", "predicate", "right")

    def __init__(self, predicate: Predicate | str, left: "Term | Condition", right: "Term | Condition") -> None:
        self.predicate, self.left, self.right = predicate, left, right

    def __and__(self, other: "Condition") -> "Condition":
        return Condition("and", self, _condition(other))

    def __or__(self, other: "Condition") -> "Condition":
        return Condition("or", self, _condition(other))

    def __invert__(self) -> "Condition":
        return Condition("not", self, self)

    def __bool__(self) -> NoReturn:
        raise TraceError(
            "a comparison of traced values is not known while the kernel is made: "
            "use dnn.where(condition, a, b) instead of if, and, or; & and | combine conditions"
        )


def _condition(value: object) -> Condition:
    if not isinstance(value, Condition):
        raise TraceError(
            f"a condition is combined with {value!r}, which is none: compare first, as in (x > 0) & (x < 1)"
        )
    return value


class Builder:
    """Makes a program of `inputs` arguments; a step that is already there is used again."""

    def __init__(self, inputs: int = 1) -> None:
        self._steps: dict[Step, int] = {}
        self.inputs = tuple(self._add(Step("input", (), i)) for i in range(inputs))

    def bits(self, bits: int) -> Term:
        """The constant with these bits."""
        return self._add(Step("constant", (), bits))

    def value(self, operand: Operable) -> Term:
        """A value of this builder, or a number as a constant; TraceError for anything else."""
        if isinstance(operand, Term):
            if operand.builder is not self:
                raise TraceError("a traced value was kept from another call of a function: use only its arguments")
            return operand
        try:
            if hasattr(operand, "__float__"):  # not a str, which float() would read
                return self.bits(bits_of(float(operand)))
        except (TypeError, ValueError):
            pass
        what = type(operand).__name__
        raise TraceError(
            f"an operand is a {what}: use numbers, arguments of the function, and what is computed from these"
        )

    def op(self, op: str, *args: Operable, immediate: int = 0) -> Term:
        return self._add(Step(op, tuple(self.value(a).number for a in args), immediate))

    def fma(self, a: Operable, b: Operable, c: Operable) -> Term:
        """a * b + c, rounded once."""
        return self.op("fma", a, b, c)

    def fnma(self, a: Operable, b: Operable, c: Operable) -> Term:
        """c - a * b, rounded once."""
        return self.op("fnma", a, b, c)

    def horner(self, x: Operable, coefficients: Sequence[float]) -> Term:
        """The polynomial with these coefficients, lowest first; of a leading 1 the first step is a sum."""
        *others, last = coefficients
        total = self.value(x) + others.pop() if last == 1.0 and others else self.value(last)
        for c in reversed(others):
            total = self.fma(total, x, c)
        return total

    def table(self, index: Term, entries: Sequence[float]) -> Term:
        """entries[i], of eight, where i is the number in the lowest three bits of `index`."""
        return self.op("table", index, *entries)

    def where(self, condition: Condition, then: Operable, otherwise: Operable) -> Term:
        """`then` where the condition holds, else `otherwise`."""
        left, right = condition.left, condition.right
        if isinstance(left, Condition) and isinstance(right, Condition):
            if condition.predicate == "not":
                return self.where(left, otherwise, then)
            if condition.predicate == "and":
                return self.where(left, self.where(right, then, otherwise), otherwise)
            return self.where(left, then, self.where(right, then, otherwise))
        assert isinstance(left, Term) and isinstance(right, Term) and isinstance(condition.predicate, Predicate)
        return self.op("select", left, right, then, otherwise, immediate=condition.predicate)

    @property
    def steps(self) -> tuple[Step, ...]:
        """In the order in which they came, by the numbers of their values."""
        return tuple(self._steps)

    def step_of(self, x: Term) -> Step:
        """What computes a value."""
        return list(self._steps)[x.number]

    def insert(self, program: Program, inputs: Sequence[Term]) -> Term:
        """The value of a program of these inputs that has one result."""
        (result,) = self.insert_all(program, inputs)
        return result

    def insert_all(self, program: Program, inputs: Sequence[Term]) -> list[Term]:
        """The values of a program of these inputs."""
        numbers: list[int] = []
        for step in program.steps:
            if step.op == "input":
                numbers.append(inputs[step.immediate].number)
            else:
                numbers.append(self._add(Step(step.op, tuple(numbers[a] for a in step.args), step.immediate)).number)
        return [Term(self, numbers[result]) for result in program.results]

    def finish(self, *results: Operable, most_steps: int = MAX_STEPS) -> Program:
        """The program, without the steps that no result needs.  Raises TraceError if it is too long."""
        wanted = [self.value(result).number for result in results]
        steps = list(self._steps)
        needed = set(wanted)
        for i in range(max(wanted), -1, -1):
            if i in needed:
                needed.update(steps[i].args)
        number = {old: new for new, old in enumerate(sorted(needed))}
        if len(number) > most_steps:
            raise TraceError(f"the function has {len(number)} steps, at most {most_steps} fit into a kernel")
        kept = (steps[i] for i in number)
        return Program(
            tuple(Step(s.op, tuple(number[a] for a in s.args), s.immediate) for s in kept),
            tuple(number[i] for i in wanted),
        )

    def _add(self, step: Step) -> Term:
        return Term(self, self._steps.setdefault(step, len(self._steps)))
