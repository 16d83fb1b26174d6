"""The text of a tile's spec, which names and kept kernels go by."""

from dataclasses import fields
from typing import Any

from asmdnn.isa.dot import F32


def text_of(spec: Any) -> str:
    """As a dataclass has it, but without the `types` if they are f32: so it was before there were others."""
    shown = [field.name for field in fields(spec) if field.name != "types" or spec.types != F32]
    return f"{type(spec).__name__}({', '.join(f'{name}={getattr(spec, name)!r}' for name in shown)})"
