"""All kinds of primitives: a new one is its folder and a line here."""

from asmdnn.errors import InvalidArguments
from asmdnn.primitives.convolution import kind as convolution
from asmdnn.primitives.elementwise import kind as elementwise
from asmdnn.primitives.kind import Kind
from asmdnn.primitives.products import kind as products
from asmdnn.primitives.reorder import kind as reorder
from asmdnn.primitives.shuffle import kind as shuffle

FOLDERS = (convolution, products, elementwise, reorder, shuffle)
KINDS: dict[type, Kind] = {kind.description: kind for folder in FOLDERS for kind in folder.KINDS}


def kind_of(desc: object) -> Kind:
    """The kind that `desc` describes a primitive of, or InvalidArguments."""
    kind = KINDS.get(type(desc))
    if kind is None:
        names = ", ".join(sorted(description.__name__ for description in KINDS))
        raise InvalidArguments(f"desc must be one of {names}, not {type(desc).__name__}")
    return kind
