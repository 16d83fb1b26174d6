"""What tells kernels of one family apart in their names: a checksum of all that their bytes depend on.

Names are for people, for files and for golden hashes, so they outlive the source: neither the name of a spec's class
nor a field at its default has a say.  So a new field with a default renames no kernel.
"""

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any
from zlib import crc32

from asmdnn.types import DataType

_Fields = tuple[tuple[str, Any, str], ...]  # names, with their defaults and these as text


def checksum(spec: Any) -> str:
    """Eight hexadecimal digits."""
    return f"{crc32(_fields_text(spec, _fields_of(spec.__class__) or ()).encode()):08x}"


@cache
def _fields_of(kind: Any) -> _Fields | None:
    """Of a dataclass; None of what is written by itself."""
    if kind is DataType or not is_dataclass(kind):
        return None
    return tuple((x.name, x.default, repr(x.default)) for x in fields(kind))


def _fields_text(value: object, known: _Fields) -> str:
    words = []
    for name, default, text in known:
        held = getattr(value, name)
        if not _is(held, default, text):
            words.append(f"{name}={_text(held)}")
    return ", ".join(words)


def _is(held: object, default: object, text: str) -> bool:
    """By type and text, since 0.0 equals -0.0 and False equals 0."""
    return held is default or (type(held) is type(default) and repr(held) == text)


def _text(value: Any) -> str:
    if isinstance(value, DataType):
        return value.name
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    known = _fields_of(value.__class__)
    return repr(value) if known is None else f"{type(value).__name__}({_fields_text(value, known)})"
