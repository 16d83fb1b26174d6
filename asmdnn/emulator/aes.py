"""AES: rounds, their inverses, and steps of the key, on 128 bits or several times 128.

Sources: FIPS 197, and the Intel manual, volume 2.  A state's byte r + 4 c is row r of column c.
"""

from collections.abc import Callable, Iterable
from functools import cache, reduce
from operator import xor

import numpy as np

from asmdnn.emulator.fields import field_inverse, field_product
from asmdnn.emulator.memory import Array
from asmdnn.emulator.operands import Operands, Step

STATE_BYTES = 16
MIXED, UNMIXED = (2, 3, 1, 1), (14, 11, 13, 9)  # the first row of each matrix


def sum_of(values: Iterable[int]) -> int:
    """Without carries."""
    return reduce(xor, values)


@cache
def substitution() -> tuple[Array, Array]:
    """The S-box, and its inverse: the inverse in the field, then an affine map over bits."""
    box = np.zeros(256, np.uint8)
    for x in range(256):
        y = field_inverse(x)
        turned = (y << up | y >> 8 - up for up in range(1, 5))
        box[x] = (y ^ sum_of(turned) ^ 0x63) & 0xFF
    return box, np.argsort(box).astype(np.uint8)


@cache
def multiples(factor: int) -> Array:
    """Of each byte, in the field."""
    return np.array([field_product(factor, x) for x in range(256)], np.uint8)


def mixed(states: Array, row: tuple[int, ...]) -> Array:
    """Each column times the matrix whose rows are `row`, turned."""
    columns = states.reshape(-1, 4)
    found = np.zeros_like(columns)
    for r in range(4):
        for c in range(4):
            found[:, r] ^= multiples(row[(c - r) % 4])[columns[:, c]]
    return found.reshape(-1)


def rounds(ops: Operands) -> Step:
    """VAESENC, VAESDEC and their last rounds: rows shifted, bytes substituted, columns mixed, the key added."""
    is_inverse, is_last = "DEC" in ops.name, ops.name.endswith("LAST")
    states, key = ops.vector(1, np.uint8), ops.source(2, np.uint8, ops.vector_size, masked=False)
    order = np.arange(STATE_BYTES) * (13 if is_inverse else 5) % STATE_BYTES  # row r is shifted by r columns

    def fill(out: Array) -> None:
        found = substitution()[is_inverse][states.reshape(-1, STATE_BYTES)[:, order].reshape(-1)]
        out[:] = (found if is_last else mixed(found, UNMIXED if is_inverse else MIXED)) ^ key()

    return ops.define(np.uint8, fill)


def unmixed_key(ops: Operands) -> Step:
    """VAESIMC: a key of encryption as one of decryption."""
    key = ops.source(1, np.uint8, STATE_BYTES)

    def fill(out: Array) -> None:
        out[:] = mixed(key().copy(), UNMIXED)

    return ops.define(np.uint8, fill, STATE_BYTES)


def key_step(ops: Operands) -> Step:
    """VAESKEYGENASSIST: dwords 1 and 3 substituted, each also turned by a byte and with the round's constant."""
    constant, key = ops.immediate(), ops.source(1, np.uint8, STATE_BYTES)

    def fill(out: Array) -> None:
        words = substitution()[0][key()].view(np.uint32)[[1, 3]]
        turned = words >> np.uint32(8) | words << np.uint32(24)
        out[:] = np.stack([words, turned ^ np.uint32(constant)], axis=1).reshape(-1).view(np.uint8)

    return ops.define(np.uint8, fill, STATE_BYTES)


TABLE: dict[str, Callable[[Operands], Step]] = {
    "VAESENC": rounds, "VAESENCLAST": rounds, "VAESDEC": rounds, "VAESDECLAST": rounds, "VAESIMC": unmixed_key,
    "VAESKEYGENASSIST": key_step,
}  # fmt: skip
