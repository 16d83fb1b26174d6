"""Packed weights of a model: what several shapes read in one format is packed and held once."""

from collections.abc import Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from asmdnn.memory import Memory
from asmdnn.memory.winograd import WinogradDesc
from asmdnn.network.arrays import Array, same_bits
from asmdnn.network.calls.running import PAGE_BYTES
from asmdnn.network.descriptors import row_major
from asmdnn.network.joining.buffers import Weight
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.primitives.reorder.reorder import Reorder
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

    def packed(
        self, user: object, weights: Mapping[str, Weight], places: Mapping[str, int], size: int, threads: int = 1
    ) -> Array:
        """All weights in the formats that kernels read, u8[size], for a plan; threads: that pack large ones."""
        blobs = self._blobs
        known = [*blobs[-MOST_LOOKED_AT:], *([self._usual] if self._usual else [])]
        blob = next((each for each in known if each.is_for(weights, places, size)), None)
        if blob is None:
            blob = Blob(weights, places, made(weights, places, size, known, threads))
        blob.users.add(user)
        self._of[user] = blob
        self._blobs = [*(each for each in blobs if each.users and each is not blob), blob]
        self._usual = max(self._blobs, key=lambda each: len(each.users))
        return blob.data


def made(
    weights: Mapping[str, Weight], places: Mapping[str, int], size: int, known: Sequence[Blob], threads: int = 1
) -> Array:
    """u8[size]: weights are copied from blobs that have them, else packed."""
    blob = pages(size)
    for name, weight in weights.items():
        place = blob[places[name] :][: weight.desc.size_bytes]
        source = next((one for one in known if one.has(name, weight)), None)
        if source:
            place[:] = source.data[source.places[name] :][: len(place)]
        else:
            pack(weight, place, threads)
    return blob


def pack(weight: Weight, place: Array, threads: int) -> None:
    """Into u8[bytes], which are zero; f32 for narrower types is rounded to the nearest."""
    desc, array = weight.desc, weight.array
    if desc == row_major(desc.dims) and array.dtype == np.float32:
        place[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    elif is_worth_a_kernel(weight):
        plain = Memory.from_array(array) if is_plain(array) else Memory.from_numpy(array, row_major(desc.dims))
        pd = primitive_desc(Reorder(plain.desc, desc), engine=Engine(threads=threads))
        Primitive(pd).execute(src=plain, dst=Memory(desc, place, padding_is_zero=True))
    else:
        place[:] = Memory.from_numpy(array, desc).array.view(np.uint8)


def is_worth_a_kernel(weight: Weight) -> bool:
    """What numpy cannot round, or is slow to transform or to turn: a large matrix by columns, as torch keeps those of
    products."""
    if weight.desc.dtype in HALF_FLOATS or isinstance(weight.desc, WinogradDesc):
        return True
    array = weight.array
    is_large = array.ndim == 2 and array.dtype == np.float32 and array.nbytes >= LARGE_BYTES
    return is_large and is_plain(array) and not array.flags.c_contiguous


def is_plain(array: Array) -> bool:
    """Whether kernels can read it where it is."""
    return array.flags.aligned and (array.flags.c_contiguous or array.flags.f_contiguous)


def pages(size: int) -> Array:
    """u8[size] that starts at a page."""
    raw = np.zeros(size + PAGE_BYTES, np.uint8)
    start = -raw.ctypes.data % PAGE_BYTES
    return raw[start : start + size]
