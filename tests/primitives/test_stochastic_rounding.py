"""Stochastic rounding: the definition's numbers for any layout and threads, its mean, special values, bad input."""

from math import log, sqrt
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.stochastic_rounding import stochastically_rounded

pytestmark = pytest.mark.isa("avx2")
SURE = 1e-9  # the chance that a right generator fails the test of means


def rounded(
    x: Any, seed: int, src: str, dst: str, dtype: dnn.DataType = dnn.f32, threads: int = 1, first: int = 0
) -> Any:
    """What a call makes of an array, and the name of what made it."""
    desc = dnn.StochasticRounding(dnn.MemoryDesc(x.shape, dnn.f32, src), dnn.MemoryDesc(x.shape, dtype, dst), first)
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx2", threads=threads))
    pd.plan.check()
    made = dnn.Memory(pd.dst_desc)
    seeds = dnn.Memory.from_array(np.int32([seed]))
    dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, pd.src_desc), dst=made, seed=seeds)
    return made.numpy(), pd.implementation


def values(dims: tuple[int, ...]) -> Any:
    return np.random.default_rng(0).standard_normal(dims).astype(np.float32)


@pytest.mark.parametrize("seed", [0, 1, -(2**31), 2**31 - 1])
def test_numbers_are_those_of_the_definition(seed: int) -> None:
    for dims, first in (((7,), 0), ((3, 1000), 12), ((9001,), 2**32 - 4)):
        x = values(dims)
        for threads in (1, 2, 3, 7):
            found, name = rounded(x, seed, "ab"[: x.ndim], "ab"[: x.ndim], threads=threads, first=first)
            assert name == "stochastic_rounding:avx2"
            assert np.array_equal(found, stochastically_rounded(x, seed, first))


@pytest.mark.parametrize(("src", "dst"), [("abcd", "acdb"), ("aBcd16b", "abcd"), ("acdb", "aBcd8b")])
def test_layouts_and_types(src: str, dst: str) -> None:
    """Random numbers are those of the plain tensor, whatever lies where; bf16 has the same numbers."""
    x = values((2, 19, 3, 5))
    wanted = stochastically_rounded(x, 3)
    found, name = rounded(x, 3, src, dst)
    assert name == "reorder+stochastic_rounding:avx2"
    assert np.array_equal(found, wanted)
    assert np.array_equal(rounded(x, 3, src, dst, dnn.bf16)[0], (wanted.view(np.uint32) >> 16).astype(np.uint16))


@pytest.mark.parametrize("share", [0, 1, 2**15, 2**16 - 1, 12345])
def test_the_mean_is_the_number(share: int) -> None:
    """Of n equal numbers, a share of 2^-16 of the way to the next, so many go there as chance allows: by Hoeffding's
    inequality the share of them is further than sqrt(log(2 / c) / 2 n) from it with a chance of c at most."""
    count = 1 << 18
    for sign in (0, 1 << 31):
        x = np.full(count, np.array(sign + 0x3F800000 + share, np.uint32).view(np.float32))
        found, _ = rounded(x, 7, "a", "a")
        away = (found.view(np.uint32) & 0x7FFFFFFF) == 0x3F810000
        assert np.isin(np.abs(found), np.float32([1, 1 + 2**-7])).all()
        assert abs(away.mean() - share / 2**16) <= sqrt(log(2 / SURE) / (2 * count))
        assert share or not away.any()


def test_special_values_stay() -> None:
    bits = np.array([0x7F800000, 0xFF800000, 0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0, 1 << 31, 0x00010000], np.uint32)
    x = np.tile(bits.view(np.float32), 50)
    found, _ = rounded(x, 5, "a", "a")
    assert np.array_equal(found, x, equal_nan=True)
    assert np.array_equal(np.signbit(found), np.signbit(x))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dnn.StochasticRounding(D, dnn.MemoryDesc((4,), dnn.f32, "a")), "dst"),
        (
            lambda: dnn.StochasticRounding(D, dnn.MemoryDesc((3,), dnn.s32, "a")),
            "dst is s32, it must be bf16, f32, f16, .* or u8",
        ),
        (lambda: dnn.StochasticRounding(dnn.MemoryDesc((3,), dnn.bf16, "a"), D), "src is bf16, it must be f32"),
        (lambda: dnn.StochasticRounding(D, D, 3), r"first must be a multiple of 4 from 0 to 2\*\*32, not 3"),
        (lambda: dnn.StochasticRounding(D, D, True), "first must be a multiple of 4"),
    ],
)
def test_what_does_not_fit(make: Any, message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        make()


D = dnn.MemoryDesc((3,), dnn.f32, "a")
