"""Sequences that callers pass, as tuples: of bounded length, since a range or an iterator may have any, or no end."""

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

MAX_ITEMS = 1 << 20  # more than any tensor has dims, a chain links, or a batch sequences

Item = TypeVar("Item")


def items(values: Iterable[Item]) -> tuple[Item, ...]:
    """All of them.  Raises what the iterable raises, and ValueError for more than MAX_ITEMS but of a list or tuple."""
    if type(values) is tuple:
        return values
    if type(values) is list:
        return tuple(values)
    found = tuple(islice(values, MAX_ITEMS + 1))
    if len(found) > MAX_ITEMS:
        raise ValueError(f"more than {MAX_ITEMS} items")
    return found


def no_text(values: Iterable[Item]) -> tuple[Item, ...]:
    """`items` of dims.  Raises TypeError for a text, whose characters nobody means."""
    if isinstance(values, str | bytes):
        raise TypeError("a text has no dims")
    return items(values)
