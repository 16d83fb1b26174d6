"""Tensors of any type as bits in memory, by the offset formula alone; poison wherever nothing may be written."""

import numpy as np
import numpy.typing as npt

import asmdnn as dnn

POISON = 0x99

Bits = npt.NDArray[np.unsignedinteger]


def bits_of(memory: dnn.Memory) -> Bits:
    size = memory.desc.dtype.size_bytes
    return memory.array.view({1: np.uint8, 2: np.uint16, 4: np.uint32}[size])


def fill(memory: dnn.Memory, values: Bits | None) -> None:
    """`values`, junk in the padding, and poison in gaps; poison all over if None."""
    bits = bits_of(memory)
    bits[:] = POISON
    if values is not None:
        bits[memory.desc.offsets(with_padding=True)] = POISON - 1  # dst's padding must not depend on src's
        bits[memory.desc.offsets()] = values


def elements_of(memory: dnn.Memory) -> Bits:
    """The elements; everything else must be zero if it is padding, and poison if it is a gap."""
    bits, desc = bits_of(memory), memory.desc
    elements = bits[desc.offsets()]
    expected = np.full_like(bits, POISON)
    expected[desc.offsets(with_padding=True)] = 0
    expected[desc.offsets()] = elements
    assert np.array_equal(bits, expected), f"padding of {desc} is not zero, or a gap was written"
    return elements
