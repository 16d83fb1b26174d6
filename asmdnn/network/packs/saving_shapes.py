"""An open network as a file; see saved_shapes.py for what is in it."""

import json
from collections.abc import Sequence
from os import PathLike

import numpy as np

from asmdnn.jit import image_file, pack_file
from asmdnn.network.arrays import Array
from asmdnn.network.dims import OpenDims, Shapes, open_text
from asmdnn.network.packs.saved import PackedNetwork, versions
from asmdnn.network.packs.saved_parts import code_at
from asmdnn.network.packs.saved_states import at_first_text
from asmdnn.network.packs.saving import Sections, path_of, written
from asmdnn.network.packs.saving_parts import PartWriter, Shelf, Text
from asmdnn.network.planned import NetworkPlan
from asmdnn.network.states import StateArrays

Source = NetworkPlan | PackedNetwork


def write(
    path: str | PathLike[str],
    title: str,
    dims: OpenDims,
    sources: Sequence[tuple[Shapes, Source]],
    states: StateArrays | None,
) -> None:
    """Write native networks of several shapes to a file.  Raises InvalidArguments."""
    pack_file.write(path_of(path), image_of(title, dims, sources, states))


def image_of(
    title: str, dims: OpenDims, sources: Sequence[tuple[Shapes, Source]], states: StateArrays | None = None
) -> bytes:
    """The file's bytes.  states: what all shapes share."""
    kernels, blobs, entries, sections = SharedCode(), list[Array](), list[Text](), Sections()
    for number, (shapes, source) in enumerate(sources):
        text, own, (weights,) = written(source)
        place = place_of(blobs, weights)
        entries.append({"dims": shapes, "weights": f"weights {place}"})
        said = {**text, "key": "", "kernels": kernels.numbers_of(text, b"".join(own["code"]))}
        sections |= {f"text {number}": [json.dumps(said).encode()], f"arrays {number}": own["arrays"]}
    sections["code"] = kernels.code.pieces
    sections |= {f"weights {i}": [blob.data.cast("B")] for i, blob in enumerate(blobs)}
    writer = PartWriter()
    at_first = at_first_text(states, writer.array)
    sections["arrays"] = writer.shelf.pieces
    text = {
        **versions(),
        "states": at_first,
        "arrays": writer.arrays,
        "title": title,
        "isa": sources[0][1].runnable.isa,
        **open_text(dims),
        "shapes": entries,
        "kernels": kernels.said,
    }
    return image_file.image_of(text, sections)


def place_of(blobs: list[Array], weights: Array) -> int:
    """Where weights are among others, after which they come if there are no equal ones."""
    for i, blob in enumerate(blobs):
        if blob is weights or np.array_equal(blob, weights):
            return i
    blobs.append(weights)
    return len(blobs) - 1


class SharedCode:
    """The kernels of all shapes, each once."""

    def __init__(self) -> None:
        self.code, self.said = Shelf(), list[Text]()
        self._places = dict[bytes, list[int]]()
        self._numbers = dict[tuple[str, bytes], int]()

    def numbers_of(self, text: Text, section: bytes) -> list[int]:
        """Those of a shape's kernels, the executor last."""
        found = list[int]()
        for kernel in text["kernels"]:
            data = code_at(memoryview(section), *kernel["code"])
            if data not in self._places:
                self._places[data] = [self.code.put(data), len(data)]
            key = kernel["spec"], data
            if key not in self._numbers:
                self._numbers[key] = len(self.said)
                self.said.append({**kernel, "code": self._places[data]})
            found.append(self._numbers[key])
        return found
