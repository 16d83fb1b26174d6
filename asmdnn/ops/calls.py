"""The fast way from arrays to kernels: one look-up by all that a call depends on, then a native call on addresses.

A key holds what decides plan and validity: shapes, strides, post-ops, engine, caps.  What it leads to was validated
when it was made; with every call there remain the checks that no key can hold: alignment and, where the caller brings
the destination, that it can be written and shares no byte with what is read.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.allocation import allocated, no_memory
from asmdnn.ops.arguments import AnyArray
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.runtime.addresses import address_reader
from asmdnn.runtime.caches import Cache
from asmdnn.runtime.scratch import scratch_pool

LIMIT_BYTES = 64 << 20
OBJECTS_BYTES = 4_000  # what Python keeps of an entry and its key, about


class ArgumentPacker:
    """A reorder of one argument into a scratchpad, before the primitive itself."""

    __slots__ = ("position", "program", "size_bytes")

    def __init__(self, primitive: Primitive, position: int) -> None:
        self.program, self.position = primitive.program, position
        self.size_bytes = primitive.program.sizes["dst"]

    def run(self, source: int, target: int) -> None:
        self.program.run((source, target), self.program.places)


class ArrayCall:
    """A primitive for arrays of certain shapes and strides: `call(arrays, out)`.

    names, labels: what the arrays are to the primitive, and to the user; the destination is last.  copied: positions of
    arrays whose strides no kernel takes, and that are made dense first.  packer: packs an argument first.  in_place:
    positions of arrays that may be the destination.  target: the destination; dims: its dims.  kept_bytes: what goes
    with the call, its programs too.
    """

    __slots__ = (
        "_in_place", "_labels", "_last", "_packer", "_places", "_primitive", "_program", "_read", "_result", "_sizes",
        "_written_bytes", "addresses_of", "copied", "dims", "kept_bytes", "target", "used",
    )  # fmt: skip

    def __init__(
        self,
        primitive: Primitive,
        names: Sequence[str],
        labels: Sequence[str],
        descs: Sequence[MemoryDesc],
        copied: Sequence[int] = (),
        packer: ArgumentPacker | None = None,
        in_place: Sequence[int] = (),
    ) -> None:
        program = primitive.program
        position = {name: i for i, name in enumerate(names)}
        if missing := [name for name in program.sizes if name not in position]:
            raise InvalidArguments(f"post_ops lack the data of {', '.join(missing)}: give them to the PostOp")
        order = [position[name] for name in program.sizes]
        self._primitive, self._program, self._packer = primitive, program, packer
        self._labels, self.copied, self.addresses_of = tuple(labels), tuple(copied), address_reader()
        self._places = tuple((slot, order[i], offset) for slot, i, offset in program.places)
        *inputs, target = descs
        self._last, self._written_bytes = len(inputs), target.size_bytes
        self._read = tuple((i, desc.size_bytes) for i, desc in enumerate(inputs) if desc.size_bytes)
        self._in_place = frozenset(in_place)
        self._result, self._sizes = np.dtype(target.dtype.numpy), tuple(desc.dtype.size_bytes for desc in descs)
        self.target, self.dims, self.used = target, target.dims, False
        programs = (program, packer.program) if packer else (program,)
        self.kept_bytes: int = OBJECTS_BYTES + sum(each.kept_bytes for each in programs)

    def __call__(self, arrays: list[AnyArray], out: AnyArray | None = None) -> AnyArray:
        """Compute into `out`, or into a new array; returns it.  Raises InvalidArguments, OutOfMemory."""
        try:
            for i in self.copied:
                arrays[i] = np.ascontiguousarray(arrays[i])
            result: AnyArray = np.empty(self.dims, self._result) if out is None else out
        except MemoryError as error:
            raise no_memory(error) from None
        arrays.append(result)
        addresses = self.addresses_of(arrays)
        if out is not None:
            self.check_output(out.flags.writeable, addresses)
        self.run(addresses)
        return result

    def run(self, addresses: list[int]) -> None:
        """On addresses in the order of the names, the destination checked by the caller."""
        self.used = True
        for address in addresses:
            if address & 3:
                self._check_alignment(addresses)
        if self._packer is not None:
            self._run_packed(self._packer, addresses)
            return
        self._program.run(addresses, self._places)

    def _run_packed(self, packer: ArgumentPacker, addresses: list[int]) -> None:
        pad = scratch_pool.take(packer.size_bytes)
        packer.run(addresses[packer.position], pad.address)
        addresses[packer.position] = pad.address
        self._program.run(addresses, self._places)
        scratch_pool.give(pad)

    def check_output(self, writable: bool, addresses: Sequence[int]) -> None:
        """The destination can be written, and shares no byte with the arrays before it but for one that it may replace;
        or InvalidArguments."""
        last = self._last
        if not writable:
            raise InvalidArguments(f"{self._labels[last]} is read-only, it must be writable")
        begin = addresses[last]
        end = begin + self._written_bytes
        for i, size in self._read:
            address = addresses[i]
            if address < end and begin < address + size and not (address == begin and i in self._in_place):
                raise InvalidArguments(f"{self._labels[last]} overlaps {self._labels[i]}, give it memory of its own")

    def _check_alignment(self, addresses: Sequence[int]) -> None:
        """InvalidArguments for an address that is no multiple of its element."""
        for name, address, size in zip(self._labels, addresses, self._sizes, strict=False):
            if address % size:
                where = f"{name} at address {address:#x}"
                raise InvalidArguments(f"{where} is not aligned to the element's {size} bytes: copy it")


calls: Cache[tuple[Any, ...], ArrayCall] = Cache(LIMIT_BYTES, "calls")
_find = calls.entries.get


def kept_call(key: tuple[Any, ...]) -> ArrayCall | None:
    """The call of this key; none for what cannot be hashed or compared, which no description takes."""
    try:
        return _find(key)
    except Exception:  # whatever the caller's objects do
        return None


def layout_of(name: str, array: AnyArray) -> tuple[MemoryDesc, bool]:
    """The strides of an input as a descriptor, and whether it has to be copied to have any that kernels take."""
    try:
        return desc_of(name, array), False
    except InvalidArguments:
        if not array.flags.aligned:
            raise
        return desc_of(name, allocated(np.ascontiguousarray, array)), True


def desc_of(name: str, array: AnyArray) -> MemoryDesc:
    """Its dims, type and strides.  Raises InvalidArguments, by this name."""
    return memory_at(name, array).desc


def memory_at(name: str, array: AnyArray) -> Memory:
    """A view of an array.  Raises InvalidArguments, by this name."""
    try:
        return Memory.from_array(array)
    except InvalidArguments as error:
        raise InvalidArguments(re.sub(r"\b(array|buffer)\b", name, str(error), count=1)) from error
