"""What descriptions say of windows that move along axes: sizes and distances for each axis, checked."""

from collections.abc import Sequence
from operator import index

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.sequences import items
from asmdnn.memory.traced import is_integer

MAX_SIZE = 2**31 - 1
COUNTS = {1: "one integer", 2: "two integers", 3: "three integers"}
# Of a convolution: the least value and the default.
FIELDS = {"strides": (1, 1), "dilations": (0, 0), "padding_l": (0, 0), "padding_r": (-MAX_SIZE, 0)}


def sizes_of(name: str, value: Sequence[int], count: int, least: int) -> tuple[int, ...]:
    """`count` integers of at least `least`, one for each axis, or InvalidArguments naming the field."""
    if type(value) is tuple and len(value) == count and all(is_integer(n) and least <= n <= MAX_SIZE for n in value):
        return value
    try:
        numbers = tuple(index(n) for n in items(value) if not isinstance(n, bool))  # numpy's integers too
    except Exception:  # whatever the caller's object does when it is iterated over
        numbers = ()
    if len(numbers) != count or not all(least <= n <= MAX_SIZE for n in numbers):
        low = "-2**31 + 1" if least == -MAX_SIZE else least
        raise InvalidArguments(f"{name} must be {COUNTS[count]} from {low} to 2**31 - 1, not {shown(value)}")
    return numbers
