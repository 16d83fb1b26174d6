"""AVX512_FP16 against exact fractions: no CPU at hand has it.  Lanes are random bits, so all kinds of halves occur."""

import operator
from collections.abc import Callable
from fractions import Fraction
from math import isfinite, sqrt

import numpy as np
import pytest

from asmdnn.emulator.memory import Array
from tests.emulator.assembling import Mem, ins
from tests.emulator.single import State, after, random_state

LARGEST = Fraction(65504)
TWO: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "ADD": operator.add, "SUB": operator.sub, "MUL": operator.mul, "DIV": operator.truediv,
}  # fmt: skip
SIGNS = {"VFMADD": (1, 1), "VFMSUB": (1, -1), "VFNMADD": (-1, 1), "VFNMSUB": (-1, -1)}


def nearest_half(value: Fraction) -> float:
    """Ties to even; overflow to infinity from halfway to the next power of two on."""
    if value == 0:
        return 0.0
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= magnitude < Fraction(2) ** exponent
    quantum = Fraction(2) ** max(exponent - 10, -24)
    rounded = round(magnitude / quantum) * quantum
    return (-1.0 if value < 0 else 1.0) * (float("inf") if rounded > LARGEST else float(rounded))


def states(count: int) -> list[State]:
    """Registers of random halves, half of them near 1, so that sums cancel and round."""
    found = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        state = random_state(rng)
        halves = state.vectors.view(np.uint16)
        halves[:] = rng.integers(0, 1 << 16, halves.shape)
        near = rng.random(halves.shape) < 0.5
        halves[near] = (rng.integers(0x3400, 0x4400, halves.shape) | rng.integers(0, 2, halves.shape) << 15)[near]
        found.append(state)
    return found


def same(got: Array, wanted: list[float]) -> None:
    expected = np.array(wanted, np.float64)
    assert np.array_equal(got.astype(np.float64), expected, equal_nan=True), (got, expected)


def halves(state: State, number: int) -> list[float]:
    return [float(each) for each in state.lanes(number, np.float16, 32)]


@pytest.mark.parametrize("name", TWO)
def test_arithmetic_is_rounded_once(name: str) -> None:
    exact = TWO[name]
    for state in states(6):
        found = after(ins(f"EVEX_V{name}PH_ZMM_K1Z_ZMM_ZMMM512B16_ER", "zmm1", "zmm2", "zmm3"), state)
        got, pairs = found.lanes(1, np.float16, 32), zip(halves(state, 2), halves(state, 3), strict=True)
        finite = [i for i, (a, b) in enumerate(pairs) if isfinite(a) and isfinite(b) and (b or name != "DIV")]
        a, b = halves(state, 2), halves(state, 3)
        same(got[finite], [nearest_half(exact(Fraction(a[i]), Fraction(b[i]))) for i in finite])
        assert len(finite) > 16


@pytest.mark.parametrize("order", ["132", "213", "231"])
@pytest.mark.parametrize("family", SIGNS)
def test_sums_of_products_are_rounded_once(family: str, order: str) -> None:
    of_product, of_sum = SIGNS[family]
    for state in states(6):
        found = after(ins(f"EVEX_{family}{order}PH_ZMM_K1Z_ZMM_ZMMM512B16_ER", "zmm1", "zmm2", "zmm3"), state)
        x, y, z = (halves(state, int(digit)) for digit in order)
        finite = [i for i in range(32) if all(map(isfinite, (x[i], y[i], z[i])))]
        wanted = [nearest_half(of_product * Fraction(x[i]) * Fraction(y[i]) + of_sum * Fraction(z[i])) for i in finite]
        same(found.lanes(1, np.float16, 32)[finite], wanted)


def test_a_product_that_ties_but_for_its_last_bit() -> None:
    """1 + (2^-11 and a little) is the next half; without the little it is 1."""
    state = states(1)[0]
    for little, wanted in ((0, 1.0), (1, 1.0 + 2.0**-10)):
        state.lanes(1, np.float16)[:] = 1
        state.lanes(2, np.float16)[:] = 2.0**-6 * (1 + little * 2.0**-10)
        state.lanes(3, np.float16)[:] = 2.0**-5
        found = after(ins("EVEX_VFMADD231PH_ZMM_K1Z_ZMM_ZMMM512B16_ER", "zmm1", "zmm2", "zmm3"), state)
        same(found.lanes(1, np.float16, 32), [wanted] * 32)


def test_signs_alternate() -> None:
    state = states(1)[0]
    for number, value in ((1, 1.0), (2, 3.0), (3, 5.0)):
        state.lanes(number, np.float16)[:] = value
    for family, wanted in (("VFMADDSUB", [14.0, 16.0]), ("VFMSUBADD", [16.0, 14.0])):
        found = after(ins(f"EVEX_{family}231PH_ZMM_K1Z_ZMM_ZMMM512B16_ER", "zmm1", "zmm2", "zmm3"), state)
        same(found.lanes(1, np.float16, 32), wanted * 16)


def test_masks_roots_and_extremes() -> None:
    for state in states(5):
        a, b, old = halves(state, 2), halves(state, 3), halves(state, 1)
        chosen = [state.k[5] >> i & 1 for i in range(32)]
        for name, better in (("MAX", operator.gt), ("MIN", operator.lt)):
            form = f"EVEX_V{name}PH_ZMM_K1Z_ZMM_ZMMM512B16_SAE"
            found = after(ins(form, "zmm1", "zmm2", "zmm3", mask="k5"), state)
            lanes = zip(a, b, old, chosen, strict=True)
            same(found.lanes(1, np.float16, 32), [(x if better(x, y) else y) if use else z for x, y, z, use in lanes])
        found = after(ins("EVEX_VSQRTPH_ZMM_K1Z_ZMMM512B16_ER", "zmm1", "zmm2"), state)
        # 53 bits of a root are enough to round it: it is never halfway between two halves
        same(found.lanes(1, np.float16, 32), [
            nearest_half(Fraction(sqrt(x))) if isfinite(x) and x >= 0 else x if x > 0 else float("nan") for x in a
        ])  # fmt: skip


def test_scalars_leave_the_other_lanes() -> None:
    for state in states(4):
        state.lanes(2, np.float16)[0], state.lanes(3, np.float16)[0], state.lanes(1, np.float16)[0] = 1.5, 2.25, 0.5
        for form, low, rest in (
            ("EVEX_VADDSH_XMM_K1Z_XMM_XMMM16_ER", 3.75, 2), ("EVEX_VFMADD231SH_XMM_K1Z_XMM_XMMM16_ER", 3.875, 1),
            ("EVEX_VSQRTSH_XMM_K1Z_XMM_XMMM16_ER", 1.5, 2), ("EVEX_VMOVSH_XMM_K1Z_XMM_XMM", 2.25, 2),
        ):  # fmt: skip
            found = after(ins(form, "xmm1", "xmm2", "xmm3"), state)
            assert found.lanes(1, np.float16)[0] == low, form
            assert found.lanes(1, np.uint16, 8)[1:].tolist() == state.lanes(rest, np.uint16, 8)[1:].tolist(), form
            assert not found.lanes(1, np.uint16)[8:].any(), form


def test_comparisons() -> None:
    for state in states(5):
        a, b = halves(state, 2), halves(state, 3)
        for predicate, holds in ((0, operator.eq), (1, operator.lt), (4, operator.ne), (14, operator.gt)):
            found = after(ins("EVEX_VCMPPH_KR_K1_ZMM_ZMMM512B16_IMM8_SAE", "k2", "zmm2", "zmm3", predicate), state)
            assert found.k[2] == sum(holds(x, y) << i for i, (x, y) in enumerate(zip(a, b, strict=True)))


@pytest.mark.parametrize("kind", ["W", "UW", "DQ", "UDQ"])
def test_conversions_from_and_to_integers(kind: str) -> None:
    dtype = {"W": np.int16, "UW": np.uint16, "DQ": np.int32, "UDQ": np.uint32}[kind]
    limits, wide = np.iinfo(dtype), kind.endswith("DQ")
    lanes = 16 if wide else 32
    source, target = ("YMMM256B16", "YMM") if wide else ("ZMMM512B16", "ZMM")
    for state in states(4):
        found = after(ins(f"EVEX_VCVTPH2{kind}_ZMM_K1Z_{source}_ER", "zmm1", "ymm2" if wide else "zmm2"), state)
        values = halves(state, 2)[:lanes]
        indefinite = limits.max if limits.min == 0 else limits.min
        wanted = [round(x) if isfinite(x) and limits.min <= round(x) <= limits.max else indefinite for x in values]
        assert found.lanes(1, dtype, lanes).tolist() == wanted
        back = after(ins(f"EVEX_VCVT{kind}2PH_{target}_K1Z_ZMMM512B{32 if wide else 16}_ER",
                         "ymm1" if wide else "zmm1", "zmm2"), state)  # fmt: skip
        numbers = [int(x) for x in state.lanes(2, dtype, lanes)]
        same(back.lanes(1, np.float16, lanes), [nearest_half(Fraction(x)) for x in numbers])
        assert not back.lanes(1, np.uint16)[lanes:].any()


def test_conversions_of_floats() -> None:
    for state in states(4):
        found = after(ins("EVEX_VCVTPH2PSX_ZMM_K1Z_YMMM256B16_SAE", "zmm1", "ymm2"), state)
        same(found.lanes(1, np.float32, 16), halves(state, 2)[:16])
        values = [float(x) for x in state.lanes(2, np.float32, 16)]
        back = after(ins("EVEX_VCVTPS2PHX_YMM_K1Z_ZMMM512B32_ER", "ymm1", "zmm2"), state)
        same(back.lanes(1, np.float16, 16), [nearest_half(Fraction(x)) if isfinite(x) else x for x in values])


def test_words_move() -> None:
    state = states(1)[0]
    state.gpr[2] = 0xAABB_CCDD_EEFF_1234
    found = after(ins("EVEX_VMOVW_XMM_R32M16", "xmm1", "edx"), state)
    assert found.lanes(1, np.uint16)[:2].tolist() == [0x1234, 0]
    assert not found.vectors[1][2:].any()
    found = after(ins("EVEX_VMOVW_XMM_R32M16", "xmm1", Mem("rcx", 6)), state)
    assert found.lanes(1, np.uint16)[0] == state.memory.view(np.uint16)[3]
