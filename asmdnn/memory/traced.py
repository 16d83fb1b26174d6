"""Numbers that stand for those of other shapes, too: what is computed of them is written down, and what they decided.

A function that is given traced numbers in the place of dims runs as always.  Each arithmetic operation becomes a number
of the trace, each comparison a decision, with its outcome.  For other dims the function would do the same, with other
numbers, if all decisions come out alike: so the numbers are computed again, and the function need not run.

Nothing goes unseen: what would turn a traced number into a plain one (an array, a range, a text for int()) spoils the
trace, whoever catches the error.  Its hash is that of the expression, which serves caches, and so are its words, which
serve names: where equal keys must be found to be equal, code compares instead.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

Function = Callable[[Any, Any], Any]
PLAIN: Final = (int, float, bool)


class Computed(NamedTuple):
    """A number of a trace: `function` of two others."""

    function: Function
    left: int
    right: int
    number: int


class Decided(NamedTuple):
    """A comparison of two numbers, and how it came out."""

    function: Function
    left: int
    right: int
    outcome: bool


class NumberTrace:
    """numbers: as they are now; steps: Computed and Decided, and what others add, in order; spoiled: why the trace is
    of no use, or ""."""

    def __init__(self) -> None:
        self.numbers: list[Any] = []
        self.steps: list[Any] = []
        self.spoiled, self.is_closed = "", False
        self._constants: dict[tuple[type, str], int] = {}
        self._computed: dict[tuple[Function, int, int], TracedNumber] = {}
        self._decided: dict[tuple[Function, int, int], bool] = {}

    def leaf(self, value: int) -> "TracedNumber":
        """A number that comes from outside."""
        self.numbers.append(value)
        return TracedNumber(self, len(self.numbers) - 1, value)

    def spoil(self, why: str) -> None:
        self.spoiled = self.spoiled or why

    def number_of(self, value: Any) -> int:
        """Where a traced or a plain number is among `numbers`; -1 of what is neither."""
        if type(value) is TracedNumber:
            return value.index if value.trace is self and not self.is_closed else -1
        if isinstance(value, np.integer | np.floating | np.bool_):
            value = value.item()
        if type(value) not in PLAIN:
            return -1
        key = type(value), repr(value)  # which tells 0.0 from -0.0
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = len(self.numbers)
            self.numbers.append(value)
        return known

    def close(self) -> None:
        """Nothing more is asked of its numbers; caches may hold some of them for a while."""
        self.numbers, self.steps, self.is_closed = [], [], True
        self._constants, self._computed, self._decided = {}, {}, {}

    def compute(self, function: Function, left: Any, right: Any) -> Any:
        a, b = self.number_of(left), self.number_of(right)
        if a < 0 or b < 0:
            return NotImplemented
        found = self._computed.get((function, a, b))
        if found is None:
            try:
                value = function(self.numbers[a], self.numbers[b])
            except ArithmeticError as error:  # which would be a decision, were it caught
                self.spoil(str(error))
                raise
            found = self._computed[function, a, b] = self.leaf(value)
            self.steps.append(Computed(function, a, b, found.index))
        return found

    def decide(self, function: Function, left: Any, right: Any) -> Any:
        a, b = self.number_of(left), self.number_of(right)
        if a < 0 or b < 0:
            return NotImplemented
        found = self._decided.get((function, a, b))
        if found is None:
            found = self._decided[function, a, b] = bool(function(self.numbers[a], self.numbers[b]))
            self.steps.append(Decided(function, a, b, found))
        return found


class TracedNumber:
    """A number of a trace; value: what it is now."""

    __slots__ = ("index", "trace", "value")

    def __init__(self, trace: NumberTrace, index: int, value: Any) -> None:
        self.trace, self.index, self.value = trace, index, value

    def __hash__(self) -> int:
        return hash((id(self.trace), self.index))

    def __bool__(self) -> bool:
        return bool(self.trace.decide(operator.ne, self, 0))

    def __neg__(self) -> Any:
        return self.trace.compute(operator.sub, 0, self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self.trace.decide(operator.lt, self, 0) else self

    def __repr__(self) -> str:
        """Other numbers have other words: where words are names, what has one name is one."""
        return f"#{self.index}"

    def __format__(self, _: str) -> str:
        return repr(self)

    def __index__(self, *_: Any) -> int:
        self.refuse("a plain number")

    __int__ = __float__ = __trunc__ = __round__ = __complex__ = __index__

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__array"):  # numpy looks whether it is an array; one of objects computes as these do
            self.trace.spoil(f"{name} was asked of a number that stands for others")
        raise AttributeError(name)

    def refuse(self, what: str) -> NoReturn:
        """Spoil the trace.  Raises TypeError."""
        self.trace.spoil(f"{what} was asked of a number that stands for others")
        raise TypeError(f"{what} of a traced number")


def _computing(function: Function) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return (
        lambda self, other: self.trace.compute(function, self, other),
        lambda self, other: self.trace.compute(function, other, self),
    )


def _deciding(function: Function) -> Callable[..., Any]:
    return lambda self, other: self.trace.decide(function, self, other)


for _name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow"):
    _plain, _reflected = _computing(getattr(operator, _name))
    setattr(TracedNumber, f"__{_name}__", _plain)
    setattr(TracedNumber, f"__r{_name}__", _reflected)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(TracedNumber, f"__{_name}__", _deciding(getattr(operator, _name)))


def integers(values: Sequence[Any]) -> npt.NDArray[Any]:
    """int64[values], or an array of objects where some stand for several: numpy computes with it as they do."""
    traced = any(type(value) is TracedNumber for value in values)
    return np.array(values, object if traced else np.int64)


def is_integer(value: object) -> bool:
    """Whether it is a Python integer, or stands for some."""
    return type(value) is int or type(value) is TracedNumber
