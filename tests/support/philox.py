"""Philox4x32-10 in integers of numpy, from the paper; dropout by it as oneDNN counts, and stochastic rounding."""

from typing import Any

import numpy as np

from tests.support.arena import Doubles


def philox(counter: Any, key: Any) -> Any:
    """u64[4, n] of 32 bits each from u64[4, n] and u64[2]."""
    c, k = [np.uint64(word) for word in counter], [np.uint64(word) for word in key]
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [second >> shift ^ c[1] ^ k[0], second & low, first >> shift ^ c[3] ^ k[1], first & low]
        k = [k[0] + np.uint64(0x9E3779B9) & low, k[1] + np.uint64(0xBB67AE85) & low]
    return np.stack(c)


def words(first: int, count: int, seed: int) -> Any:
    """u64[count]: 32 bits for each element, from an index that is a multiple of 4 on."""
    quads = np.arange(-(-count // 4), dtype=np.uint64) * np.uint64(4) + np.uint64(first)
    counter = [quads + np.uint64(word) & np.uint64(0xFFFFFFFF) for word in range(4)]
    return philox(counter, [seed % 2**32] * 2).T.ravel()[:count]


def kept(first: int, count: int, probability: float, seed: int) -> Any:
    """bool[count]: which elements stay, from an index that is a multiple of 4 on."""
    bits = words(first, count, seed)
    return bits.astype(np.float64) > np.float64(0xFFFFFFFF) * np.float64(np.float32(probability))


def rounded_to_bf16(x: Any, first: int, seed: int) -> Doubles:
    """The neighbour in bf16 that a random number chooses; element by element, in integers of Python."""
    found = []
    for number, word in zip(np.float32(x), words(first, len(x), seed).tolist(), strict=True):
        bits, chance = int(number.view(np.uint32)), word >> 16
        rounded = np.uint32((bits + chance) // 2**16 * 2**16 % 2**32).view(np.float32)
        found.append(float(rounded if np.isfinite(number) else number))
    return np.array(found, np.float64)


def dropped(x: Any, first: int, probability: float, seed: int) -> Doubles:
    """x / (1 - probability) where it stays, else 0; in f32."""
    factor = np.float32(1) / (np.float32(1) - np.float32(probability)) if probability < 1 else np.float32(0)
    stays = kept(first, len(x), probability, seed)
    return np.where(stays, np.float32(x) * factor, np.float32(0)).astype(np.float64)
