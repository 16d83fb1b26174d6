"""ASMDNN_VERBOSE: what happens, as lines in the shape of oneDNN's verbose mode, and as records of a logger.

    ASMDNN_VERBOSE=dispatch,create,exec,jit python program.py

dispatch: implementations that refused, and why.  create: primitives, their kernels' origin and ms.  exec: calls and ms.
jit: kernels generated or loaded, bytes and ms.  all: everything; none or 0: nothing; oneDNN's words stand for ours:
profile_create, profile_exec or 1, profile or 2.

Lines go to stdout.  The same text, without the marker, goes to the logger "asmdnn" at level DEBUG, whatever the
variable says.  Both are consulted when a primitive descriptor or a primitive is made, never in a call: a primitive that
was made silently stays silent.
"""

import contextlib
import sys
import warnings
from functools import cache
from typing import Any, Final

from asmdnn.variables import Variable

VARIABLE: Final = "ASMDNN_VERBOSE"
NO_WORDS: Final[frozenset[str]] = frozenset()
MARKER: Final = "asmdnn_verbose,v1"
WORDS: Final = ("dispatch", "create", "exec", "jit")
SYNONYMS: Final = {
    "all": WORDS,
    "none": (),
    "0": (),
    "1": ("exec",),
    "2": ("create", "exec"),
    "profile": ("create", "exec"),
    "profile_create": ("create",),
    "profile_exec": ("exec",),
}

_variable = Variable(VARIABLE)


def wants(word: str) -> bool:
    """Whether anybody listens to events of this kind: a word of ASMDNN_VERBOSE, read now, or the logger."""
    return word in _printed() or _logger() is not None


def listening() -> bool:
    """Whether anybody listens to anything."""
    return bool(_printed()) or _logger() is not None


def say(word: str, *fields: str) -> None:
    """One event, to whoever wants it.  A comma inside a field becomes a semicolon: commas separate fields."""
    line = ",".join(field.replace(",", ";") for field in fields)
    if word in _printed():
        print_lines([line])
    if logger := _logger():
        logger.debug(line)


@cache
def introduce(lines: tuple[str, ...]) -> None:
    """Lines about the process, said once, before the first event."""
    if _printed():
        print_lines(lines)
    if logger := _logger():
        for line in lines:
            logger.debug(line)


def print_lines(lines: "list[str] | tuple[str, ...]") -> None:
    """To stdout; a reader that has left must not make a call fail."""
    with contextlib.suppress(OSError, ValueError):
        if sys.stdout is not None:
            sys.stdout.write("".join(f"{MARKER},{line}\n" for line in lines))
            sys.stdout.flush()


def _printed() -> frozenset[str]:
    return words_of(VARIABLE, _variable.text(), WORDS) if _variable.raw() else NO_WORDS


@cache
def words_of(variable: str, text: str, known: tuple[str, ...]) -> frozenset[str]:
    """The words of a comma-separated variable, synonyms replaced; unknown ones cost one warning a process."""
    synonyms = {name: words for name, words in SYNONYMS.items() if set(words) <= set(known)} | {"all": known}
    given = [word.strip().lower() for word in text.split(",") if word.strip()]
    unknown = [word for word in given if word not in known and word not in synonyms]
    if unknown:
        warnings.warn(
            f"{variable}={text}: there is no word {' or '.join(map(repr, unknown))}: use {', '.join(known)}, all.",
            RuntimeWarning,
            stacklevel=4,
        )
    return frozenset(expanded for word in given for expanded in synonyms.get(word, (word,)) if expanded in known)


def _logger() -> Any:
    """The logger if it is enabled for DEBUG; a process that never imported `logging` has nobody who listens."""
    logging = sys.modules.get("logging")
    if logging is None:
        return None
    logger = logging.getLogger("asmdnn")
    return logger if logger.isEnabledFor(logging.DEBUG) else None
