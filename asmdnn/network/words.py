"""What a caller gets of an output whose numbers stand for something: words by places, or dicts by columns."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.network.arrays import Array
from asmdnn.records import dataclass

KINDS = ("texts", "maps")


@dataclass(frozen=True)
class Border:
    """kind: "texts", an array of them; "maps", a dict for each row.  words: by places, or by columns."""

    kind: str
    words: tuple[int | str, ...]

    def delivered(self, array: Array) -> Any:
        if self.kind == "texts":
            return np.array(self.words, object)[array]
        return [dict(zip(self.words, row, strict=True)) for row in array.tolist()]


Borders = Mapping[str, Border]
Types = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]


def delivered(outputs: dict[str, Array], borders: Borders) -> dict[str, Any]:
    """The outputs as a caller gets them."""
    return {x: borders[x].delivered(y) if x in borders else y for x, y in outputs.items()} if borders else outputs


def with_borders(outputs: Types, borders: Borders) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Dims and types as a caller gets them: objects, dicts one for each row."""
    found = dict(outputs)
    for name, border in borders.items():
        dims = outputs[name][0]
        found[name] = (dims if border.kind == "texts" or dims is None else dims[:1], np.dtype(object))
    return found


def check_no_borders(borders: Borders) -> None:
    """Raise InvalidArguments for outputs that kernels do not write."""
    if borders:
        raise InvalidArguments(f"output {next(iter(borders))} is texts or dicts: use run()")


def borders_text(borders: Borders) -> dict[str, Any]:
    """As a file has them."""
    return {name: [border.kind, list(border.words)] for name, border in borders.items()}


def borders_of(text: Mapping[str, Any]) -> dict[str, Border]:
    """The way back.  Raises ValueError, and whatever nonsense leads to."""
    found = {name: Border(kind, tuple(words)) for name, (kind, words) in text.items()}
    for border in found.values():
        if border.kind not in KINDS or any(type(word) not in (int, str) for word in border.words):
            raise ValueError("a border that is none")
    return found
