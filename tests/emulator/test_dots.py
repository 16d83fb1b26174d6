"""VPDPBUSD, VPDPWSSD, VDPBF16PS and VCVTNEPS2BF16 against the Intel manual, element by element in exact arithmetic."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from asmdnn.emulator.memory import Array
from tests.emulator.assembling import Mem, ins
from tests.emulator.native import missing_features, mixed_floats, vector_twin
from tests.emulator.single import State, after, random_state
from tests.emulator.test_fma import nearest_float32

INTEGERS = {
    "EVEX_VPDPBUSD_ZMM_K1Z_ZMM_ZMMM512B32": (np.uint8, np.int8),
    "EVEX_VPDPBUSDS_ZMM_K1Z_ZMM_ZMMM512B32": (np.uint8, np.int8),
    "EVEX_VPDPWSSD_ZMM_K1Z_ZMM_ZMMM512B32": (np.int16, np.int16),
    "EVEX_VPDPWSSDS_ZMM_K1Z_ZMM_ZMMM512B32": (np.int16, np.int16),
}
PAIRS = "EVEX_VDPBF16PS_ZMM_K1Z_ZMM_ZMMM512B32"
SEEDS = pytest.mark.parametrize("seed", range(4))
ROUNDED = "EVEX_VCVTNEPS2BF16_YMM_K1Z_ZMMM512B32"
NORMAL = Fraction(2) ** -126


def run(form: str, state: State) -> State:
    return after(ins(form, "zmm17", "zmm5", "zmm30"), state)


def state_of(sums: Array, a: Array, b: Array) -> State:
    state = random_state(np.random.default_rng(0))
    for number, values in ((17, sums), (5, a), (30, b)):
        state.vectors[number] = np.ascontiguousarray(values).view(np.uint8)
    return state


@SEEDS
@pytest.mark.parametrize(("form", "types"), INTEGERS.items())
def test_integers(form: str, types: tuple[type[np.integer[Any]], ...], seed: int) -> None:
    """Of bytes the first factor is unsigned, the second signed.  Sums wrap, or saturate once, after the addition."""
    rng = np.random.default_rng(seed)
    sums = rng.integers(-(2**31), 2**31, 16).astype(np.int32)
    sums[:6] = (2**31 - 1, -(2**31), 2**31 - 1, 0, 2**31 - 1, -(2**31))
    count = 64 // np.dtype(types[0]).itemsize
    a, b = (rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, count).astype(kind) for kind in types)
    group = count // 16
    a[: 2 * group], b[:group] = np.iinfo(types[0]).max, np.iinfo(types[1]).max
    b[group : 2 * group] = np.iinfo(types[1]).min
    a[4 * group : 6 * group] = 3
    b[4 * group : 6 * group] = [1, -2] * group  # sums that pass the end on the way, if they saturate too early
    got = run(form, state_of(sums, a, b)).lanes(17, np.int32)
    for lane, value in enumerate(got.tolist()):
        exact = int(sums[lane]) + sum(int(a[k]) * int(b[k]) for k in range(group * lane, group * lane + group))
        saturated, wrapped = min(max(exact, -(2**31)), 2**31 - 1), (exact + 2**31) % 2**32 - 2**31
        assert value == (saturated if "DS_" in form else wrapped), lane


def flushed(value: Fraction) -> Fraction:
    """As an input: denormals are zero."""
    return Fraction(0) if abs(value) < NORMAL else value


def rounded(value: Fraction) -> Fraction:
    """The nearest f32 of any exponent, ties to even; zero if that is below the normal ones."""
    if value == 0 or abs(value) > 1:
        return Fraction(nearest_float32(value))
    return flushed(Fraction(nearest_float32(value * 2**100)) / 2**100)


def pair_of_products(total: float, a: list[float], b: list[float]) -> Fraction:
    """The manual's pseudocode: odd elements first, each addition rounded."""
    result = flushed(Fraction(total))
    for k in (1, 0):
        result = rounded(flushed(Fraction(a[k])) * flushed(Fraction(b[k])) + result)
    return result


def ordinary(rng: np.random.Generator, count: int) -> Array:
    return np.float32(rng.standard_normal(count))


def cancelling(rng: np.random.Generator, count: int) -> Array:
    """Of a few magnitudes far apart, so that the order of the additions shows."""
    return np.float32(rng.integers(1, 256, count) * rng.choice([-1.0, 1.0], count) * 2.0 ** rng.choice([-12, 0, 12]))


def small(rng: np.random.Generator, count: int) -> Array:
    """Around the square root of the smallest normal number: products and sums fall on both sides of it."""
    return np.float32(rng.standard_normal(count) * 2.0**-63)


def denormal(rng: np.random.Generator, count: int) -> Array:
    """Half of them denormal."""
    return np.float32(rng.standard_normal(count) * 2.0**-126)


def as_bf16(values: Array) -> Array:
    """Cut off, not rounded: any bf16 will do."""
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def as_f32(values: Array) -> Array:
    return (values.astype(np.uint32) << 16).view(np.float32)


@SEEDS
@pytest.mark.parametrize("of_sums", [ordinary, small, denormal], ids=lambda make: make.__name__)
@pytest.mark.parametrize("of_factors", [ordinary, cancelling, small, denormal], ids=lambda make: make.__name__)
def test_bf16(of_factors: Callable[..., Array], of_sums: Callable[..., Array], seed: int) -> None:
    rng = np.random.default_rng(seed)
    sums, a, b = of_sums(rng, 16), as_bf16(of_factors(rng, 32)), as_bf16(of_factors(rng, 32))
    if of_sums is denormal and of_factors is small:
        sums *= 2  # beside products of that size
    got = run(PAIRS, state_of(sums, a, b)).lanes(17, np.float32)
    for lane in range(16):
        pair = slice(2 * lane, 2 * lane + 2)
        want = pair_of_products(float(sums[lane]), as_f32(a[pair]).tolist(), as_f32(b[pair]).tolist())
        assert Fraction(float(got[lane])) == want, lane


def test_bf16_just_below_the_normal_numbers() -> None:
    """What would round up to the smallest normal number among denormals is flushed, if it is tiny in 24 bits."""
    sums = np.full(16, 2.0**-126, np.float32)
    a, b = np.zeros(32, np.float32), np.zeros(32, np.float32)
    a[1::2] = 2.0**-75
    b[1::2] = -(2.0 ** -np.arange(74, 90))
    got = run(PAIRS, state_of(sums, as_bf16(a), as_bf16(b))).lanes(17, np.float32)
    want = [float(pair_of_products(2.0**-126, [0, 2.0**-75], [0, x])) for x in b[1::2].tolist()]
    assert got.tolist() == want
    assert got[0] == 0 and got[-1] == np.float32(2.0**-126)


def test_bf16_of_what_is_not_finite() -> None:
    sums = np.zeros(16, np.float32)
    a, b = np.ones(32, np.float32), np.ones(32, np.float32)
    a[:6], b[4] = (np.inf, 1, np.nan, 1, np.inf, 1), 0
    a[6], b[7] = np.inf, -np.inf
    got = run(PAIRS, state_of(sums, as_bf16(a), as_bf16(b))).lanes(17, np.float32)
    assert got[0] == np.inf and np.isnan(got[1:4]).all() and (got[4:] == 2).all()


@pytest.mark.parametrize("form", [*INTEGERS, PAIRS])
def test_native(form: str) -> None:
    """The same on this CPU, on floats of every kind and on bytes, which they are."""
    name = form.replace("ZMM", "YMM").replace("M512", "M256")
    twin = vector_twin([ins(name, "ymm3", "ymm4", "ymm5"), ins(name, "ymm6", "ymm4", Mem("rcx", 32))])
    if lacking := missing_features(twin.code):
        pytest.skip(f"this CPU has no {', '.join(sorted(lacking))}")
    rng = np.random.default_rng(5)
    for _ in range(50):
        contents = {n: rng.integers(0, 256, twin.buffers[n].size).astype(np.uint8) for n in ("input", "memory")}
        for data in contents.values():  # no infinity or NaN, whose payloads are not modelled
            data[1::2] &= 0xBF
        native, emulated = twin.run(contents)
        assert np.array_equal(native["output"], emulated["output"])


@SEEDS
def test_rounding_to_bf16(seed: int) -> None:
    """To nearest even; denormals are zeros, with their sign, and NaN stays NaN, quiet."""
    bits = np.random.default_rng(seed).integers(0, 1 << 32, 16, np.uint64).astype(np.uint32)
    bits[:5] = (0x3F808000, 0x3F818000, 0x3F808001, 0x7F7FFFFF, 0xFF800000)
    bits[5:9] = (0x7F800001, 0x007FFFFF, 0x80000001, 0x80000000)
    state = random_state(np.random.default_rng(seed))
    state.vectors[5] = bits.view(np.uint8)
    got = after(ins(ROUNDED, "ymm17", "zmm5"), state).lanes(17, np.uint16)[:16].tolist()
    assert got[:9] == [0x3F80, 0x3F82, 0x3F81, 0x7F80, 0xFF80, 0x7FC0, 0, 0x8000, 0x8000]
    for value, word in zip(bits.tolist(), got, strict=True):
        number = float(np.uint32(value).view(np.float32))
        if number == number and abs(number) < 3e38:
            assert abs(np.uint32(word << 16).view(np.float32) - number) <= abs(number) * 2**-8 + float(NORMAL)


def test_native_rounding_to_bf16() -> None:
    """The same on this CPU, of floats of every kind."""
    form = ROUNDED.replace("YMM", "XMM").replace("ZMM", "YMM").replace("M512", "M256")
    twin = vector_twin([ins(form, "xmm3", "ymm4"), ins(form, "xmm6", Mem("rcx", 32))])
    if lacking := missing_features(twin.code):
        pytest.skip(f"this CPU has no {', '.join(sorted(lacking))}")
    rng = np.random.default_rng(5)
    for _ in range(50):
        native, emulated = twin.run({n: mixed_floats(rng, twin.buffers[n].size) for n in ("input", "memory")})
        assert np.array_equal(native["output"], emulated["output"])
