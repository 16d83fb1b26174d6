"""In which types kernels keep values, and which products multiply narrow ones; and what a caller allows."""

from collections.abc import Mapping
from sys import float_info
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, not_one_of, shown
from asmdnn.memory.sequences import items
from asmdnn.records import dataclass, field
from asmdnn.types import FLOAT_NAMES, DataType

WORDS = (*FLOAT_NAMES, "fast")
FILE = "file"
IO_TYPES = (FILE, *FLOAT_NAMES)


@dataclass(frozen=True)
class Precision:
    """word: f32, or what kernels may multiply and store instead where that is faster: bf16, f16, or, with "fast",
    whatever the CPU multiplies fastest.  keep_f32: names of nodes that compute in f32 in any case.  io: the type of
    float inputs and outputs, "file" being that of the model.  trains: only what is multiplied is rounded, also where
    both operands are data; all values stay f32, as gradients read them, too."""

    word: str = "f32"
    keep_f32: tuple[str, ...] = ()
    io: str = FILE
    trains: bool = False

    def allows(self, dtype: DataType) -> bool:
        """Whether kernels may multiply and store it instead of f32."""
        return self.word in (dtype.name, "fast")


@dataclass(frozen=True, eq=False)
class StorageTypes:
    """values: the type of those that are not kept as they are declared; products: what is multiplied by the
    groups of these results, whose operands are narrow; weights: what only the weights of such groups are kept in."""

    values: Mapping[str, DataType] = field(default_factory=dict)
    products: Mapping[str, DataType] = field(default_factory=dict)
    weights: Mapping[str, DataType] = field(default_factory=dict)


IN_F32, AS_DECLARED = Precision(), StorageTypes()


def precision_of(word: Any, keep_f32: Any, io: Any = FILE) -> Precision:
    """What a caller said.  Raises InvalidArguments."""
    if not isinstance(word, str) or word not in WORDS:
        raise InvalidArguments(not_one_of("precision", word, WORDS))
    if not isinstance(io, str) or io not in IO_TYPES:
        raise InvalidArguments(not_one_of("io", io, IO_TYPES))
    try:
        names = tuple(items(keep_f32)) if not isinstance(keep_f32, str) else (keep_f32,)
    except Exception:  # whatever the caller's object does
        names = (None,)
    if not all(isinstance(name, str) for name in names):
        raise InvalidArguments(f"keep_f32 must be names of nodes, not {shown(keep_f32)}")
    return Precision(word, tuple(sorted({str(name) for name in names})), io)


def precision_text(precision: Precision) -> list[Any]:
    """What a file says of it."""
    return [precision.word, list(precision.keep_f32), precision.io]


def precision_read(text: Any) -> Precision:
    """Raises InvalidArguments or ValueError for what is none."""
    word, kept, io = text
    return precision_of(word, kept, io)


@dataclass(frozen=True, eq=False)
class ErrorLimit:
    """The largest error that outputs may have for some inputs."""

    most: float
    feeds: Mapping[str, Any]


def limit_of(max_error: Any, feeds: Any) -> ErrorLimit | None:
    """What a caller said, None if nothing.  Raises InvalidArguments."""
    if max_error is None:
        if feeds is not None:
            raise InvalidArguments("feeds are inputs by which max_error is kept: say max_error=, or leave them out")
        return None
    is_number = isinstance(max_error, int | float | np.floating) and not isinstance(max_error, bool)
    if isinstance(max_error, np.floating):
        max_error = float(max_error)  # the largest double is too large for numpy's smaller types
    if not (is_number and 0 < max_error <= float_info.max):
        raise InvalidArguments(f"max_error must be a positive share of the largest value, not {shown(max_error)}")
    if not isinstance(feeds, Mapping):
        raise InvalidArguments(f"max_error={max_error:g} needs feeds, inputs by name to measure it, not {shown(feeds)}")
    own = {name: x.copy() if type(x) is np.ndarray else x for name, x in feeds.items()}
    return ErrorLimit(float(max_error), own)  # plans are made later, too, when the caller has other data in them


def is_fallback(word: Any) -> bool:
    """Whether it is what `load_onnx` takes for nodes without a kernel: who plans says what is wrong with others."""
    return word is None or (isinstance(word, str) and word == "numpy")
