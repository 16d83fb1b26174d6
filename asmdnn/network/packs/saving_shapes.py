"""An open network as a file; see saved_shapes.py for what is in it."""

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from os import PathLike

from asmdnn.errors import InvalidArguments, NotPackable
from asmdnn.jit import image_file, pack_file
from asmdnn.network.calls.weights import WeightPieces
from asmdnn.network.dims import OpenDims, Shapes, open_text
from asmdnn.network.packs.saved import PackedNetwork, versions
from asmdnn.network.packs.saved_parts import code_at
from asmdnn.network.packs.saved_states import at_first_text
from asmdnn.network.packs.saving import Sections, cannot_be_saved, path_of, written
from asmdnn.network.packs.saving_parts import PartWriter, Shelf, Text
from asmdnn.network.planned import NetworkPlan
from asmdnn.network.states import StateArrays
from asmdnn.runtime.byte_sums import byte_sum

Source = NetworkPlan | PackedNetwork


def write(
    path: str | PathLike[str],
    title: str,
    dims: OpenDims,
    sources: Sequence[tuple[Shapes, Source]],
    states: StateArrays | None,
    made_of: str = "",
) -> None:
    """Write networks of several shapes to a file.  made_of: a sum of their model.  Raises InvalidArguments."""
    where = path_of(path)
    try:
        image = image_of(title, dims, sources, states, made_of)
    except NotPackable as error:
        raise InvalidArguments(cannot_be_saved(error)) from None
    pack_file.write(where, image)


def image_of(
    title: str,
    dims: OpenDims,
    sources: Sequence[tuple[Shapes, Source]],
    states: StateArrays | None = None,
    made_of: str = "",
) -> bytes:
    """The file's bytes.  states: what all shapes share."""
    kernels, shared, entries, sections = SharedCode(), SharedWeights(), list[Text](), Sections()
    for number, (shapes, source) in enumerate(sources):
        text, own, weights = written(source)
        natives = zip((part for part in text["parts"] if "plan" in part), weights, strict=True)
        places = [shared.places_of(one, part["layout"]["weights"].values()) for part, one in natives]
        entries.append({"dims": shapes, "weights": places})
        said = {**text, "key": "", "kernels": kernels.numbers_of(text, b"".join(own["code"]))}
        sections |= {f"text {number}": [json.dumps(said).encode()], f"arrays {number}": own["arrays"]}
    sections["code"] = kernels.code.pieces
    sections["weights"] = shared.shelf.pieces
    writer = PartWriter()
    at_first = at_first_text(states, writer.array)
    sections["arrays"] = writer.shelf.pieces
    text = {
        **versions(),
        "states": at_first,
        "arrays": writer.arrays,
        "title": title,
        "model": made_of,
        "isa": sources[0][1].runnable.isa,
        **open_text(dims),
        "shapes": entries,
        "kernels": kernels.said,
    }
    return image_file.image_of(text, sections)


class SharedWeights:
    """The packed weights of all shapes, each once."""

    def __init__(self) -> None:
        self.shelf = Shelf()
        self._known = dict[bytes, int]()  # by sum
        self._lying = dict[tuple[int, int], int]()  # by address and size
        self._held = list[WeightPieces]()  # so that addresses stay their own

    def places_of(self, weights: WeightPieces, starts: Iterable[int]) -> list[tuple[int, int]]:
        """Place and size of the pieces of a shape's weights, which begin there."""
        self._held.append(weights)
        ends = [*sorted(starts), weights.size]
        found = list[tuple[int, int]]()
        for start, end in pairwise(ends):
            at, size = self.place_of(weights, start, end - start), end - start
            if found and sum(found[-1]) == at:
                found[-1] = found[-1][0], found[-1][1] + size
            else:
                found.append((at, size))
        return found

    def place_of(self, weights: WeightPieces, start: int, size: int) -> int:
        """Of a weight."""
        key = weights.address(start), size
        if key not in self._lying:
            data = weights.part(start, size).data.cast("B")
            own = byte_sum(data) + size.to_bytes(8, "little")
            if own not in self._known:
                self._known[own] = self.shelf.put(data)
            self._lying[key] = self._known[own]
        return self._lying[key]


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
