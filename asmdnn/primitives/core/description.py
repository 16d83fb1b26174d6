"""What all descriptions of primitives have in common."""

from collections.abc import Iterator
from dataclasses import Field
from typing import Any, ClassVar, Protocol

from asmdnn.memory import MemoryDesc


class Description(Protocol):
    """A frozen dataclass, validated when it is made; its fields that are MemoryDescs are the tensors as asked for."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __hash__(self) -> int: ...


def every_tensor(desc: Description) -> Iterator[tuple[str, MemoryDesc]]:
    """By name, those of lists of sources, too."""
    for name in desc.__dataclass_fields__:
        value = getattr(desc, name)
        several = value if isinstance(value, tuple) else (value,)
        yield from ((name, one) for one in several if isinstance(one, MemoryDesc))


def asked(desc: Description) -> dict[str, MemoryDesc]:
    """The tensors of a description, formats as asked for."""
    names = desc.__dataclass_fields__
    return {name: value for name in names if isinstance(value := getattr(desc, name), MemoryDesc)}
