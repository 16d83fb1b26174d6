"""Packed weights of a model: each is packed and held once in a format, for all shapes that read it."""

from collections.abc import Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from asmdnn.memory import Memory
from asmdnn.memory.winograd import WinogradDesc
from asmdnn.network.arrays import Array, same_bits
from asmdnn.network.calls.running import PAGE_BYTES
from asmdnn.network.calls.weights import WeightPiece, WeightPieces, in_one, in_pieces
from asmdnn.network.descriptors import row_major
from asmdnn.network.joining.arena import aligned
from asmdnn.network.joining.buffers import Weight
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.records import dataclass, field
from asmdnn.types import HALF_FLOATS

LARGE_BYTES: Final = 1 << 16  # of weights that are worth a kernel
MOST_LOOKED_AT: Final = 64  # blobs, those that were read last, when another shape comes


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


class WeightPool:
    """The blobs of a model's plans: what a plan reads and no other one has read is packed into one of its own.

    Threads that pack at the same time may each make one: they have equal bytes.  A constant that depends on an open dim
    makes a blob for every shape, so those go whose plans have gone.  What was asked for last stays, as the next shape
    is likely to read it.
    """

    def __init__(self) -> None:
        self._blobs: list[Blob] = []
        self._of: WeakKeyDictionary[object, Sequence[Blob]] = WeakKeyDictionary()

    @property
    def size_bytes(self) -> int:
        return sum(len(blob.data) for blob in self._blobs)

    def share_of(self, user: object) -> int:
        """Bytes that go with a plan.  What most plans read is the model's, and nobody's share."""
        most = len(self._of) // 2
        own = [blob for blob in self._of.get(user, ()) if len(blob.users) <= most]
        return sum(len(blob.data) // len(blob.users) for blob in own)

    def packed(
        self, user: object, weights: Mapping[str, Weight], places: Mapping[str, int], threads: int = 1
    ) -> WeightPieces:
        """All weights in the formats that kernels read, one after another as `places` says; threads: that pack large
        ones."""
        blobs = self._blobs
        known = sorted(blobs[-MOST_LOOKED_AT:], key=lambda blob: -len(blob.users))
        new, sources = dict(weights), dict[str, Blob]()
        for blob in known:
            sources |= dict.fromkeys([name for name, weight in new.items() if blob.has(name, weight)], blob)
            new = {name: weight for name, weight in new.items() if name not in sources}
        own = made(new, threads)
        read = self._of[user] = [*dict.fromkeys(sources.values()), *[own] * bool(new)]
        for blob in read:
            blob.users.add(user)
        self._blobs = [*(each for each in blobs if each.users and each not in read), *read]
        order = sorted(weights, key=places.__getitem__)
        return in_pieces(piece_of(sources.get(name, own), name) for name in order) if weights else in_one(own.data)


def piece_of(blob: Blob, name: str) -> WeightPiece:
    """A weight with the bytes up to the next one."""
    return WeightPiece(blob.data, blob.places[name], aligned(blob.weights[name].desc.size_bytes))


def made(weights: Mapping[str, Weight], threads: int) -> Blob:
    """Weights packed one after another."""
    places, end = dict[str, int](), 0
    for name, weight in weights.items():
        places[name] = end
        end += aligned(weight.desc.size_bytes)
    data = pages(end)
    for name, weight in weights.items():
        pack(weight, data[places[name] :][: weight.desc.size_bytes], threads)
    return Blob(weights, places, data)


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
