"""Sums of many bytes, faster than SHA-256, for what is kept on disk: products with random numbers, and their SHA-256.

Rows of words, two bytes each, are multiplied by a matrix of random s8, modulo 2^32.  Two rows that differ have equal
products in a column for at most one of 256 values of the number that meets a differing word, since words differ by less
than 2^17; and in all 16 columns with a probability of 2^-128 (universal hashing, Carter and Wegman 1979).  This holds
for bytes that nobody chose with the matrix in hand: a sum guards against damage and change, not against malice.
"""

import hashlib
from functools import cache
from typing import Any

import numpy as np

from asmdnn.generators.dot.byte_sums import (
    BLOCK_BYTES,
    BLOCK_ROWS,
    COLUMNS,
    DST_ROW_BYTES,
    ROW_BYTES,
    ROW_WORDS,
    ByteSumsSpec,
)
from asmdnn.jit.kernels import LoadedKernel
from asmdnn.jit.native import ffi
from asmdnn.runtime.kernels import kernel_cache

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def byte_sum(data: Any) -> bytes:
    """32 bytes that stand for the bytes of a dense buffer, and for their number."""
    given = np.frombuffer(data, np.uint8)
    whole = len(given) // BLOCK_BYTES * BLOCK_BYTES
    digest = hashlib.sha256(len(given).to_bytes(8, "little"))
    if whole:
        digest.update(products(given[:whole]).data)
    digest.update(given[whole:].data)
    return digest.digest()


def products(rows: Bytes) -> "np.ndarray[Any, np.dtype[np.int32]]":
    """s32[rows, COLUMNS] of u8[rows * ROW_BYTES], whole blocks of them."""
    call = ffi.cast("void (*)(int64_t *)", kernel().address)
    weights, found = matrix(), np.empty((len(rows) // ROW_BYTES, COLUMNS), np.int32)
    src, dst = rows.ctypes.data, found.ctypes.data
    frame = ffi.new("int64_t[]", [0, weights.ctypes.data, 0, 0, 0, 0, 0])
    for block in range(len(rows) // BLOCK_BYTES):
        here = src + block * BLOCK_BYTES
        frame[0], frame[3], frame[4] = here, dst + block * BLOCK_ROWS * DST_ROW_BYTES, here + BLOCK_BYTES
        call(frame)
    return found


@cache
def kernel() -> LoadedKernel:
    (found,) = kernel_cache().load([ByteSumsSpec()])
    return found


@cache
def matrix() -> Bytes:
    """s8[ROW_WORDS / 2, COLUMNS, 2] as bytes: weights as they lie in a panel, the same in every process."""
    return np.frombuffer(hashlib.shake_128(b"asmdnn").digest(ROW_WORDS * COLUMNS), np.uint8)
