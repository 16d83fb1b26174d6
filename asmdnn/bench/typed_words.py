"""Words for the types of src, weights and dst together: `--dt=u8:s8:f32`, or `--cfg=u8s8f32` in older words."""

import re
from collections.abc import Sequence

from asmdnn.bench.values import NAMED
from asmdnn.bench.vocabulary import ALL_DATA_TYPES
from asmdnn.errors import InvalidArguments, Unimplemented, resembling
from asmdnn.types import CODED_FLOATS, FLOATS8, DataType

TENSORS = ("src", "weights", "dst")
BUILT = ("f32", "bf16", "f16", "s32", "s8", "u8", "s4", "u4", *(dtype.name for dtype in FLOATS8))
OF_MATRICES = (*BUILT, *(dtype.name for dtype in CODED_FLOATS))


def types_of_tensors(word: str, built: Sequence[str] = BUILT) -> str:
    """One type for all, or three, of those that are built: as short as it may be written."""
    names = word.lower().split(":")
    if len(names) not in (1, len(TENSORS)) or not ALL_DATA_TYPES.issuperset(names):
        known = sorted(ALL_DATA_TYPES)
        near = next(filter(None, (resembling(name, known) for name in names if name not in known)), "")
        raise InvalidArguments(f"must be f32, or the types of src, weights and dst, of {', '.join(known)}{near}")
    return _joined(names, built)


def types_of_matrices(word: str) -> str:
    """The same, which may be floats of 4 bits."""
    return types_of_tensors(word, OF_MATRICES)


def older_types_of_tensors(word: str) -> str:
    """The same without colons, such as f32, u8s8f32 and bf16bf16f32."""
    types = "|".join(sorted(ALL_DATA_TYPES, key=len, reverse=True))
    match = re.fullmatch(f"((?:{types})+)(_wino|_no_limits|_full)?", word.lower())
    names = re.findall(types, match[1]) if match else []
    if len(names) not in (1, len(TENSORS)):
        raise InvalidArguments("must be f32, or the types of src, weights and dst in a row, such as u8s8f32")
    return _joined(names)


def any_bias_type(word: str) -> str:
    """`undef`, which is no bias, or a type."""
    name = word.lower()
    if name not in ALL_DATA_TYPES:
        raise InvalidArguments(f"must be one of {', '.join(BUILT)}, or undef{resembling(name, (*BUILT, 'undef'))}")
    return name if name == "undef" else _joined([name])


def typed(word: str) -> dict[str, DataType]:
    """The types by tensors, of a word as `types_of_tensors` leaves it."""
    names = word.split(":")
    return dict(zip(TENSORS, (NAMED[name] for name in names * (len(TENSORS) // len(names))), strict=True))


def _joined(names: list[str], built: Sequence[str] = BUILT) -> str:
    for name in names:
        if name not in built:
            raise Unimplemented(f"{name} is not built yet, only {', '.join(built)}")
    return names[0] if len({*names}) == 1 else ":".join(names)
