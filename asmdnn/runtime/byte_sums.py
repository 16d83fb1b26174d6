"""Sums of many bytes, faster than SHA-256, for what is kept on disk: products with random numbers, and their SHA-256.

Rows of words, two bytes each, are multiplied by a matrix of random s8, modulo 2^32.  Two rows that differ have equal
products in a column for at most one of 256 values of the number that meets a differing word, since words differ by less
than 2^17; and in all 16 columns with a probability of 2^-128 (universal hashing, Carter and Wegman 1979).  This holds
for bytes that nobody chose with the matrix in hand: a sum guards against damage and change, not against malice.
One kernel of AVX2 is for all levels, whose sums are equal so: half the speed of memory on a Zen 3.
"""

import hashlib
from functools import cache
from typing import Any, Final

import numpy as np

from asmdnn.generators.dot.matmul import UNROLL, MatmulTileSpec
from asmdnn.generators.dot.matmul_shape import Items, MatmulTile
from asmdnn.isa.dot import GROUP_BYTES, S16S8, blocks_of
from asmdnn.isa.levels import AVX2
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.jit.kernels import LoadedKernel
from asmdnn.jit.native import ffi
from asmdnn.runtime.kernels import kernel_cache
from asmdnn.types import s16, s32

COLUMNS: Final = 16
ROW_BYTES: Final = 4032  # 63 lines, so that rows fall into different sets of L1
ROW_WORDS: Final = ROW_BYTES // s16.size_bytes
BLOCK_ROWS: Final = 24
BLOCK_BYTES: Final = BLOCK_ROWS * ROW_BYTES  # of a call
DST_ROW_BYTES: Final = COLUMNS * 4

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
    (found,) = kernel_cache().load([tile_spec()])
    return found


def tile_spec() -> MatmulTileSpec:
    """The kernel of a block: tiles as high as registers allow, while the next block's lines come."""
    vectors = DST_ROW_BYTES // AVX2.vector_bytes
    rows = blocks_of(S16S8, AVX2.name)[vectors]
    lines = BLOCK_BYTES // LINE_BYTES // (ROW_BYTES // GROUP_BYTES // UNROLL * (BLOCK_ROWS // rows))
    items = Items(BLOCK_ROWS // rows, rows * ROW_BYTES, 0, 0, rows * DST_ROW_BYTES)
    return MatmulTileSpec(
        tile=MatmulTile(
            AVX2.name, rows, COLUMNS, ROW_WORDS, src_row_bytes=ROW_BYTES, src_depth_bytes=GROUP_BYTES,
            weights_row_bytes=S16S8.group * COLUMNS, panel_vectors=vectors, panel_bytes=0, padded=True,
            dst_row_bytes=DST_ROW_BYTES, prefetch_lines=lines, items=items, types=S16S8, dst=s32,
        )
    )  # fmt: skip


@cache
def matrix() -> Bytes:
    """s8[ROW_WORDS / 2, COLUMNS, 2] as bytes: weights as they lie in a panel, the same in every process."""
    return np.frombuffer(hashlib.shake_128(b"asmdnn").digest(ROW_WORDS * COLUMNS), np.uint8)
