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
from functools import cache
from typing import Any, Final

from asmdnn import environment

MARKER: Final = "asmdnn_verbose,v1"
WORDS: Final = ("dispatch", "create", "exec", "jit")
SYNONYMS: Final = {
    "1": ("exec",),
    "2": ("create", "exec"),
    "profile": ("create", "exec"),
    "profile_create": ("create",),
    "profile_exec": ("exec",),
}


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
    return environment.words(environment.VERBOSE, WORDS, SYNONYMS)


def _logger() -> Any:
    """The logger if it is enabled for DEBUG; a process that never imported `logging` has nobody who listens."""
    if "logging" not in sys.modules:
        return None
    logger, debug = _logger_and_level()
    return logger if logger.isEnabledFor(debug) else None


@cache
def _logger_and_level() -> tuple[Any, int]:
    """Asked for once, as there is a lock around it."""
    logging = sys.modules["logging"]
    return logging.getLogger("asmdnn"), logging.DEBUG
