"""The text of a tile's spec, which names and kept kernels go by."""

from dataclasses import fields
from typing import Any

# Fields that specs did not have when they got their names.
LATER = ("types", "ahead_bytes", "interleaved", "src_ahead_bytes")


def text_of(spec: Any, name: str = "") -> str:
    """As a dataclass has it, but without fields of LATER at their defaults: names are what they were before these.

    name: of the spec, if these are the fields of what it has.
    """
    shown = [x.name for x in fields(spec) if x.name not in LATER or getattr(spec, x.name) != x.default]
    return f"{name or type(spec).__name__}({', '.join(f'{name}={getattr(spec, name)!r}' for name in shown)})"
