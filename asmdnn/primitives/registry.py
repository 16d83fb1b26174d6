"""All kinds of primitives: a new one is its folder, with a kind.py that has its KINDS, and its name here."""

from importlib import import_module

from asmdnn.errors import InvalidArguments
from asmdnn.primitives.kind import Kind

FOLDERS = (
    "convolution",
    "deconvolution",
    "products",
    "elementwise",
    "reorder",
    "shuffle",
    "recurrent",
    "softmax",
    "pooling",
    "concat",
    "gather",
    "dropout",
    "resampling",
    "sum",
    "normalization",
    "reduction",
    "topk",
    "attention",
)
KINDS: dict[type, Kind] = {
    kind.description: kind for folder in FOLDERS for kind in import_module(f"asmdnn.primitives.{folder}.kind").KINDS
}


def kind_of(desc: object) -> Kind:
    """The kind that `desc` describes a primitive of, or InvalidArguments."""
    kind = KINDS.get(type(desc))
    if kind is None:
        names = ", ".join(sorted(description.__name__ for description in KINDS))
        raise InvalidArguments(f"desc must be one of {names}, not {type(desc).__name__}")
    return kind
