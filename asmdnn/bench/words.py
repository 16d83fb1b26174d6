"""Options of `asmdnn bench`: what one is, how its words are read, and those that every driver has."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asmdnn.errors import InvalidArguments
from asmdnn.types import DATA_TYPES

LARGEST_NUMBER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Settings:
    """What the options say for one problem.  isa, threads: "" and 0 mean this machine's.

    A driver adds its own options as fields of a subclass; the default of a field is that of its option.
    """

    mode: str = "C"
    isa: str = ""
    threads: int = 0
    peer: str = ""
    max_ms: int = 3000


@dataclass(frozen=True, slots=True)
class Option:
    """`--name=word`: the field of the settings, the value of a word, and back.

    takes_list: words with commas between them, and every problem runs with each.
    """

    field: str
    parse: Callable[[str], Any]
    help: str
    takes_list: bool = False
    show: Callable[[Any], str] = str


def one_of(*choices: str) -> Callable[[str], str]:
    """The choice that equals the word, whatever its case."""

    def parse(word: str) -> str:
        for choice in choices:
            if choice.lower() == word.lower():
                return choice
        raise InvalidArguments(f"must be one of {', '.join(choices)}")

    return parse


def number(smallest: int, largest: int = LARGEST_NUMBER) -> Callable[[str], int]:
    """A whole number in a range."""

    def parse(word: str) -> int:
        digits = word.removeprefix("-")
        if digits.isascii() and digits.isdecimal() and len(digits) <= 10 and smallest <= int(word) <= largest:
            return int(word)
        raise InvalidArguments(f"must be a whole number from {smallest} to {largest}")

    return parse


def tag(word: str) -> str:
    """The letters or the name of a memory format, as MemoryDesc takes it."""
    if not (word.isascii() and word.isalnum()):
        raise InvalidArguments("must be any, nchw, nhwc, nChw8c or another format tag")
    return word


def boolean(word: str) -> bool:
    """true or false."""
    return one_of("true", "false")(word) == "true"


def data_type(*names: str) -> Callable[[str], str]:
    """One of these data types, of all if none is named."""
    return one_of(*(names or DATA_TYPES))


def _mode(word: str) -> str:
    return one_of("C", "P", "CP", "L")("CP" if word.upper() == "PC" else word)


def _peer(word: str) -> str:
    return one_of("onednn", "mkl", "numpy", "none")(word) if word != "none" else ""


# How a problem is run, not what it is: --reset and another driver leave these as they are.
COMMON: dict[str, Option] = {
    "mode": Option("mode", _mode, "C correctness (default), P performance, CP both, L list the problems only"),
    "isa": Option("isa", str, "avx2, avx512_core, ...; default: the best that this machine has"),
    "threads": Option("threads", number(0), "default: the OpenMP thread count"),
    "peer": Option("peer", _peer, "also run this library, in the same process: onednn; for --gemm mkl or numpy"),
    "max-ms-per-prb": Option("max_ms", number(1), "time for the measurements of one problem (3000)"),
}
