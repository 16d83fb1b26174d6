"""The memory a kernel may touch: named regions, and a fault for every access outside them."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from asmdnn.errors import AsmdnnError
from asmdnn.records import dataclass, field

Array = np.ndarray[Any, Any]
BITS64 = (1 << 64) - 1
_FAR = 1 << 32  # bytes: a distance that tells nothing


class EmulationFault(AsmdnnError):
    """A kernel broke a rule.  Raised without a location by the semantics; the run loop adds offset and instruction."""


class MemoryRegion(NamedTuple):
    """A named piece of address space, backed by a contiguous one-dimensional uint8 array that stores go straight to.

    `address` is what the kernel sees; it need not be where the array lives.
    """

    name: str
    address: int
    array: Array
    readable: bool = True
    writable: bool = False


def _runs(active: Array) -> list[tuple[int, int]]:
    """(first, count) of every run of active elements."""
    edges = np.flatnonzero(np.diff(active.astype(np.int8), prepend=0, append=0)).tolist()
    return [(first, end - first) for first, end in zip(edges[::2], edges[1::2], strict=True)]


@dataclass(slots=True)
class TouchedBytes:
    """Which bytes of one region were touched: boolean arrays, one element a byte."""

    read: Array
    written: Array


@dataclass(slots=True)
class _Mapped:
    name: str
    start: int
    size: int
    array: Array
    footprint: TouchedBytes | None = None


@dataclass(slots=True)
class _Side:
    """The regions open to one kind of access, by address.  A zero-sized one at -1 keeps the search free of a test."""

    verb: str
    starts: list[int] = field(default_factory=lambda: [-1])
    regions: list[_Mapped] = field(default_factory=lambda: [_Mapped("", -1, 0, np.empty(0, np.uint8))])


class AddressSpace:
    """The address space of one call.  Steps keep bound methods of it, so `map` refills it in place."""

    def __init__(self) -> None:
        self.regions: tuple[MemoryRegion, ...] = ()
        self._readable, self._writable = _Side("read"), _Side("write")

    def map(self, regions: Iterable[MemoryRegion], footprints: dict[str, TouchedBytes] | None = None) -> None:
        """Replace the address space; ValueError when regions overlap, or an array is not flat bytes."""
        self.regions = tuple(sorted(regions, key=lambda region: region.address))
        self._readable, self._writable = _Side("read"), _Side("write")
        end, before = 0, "address 0"
        for region in (region for region in self.regions if region.array.size):
            array = region.array
            if array.dtype != np.uint8 or array.ndim != 1 or not array.flags.c_contiguous:
                raise ValueError(f"region {region.name!r}: array must be one-dimensional contiguous uint8")
            if region.writable and not array.flags.writeable:
                raise ValueError(f"region {region.name!r} is writable but its array is not")
            if region.address < end or region.address + array.size > BITS64:
                raise ValueError(f"region {region.name!r} at {region.address:#x} overlaps {before}")
            end, before = region.address + array.size, f"region {region.name!r}"
            footprint = footprints.get(region.name) if footprints is not None else None
            mapped = _Mapped(region.name, region.address, array.size, array, footprint)
            for side, allowed in ((self._readable, region.readable), (self._writable, region.writable)):
                if allowed:
                    side.starts.append(region.address)
                    side.regions.append(mapped)

    def load(self, address: int, size: int, dtype: type, count: int) -> Array:
        """`count` elements at `address`, `size` bytes in all: a view, valid until the next store."""
        side = self._readable
        region = side.regions[bisect_right(side.starts, address) - 1]
        offset = address - region.start
        if offset > region.size - size:
            self._fail(side.verb, address, size)
        if region.footprint is not None:
            region.footprint.read[offset : offset + size] = True
        return np.frombuffer(region.array, dtype, count, offset)

    def store(self, address: int, size: int, dtype: type, count: int) -> Array:
        """A view to write `count` elements through."""
        side = self._writable
        region = side.regions[bisect_right(side.starts, address) - 1]
        offset = address - region.start
        if offset > region.size - size:
            self._fail(side.verb, address, size)
        if region.footprint is not None:
            region.footprint.written[offset : offset + size] = True
        return np.frombuffer(region.array, dtype, count, offset)

    def load_int(self, address: int, size: int) -> int:
        """An unsigned little-endian integer."""
        return int.from_bytes(self.load(address, size, np.uint8, size).tobytes(), "little")

    def store_int(self, address: int, size: int, value: int) -> None:
        """Store the low `size` bytes of `value`."""
        value &= (1 << 8 * size) - 1
        self.store(address, size, np.uint8, size)[:] = np.frombuffer(value.to_bytes(size, "little"), np.uint8)

    def load_masked(self, address: int, active: Array, out: Array) -> None:
        """Load the active elements into `out` and zero the others, which are not accessed."""
        out.fill(0)
        for first, count in _runs(active):
            size = count * out.itemsize
            at = (address + first * out.itemsize) & BITS64
            out[first : first + count] = self.load(at, size, out.dtype.type, count)

    def store_masked(self, address: int, active: Array, values: Array) -> None:
        """Store the active elements; the others are not accessed."""
        for first, count in _runs(active):
            size = count * values.itemsize
            at = (address + first * values.itemsize) & BITS64
            self.store(at, size, values.dtype.type, count)[:] = values[first : first + count]

    def _fail(self, verb: str, address: int, size: int) -> None:
        what = f"{verb}s {size} byte{'s' * (size != 1)} at {address:#x}"
        if not self.regions:
            raise EmulationFault(f"{what}, but there is no memory")

        def distance(region: MemoryRegion) -> int:
            return max(region.address - (address + size), address - (region.address + region.array.size))

        near = min(self.regions, key=distance)
        end = near.address + near.array.size
        if near.address <= address and address + size <= end:
            denied = "read-only" if verb == "write" else "write-only"
            raise EmulationFault(f"{what}, which is {denied}: {near.name!r} + {address - near.address}")
        if distance(near) > _FAR:
            where = "nowhere near any region; the nearest is"
        elif address >= end:
            where = f"{address - end} bytes past the end of"
        elif address + size <= near.address:
            where = f"{near.address - address - size} bytes short of the start of"
        elif address >= near.address:
            where = f"the last {address + size - end} of them past the end of"
        else:
            where = f"the first {near.address - address} of them before the start of"
        raise EmulationFault(f"{what}, {where} {near.name!r} [{near.address:#x}, {end:#x})")
