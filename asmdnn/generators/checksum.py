"""What tells kernels of one family apart in their names: a checksum of all that their bytes depend on.

Names are for people, for files and for golden hashes, so they outlive the source: neither the name of a spec's class
nor a field at its default has a say.  So a new field with a default renames no kernel.
"""

from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any
from zlib import crc32

from asmdnn.types import DataType


def checksum(spec: object) -> str:
    """Eight hexadecimal digits."""
    return f"{crc32(_fields_text(spec).encode()):08x}"


def _fields_text(value: Any) -> str:
    shown = ((x.name, getattr(value, x.name), x) for x in fields(value))
    return ", ".join(f"{name}={_text(held)}" for name, held, field in shown if not _is_default(held, field))


def _is_default(value: object, field: "Field[Any]") -> bool:
    """By type and text, since 0.0 equals -0.0 and False equals 0."""
    default = field.default
    return default is not MISSING and type(value) is type(default) and repr(value) == repr(default)


def _text(value: object) -> str:
    if isinstance(value, DataType):
        return value.name
    if is_dataclass(value):
        return f"{type(value).__name__}({_fields_text(value)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    return repr(value)
