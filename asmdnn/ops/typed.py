"""Arrays of every element type: how arguments are read, and of what type results are.

Types that numpy lacks are those of ml_dtypes.  Where that is not at hand, they come in a Memory, or in a tensor of
another library: their elements travel as words of one field, which has the type's name, and results are plain words.
"""

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, resembling, shown
from asmdnn.memory import Memory
from asmdnn.memory.arrays import data_type_of
from asmdnn.memory.foreign import as_array, is_python, rounded_f32
from asmdnn.ops.arguments import F32, AnyArray, AnyDataType, exported, of_no_numbers
from asmdnn.types import DATA_TYPES, DataType, f32

INTEGERS = "iu"


def typed(name: str, value: Any) -> AnyArray:
    """`value` as an ndarray of a type that asmdnn has, not copied if it need not be; other types are refused.

    Numbers of Python and lists of them become float32.
    """
    if type(value) is np.ndarray and value.dtype is F32:
        return value
    if is_python(value):
        return rounded_f32(name, value)
    return checked(name, with_words(name, value) if is_foreign(value) else as_array(name, value))


def checked(name: str, array: AnyArray) -> AnyArray:
    """A plain ndarray over the same memory, of F32 where it is f32; or InvalidArguments."""
    if array.dtype == F32:
        return np.asarray(array).view(F32)
    try:
        data_type_of(array.dtype)
    except InvalidArguments:
        if text := of_no_numbers(name, array):
            raise InvalidArguments(text) from None
        held = ", or pass Memory.from_array(words, bf16) if it holds its bits" * (array.dtype == np.uint16)
        raise InvalidArguments(f"{name} has dtype {array.dtype}, convert it to float32{held}") from None
    return np.asarray(array)


def is_foreign(value: Any) -> bool:
    """Whether its elements may be of a type that numpy cannot name."""
    try:
        return not isinstance(value, np.ndarray) and (isinstance(value, Memory) or hasattr(value, "__dlpack__"))
    except Exception:  # whatever the caller's object does: who reads it as an array says what is wrong with it
        return False


def with_words(name: str, value: Any) -> AnyArray:
    """The elements of a Memory or a tensor of another library."""
    try:
        memory = value if isinstance(value, Memory) else Memory.from_dlpack(value)
        return named(memory.view(), memory.desc.dtype)
    except Exception:  # whatever the caller's object does: who reads it as an array says what is wrong with it
        return as_array(name, value)


def named(array: AnyArray, dtype: DataType) -> AnyArray:
    """Words of one field, which has the name of a type that numpy lacks."""
    return array.view(np.dtype([(dtype.name, dtype.numpy)])) if dtype.extension else array


def typed_output(name: str, value: Any) -> AnyArray:
    """The memory of `value` as an array to write, of a type that asmdnn has.  Raises InvalidArguments."""
    if type(value) is np.ndarray and value.dtype is F32:
        return value
    return checked(name, with_words(name, value) if isinstance(value, Memory) else exported(name, value))


def kind_of(array: AnyArray) -> DataType:
    return f32 if array.dtype is F32 else data_type_of(array.dtype)


def result_type(dtype: AnyDataType | None, out: AnyArray | None, usual: DataType) -> DataType:
    """What a result is of: `dtype`, or what `out` is of, else the usual type.  Raises InvalidArguments."""
    wanted = None if dtype is None else wanted_type(dtype)
    if out is None:
        return wanted or usual
    if wanted is not None and kind_of(out) != wanted:
        raise InvalidArguments(f"out is of {kind_of(out)}, but dtype is {wanted}: leave one of them out")
    return kind_of(out)


def wanted_type(dtype: Any) -> DataType:
    """A type as callers say it: one of asmdnn's, the name of one, or a type of numpy's or its name.

    Raises InvalidArguments for others, and for numpy's letters, whose u8 has 8 bytes.
    """
    if isinstance(dtype, DataType):
        return dtype
    try:
        if isinstance(dtype, str):
            names = {each.extension or np.dtype(each.numpy).name: each for each in DATA_TYPES.values()}
            return {**names, **DATA_TYPES}[dtype]
        return data_type_of(np.dtype(dtype))
    except Exception:  # whatever the caller's object does
        near = resembling(dtype, DATA_TYPES)
        raise InvalidArguments(f"dtype must be one of {', '.join(DATA_TYPES)}, not {shown(dtype)}{near}") from None


def fractions(dtype: AnyDataType | None, out: Any, *arrays: AnyArray) -> AnyDataType | None:
    """The type of a result that is no whole number: f32 of integers, if nothing else is asked for."""
    whole = dtype is None and out is None and arrays[0].dtype.kind in INTEGERS
    return f32 if whole else dtype


def numpy_type(dtype: DataType, given: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """Of a type that numpy lacks that of ml_dtypes, if an argument has it or the process has imported it; integers that
    hold the bits where an argument's elements are such words, too."""
    if not dtype.extension:
        return np.dtype(dtype.numpy)
    kinds = tuple(given)
    own = next((kind for kind in kinds if kind.name == dtype.extension), None)
    if own is None and (loaded := sys.modules.get("ml_dtypes")) and not any(kind.names for kind in kinds):
        own = np.dtype(getattr(loaded, dtype.extension))
    return np.dtype(dtype.numpy) if own is None else own
