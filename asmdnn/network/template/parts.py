"""Values that hold traced numbers, made again of other numbers.

Each value becomes a part: itself, where nothing in it is traced; a number of the trace; or what is made of other parts,
once for all values that hold it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType, MappingProxyType, MemberDescriptorType
from typing import Any, NamedTuple

import numpy as np

from asmdnn.memory import MemoryDesc
from asmdnn.memory.traced import NumberTrace, TracedNumber
from asmdnn.network.operators.definition import Value
from asmdnn.primitives.attributes.user_post_op import PostOp, traced_before

Make = Callable[[Sequence[Any]], Any]  # of the values of its parts
ATOMS = (str, bytes, int, float, bool, complex, type(None), np.dtype, np.generic, type)


class Constant(NamedTuple):
    """What is the same for all shapes."""

    value: Any


class Number(NamedTuple):
    """A number of the trace."""

    at: int


class Slot(NamedTuple):
    """A value that is made again."""

    at: int


Part = Constant | Number | Slot


class Made(NamedTuple):
    """A step of a trace: a value of others.  parts: those that are no constants, and where they are in `values`."""

    make: Make
    values: tuple[Any, ...]
    parts: tuple[tuple[int, "Number | Slot"], ...]
    slot: int

    def of(self, numbers: Sequence[Any], made: Sequence[Any]) -> Any:
        values = [*self.values]
        for i, part in self.parts:
            values[i] = numbers[part.at] if type(part) is Number else made[part.at]
        return self.make(values)


def value_of(part: Part, numbers: Sequence[Any], made: Sequence[Any]) -> Any:
    """What a part is with these numbers and values of slots."""
    if isinstance(part, Constant):
        return part.value
    return numbers[part.at] if isinstance(part, Number) else made[part.at]


class ValueParts:
    """The parts of values of a trace; made: the values of slots as they are now."""

    def __init__(self, trace: NumberTrace) -> None:
        self.trace = trace
        self.made: list[Any] = []
        self._known: dict[int, tuple[Any, Part]] = {}  # by id, with what keeps it
        self._values: dict[Any, Part] = {}  # of what is equal where its parts are

    def slot(self, value: Any) -> Slot:
        """One whose value is set by other steps."""
        self.made.append(value)
        return Slot(len(self.made) - 1)

    def stand_for(self, value: Any, part: Part) -> None:
        """From now on this very value is that part."""
        self._known[id(value)] = value, part

    def value(self, part: Part) -> Any:
        """What a part is now."""
        return value_of(part, self.trace.numbers, self.made)

    def part(self, value: Any) -> Part:
        """Of any value.  Spoils the trace for one that hides numbers."""
        if type(value) is TracedNumber:
            return Number(self.trace.number_of(value))
        if isinstance(value, ATOMS):
            return Constant(value)
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        self._known[id(value)] = value, Constant(value)  # of a value that holds itself
        found = self._found(value)
        self._known[id(value)] = value, found
        return found

    def _found(self, value: Any) -> Part:
        taken = taken_apart(value)
        if taken is None:
            if isinstance(value, FunctionType) and value.__closure__:
                cells = [self.part(cell.cell_contents) for cell in value.__closure__]
                if any(type(part) is not Constant for part in cells):
                    self.trace.spoil(f"{value.__qualname__} holds numbers that stand for others")
            return Constant(value)
        values, make = taken
        parts = [self.part(one) for one in values]
        if all(type(part) is Constant for part in parts):
            return Constant(value)
        key = key_of(value, parts)
        if key is not None and (known := self._values.get(key)):
            return known
        kept = tuple(part.value if isinstance(part, Constant) else None for part in parts)
        others = tuple((i, part) for i, part in enumerate(parts) if not isinstance(part, Constant))
        step = Made(make, kept, others, len(self.made))
        self.made.append(step.of(self.trace.numbers, self.made))
        self.trace.steps.append(step)
        if key is not None:
            self._values[key] = Slot(step.slot)
        return Slot(step.slot)


def key_of(value: Any, parts: Sequence[Part]) -> object:
    """Equal for values that are equal where their parts are; None for one that changes."""
    if type(value) is PostOp:  # of whatever function that has this expression
        return PostOp, value.program, *map(told_apart, parts[2:])
    return (type(value), *map(told_apart, parts)) if is_value(type(value)) else None


def is_value(kind: type) -> bool:
    """Whether instances are what their parts are, and never change."""
    if issubclass(kind, tuple):
        return True
    parameters = getattr(kind, "__dataclass_params__", None)
    return parameters is not None and parameters.frozen and kind.__eq__ is not object.__eq__


def told_apart(part: Part) -> object:
    """A part as a key, with its kind; constants are the objects that they are, but for plain ones, and tuples of
    these."""
    return plain_key(part.value) if isinstance(part, Constant) else (type(part), part.at)


def plain_key(value: Any) -> object:
    """Of a constant: equal for the same numbers and words, floats by their bits, which are their text but for NaN."""
    if isinstance(value, int | str):
        return type(value), value
    if type(value) is float and value == value:
        return float, repr(value)
    if type(value) is MemoryDesc:  # whose strides along dims of one block do not count in comparisons
        return value, value.strides
    return (tuple, *map(plain_key, value)) if type(value) is tuple else id(value)


def taken_apart(value: Any) -> tuple[Sequence[Any], Make] | None:
    """What a value holds, and how one is made of such; None of what holds nothing."""
    kind = type(value)
    if isinstance(value, np.ndarray):
        if value.dtype != object:
            return None
        shape = value.shape
        return value.ravel().tolist(), lambda values: np.array(values, np.int64).reshape(shape)
    if kind is tuple or kind is list or isinstance(value, set | frozenset):
        return [*value], kind
    if isinstance(value, Value):
        return value, with_data
    if isinstance(value, tuple):  # a named one
        return value, partial(tuple.__new__, kind)
    if isinstance(value, Mapping):
        names, wrap = [*value], MappingProxyType if kind is MappingProxyType else dict
        count = len(names)
        return [*names, *value.values()], lambda values: wrap(dict(zip(values[:count], values[count:], strict=True)))
    if kind is PostOp:
        return (value.program, value.function, value.names, value.descs), post_op
    if isinstance(value, FunctionType):
        return None
    names = [*fields_of(kind), *getattr(value, "__dict__", ())]
    held = [(name, getattr(value, name)) for name in names if hasattr(value, name)]
    return [one for _, one in held], filling(kind, tuple(name for name, _ in held))


def post_op(values: Sequence[Any]) -> PostOp:
    program, function, names, descs = values
    return traced_before(program, function, dict(zip(names, descs, strict=True)))


def with_data(values: Sequence[Any]) -> Value:
    """A value, its data in its type."""
    shape, dtype, data = values
    return Value(shape, dtype, data if data is None else np.asarray(data, dtype))


def fields_of(kind: type) -> list[str]:
    """The slots of a class and of those that it inherits from."""
    every = (names for one in kind.__mro__ for names in [one.__dict__.get("__slots__", ())])
    return [name for names in every for name in ((names,) if isinstance(names, str) else names) if name[:2] != "__"]


def filling(kind: type, names: Sequence[str]) -> Make:
    """How to make an object of a class with these fields, as it is: what it was checked for is among the decisions."""
    new, slots = object.__new__, [getattr(kind, name, None) for name in names]
    puts = [slot.__set__ for slot in slots if isinstance(slot, MemberDescriptorType)]
    if not puts:
        return lambda values: with_fields(new(kind), names, values)

    def make(values: Sequence[Any]) -> Any:
        made: Any = new(kind)
        for put, value in zip(puts, values, strict=True):
            put(made, value)
        return made

    return make if len(puts) == len(names) else lambda values: with_attributes(new(kind), names, values)


def with_fields(made: Any, names: Sequence[str], values: Sequence[Any]) -> Any:
    """An object without slots."""
    made.__dict__.update(zip(names, values, strict=True))
    return made


def with_attributes(made: Any, names: Sequence[str], values: Sequence[Any]) -> Any:
    """One with some slots, which may be frozen."""
    for name, value in zip(names, values, strict=True):
        object.__setattr__(made, name, value)
    return made
