"""What all descriptions of primitives have in common."""

from collections.abc import Iterator
from dataclasses import Field
from typing import Any, ClassVar, Protocol

from asmdnn.memory import MemoryDesc


class Description(Protocol):
    """A frozen dataclass, validated when it is made; its MemoryDesc fields are the tensors as requested."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __hash__(self) -> int: ...


def every_tensor(desc: Description) -> Iterator[tuple[str, MemoryDesc]]:
    """By name, with those in lists of sources."""
    for name in desc.__dataclass_fields__:
        value = getattr(desc, name)
        several = value if isinstance(value, tuple) else (value,)
        yield from ((name, one) for one in several if isinstance(one, MemoryDesc))


def asked(desc: Description) -> dict[str, MemoryDesc]:
    """The tensors of a description, in the formats requested."""
    names = desc.__dataclass_fields__
    return {name: value for name in names if isinstance(value := getattr(desc, name), MemoryDesc)}
