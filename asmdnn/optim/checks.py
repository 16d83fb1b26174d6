"""Numbers that callers choose."""

from math import inf, isfinite
from numbers import Real
from typing import Any

from asmdnn.errors import InvalidArguments, shown


def number(name: str, value: Any, below: float = inf) -> float:
    """A finite number from 0 on, and less than `below`.  Raises InvalidArguments."""
    try:
        found = float(value) if isinstance(value, Real) and not isinstance(value, bool) else inf
    except Exception:  # an integer of more digits than a float has, or whatever the caller's object does
        found = inf
    if not (isfinite(found) and 0 <= found < below):
        limit = "" if below == inf else f" and less than {below:g}"
        raise InvalidArguments(f"{name} must be a finite number from 0 on{limit}, not {shown(value)}")
    return found


def whole(name: str, value: Any, least: int) -> int:
    """An integer from `least` on, that a double has.  Raises InvalidArguments."""
    if type(value) is not int or not least <= value <= 2**53:
        raise InvalidArguments(f"{name} must be an integer from {least} to 2**53, not {shown(value)}")
    return value
