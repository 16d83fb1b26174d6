"""Fused multiply-add is rounded once: against exact rational arithmetic, on inputs chosen to round twice if it can."""

from fractions import Fraction

import numpy as np
import pytest

from asmdnn.emulator.fma import COMBINE
from asmdnn.emulator.memory import Array
from tests.emulator.assembling import ins
from tests.emulator.native import missing_features, vector_twin
from tests.emulator.single import after, random_state

LARGEST = Fraction(2**24 - 1) * 2**104


def nearest_float32(value: Fraction) -> float:
    """The nearest float32, ties to even; overflow to infinity."""
    if value == 0:
        return 0.0
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** max(exponent - 23, -149)
    rounded = round(magnitude / quantum) * quantum
    sign = -1.0 if value < 0 else 1.0
    return sign * (float("inf") if rounded > LARGEST else float(rounded))


def exact(x: float, y: float, z: float, family: str) -> float:
    """+-(x * y) +- z for finite operands, whose sum is not zero."""
    product = Fraction(x) * Fraction(y) * (-1 if family == "VFNMADD" else 1)
    return nearest_float32(product + Fraction(z) * (-1 if family == "VFMSUB" else 1))


def double_rounding_cases(rng: np.random.Generator, count: int) -> tuple[Array, Array, Array]:
    """x * y is half an ulp of z and a little more or less: less than float64 can hold beside z."""
    mantissa = rng.integers(1 << 23, 1 << 24, count).astype(np.float64)
    scale = 2.0 ** rng.integers(-60, 60, count)
    z = (mantissa * scale).astype(np.float32)
    x, y = factors_near_one(rng, count)
    return x, (y * (scale / 2)).astype(np.float32), z


def factors_near_one(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """(1 + d) and +-(1 - d), whose product is one but for -d * d, far down."""
    d = 2.0 ** -rng.integers(12, 24, count) * rng.choice([-1.0, 1.0], count)
    return (1 + d).astype(np.float32), (1 - d) * rng.choice([-1.0, 1.0], count)


def subnormal_cases(rng: np.random.Generator, count: int) -> tuple[Array, Array, Array]:
    """Sums below the normal range, where the ties of float32 are at other bits."""
    x = (rng.integers(1 << 23, 1 << 24, count) * 2.0**-98).astype(np.float32)
    y = (rng.integers(-(1 << 24), 1 << 24, count) * 2.0 ** rng.integers(-86, -70, count)).astype(np.float32)
    z = (rng.integers(-(1 << 22), 1 << 22, count) * 2.0**-149).astype(np.float32)
    ties = rng.random(count) < 0.5
    one, other = factors_near_one(rng, count)
    x[ties] = one[ties] * np.float32(2.0**-75)
    y[ties] = (other[ties] * 2.0**-75).astype(np.float32)
    return x, y, z


def random_cases(rng: np.random.Generator, count: int) -> tuple[Array, Array, Array]:
    x, y, z = rng.standard_normal((3, count)).astype(np.float32)
    return x, y, z


CASES = [double_rounding_cases, subnormal_cases, random_cases]


@pytest.mark.parametrize("family", COMBINE)
@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_rounded_once(make: object, family: str) -> None:
    x, y, z = make(np.random.default_rng(3), 16 * 60)  # type: ignore[operator]
    state = random_state(np.random.default_rng(0))
    instruction = ins(f"EVEX_{family}231PS_ZMM_K1Z_ZMM_ZMMM512B32_ER", "zmm1", "zmm2", "zmm3")
    got = []
    for at in range(0, len(x), 16):
        for i, values in zip((1, 2, 3), (z, x, y), strict=True):
            state.lanes(i, np.float32)[:] = values[at : at + 16]
        got += after(instruction, state).lanes(1, np.float32).tolist()
    want = [exact(*xyz, family) for xyz in zip(x.tolist(), y.tolist(), z.tolist(), strict=True)]
    assert [value.hex() for value in got] == [value.hex() for value in want]


def test_the_cases_do_round_twice_without_care() -> None:
    """Otherwise the test above would prove nothing."""
    for make in (double_rounding_cases, subnormal_cases):
        x, y, z = make(np.random.default_rng(3), 16 * 60)
        with np.errstate(under="ignore"):
            naive = (x.astype(np.float64) * y + z).astype(np.float32)
        want = [exact(*xyz, "VFMADD") for xyz in zip(x.tolist(), y.tolist(), z.tolist(), strict=True)]
        assert sum(a != b for a, b in zip(naive.tolist(), want, strict=True)) > 5


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_native(make: object) -> None:
    """The same on this CPU."""
    twin = vector_twin([ins("VEX_VFMADD231PS_YMM_YMM_YMMM256", f"ymm{i}", f"ymm{i + 1}", f"ymm{i + 2}")
                        for i in range(0, 15, 3)])  # fmt: skip
    if lacking := missing_features(twin.code):
        pytest.skip(f"this CPU has no {', '.join(sorted(lacking))}")
    rng = np.random.default_rng(5)
    contents = np.zeros(twin.buffers["input"].size, np.uint8)
    for _ in range(20):
        x, y, z = make(rng, 40)  # type: ignore[operator]
        rows = contents[: 16 * 32].view(np.float32).reshape(16, 8)[:15].reshape(5, 3, 8)
        for i, values in enumerate((z, x, y)):
            rows[:, i] = values.reshape(5, 8)
        native, emulated = twin.run({"input": contents})
        assert np.array_equal(native["output"], emulated["output"])
