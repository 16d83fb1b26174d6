"""Weights of networks in the formats of kernels: with the bits of their definitions, whatever packs them."""

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.memory.winograd import WinogradDesc
from asmdnn.network.joining.buffers import Weight
from asmdnn.network.joining.weights import WeightPool

SQUARE = (40, 24, 3, 3)
MATRIX = (160, 210)


def packed(weight: Weight, threads: int) -> np.ndarray:
    pool = WeightPool()
    return np.array(pool.packed(pool, {"w": weight}, {"w": 0}, threads).whole())


@pytest.mark.parametrize(
    "desc",
    [
        WinogradDesc(SQUARE, dnn.f32, 2, 8), WinogradDesc(SQUARE, dnn.f32, 4, 16),
        dnn.MemoryDesc(MATRIX, dnn.f32, "Ba16b"), dnn.MemoryDesc(SQUARE, dnn.f32, "ABcd8b8a"),
        dnn.MemoryDesc(MATRIX, dnn.f32, "ba"),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("order", ["C", "F", "unaligned"])
def test_bits_are_those_of_the_definition(desc: dnn.MemoryDesc, order: str) -> None:
    array = np.random.default_rng(1).standard_normal(desc.dims).astype(np.float32)
    if order == "unaligned":
        raw = np.zeros(array.nbytes + 1, np.uint8)
        raw[1:] = array.reshape(-1).view(np.uint8)
        given = raw[1:].view(np.float32).reshape(array.shape)
        assert not given.flags.aligned
    else:
        given = np.array(array, order=order)
    wanted = dnn.Memory.from_numpy(array, desc).array.view(np.uint8)
    for threads in (1, 2, 3, 7):
        found = packed(Weight(desc, given), threads)
        np.testing.assert_array_equal(found[: len(wanted)], wanted)
        assert not found[len(wanted) :].any()
