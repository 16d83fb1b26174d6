"""The text of problems as benchdnn writes them: keys with numbers, and a name: `mb1ic64ih56n"name"`."""

import math
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from asmdnn.bench.words import LARGEST_NUMBER
from asmdnn.errors import InvalidArguments, resembling

LONGEST_QUOTE = 160
LARGEST_TENSOR_BYTES = 2**63 - 1
FLOAT_BYTES = 4

_ENTRY = re.compile(r"(?P<key>[a-z]+)(?P<number>-?[0-9]*)")
SIZES = frozenset(("mb", "ic", "oc", *(kind + axis for kind in "io" for axis in "dhw")))  # of tensors
LARGEST_SIZE = 2**63 - 1
_MAY_BE_ZERO = frozenset(("mb", *(kind + axis for kind in "pd" for axis in "dhw")))


class Impossible(InvalidArguments):
    """A problem that can be read, of sizes or options that do not go together: it is skipped, as benchdnn does."""


def entries(text: str, keys: Collection[str]) -> tuple[dict[str, int], str]:
    """The numbers by key, of one that is given twice the last, and the name.

    Raises InvalidArguments for what is not in `keys`.
    """
    numbers: dict[str, int] = {}
    at = 0
    while at < len(text):
        if text[at] == "_":
            at += 1
            continue
        if text[at] == "n":
            return numbers, parse_name(text[at + 1 :])
        match = _ENTRY.match(text, at)
        where = f"at position {at + 1}"
        if not match:
            raise InvalidArguments(f"expected a key {where}, found '{text[at]}'")
        key, number = match["key"], match["number"]
        if key not in keys:
            raise InvalidArguments(
                f"unknown key '{key}' {where}; keys are {' '.join(keys)} and n{resembling(key, keys)}"
            )
        numbers[key] = _number(key, number, where)
        at = match.end()
    return numbers, ""


def _number(key: str, digits: str, where: str) -> int:
    if digits in ("", "-"):
        raise InvalidArguments(f"'{key}' {where} has no number")
    smallest = 0 if key in _MAY_BE_ZERO else 1
    largest = LARGEST_SIZE if key in SIZES else LARGEST_NUMBER
    # Python refuses to convert more than 4300 digits, so a long number is judged by its length.
    value = int(digits) if len(digits) <= 20 else largest + 1
    if digits.startswith("-") or value < smallest:
        raise InvalidArguments(f"'{key}' {where} is {digits[:20]}, it must be at least {smallest}")
    if value > largest:
        raise InvalidArguments(f"'{key}' {where} does not fit: it must be at most {largest}")
    return value


class Named:
    """A problem with a name."""

    __slots__ = ()
    name: str

    @property
    def count(self) -> int:
        """How often the network has this shape: benchdnn's `*N` at the end of the name, else 1."""
        match = re.search(r"\*([1-9][0-9]{0,8})$", self.name)
        return int(match[1]) if match else 1


@contextmanager
def quoting(text: str) -> Iterator[None]:
    """Errors inside say in which problem they are."""
    try:
        yield
    except InvalidArguments as error:
        shown = text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "..."
        raise type(error)(f"problem {shown!r}: {error}") from None


def check_given(numbers: Collection[str], *keys: str) -> None:
    """Raise InvalidArguments unless these keys are among them."""
    for key in keys:
        if key not in numbers:
            raise InvalidArguments(f"'{key}' is missing")


def check_memory(**tensors: tuple[int, ...]) -> None:
    """Raise InvalidArguments for dims of f32 that no memory holds."""
    for tensor, dims in tensors.items():
        if math.prod(dims) * FLOAT_BYTES > LARGEST_TENSOR_BYTES:
            raise InvalidArguments(f"{tensor} has {'x'.join(map(str, dims))} elements, more than memory can address")


def parse_name(rest: str) -> str:
    """The name that follows the letter n, quoted or not, or nothing.  Raises InvalidArguments."""
    name = rest[1:-1] if len(rest) >= 2 and rest[0] == rest[-1] == '"' else rest
    if '"' in name or not name.isprintable():
        raise InvalidArguments('n"name" ends the problem; the name is of printable characters other than quotes')
    return name
