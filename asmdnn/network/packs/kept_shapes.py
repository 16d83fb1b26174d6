"""The shapes of an open network in the cache on disk: one that any process has planned is not planned again.

A shape's file has its plan and its kernels.  Packed weights are files of their own, under the sum of their bytes: those
of the first shape, and what further ones read besides.  Shapes from disk share weights, and kernels with equal code.
"""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import ref

from asmdnn.forking import importing
from asmdnn.jit import image_file
from asmdnn.jit.image_file import Image
from asmdnn.network.arrays import Array
from asmdnn.network.calls.weights import WeightPieces, checked_piece, in_pieces
from asmdnn.network.dims import OpenDims, open_read, open_text
from asmdnn.network.packs.kept import find, put, store
from asmdnn.network.packs.kept_stages import MakeStages
from asmdnn.network.packs.pieces import SharedKernels, octets, proved
from asmdnn.network.packs.saved import PackedNetwork, versions
from asmdnn.network.packs.saved_parts import array_at
from asmdnn.network.packs.saved_states import at_first_read, at_first_text
from asmdnn.network.states import StateArrays
from asmdnn.runtime.byte_sums import byte_sum

if TYPE_CHECKING:
    from asmdnn.network.network import Network

Dims = Mapping[str, tuple[int, ...]]


class SharedPieces(SharedKernels):
    """Of the shapes of one network.  What a file says of weights are their pieces: key, place and size of each."""

    def __init__(self) -> None:
        super().__init__()
        self._blobs: dict[str, Array] = {}
        self._stored: list[tuple[ref[Array], str]] = []  # and the key of each

    def weights(self, image: Image, part: Mapping[str, Any]) -> WeightPieces:
        """Raises KeyError where there are none, ValueError where they are damaged."""
        return in_pieces([checked_piece(self.blob(key), at, size) for key, at, size in part["weights"]])

    def blob(self, key: str) -> Array:
        """Raises KeyError where there is none, ValueError where it is damaged."""
        if key not in self._blobs:
            kept = store()
            found = kept.get_image(key) if kept else None
            if found is None:
                raise KeyError(key)
            self._blobs[key] = octets(proved(found.apart, key))
        return self._blobs[key]

    def put(self, weights: WeightPieces) -> list[tuple[str, int, int]]:
        """Store packed weights, each blob once; what a file says of them."""
        return [(self.key_of(piece.blob), piece.at, piece.size) for piece in weights.pieces]

    def key_of(self, blob: Array) -> str:
        """That of a blob which is stored then."""
        known = next((key for stored, key in self._stored if stored() is blob), "")
        if not known:
            data = blob.data.cast("B")
            known = byte_sum(data).hex()
            kept = store()
            if kept and known not in self._blobs:
                kept.put_image(known, image_file.pieces_of({"key": known, "title": "weights"}, {}, [data]))
            self._stored = [(stored, key) for stored, key in self._stored if stored() is not None]
            self._stored.append((ref(blob), known))
        return known


class KeptShapes:
    """Of one open network.  key: what is kept of it lies under, without dims; threads: what it is planned for;
    fallback: whether nodes may be in numpy; title, dims: what is written down of it, so that its model need not be
    read; states: what all shapes share."""

    def __init__(
        self, key: str, threads: int, fallback: str | None, title: str, dims: OpenDims, states: StateArrays | None
    ) -> None:
        self._states = states
        self._key, self._threads, self._fallback, self._pieces = key, threads, fallback, SharedPieces()
        self._title, self._dims, self._is_described = title, dims, False

    def key_of(self, dims: Dims) -> str:
        return hashlib.sha256(f"{self._key} {sorted(dims.items())}".encode()).hexdigest()

    def find(self, dims: Dims, stages: MakeStages | None) -> PackedNetwork | None:
        """What is kept of a shape.  stages: reads the model."""
        found = find(self.key_of(dims), self._threads, self._fallback, self._pieces, stages)
        return found if found and found.states.are(self._states) else None

    def put(self, dims: Dims, network: "Network") -> bool:
        """Store a shape that was planned and has run.  Returns whether there is nothing left to be done."""
        plan = network.planned()
        natives = plan.runnable.natives
        if not all(part.is_ready for part in natives):
            return False
        runners = [part.runner for part in natives]
        put(self.key_of(dims), plan, runners, [self._pieces.put(runner.weights) for runner in runners])
        if not self._is_described and (kept := store()):
            with importing():
                from asmdnn.network.packs.saving_parts import PartWriter

            writer = PartWriter()
            own = {"states": at_first_text(self._states, writer.array), "arrays": writer.arrays}
            text = {**versions(), "key": self._key, "title": self._title, **open_text(self._dims), **own}
            kept.put_image(self._key, image_file.pieces_of(text, {"arrays": writer.shelf.pieces}))
            self._is_described = True
        return True


def described(key: str) -> tuple[str, OpenDims, StateArrays | None] | None:
    """Title, inputs and states of an open network of which shapes are kept under a key."""
    kept = store()
    image = kept.get_image(key) if kept else None
    if image is None or any(image.text.get(name) != mine for name, mine in versions().items()):
        return None
    try:
        arrays = [array_at(image.sections["arrays"], *place) for place in image.text["arrays"]]
        return str(image.text["title"]), open_read(image.text), at_first_read(image.text["states"], arrays.__getitem__)
    except Exception:  # a network of fixed dims, or nonsense
        return None
