"""Sizes along axes and names of algorithms, as users give them: checked."""

from collections.abc import Sequence
from operator import index
from typing import Any

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.sequences import items
from asmdnn.types import Algorithm

MAX_SIZE = 2**31 - 1
COUNTS = {1: "one integer", 2: "two integers", 3: "three integers"}


def sizes_of(name: str, value: Sequence[int], count: int, least: int) -> tuple[int, ...]:
    """`count` integers of at least `least`, one for each axis, or InvalidArguments naming the field."""
    try:
        numbers = tuple(index(n) for n in items(value) if not isinstance(n, bool))  # numpy's integers too
    except Exception:  # whatever the caller's object does when it is iterated over
        numbers = ()
    if len(numbers) != count or not all(least <= n <= MAX_SIZE for n in numbers):
        low = "-2**31 + 1" if least == -MAX_SIZE else least
        raise InvalidArguments(f"{name} must be {COUNTS[count]} from {low} to 2**31 - 1, not {shown(value)}")
    return numbers


def algorithm_of(primitive: str, name: Any) -> Algorithm:
    """An Algorithm of a convolution or a deconvolution, or one by its last word.  Raises InvalidArguments."""
    found = {each.value.removeprefix(f"{primitive}_"): each for each in Algorithm if each.value.startswith(primitive)}
    if isinstance(name, Algorithm) and name in found.values():
        return name
    if not isinstance(name, str) or name not in found:
        raise InvalidArguments(f"algorithm {shown(name)} is not one of {', '.join(found)}")
    return found[name]
