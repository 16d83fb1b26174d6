"""What all descriptions of primitives have in common."""

from collections.abc import Iterator, Mapping
from dataclasses import Field
from typing import Any, ClassVar, Protocol, TypeVar

from asmdnn.memory import MemoryDesc
from asmdnn.records import altered, replace


class Description(Protocol):
    """A frozen dataclass, validated when it is made; its MemoryDesc fields are the tensors as requested."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __hash__(self) -> int: ...


Formatted = TypeVar("Formatted", bound="WithFormats")


class WithFormats:
    """What descriptions have whose planners ask for tensors in other formats."""

    __slots__ = ()

    def with_formats(self: Formatted, tensors: Mapping[str, MemoryDesc]) -> Formatted:
        """The same with other formats of some tensors; checked again only where dims, types or classes differ."""
        for name, desc in tensors.items():
            own = getattr(self, name)
            if own is None or type(own) is not type(desc) or own.dims != desc.dims or own.dtype != desc.dtype:
                return replace(self, **dict(tensors))  # type: ignore[type-var]  # a mixin of dataclasses
        found: Formatted = altered(self, **tensors)
        return found


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
