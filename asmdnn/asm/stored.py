"""Functions on disk, so that a process need not write them anew: in the kernel cache, by a text of all they depend on.

That text has the whole file of the body and the body's place in it, the numbers and texts that it reads from around it,
the prototype, the level, the assembler's sources, and the values that `cache=` says: whatever it reads of other files.
Files are trusted as kernels' are (jit/store.py).
"""

import hashlib
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from asmdnn.asm.levels import FunctionLevel
from asmdnn.asm.prototype import Prototype
from asmdnn.errors import InvalidArguments, shown
from asmdnn.isa.peachpy_version import PEACHPY_VERSION
from asmdnn.jit.digests import digest_of, source_digest
from asmdnn.jit.store import default_store

PLAIN: Final = (str, bytes, int, float, bool, type(None))  # whose repr says all of them in every process


class StoredFunction:
    """The place of one function at one level."""

    def __init__(
        self, body: Callable[..., Any], prototype: Prototype, level: FunctionLevel, depends: object, fp: bool
    ) -> None:
        place = f"{body.__qualname__} {body.__code__.co_firstlineno}"
        given = repr((str(prototype), level.name, fp, place, surroundings(body), depends))
        text = "\n".join(("function", given, file_text(body), sources()))
        self._key, self._name = hashlib.sha256(text.encode()).hexdigest(), prototype.name
        self._store = default_store()

    def get(self) -> bytes | None:
        """The bytes, if they are there and intact."""
        return self._store.get(self._key, self._name) if self._store else None

    def put(self, data: bytes) -> None:
        if self._store:
            self._store.put(self._key, self._name, data)


def check_values(name: str, values: object) -> None:
    """Raises InvalidArguments for what has no text that is the same in every process."""
    if not _is_plain(values):
        raise InvalidArguments(f"cache of {name!r} has {shown(values)}: give numbers, texts, and tuples of these.")


def surroundings(body: Callable[..., Any]) -> tuple[tuple[str, object], ...]:
    """The numbers and texts that the body reads of its file and of a function around it.

    Raises InvalidArguments for other values of a function around it: a factory's parameters are what code depends on.
    """
    read = inspect.getclosurevars(body)
    found = [(name, value) for name, value in read.globals.items() if _is_plain(value)]
    for name, value in read.nonlocals.items():
        if not _is_plain(value) and not callable(value):
            what = f"it reads {name}, which is {shown(value)}"
            raise InvalidArguments(f"cache of {body.__name__!r}: {what}: give numbers, texts, and tuples of these.")
        found.append((name, value if _is_plain(value) else getattr(value, "__qualname__", "")))
    return tuple(sorted(found, key=lambda pair: pair[0]))


def _is_plain(value: object) -> bool:
    return all(map(_is_plain, value)) if isinstance(value, tuple) else type(value) in PLAIN


def file_text(body: Callable[..., Any]) -> str:
    """Of the file that has the body.  Raises InvalidArguments where there is none."""
    try:
        path = inspect.getsourcefile(body)
        text = Path(path).read_text() if path else ""
    except (TypeError, OSError):
        text = ""
    if not text:
        raise InvalidArguments(f"cache of {body.__name__!r}: its body is in no file, whose text could be the key.")
    return text


@cache
def sources() -> str:
    """What decides the bytes besides the body."""
    return PEACHPY_VERSION + source_digest() + digest_of(Path(__file__).parent.rglob("*.py"))
