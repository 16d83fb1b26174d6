"""Tensors in memory by the offset formula alone, with poison wherever nothing may be read or must be written."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

import asmdnn as dnn

POISON = np.uint32(0x7FC0DEAD)  # a NaN that no arithmetic makes

Storage = npt.NDArray[np.float32]


def bits(array: Storage) -> npt.NDArray[np.uint32]:
    return array.view(np.uint32)


def poison(memory: dnn.Memory) -> None:
    """Fill all of the storage: elements, padding, gaps."""
    stored = memory.array.view(np.uint8)
    stored[:] = np.resize(POISON.reshape(1).view(np.uint8), stored.size)  # of any number of bytes


def write(memory: dnn.Memory, values: Storage) -> None:
    """The tensor `values`, its padding zero, and poison in the gaps between elements."""
    poison(memory)
    memory.array[memory.desc.offsets(with_padding=True)] = 0
    memory.array[memory.desc.offsets()] = values


def holding(desc: dnn.MemoryDesc, values: Storage | None) -> dnn.Memory:
    """A new memory with `values`, or poison if None."""
    memory = dnn.Memory(desc)
    if values is None:
        poison(memory)
    else:
        write(memory, values)
    return memory


def read(memory: dnn.Memory) -> Storage:
    """The elements; the padding must be zero, and the gaps untouched."""
    padded = memory.array[memory.desc.offsets(with_padding=True)]
    inside = np.zeros(memory.desc.padded_dims, bool)
    inside[tuple(map(slice, memory.desc.dims))] = True
    stray = padded[~inside]
    assert not stray.any(), f"the zero padding of {memory.desc} holds {stray[stray != 0][0]}"
    gaps = np.ones(memory.array.size, bool)
    gaps[memory.desc.offsets(with_padding=True)] = False
    stored = memory.array.view(np.uint8)
    poisoned = np.resize(POISON.reshape(1).view(np.uint8), stored.size)
    same = (stored == poisoned).reshape(-1, memory.array.itemsize).all(axis=1)
    assert same[gaps].all(), f"bytes between the elements of {memory.desc} were written"
    return memory.array[memory.desc.offsets()]


def assert_within(result: Storage, wanted: npt.NDArray[np.float64], tolerance: npt.NDArray[np.float64] | float) -> None:
    """Every element; a NaN where none is wanted, or none where one is, is wrong."""
    same = (result == wanted) | (np.isnan(result) & np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        wrong = ~(same | (np.abs(result - wanted) <= tolerance))
    if wrong.any():
        at = tuple(map(int, np.unravel_index(int(wrong.argmax()), wrong.shape)))
        found = f"{result[at]:.9g} instead of {wanted[at]:.9g}"
        raise AssertionError(f"{wrong.sum()} of {wrong.size} wrong, at {at} {found}")


def filling(arrays: Mapping[str, np.ndarray]) -> Callable[[str, dnn.Memory], None]:
    """What puts these arrays into memories of their names, and poison into all others."""

    def fill(name: str, memory: dnn.Memory) -> None:
        write(memory, arrays[name]) if name in arrays else poison(memory)

    return fill
