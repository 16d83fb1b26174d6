"""What all descriptions of primitives have in common."""

from dataclasses import Field
from typing import Any, ClassVar, Protocol

from asmdnn.memory import MemoryDesc


class Description(Protocol):
    """A frozen dataclass, validated when it is made; its fields that are MemoryDescs are the tensors as asked for."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __hash__(self) -> int: ...


def asked(desc: Description) -> dict[str, MemoryDesc]:
    """The tensors of a description, formats as asked for."""
    names = desc.__dataclass_fields__
    return {name: value for name in names if isinstance(value := getattr(desc, name), MemoryDesc)}
