"""Philox4x32-10 in integers of numpy, from the paper; dropout by it as oneDNN counts, and stochastic rounding."""

from typing import Any

import numpy as np

from asmdnn.types import DataType, bf16, f8_e4m3, f8_e5m2, f16, s8, u8
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


CUT_BITS = {bf16: 16, f16: 13, f8_e4m3: 20, f8_e5m2: 21, s8: 16, u8: 16}


def neighbours(size: float, dtype: DataType) -> tuple[float, float]:
    """The numbers of a type between which a size lies, the lower one below the other; beyond the largest, as if there
    were more."""
    if dtype in (s8, u8):
        return float(np.floor(size)), float(np.floor(size)) + 1
    mantissa = 23 - CUT_BITS[dtype]
    least = {bf16: -126, f16: -14, f8_e4m3: -6, f8_e5m2: -14}[dtype]
    step = 2.0 ** (max(int(np.floor(np.log2(size))) if size else least, least) - mantissa)
    low = float(np.floor(size / step)) * step
    return low, low + step


def stochastic(x: Any, dtype: DataType, first: int, seed: int) -> Doubles:
    """The neighbour that a random number chooses, as a number of the type; element by element, in f64."""
    found = []
    for number, word in zip(np.float32(x), words(first, len(x), seed).tolist(), strict=True):
        if not np.isfinite(number):
            found.append(float(number))
            continue
        low, high = neighbours(abs(float(number)), dtype)
        cut = CUT_BITS[dtype]
        share = int((abs(float(number)) - low) / (high - low) * 2**cut)
        size = high if share + (word >> 32 - cut) >= 2**cut else low
        found.append(float(np.copysign(size, number)))
    return np.array(found, np.float64)


def dropped(x: Any, first: int, probability: float, seed: int) -> Doubles:
    """x / (1 - probability) where it stays, else 0; in f32."""
    factor = np.float32(1) / (np.float32(1) - np.float32(probability)) if probability < 1 else np.float32(0)
    stays = kept(first, len(x), probability, seed)
    return np.where(stays, np.float32(x) * factor, np.float32(0)).astype(np.float64)
