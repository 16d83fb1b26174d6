"""Dropout by Philox4x32-10 (Salmon and others, Parallel Random Numbers: As Easy as 1, 2, 3, 2011), as oneDNN counts."""

from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.definitions.rounding import Array

MULTIPLIERS, WEYL, ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox(counter: Any, key: Any) -> npt.NDArray[np.uint64]:
    """u64[4, n] of 32 bits each from u64[4, n] and two words."""
    c, k = [np.uint64(word) for word in counter], [np.uint64(word) for word in key]
    for _ in range(ROUNDS):
        first, second = (c[2 * i] * np.uint64(factor) for i, factor in enumerate(MULTIPLIERS))
        c = [second >> HALF ^ c[1] ^ k[0], second & LOW, first >> HALF ^ c[3] ^ k[1], first & LOW]
        k = [word + np.uint64(step) & LOW for word, step in zip(k, WEYL, strict=True)]
    return np.stack(c)


def philox_words(first: int, count: int, seed: int) -> npt.NDArray[np.uint64]:
    """u64[count]: the 32 random bits of the elements from an index on, a multiple of 4."""
    quads = np.uint64(first) + np.uint64(4) * np.arange(-(-count // 4), dtype=np.uint64)
    words = philox([quads + np.uint64(i) & LOW for i in range(4)], [seed % 2**32] * 2)
    return words.T.ravel()[:count]


def kept(count: int, probability: float, seed: int) -> npt.NDArray[np.bool_]:
    """bool[count]: which elements stay."""
    return philox_words(0, count, seed) > float(LOW) * np.float64(np.float32(probability))


def dropped(x: Array, probability: float, seed: int) -> tuple[Array, npt.NDArray[np.bool_]]:
    """(x / (1 - probability) where it stays, else 0; which stay), both in x's dims; in f32, where it rounds once."""
    p = np.float32(probability)
    factor = np.float32(1) / (np.float32(1) - p) if p < 1 else np.float32(0)
    stays = kept(x.size, probability, seed).reshape(x.shape)
    return np.where(stays, x.astype(np.float32) * factor, np.float32(0)), stays
