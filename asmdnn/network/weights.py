"""Packed weights of a model: what several shapes read in one format is packed and held once."""

from collections.abc import Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from asmdnn.memory import Memory
from asmdnn.network.arrays import Array, same_bits
from asmdnn.network.buffers import Weight
from asmdnn.network.descriptors import row_major
from asmdnn.network.running import PAGE_BYTES
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.reordering import reorder
from asmdnn.records import dataclass, field
from asmdnn.types import HALF_FLOATS

LARGE_BYTES: Final = 1 << 16  # of weights that are worth a kernel
MOST_LOOKED_AT: Final = 64  # blobs, the last ones, when another shape comes


@dataclass(frozen=True, eq=False)
class Blob:
    """u8[bytes], read-only once it is full: weights by name, each where `places` says.  users: the plans that read it,
    as long as they live."""

    weights: Mapping[str, Weight]
    places: Mapping[str, int]
    data: Array
    users: WeakSet[object] = field(default_factory=WeakSet)

    def has(self, name: str, weight: Weight) -> bool:
        known = self.weights.get(name)
        return known is not None and known.desc == weight.desc and same_bits(known.array, weight.array)

    def is_for(self, weights: Mapping[str, Weight], places: Mapping[str, int], size: int) -> bool:
        is_laid_out_so = len(self.data) == size and self.places == places
        return is_laid_out_so and all(self.has(name, weight) for name, weight in weights.items())


class WeightPool:
    """The blobs of a model's plans.  Threads that pack at the same time may each make one: they have equal bytes.

    A constant that depends on an open dim makes a blob for every shape, so those go whose plans have gone.  The one
    that was asked for last stays, as the next shape is likely to read it.
    """

    def __init__(self) -> None:
        self._blobs: list[Blob] = []
        self._usual: Blob | None = None  # that most plans read
        self._of: WeakKeyDictionary[object, Blob] = WeakKeyDictionary()

    @property
    def size_bytes(self) -> int:
        return sum(len(blob.data) for blob in self._blobs)

    def share_of(self, user: object) -> int:
        """Bytes that go with a plan.  What most plans read is the model's, and nobody's share."""
        blob = self._of.get(user)
        return 0 if blob is None or blob is self._usual else len(blob.data) // max(len(blob.users), 1)

    def packed(self, user: object, weights: Mapping[str, Weight], places: Mapping[str, int], size: int) -> Array:
        """All weights in the formats that kernels read, u8[size], for a plan."""
        blobs = self._blobs
        known = [*blobs[-MOST_LOOKED_AT:], *([self._usual] if self._usual else [])]
        blob = next((each for each in known if each.is_for(weights, places, size)), None)
        if blob is None:
            blob = Blob(weights, places, made(weights, places, size, known))
        blob.users.add(user)
        self._of[user] = blob
        self._blobs = [*(each for each in blobs if each.users and each is not blob), blob]
        self._usual = max(self._blobs, key=lambda each: len(each.users))
        return blob.data


def made(weights: Mapping[str, Weight], places: Mapping[str, int], size: int, known: Sequence[Blob]) -> Array:
    """u8[size]: weights are copied from blobs that have them, else packed."""
    blob = pages(size)
    for name, weight in weights.items():
        at, count = places[name], weight.desc.size_bytes
        source = next((one for one in known if one.has(name, weight)), None)
        if source:
            blob[at : at + count] = source.data[source.places[name] :][:count]
        else:
            blob[at : at + count] = packed_bytes(weight)
    return blob


def packed_bytes(weight: Weight) -> Array:
    """u8[bytes]; f32 for narrower types is rounded to the nearest."""
    if weight.desc == row_major(weight.desc.dims) and weight.array.dtype == np.float32:
        return np.ascontiguousarray(weight.array).reshape(-1).view(np.uint8)
    if weight.desc.dtype in HALF_FLOATS:
        plain = Memory.from_numpy(weight.array, row_major(weight.desc.dims))
    elif is_turned(weight):
        plain = Memory.from_array(weight.array)
    else:
        return Memory.from_numpy(weight.array, weight.desc).array.view(np.uint8)
    return reorder(plain, weight.desc, Engine(threads=1)).array.view(np.uint8)


def is_turned(weight: Weight) -> bool:
    """Whether a large matrix lies by columns, as torch keeps those of products: numpy is slow to turn it."""
    array = weight.array
    is_large = array.ndim == 2 and array.dtype == np.float32 and array.nbytes >= LARGE_BYTES
    return is_large and array.flags.f_contiguous and array.flags.aligned and not array.flags.c_contiguous


def pages(size: int) -> Array:
    """u8[size] that starts at a page."""
    raw = np.zeros(size + PAGE_BYTES, np.uint8)
    start = -raw.ctypes.data % PAGE_BYTES
    return raw[start : start + size]
