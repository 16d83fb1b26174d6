"""Values that are equal only where their numbers have the same bits.

Python calls 0.0 and -0.0 equal, and NaN unequal to itself.  Where values are the keys of caches, the first hands out
the other one's result, and the second is never found again.  Every frozen dataclass with a float among its fields is
`@exact`, so that caches, dictionaries and sets of them need no thought of their own; tests/test_caches.py finds one
that is not.
"""

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from struct import Struct
from typing import Any, Final, TypeVar

Class = TypeVar("Class", bound=type)
HASHED_FIELDS: Final = 12  # the first ones: a tuning has dozens, but few tunings are alive
_Values = Callable[[Any], tuple[Any, ...]]
_bits = Struct("<d").pack


def exact(cls: Class) -> Class:
    """Decorator, above that of a frozen dataclass: instances compare and hash their floats by bits.

    Give that one eq=False: what it would write for comparisons takes a third of the time to make the class.
    """
    names = [field.name for field in fields(cls) if field.compare]
    values, hashed_values = _values_of(names), _values_of(names[:HASHED_FIELDS])

    def key(self: Any, values: _Values = values) -> tuple[Any, ...]:
        return tuple([_exactly(value) if type(value) in (float, tuple) else value for value in values(self)])

    def equal(self: Any, other: object) -> bool:
        return self is other or (key(self) == key(other) if type(other) is cls else NotImplemented)

    def hashed(self: Any) -> int:
        return hash(key(self, hashed_values))

    cls.__eq__, cls.__hash__ = equal, hashed  # type: ignore[assignment, method-assign]
    return cls


def _values_of(names: list[str]) -> _Values:
    return attrgetter(*names) if len(names) > 1 else lambda self: (getattr(self, names[0]),)


def _exactly(value: float | tuple[Any, ...]) -> Any:
    """Bits, also of the floats in a tuple."""
    if type(value) is float:
        return _bits(value)
    return tuple([_bits(x) if type(x) is float else x for x in value])  # type: ignore[union-attr]  # a tuple


def is_exact(cls: type) -> bool:
    """Whether `exact` made the comparison of the class."""
    return cls.__eq__.__module__ == __name__
