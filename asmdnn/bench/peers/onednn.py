"""A primitive of oneDNN as a call to measure and compare with: layouts of its own choice, or given ones."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.driver import Array, Data
from asmdnn.bench.peers.onednn_library import ffi, load
from asmdnn.bench.values import decoded, joined
from asmdnn.errors import AsmdnnError, InvalidArguments
from asmdnn.memory.tags import LETTERS
from asmdnn.memory.views import plain_strides
from asmdnn.records import dataclass, field
from asmdnn.types import FLOATS8

# Numbers of the C interface's enums.
TAG_ANY = 1
SRC, DST = 1, 17
SCALES_OF, ZERO_POINTS_OF = 4096, 8192  # added to the number of the argument that they belong to
QUERY_IMPLEMENTATION, QUERY_ARGUMENT_DESC = 8, 255


@dataclass(frozen=True, slots=True)
class Tensor:
    """An argument: its number in the C interface, and its descriptor."""

    argument: int
    desc: dnn.MemoryDesc


@dataclass(frozen=True, slots=True)
class Storage:
    """Memory that is not an argument's own: `internal` are numbers of arguments whose layouts are oneDNN's alone, such
    as a workspace, which nobody fills, in the memory of `lender` if there is one; `shared` is storage of another
    primitive that arguments have."""

    internal: Mapping[str, int] = field(default_factory=dict)
    lender: "OnednnPrimitive | None" = None
    shared: Mapping[str, dnn.Memory] = field(default_factory=dict)


OF_ITS_OWN = Storage()


class OnednnPrimitive:
    """One primitive with its memory; a PeerSide.

    `create(self)` makes the primitive descriptor, of `self.descs`, the handles of the tensors' descriptors.  `results`
    are what it writes; `in_place` says which of them replace an input.
    Raises InvalidArguments for a layout that cannot be passed on, Unimplemented when oneDNN has no implementation,
    AsmdnnError when it is missing.
    """

    null = ffi.NULL

    def __init__(
        self,
        create: Callable[["OnednnPrimitive"], Any],
        tensors: Mapping[str, Tensor],
        isa: str,
        threads: int,
        results: tuple[str, ...] = ("dst",),
        in_place: Mapping[str, str] = MappingProxyType({}),
        storage: Storage = OF_ITS_OWN,
    ) -> None:
        internal = storage.internal
        self._peer = load()
        self._peer.cap_isa(isa)
        self._peer.set_threads(threads)
        self.lib, self.engine = self._peer.lib, self._peer.engine
        self._threads, self._tensors, self._results = threads, tensors, results
        self._handles: list[tuple[Any, Any]] = []
        self.descs = {name: self.layout(tensor.desc) for name, tensor in tensors.items()}
        desc = self.desc = create(self)
        text = ffi.new("char **")
        self._peer.check(self.lib.dnnl_primitive_desc_query(desc, QUERY_IMPLEMENTATION, 0, text), "implementation name")
        self.implementation = ffi.string(text[0]).decode()
        primitive = self.own(self.lib.dnnl_primitive_create, self.lib.dnnl_primitive_destroy, desc)
        for name, tensor in tensors.items():
            if tensor.desc.is_any:
                self.descs[name] = self.lib.dnnl_primitive_desc_query_md(desc, QUERY_ARGUMENT_DESC, tensor.argument)
        for name, argument in internal.items():
            self.descs[name] = self.lib.dnnl_primitive_desc_query_md(desc, QUERY_ARGUMENT_DESC, argument)
        # In storage of this library's allocator, so that both sides have the same alignment and page sizes (numpy asks
        # for huge pages, oneDNN does not).  On a 2-core Zen 3 it made no difference: 0.96-1.07, median 1.0.
        sizes = {name: self.lib.dnnl_memory_desc_get_size(md) for name, md in self.descs.items()}
        self._storage = {name: dnn.Memory(dnn.MemoryDesc((size,), dnn.u8, "a")) for name, size in sizes.items()}
        self._storage |= storage.shared
        for name, source in in_place.items():
            self._storage[name] = self._storage[source]
        if storage.lender:
            self._storage |= {name: storage.lender._storage[name] for name in internal}
        self._unfilled = {*in_place, *internal}
        self._memory = {name: self._attach(md, self._storage[name].address) for name, md in self.descs.items()}
        numbers = {name: tensor.argument for name, tensor in tensors.items()} | dict(internal)
        arguments = _arguments({numbers[name]: memory for name, memory in self._memory.items()})
        for name, tensor in tensors.items():
            if tensor.desc.is_any and _carrier(tensor.desc.dtype) != tensor.desc.dtype:
                self._reorder(name, to_plain=name in results)  # now, while a refusal means that there is no peer
        self.run = self._peer.call(primitive, arguments)

    def write(self, data: Data) -> None:
        """Copy `data` into the arguments, each in its layout; by numpy where that is given."""
        self._peer.set_threads(self._threads)
        for name in self._storage:
            if name in self._unfilled:
                continue
            desc = self._tensors[name].desc
            if desc.is_any:
                self._copy(_carried(data.arrays[name], desc.dtype), name, to_plain=False)
            else:
                laid_out = dnn.Memory.from_numpy(data.arrays[name], desc).array
                self._stored(name)[:] = laid_out.view(np.uint8)

    def compute(self, data: Data) -> Array:
        """The result for `data`, in logical order."""
        self.write(data)
        self._peer.check(self.run(), "execution")
        self._peer.check(self.lib.dnnl_stream_wait(self._peer.stream), "execution")
        return self.read()

    @property
    def storage(self) -> Mapping[str, dnn.Memory]:
        """The memory of every argument."""
        return self._storage

    def type_of(self, name: str) -> dnn.DataType | None:
        """Of an argument, if there is one of that name."""
        return self._tensors[name].desc.dtype if name in self._tensors else None

    def dims_of(self, name: str) -> tuple[int, ...]:
        """Of an argument, as it was asked for."""
        return self._tensors[name].desc.dims

    def read(self) -> Array:
        """The result as it is, in logical order."""
        return joined([self._result(name) for name in self._results])

    def _result(self, name: str) -> Array:
        desc = self._tensors[name].desc
        if not desc.is_any:
            return decoded(dnn.Memory(desc, self._stored(name), padding_is_zero=True).numpy(), desc.dtype)
        dtype = _carrier(desc.dtype)
        result = np.empty(desc.dims, dtype.numpy)
        self._copy(result, name, to_plain=True)
        return decoded(result, dtype)

    def close(self) -> None:
        """Free everything in the reverse order of its creation."""
        self._free_from(0)

    def describe(self, create: Any, *arguments: Any) -> Any:
        """A primitive descriptor: `create` is given the engine and the arguments."""
        return self.own(create, self.lib.dnnl_primitive_desc_destroy, self.engine, *arguments)

    def dims(self, sizes: Sequence[int]) -> Any:
        return ffi.new("dim[]", list(sizes))

    def handles(self, descs: Sequence[Any]) -> Any:
        """An array of them, as functions of several sources take it."""
        return ffi.new("handle[]", list(descs))

    def layout(self, desc: dnn.MemoryDesc) -> Any:
        """A memory descriptor: any, plain strides, or one of the blocked tags that oneDNN has."""
        lib, size, dtype = self.lib, self.dims(desc.dims), self._peer.data_type(desc.dtype.name)
        destroy = lib.dnnl_memory_desc_destroy
        if not desc.is_any and not desc.inner_blocks:
            strides = self.dims(plain_strides(desc) or desc.strides)
            return self.own(lib.dnnl_memory_desc_create_with_strides, destroy, desc.ndims, size, dtype, strides)
        number = TAG_ANY if desc.is_any else self._peer.tags().get(desc.tag or "")
        if number is None:
            raise InvalidArguments(f"tag {desc.tag}: the peer onednn takes any, plain layouts and its own blocked tags")
        return self.own(lib.dnnl_memory_desc_create_with_tag, destroy, desc.ndims, size, dtype, number)

    def own(self, create: Any, destroy: Any, *arguments: Any) -> Any:
        """The handle that `create` makes; `close` destroys it."""
        handle = self._peer.new(create, *arguments)
        self._handles.append((destroy, handle))
        return handle

    def _attach(self, desc: Any, address: int) -> Any:
        data = ffi.cast("void *", address)
        return self.own(self.lib.dnnl_memory_create, self.lib.dnnl_memory_destroy, desc, self.engine, data)

    def _stored(self, name: str) -> Array:
        """The bytes of a tensor; where its rows have gaps, oneDNN counts that after the last one, too."""
        desc, found = self._tensors[name].desc, self._storage[name].array
        if found.size < desc.size_bytes or (found.size > desc.size_bytes and desc.inner_blocks):
            raise AsmdnnError(f"onednn: {name} has {found.size} bytes as {desc}, not {desc.size_bytes}")
        return found[: desc.size_bytes]

    def _copy(self, array: Array, name: str, to_plain: bool) -> None:
        """Reorder between `array` in plain layout and the argument `name`."""
        lib, kept = self.lib, len(self._handles)
        plain, desc = self._reorder(name, to_plain)
        memories = (self._attach(plain, array.ctypes.data), self._memory[name])
        src, dst = memories[::-1] if to_plain else memories
        primitive = self.own(lib.dnnl_primitive_create, lib.dnnl_primitive_destroy, desc)
        arguments = _arguments({SRC: src, DST: dst})
        self._peer.check(lib.dnnl_primitive_execute(primitive, self._peer.stream, 2, arguments), f"reorder of {name}")
        self._peer.check(lib.dnnl_stream_wait(self._peer.stream), f"reorder of {name}")
        self._free_from(kept)

    def _reorder(self, name: str, to_plain: bool) -> tuple[Any, Any]:
        """Descriptors of the argument in plain layout, and of the reorder.  Raises Unimplemented if there is none."""
        lib, engine, desc = self.lib, self.engine, self._tensors[name].desc
        plain = self.layout(dnn.MemoryDesc(desc.dims, _carrier(desc.dtype), LETTERS[: desc.ndims]))
        src, dst = (self.descs[name], plain) if to_plain else (plain, self.descs[name])
        destroy = lib.dnnl_primitive_desc_destroy
        ends = (src, engine, dst, engine, ffi.NULL)
        return plain, self.own(lib.dnnl_reorder_primitive_desc_create, destroy, *ends)

    def _free_from(self, kept: int) -> None:
        while len(self._handles) > kept:
            destroy, handle = self._handles.pop()
            destroy(handle)


def _carrier(dtype: dnn.DataType) -> dnn.DataType:
    """What elements are copied as: oneDNN reorders fewer than a byte, and floats of one, from and to f32 alone."""
    return dnn.f32 if dtype.in_a_byte > 1 or dtype in FLOATS8 else dtype


def _carried(array: Array, dtype: dnn.DataType) -> Array:
    found = array if _carrier(dtype) == dtype else decoded(array, dtype).astype(np.float32)
    return np.ascontiguousarray(found)


def _arguments(memories: dict[int, Any]) -> Any:
    array = ffi.new("argument[]", len(memories))
    for entry, (number, memory) in zip(array, memories.items(), strict=True):
        entry.arg, entry.memory = number, memory
    return array
