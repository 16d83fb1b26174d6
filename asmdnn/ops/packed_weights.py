"""Packed weights that know the array they were packed from, so that a use after an update is an error."""

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.ops.arguments import F32, AnyArray
from asmdnn.ops.packed import pack, pack_into
from asmdnn.ops.typed import kind_of, typed
from asmdnn.primitives.core.checking import is_checking
from asmdnn.primitives.core.engine import Engine, engine_key
from asmdnn.types import HALF_FLOATS

LOOKED_AT = 64  # elements of the source at every use: an update that leaves all of them as they were is none


class PackedWeights:
    """Weights in a format of kernels, as a reorder makes it, and the array that they were packed from.

    source: array of desc's dims and type, or of f32 where desc has blocks of bf16 or f16.  desc: the format, such as
    `pd.plan.tensors["weights_iter"]`.  name: of the weights in messages.  `memory` is what primitives take.  Raises
    InvalidArguments.

    Who changes the array calls `repack`; until then whoever asks for the memory gets InvalidArguments.  Asking looks at
    64 elements of the array or some more, evenly spread, which finds every update of all weights in some microseconds;
    a change of single ones is found by `is_stale`, or everywhere with ASMDNN_CHECK=1.  The array is not kept: where it
    is gone nobody can change it, and the memory stays as it is.
    """

    __slots__ = ("_engine", "_memory", "_name", "_seen", "_source", "desc", "version")

    def __init__(self, source: Any, desc: MemoryDesc, engine: Engine | None = None, *, name: str = "weights") -> None:
        if not isinstance(desc, MemoryDesc):
            raise InvalidArguments(f"desc {shown(desc)} is not a MemoryDesc: use one of a primitive's plan.tensors")
        if not isinstance(name, str):
            raise InvalidArguments(f"name must be what messages call the weights, not {shown(name)}")
        plain = typed(name, source)
        is_rounded = plain.dtype is F32 and bool(desc.inner_blocks) and desc.dtype in HALF_FLOATS
        if kind_of(plain) != desc.dtype and not is_rounded:
            raise InvalidArguments(f"{name} is of {kind_of(plain)}, but desc of {desc.dtype}: make them equal")
        if plain.shape != desc.dims:
            raise InvalidArguments(f"{name} has shape {plain.shape}, but desc has dims {desc.dims}: make them equal")
        self._source, self._name, self._engine = reference(source), name, engine
        self.desc = desc
        """The format that the weights have."""
        self.version = 1
        """How often they have been packed."""
        self._seen = sample(plain)
        self._memory = pack(name, plain, self._key(plain), lambda: desc, engine)

    @property
    def memory(self) -> Memory:
        """The weights, for primitives.  Raises InvalidArguments if their array has changed since they were packed."""
        plain = self._plain()
        if plain is not None and (sample(plain) != self._seen or (is_checking() and self._differs(plain))):
            raise InvalidArguments(f"{self._name} has changed since it was packed: call repack() after every update")
        return self._memory

    def repack(self) -> None:
        """Pack the array as it is now, into the same memory.  Raises InvalidArguments if the array is gone."""
        plain = self._plain()
        if plain is None:
            raise InvalidArguments(f"{self._name} is gone, it cannot be packed again: keep the array")
        self._seen = sample(plain)
        pack_into(self._memory, self._name, plain, self._key(plain), self._engine)
        self.version += 1

    def is_stale(self) -> bool:
        """Whether any element of the array has changed since it was packed: packs it again, to compare."""
        plain = self._plain()
        return plain is not None and self._differs(plain)

    def __repr__(self) -> str:
        """For example "PackedWeights f32 1x1x512x4x512 abEcd8e, version 2"."""
        return f"PackedWeights {self.desc}, version {self.version}"

    def _plain(self) -> AnyArray | None:
        source = self._source()
        if source is None or (type(source) is np.ndarray and source.dtype is F32):
            return source
        return typed(self._name, source)

    def _differs(self, plain: AnyArray) -> bool:
        packed = pack(self._name, plain, self._key(plain), lambda: self.desc, self._engine)
        return packed.array.tobytes() != self._memory.array.tobytes()

    def _key(self, plain: AnyArray) -> tuple[Any, ...]:
        return ("PackedWeights", self.desc, plain.shape, plain.strides, engine_key(self._engine))


def sample(array: AnyArray) -> bytes:
    """Elements of an array, evenly spread."""
    step = max(1, array.size // LOOKED_AT)
    return (array.reshape(-1) if array.flags.c_contiguous else array.flat)[::step].tobytes()


def reference(source: Any) -> Callable[[], Any]:
    """What gives the object as long as somebody has it; for ever if it does not allow less."""
    try:
        return weakref.ref(source)
    except TypeError:
        return lambda: source
