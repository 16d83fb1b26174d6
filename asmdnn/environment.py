"""The environment variables that asmdnn reads, all of them here: their names, and one meaning for each kind of value.

Everything is read when it is asked for, so that a variable may change at any time.  A value that means nothing costs
one warning a process and counts as unset, as does a variable ASMDNN_... that nobody reads: it is most likely misspelt.
Names of CPUs and ISA levels are the exception: whoever asks for one refuses what it does not know.
"""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from asmdnn.errors import resembling

PREFIX: Final = "ASMDNN_"
MACHINE: Final = "ASMDNN_MACHINE"
MAX_CPU_ISA: Final = "ASMDNN_MAX_CPU_ISA"
CACHE: Final = "ASMDNN_CACHE"
CACHE_DIR: Final = "ASMDNN_CACHE_DIR"
CACHE_SIZE: Final = "ASMDNN_CACHE_SIZE"
TUNED: Final = "ASMDNN_TUNED"
CHECK: Final = "ASMDNN_CHECK"
DUMP: Final = "ASMDNN_DUMP"
VERBOSE: Final = "ASMDNN_VERBOSE"
JIT_PROFILE: Final = "ASMDNN_JIT_PROFILE"
MEMORY_LIMITS: Final = "ASMDNN_MEMORY_LIMITS"
REQUIRE_ISA: Final = "ASMDNN_REQUIRE_ISA"  # of the tests
KNOWN: Final = (
    MACHINE, MAX_CPU_ISA, CACHE, CACHE_DIR, CACHE_SIZE, TUNED, CHECK, DUMP, VERBOSE, JIT_PROFILE, MEMORY_LIMITS,
    REQUIRE_ISA,
)  # fmt: skip

YES: Final = ("1", "yes", "on", "true")
NO: Final = ("0", "no", "off", "false")
NO_SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({})

# os.environ keeps encoded names and values in `_data`, since Python 3.2; should it not, os.environb is the slow way.
_values: Mapping[bytes, bytes] = getattr(os.environ, "_data", os.environb)
_encoded = cache(os.fsencode)


def raw(name: str) -> bytes | None:
    """The bytes of the value, to compare; None if it is unset.  0.1 us, where os.environ takes 1."""
    value: bytes | None = _values.get(_encoded(name))
    return value


def of_host(get: Callable[[bytes], bytes | None] = _values.get) -> tuple[bytes | None, bytes | None]:
    """As `raw`, of the variables that name a machine and a cap: every function on arrays asks, so one call, 0.15 us."""
    return get(b"ASMDNN_MACHINE"), get(b"ASMDNN_MAX_CPU_ISA")


def text(name: str) -> str:
    """The value without the blanks around it; "" if it is unset."""
    _warn_of_unknown_names()
    value = raw(name)
    return os.fsdecode(value).strip() if value else ""


def shown(name: str) -> str:
    """The variable as one would write it, NAME=VALUE."""
    return f"{name}={text(name)}"


def word(name: str) -> str:
    """The value as one word in lower case: a name of a machine or of an ISA level; "" if it is unset."""
    return text(name).lower()


def flag(name: str, default: bool) -> bool:
    """Whether a yes-or-no variable says yes; `default` if it is unset, or says neither."""
    value = word(name)
    if not value:
        return default
    if value in YES or value in NO:
        return value in YES
    _warn(f"{name}={value} is neither yes nor no and is ignored: use 1, yes, on, true, or 0, no, off, false.")
    return default


def path(name: str) -> Path | None:
    """The value as a path, with ~ for a home directory; None if it is unset."""
    value = text(name)
    return Path(os.path.expanduser(value)) if value else None


def words(name: str, known: Sequence[str], synonyms: Mapping[str, tuple[str, ...]] = NO_SYNONYMS) -> frozenset[str]:
    """The words of a comma-separated variable, synonyms replaced; "all" is all of them, and what says no is none."""
    value = text(name)
    return _words(name, value, tuple(known), tuple(synonyms.items())) if value else frozenset()


@cache
def _words(
    name: str, value: str, known: tuple[str, ...], synonyms: tuple[tuple[str, tuple[str, ...]], ...]
) -> frozenset[str]:
    meanings = {name: words for name, words in synonyms if set(words) <= set(known)}
    meanings |= dict.fromkeys((*NO, "none"), ()) | {"all": known} | {word: (word,) for word in known}
    given = [word.strip().lower() for word in value.split(",") if word.strip()]
    unknown = [word for word in given if word not in meanings]
    if unknown:
        near = resembling(unknown[0], [*known, "all"]) or "."
        _warn(f"{name}={value}: there is no word {' or '.join(map(repr, unknown))}: use {', '.join(known)}, all{near}")
    return frozenset(meaning for word in given for meaning in meanings.get(word, ()))


def everything() -> dict[str, str]:
    """A copy of all variables, sorted by name, for a bug report."""
    return dict(sorted(os.environ.items()))


def tell_others(name: str, value: str) -> None:
    """Set a variable that another library reads when it is loaded into this process."""
    os.environ[name] = value


@cache
def _warn_of_unknown_names() -> None:
    for name in everything():
        if name.startswith(PREFIX) and name not in KNOWN:
            near = resembling(name, KNOWN) or "."
            _warn(f"{name} is no variable of asmdnn and is ignored: there are {', '.join(KNOWN)}{near}")


@cache
def _warn(message: str) -> None:
    """Once a process, in the name of whoever called the library's entry point."""
    warnings.warn(message, RuntimeWarning, stacklevel=5)
