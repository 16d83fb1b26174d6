"""Convolution of oneDNN as a call to measure and compare with: layouts of its own choice, or given ones."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.cli.peers.onednn_library import ffi, load
from asmdnn.cli.problems import ConvProblem
from asmdnn.cli.reference import ConvData, Floats
from asmdnn.errors import InvalidArguments

# Numbers of the C interface's enums.
F32 = 3
TAG_ANY = 1
BLOCKED_TAGS = {"aBcd16b": 78, "aBcd8b": 102}
FORWARD_TRAINING, FORWARD_INFERENCE = 64, 96
CONVOLUTION_DIRECT, ELTWISE_RELU = 1, 32
SRC, DST, WEIGHTS, BIAS = 1, 17, 33, 41
QUERY_IMPLEMENTATION, QUERY_ARGUMENT_DESC = 8, 255


class OnednnConvolution:
    """One convolution with its memory: `write` fills the arguments, `compute` does that and returns dst, `run()` is the
    bare call that is timed.

    `tags` are the letters of the src, weights and dst layouts ("any", "acdb", "aBcd8b").  Raises InvalidArguments for
    a tag that cannot be passed on, Unimplemented when oneDNN has no implementation, AsmdnnError when it is missing.
    """

    def __init__(
        self, problem: ConvProblem, direction: str, post_ops: Sequence[str], tags: Sequence[str], isa: str, threads: int
    ) -> None:
        self._peer = load()
        self._peer.cap_isa(isa)
        self._peer.set_threads(threads)
        self._threads = threads
        self._problem = problem
        self._handles: list[tuple[Any, Any]] = []
        lib = self._peer.lib
        desc = self._describe(direction, post_ops, tags)
        text = ffi.new("char **")
        self._peer.check(lib.dnnl_primitive_desc_query(desc, QUERY_IMPLEMENTATION, 0, text), "implementation name")
        self.implementation = ffi.string(text[0]).decode()
        primitive = self._own(lib.dnnl_primitive_create, lib.dnnl_primitive_destroy, desc)
        names = {"src": SRC, "weights": WEIGHTS, "dst": DST} | ({"bias": BIAS} if direction == "FWD_B" else {})
        self._descs = {n: lib.dnnl_primitive_desc_query_md(desc, QUERY_ARGUMENT_DESC, i) for n, i in names.items()}
        # In storage of this library's allocator, so that both sides have the same alignment and page sizes (numpy asks
        # for huge pages, oneDNN does not).  On a 2-core Zen 3 it made no difference: 0.96-1.07, median 1.0.
        sizes = {n: lib.dnnl_memory_desc_get_size(md) for n, md in self._descs.items()}
        self._storage = {n: dnn.Memory(dnn.MemoryDesc((size,), dnn.u8, "a")) for n, size in sizes.items()}
        self._memory = {n: self._attach(md, self._storage[n].address) for n, md in self._descs.items()}
        self._arguments = _arguments({names[n]: memory for n, memory in self._memory.items()})
        self.run = partial(
            lib.dnnl_primitive_execute, primitive, self._peer.stream, len(self._arguments), self._arguments
        )

    def write(self, data: ConvData) -> None:
        """Copy `data` into the arguments, each in the layout that the implementation wants."""
        self._peer.set_threads(self._threads)
        for name, memory in self._memory.items():
            self._copy(getattr(data, name), name, memory, to_plain=False)

    def compute(self, data: ConvData) -> Floats:
        """dst for `data`, in plain layout."""
        self.write(data)
        self._peer.check(self.run(), f"convolution {self._problem}")
        self._peer.check(self._peer.lib.dnnl_stream_wait(self._peer.stream), f"convolution {self._problem}")
        result = np.empty(self._problem.dst_dims, np.float32)
        self._copy(result, "dst", self._memory["dst"], to_plain=True)
        return result

    def close(self) -> None:
        """Free everything in the reverse order of its creation."""
        while self._handles:
            destroy, handle = self._handles.pop()
            destroy(handle)

    def _describe(self, direction: str, post_ops: Sequence[str], tags: Sequence[str]) -> Any:
        lib, problem = self._peer.lib, self._problem
        src, weights, dst = (
            self._layout(dims, tag)
            for dims, tag in zip((problem.src_dims, problem.weights_dims, problem.dst_dims), tags, strict=True)
        )
        bias = self._layout((problem.oc,), "a") if direction == "FWD_B" else ffi.NULL
        sides = (problem.strides, problem.dilations, problem.padding_l, problem.padding_r)
        return self._own(
            lib.dnnl_convolution_forward_primitive_desc_create,
            lib.dnnl_primitive_desc_destroy,
            self._peer.engine,
            FORWARD_INFERENCE if direction == "FWD_I" else FORWARD_TRAINING,
            CONVOLUTION_DIRECT,
            *(src, weights, bias, dst),
            *(ffi.new("dim[]", side) for side in sides),
            self._attributes(post_ops),
        )

    def _attributes(self, post_ops: Sequence[str]) -> Any:
        lib = self._peer.lib
        attributes = self._own(lib.dnnl_primitive_attr_create, lib.dnnl_primitive_attr_destroy)
        chain = self._own(lib.dnnl_post_ops_create, lib.dnnl_post_ops_destroy)
        for op in post_ops:
            if op == "sum":
                status = lib.dnnl_post_ops_append_sum(chain, 1.0, 0, 0)
            else:
                status = lib.dnnl_post_ops_append_eltwise(chain, ELTWISE_RELU, 0.0, 0.0)
            self._peer.check(status, f"post-op {op}")
        self._peer.check(lib.dnnl_primitive_attr_set_post_ops(attributes, chain), "post-ops")
        return attributes

    def _layout(self, dims: Sequence[int], tag: str) -> Any:
        """A memory descriptor: any, a permutation of the dims by its strides, or a blocked tag that has a number."""
        lib, size = self._peer.lib, ffi.new("dim[]", list(dims))
        destroy = lib.dnnl_memory_desc_destroy
        if tag == "any" or tag in BLOCKED_TAGS:
            number = BLOCKED_TAGS.get(tag, TAG_ANY)
            return self._own(lib.dnnl_memory_desc_create_with_tag, destroy, len(dims), size, F32, number)
        if sorted(tag) != sorted("abcdef"[: len(dims)]):
            raise InvalidArguments(f"tag {tag}: the peer onednn takes any, plain layouts and {', '.join(BLOCKED_TAGS)}")
        strides, stride = [0] * len(dims), 1
        for axis in ("abcdef".index(letter) for letter in reversed(tag)):
            strides[axis] = stride
            stride *= dims[axis]
        return self._own(
            lib.dnnl_memory_desc_create_with_strides, destroy, len(dims), size, F32, ffi.new("dim[]", strides)
        )

    def _attach(self, desc: Any, address: int) -> Any:
        lib, data = self._peer.lib, ffi.cast("void *", address)
        return self._own(lib.dnnl_memory_create, lib.dnnl_memory_destroy, desc, self._peer.engine, data)

    def _copy(self, array: Floats, name: str, memory: Any, to_plain: bool) -> None:
        """Reorder between `array` in plain layout and the argument `name`."""
        lib, engine = self._peer.lib, self._peer.engine
        kept = len(self._handles)
        array = np.ascontiguousarray(array)
        plain_desc = self._layout(array.shape, "abcdef"[: array.ndim])
        plain = self._attach(plain_desc, array.ctypes.data)
        descs, memories = (plain_desc, self._descs[name]), (plain, memory)
        if to_plain:
            descs, memories = descs[::-1], memories[::-1]
        desc = self._own(
            lib.dnnl_reorder_primitive_desc_create,
            lib.dnnl_primitive_desc_destroy,
            *(descs[0], engine, descs[1], engine, ffi.NULL),
        )
        primitive = self._own(lib.dnnl_primitive_create, lib.dnnl_primitive_destroy, desc)
        arguments = _arguments({SRC: memories[0], DST: memories[1]})
        self._peer.check(lib.dnnl_primitive_execute(primitive, self._peer.stream, 2, arguments), f"reorder of {name}")
        self._peer.check(lib.dnnl_stream_wait(self._peer.stream), f"reorder of {name}")
        while len(self._handles) > kept:
            destroy, handle = self._handles.pop()
            destroy(handle)

    def _own(self, create: Any, destroy: Any, *arguments: Any) -> Any:
        handle = self._peer.new(create, *arguments)
        self._handles.append((destroy, handle))
        return handle


def _arguments(memories: dict[int, Any]) -> Any:
    array = ffi.new("argument[]", len(memories))
    for entry, (number, memory) in zip(array, memories.items(), strict=True):
        entry.arg, entry.memory = number, memory
    return array
