"""From what Python gives to what C takes, checked: arrays by type, length and writability, numbers by range."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from asmdnn.asm.footprint import Reach
from asmdnn.asm.prototype import CArgument, CType, Prototype
from asmdnn.errors import InvalidArguments, counted
from asmdnn.jit.native import ffi

_KINDS: Final = {"float": "f", "double": "f", "_Bool": "b"}


class Converters:
    """One for each argument of a function."""

    def __init__(self, prototype: Prototype, reads: Mapping[str, Reach], writes: Mapping[str, Reach]) -> None:
        self._prototype, self._reads, self._writes = prototype, reads, writes
        arguments = list(enumerate(prototype.arguments))
        self._each = [self._pointer(a) if a.type.is_pointer else self._number(a) for _, a in arguments]
        self._integers = [i for i, a in arguments if a.type.is_integer]
        self._sized = [
            (i, a.type.item_bytes, extent.size, extent.text, a.name)
            for i, a in arguments
            for extent in (reads.get(a.name), writes.get(a.name))
            if extent is not None
        ]

    def __call__(self, given: Sequence[Any]) -> list[Any]:
        """What the cffi function takes.  Raises InvalidArguments that names the argument."""
        if len(given) != len(self._each):
            raise InvalidArguments(f"{self._prototype} takes {counted(len(self._each), 'argument')}, not {len(given)}.")
        made = [convert(value) for convert, value in zip(self._each, given, strict=True)]
        sizes = [made[i] for i in self._integers]
        for i, item_bytes, extent, text, name in self._sized:
            try:
                size, needed = len(made[i]) * item_bytes, extent(*sizes)
            except ZeroDivisionError:
                what = f"{name} of {self._prototype.name} touches {text}"
                raise InvalidArguments(f"{what}, which divides by 0.") from None
            if needed > size:
                what = f"{name} of {self._prototype.name} has {size} bytes"
                raise InvalidArguments(f"{what}, where {text} = {needed} are touched.")
        return made

    def _pointer(self, argument: CArgument) -> Callable[[Any], Any]:
        name, ctype = argument.name, argument.type
        if name not in self._reads and name not in self._writes:
            return self._refused(name)
        written, wanted = name in self._writes, dtype_of(ctype.item)
        array_type = ffi.typeof(f"{'char' if ctype.item == 'void' else ctype.item}[]")
        from_buffer = ffi.from_buffer

        def convert(value: Any) -> Any:
            array = value if type(value) is np.ndarray else _imported(value, name)
            if wanted is None or array.dtype is wanted or array.dtype == wanted:
                try:
                    return from_buffer(array_type, array, written)
                except (BufferError, ValueError, TypeError):
                    pass
            raise InvalidArguments(f"{name} of {self._prototype.name} {_fault(array, ctype, wanted, name)}")

        return convert

    def _refused(self, name: str) -> Callable[[Any], Any]:
        def refuse(value: Any) -> Any:
            raise InvalidArguments(
                f"{name} of {self._prototype.name} has no stated size: give reads= or writes=, or call raw()."
            )

        return refuse

    def _number(self, argument: CArgument) -> Callable[[Any], Any]:
        name, ctype = argument.name, argument.type
        low, high = (0, 0) if ctype.is_float else ctype.range

        def integer(value: Any) -> int:
            if type(value) is int and low <= value <= high:
                return value
            if not hasattr(value, "__index__") or not low <= (number := value.__index__()) <= high:
                raise InvalidArguments(f"{name} of {self._prototype.name} is {value!r}, which is no {ctype}.")
            return int(number)

        def real(value: Any) -> float:
            if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
                raise InvalidArguments(f"{name} of {self._prototype.name} is {value!r}, which is no {ctype}.")
            return float(value)

        return real if ctype.is_float else integer


def _fault(array: "np.ndarray[Any, Any]", ctype: CType, wanted: object, name: str) -> str:
    """What is wrong with an array that C cannot take."""
    if wanted is not None and array.dtype != wanted:
        return f"is {array.dtype}, where C has {ctype}."
    if not array.flags.c_contiguous:
        return f"is not contiguous: pass numpy.ascontiguousarray({name})."
    return "is read-only, and the function writes it."


def dtype_of(item: str) -> "np.dtype[Any] | None":
    """numpy's type of what a pointer points to; None for void, which any array is."""
    if item == "void":
        return None
    try:
        size, is_signed = int(ffi.sizeof(item)), item not in _KINDS and int(ffi.cast(item, -1)) < 0
    except (TypeError, ffi.error):
        raise InvalidArguments(f"a pointer to {item} takes no array: call raw().") from None
    return np.dtype(f"{_KINDS.get(item) or ('i' if is_signed else 'u')}{size}")


def _imported(value: Any, name: str) -> "np.ndarray[Any, Any]":
    """From DLPack or the buffer protocol, without a copy."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    try:
        return np.asarray(memoryview(value))
    except TypeError:
        raise InvalidArguments(f"{name} is a {type(value).__name__}, and no array, buffer or DLPack tensor.") from None
