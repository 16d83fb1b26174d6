"""Arguments of array functions: what becomes an array, what is refused; off the way of calls with usual arguments."""

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.foreign import as_array, is_python, rounded_f32
from asmdnn.memory.sequences import items
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.shapes.windows import MAX_SIZE
from asmdnn.types import DataType

Array = npt.NDArray[np.float32]
AnyArray = npt.NDArray[Any]
AnyDataType = DataType | str | type[Any] | np.dtype[Any]  # or its name, or numpy's type or its name
F32 = np.dtype(np.float32)  # the one that almost every array has: `dtype is F32` is the cheapest test there is


def as_f32(name: str, value: Any) -> Array:
    """`value` as a float32 array that is not copied if it need not be.

    Arrays of other types are refused, not converted; numbers of Python and lists of them become float32.
    """
    return rounded_f32(name, value) if is_python(value) else checked_f32(name, as_array(name, value))


def checked_f32(name: str, array: npt.NDArray[Any]) -> Array:
    """A plain ndarray of F32 over the same memory, or InvalidArguments."""
    if array.dtype != F32:
        raise InvalidArguments(of_no_numbers(name, array) or f"{name} has dtype {array.dtype}, convert it to float32")
    return np.asarray(array).view(F32)


def of_no_numbers(name: str, array: AnyArray) -> str:
    """What is said of a word or another object in the place of an array; "" of arrays of numbers."""
    if array.dtype.kind == "O":
        is_one = f"is {shown(array.item())}" if not array.ndim else "has objects"
        return f"{name} {is_one}, where {'an array' if not array.ndim else 'numbers'} must be"
    if array.dtype.kind not in "SU" or array.ndim:
        return ""
    order = ": the array comes first" if name == "x" else ""
    return f"{name} is the text {shown(array.item())}, where an array is wanted{order}"


def exported(name: str, value: Any) -> AnyArray:
    """The memory of `value` as an array to write: a numpy array, a Memory, or what exports memory.

    By the buffer protocol, __array_interface__ or DLPack; never a copy.  Raises InvalidArguments.
    """
    try:
        if isinstance(value, np.ndarray | Memory):
            return np.asarray(value)
        if hasattr(value, "__dlpack__"):
            return Memory.from_dlpack(value).view()
        return np.asarray(value if hasattr(value, "__array_interface__") else memoryview(value))
    except Exception as error:  # whatever the caller's object does
        raise InvalidArguments(f"{name} must be an array in memory that can be written: {error}") from error


def output(name: str, value: Any, dtype: np.dtype[Any] = F32) -> npt.NDArray[Any]:
    """The memory of `value`, as `exported` has it, of `dtype`.  Raises InvalidArguments."""
    array = exported(name, value)
    if array.dtype != dtype:
        raise InvalidArguments(f"{name} must be an array of {dtype}, not of {array.dtype}")
    return np.asarray(array).view(dtype)


def chain_of(post_ops: Any) -> tuple[AnyPostOp, ...]:
    """The chain as a tuple, validated where it is not one yet."""
    try:
        return post_ops if type(post_ops) is tuple and str not in map(type, post_ops) else Attr(post_ops).post_ops
    except TypeError:
        raise InvalidArguments(f"post_ops must be a sequence of post-ops, not {shown(post_ops)}") from None


Padding = int | str | Sequence[int]
COUNTS = ("no", "one", "two", "three", "four", "five", "six")


def per_axis(name: str, value: int | Sequence[int], axes: int, least: int) -> tuple[int, ...]:
    """A number for each axis, from one integer or as many."""
    numbers = integers(name, value)
    if len(numbers) == 1:
        numbers *= axes
    if len(numbers) != axes or not all(least <= n <= MAX_SIZE for n in numbers):
        counts = "one integer" if axes == 1 else f"one or {COUNTS[axes]} integers"
        raise InvalidArguments(f"{name} must be {counts} of at least {least}, below 2**31, not {shown(value)}")
    return numbers


def pads(value: int | Sequence[int], axes: int) -> tuple[int, ...]:
    """What comes before along each axis, then what comes after, from one integer, one an axis, or all."""
    numbers = integers("padding", value)
    numbers = {1: numbers * 2 * axes, axes: numbers * 2}.get(len(numbers), numbers)
    if len(numbers) != 2 * axes or not all(0 <= n <= MAX_SIZE for n in numbers):
        counts = f"one, {COUNTS[axes]} or {COUNTS[2 * axes]}" if axes > 1 else "one or two"
        raise InvalidArguments(f"padding must be {counts} integers from 0 to 2**31 - 1, not {shown(value)}")
    return numbers


def image_dims(value: Sequence[int] | None, ndims: int) -> tuple[int, ...] | None:
    """The dims of x, None if there are none."""
    if value is None:
        return None
    dims = integers("dims", value)
    if len(dims) != ndims:
        raise InvalidArguments(f"dims must be {COUNTS[ndims]}, (n, c, ...), not {shown(value)}")
    return dims


def aligned(name: str, array: AnyArray) -> AnyArray:
    """The array.  Raises InvalidArguments where no kernel may read it: the caller names it, who knows what it is."""
    if not array.flags.aligned:
        raise InvalidArguments(f"{name} is not aligned to the element's {array.itemsize} bytes: copy it")
    return array


def integers(name: str, value: int | Sequence[int]) -> tuple[int, ...]:
    """One integer, or a sequence of them, as a tuple."""
    try:
        numbers = items(value) if isinstance(value, Sequence) else (value,)
        if not isinstance(value, bytes | bytearray) and not any(isinstance(n, bool) for n in numbers):
            return tuple(index(n) for n in numbers)  # numpy's integers too
    except Exception:  # whatever the caller's object does
        pass
    raise InvalidArguments(f"{name} must be integers, not {shown(value)}")


def integer(name: str, value: Any) -> int:
    """One integer, for the key of a call: in it True and 1.0 would be one that another call has had checked."""
    if type(value) is int:
        return value
    try:
        (number,) = integers(name, value)
    except (ValueError, InvalidArguments):  # several, or none that is an integer
        raise InvalidArguments(f"{name} must be an integer, not {shown(value)}") from None
    return number


def packed_or_plain(name: str, value: Any) -> tuple[AnyArray, object]:
    """The storage of weights, and what a call depends on: the format of packed ones, else shape and strides."""
    if type(value) is Memory:
        return value.array, value.desc
    array = value if type(value) is np.ndarray and value.dtype is F32 else as_f32(name, value)
    return array, (array.shape, array.strides)


def widened(name: str, desc: MemoryDesc, ndim: int) -> MemoryDesc:
    """The same with so many dims, the new ones in front and of size 1."""
    new = ndim - desc.ndims
    if new == 0:
        return desc
    if new < 0:
        raise InvalidArguments(f"{name} has {counted(desc.ndims, 'dim')}, the result has {ndim}")
    return desc.widened(new)


def product_dims(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Those of a product; batch dims are broadcast.  Raises InvalidArguments, in the words of `matmul`."""
    if a[-1] != b[-2]:
        raise InvalidArguments(f"b has {counted(b[-2], 'row')}, a has {counted(a[-1], 'column')}: make them equal")
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise InvalidArguments(f"a has dims {a}, b {b}: batch dims must be equal or 1") from None
    return (*batch, a[-2], b[-1])


def check_product_out(out: tuple[int, ...], dims: tuple[int, ...]) -> None:
    """Raise InvalidArguments unless it has the product's rows and columns."""
    if out[-2:] != dims[-2:]:
        raise InvalidArguments(f"out has dims {out}, the product has {dims}")
