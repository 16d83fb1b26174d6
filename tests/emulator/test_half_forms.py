"""Every form of AVX512_FP16's conversions, scalars and comparisons: from registers, memory and one element, masked.

Few CPUs have it.  What each lane must be is said here in Python's numbers, and where it is in bytes: nothing is
derived from another form of the emulator.
"""

import operator
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import isfinite, isnan, sqrt
from typing import Any

import numpy as np
import pytest

from asmdnn.emulator.memory import Array
from tests.emulator.assembling import Mem, ins
from tests.emulator.forms import MEMORY_BYTES, VECTOR_FORMS, Form, by_mnemonic
from tests.emulator.single import State, after, random_state
from tests.emulator.test_halves import SIGNS, TWO, nearest_half

HALF = np.float16
TYPES: dict[str, type] = {
    "PH": np.float16, "PHX": np.float16, "SH": np.float16, "PS": np.float32, "PSX": np.float32, "SS": np.float32,
    "PD": np.float64, "SD": np.float64, "W": np.int16, "UW": np.uint16, "DQ": np.int32, "UDQ": np.uint32,
    "QQ": np.int64, "UQQ": np.uint64,
}  # fmt: skip
# When VCMPPH's predicates hold: less, equal, greater, unordered.
PREDICATES = ["=", "<", "<=", "u", "<>u", "=>u", ">u", "<=>", "=u", "<u", "<=u", "", "<>", "=>", ">", "<=>u"]
CONVERSION = re.compile(r"VCVT(T?)(PH|SH|PS(?=2PHX)|PD(?=2PH)|SS(?=2SH)|SD(?=2SH)|U?(?:W|DQ|QQ)(?=2PH))2"
                        r"(PHX?|PSX|PD|U?(?:W|DQ|QQ)|S[SDH])")  # fmt: skip
CONVERSIONS = [f for f in VECTOR_FORMS if CONVERSION.fullmatch(f.mnemonic)]
PACKED = [f for f in CONVERSIONS if len(f.operands) == 2]
SCALARS = [f for f in VECTOR_FORMS if f.masking == "K1Z" and len(f.operands) == 3
           and (f in CONVERSIONS or f.mnemonic.endswith("SH"))]  # fmt: skip
COMPARISONS = [f for f in VECTOR_FORMS if f.mnemonic in ("VCMPPH", "VCMPSH")]


def random_lanes(rng: np.random.Generator, dtype: type, size: int) -> Array:
    """`size` bytes: integers of every magnitude, or floats of which half are random bits and half are near one."""
    bytes_of_one = np.dtype(dtype).itemsize
    count = size // bytes_of_one
    bits: Array = np.frombuffer(rng.bytes(size), dtype)
    if np.issubdtype(dtype, np.integer):
        return (bits >> rng.integers(0, 8 * bytes_of_one, count).astype(dtype)).view(np.uint8)
    return np.where(rng.random(count) < 0.5, bits, rng.standard_normal(count).astype(dtype)).view(np.uint8)


def cases(form: Form, dtype: type) -> Iterator[tuple[list[Any], State]]:
    """Operands of a form, with memory and one element of it where it may be, and registers and memory of `dtype`."""
    rng = np.random.default_rng(zlib.crc32(form.name.encode()))
    variants = [(False, False)] * form.has_register_variant + [(True, False)] * form.has_memory
    for memory, broadcast in (variants + [(True, True)] * form.broadcast) * 3:
        state = random_state(rng)
        state.vectors[:] = random_lanes(rng, dtype, state.vectors.size).reshape(state.vectors.shape)
        state.memory[:] = random_lanes(rng, dtype, MEMORY_BYTES)
        values = form.values(rng, memory=memory, broadcast=broadcast)
        yield [replace(x, displacement=x.displacement & ~7) if isinstance(x, Mem) else x for x in values], state


def register(state: State, operand: str) -> Array:
    return state.vectors[int(operand[3:])]


def read(state: State, operand: str | Mem, dtype: type, count: int) -> list[Any]:
    """The lanes of a register or of memory as Python's numbers."""
    size = np.dtype(dtype).itemsize
    if isinstance(operand, str):
        return list(register(state, operand)[: size * count].view(dtype).tolist())
    length = 1 if operand.broadcast else count
    lanes = state.memory[operand.displacement : operand.displacement + size * length].view(dtype).tolist()
    return lanes * (count // length)


def check_reads(found: State, operand: Any, size: int, active: list[bool], name: str) -> None:
    """Of memory, what active lanes need is read and nothing else."""
    want = np.zeros(MEMORY_BYTES, bool)
    if isinstance(operand, Mem):
        lanes = [any(active)] if operand.broadcast else active
        want[operand.displacement : operand.displacement + size * len(lanes)] = np.repeat(lanes, size)
    assert np.array_equal(found.footprint.read, want), name
    assert not found.footprint.written.any(), name


def masks() -> Iterator[tuple[str, bool]]:
    yield from (("", False), ("k5", False), ("k5", True))


def bits_of(state: State, mask: str, count: int) -> list[bool]:
    return [not mask or bool(state.k[5] >> i & 1) for i in range(count)]


def converted(value: float, wanted: type, *, truncates: bool) -> float:
    """To an integer what does not fit is the largest unsigned one, or the least signed one."""
    if wanted is HALF:
        return nearest_half(Fraction(value)) if isfinite(value) else value
    if not np.issubdtype(wanted, np.integer):
        return float(value)
    least, largest = int(np.iinfo(wanted).min), int(np.iinfo(wanted).max)
    integer = (int(value) if truncates else round(value)) if isfinite(value) else largest + 1
    return integer if least <= integer <= largest else least or largest


@pytest.mark.parametrize("forms", by_mnemonic(PACKED))
def test_packed_conversions(forms: tuple[Form, ...]) -> None:
    truncates, source, target = CONVERSION.fullmatch(forms[0].mnemonic).groups()  # type: ignore[union-attr]
    given, wanted = TYPES[source], TYPES[target]
    given_size, wanted_size = np.dtype(given).itemsize, np.dtype(wanted).itemsize
    for form in forms:
        count = form.vector_bytes // max(given_size, wanted_size)
        for (to, operand), state in cases(form, given):
            for mask, zeroing in masks():
                found = after(ins(form.name, to, operand, mask=mask, zeroing=zeroing), state)
                active, old = bits_of(state, mask, count), read(state, to, wanted, count)
                new = [converted(x, wanted, truncates=bool(truncates)) for x in read(state, operand, given, count)]
                lanes = [x if on else 0 if zeroing else y for x, y, on in zip(new, old, active, strict=True)]
                got = register(found, to)[: count * wanted_size].view(wanted)
                assert np.array_equal(got, np.array(lanes, wanted), equal_nan=wanted().dtype.kind == "f"), form.name
                assert not register(found, to)[count * wanted_size :].any(), form.name
                check_reads(found, operand, given_size, active, form.name)


def by_python(exact: Callable[..., Any], *values: float) -> float:
    """Rounded once where all is finite; else IEEE 754's rules for infinities and NaN, as float64 has them."""
    try:
        if all(map(isfinite, values)):
            return nearest_half(exact(*map(Fraction, values)))
    except ZeroDivisionError:
        pass
    with np.errstate(all="ignore"):
        return float(exact(*map(np.float64, values)))


def scalar_result(name: str, old: float, a: float, b: float) -> float:
    """Lane 0, of its operands' lanes 0."""
    operation = name[1:-2]
    if operation in TWO:
        return by_python(TWO[operation], a, b)
    if operation in ("MAX", "MIN"):
        return a if (operator.gt if operation == "MAX" else operator.lt)(a, b) else b
    if operation == "SQRT":
        return nearest_half(Fraction(sqrt(b))) if isfinite(b) and b >= 0 else b if b > 0 else float("nan")
    if operation == "MOV":
        return b
    family, order = name[:-5], name[-5:-2]
    of_product, of_sum = SIGNS[family]
    x, y, z = ((old, a, b)[int(digit) - 1] for digit in order)
    return by_python(lambda x, y, z: of_product * x * y + of_sum * z, x, y, z)


@pytest.mark.parametrize("forms", by_mnemonic(SCALARS))
def test_scalars(forms: tuple[Form, ...]) -> None:
    """Lane 0 is the result, the old one or zero; the rest of 128 bits is operand 1's, of sums of products the old."""
    name = forms[0].mnemonic
    conversion = CONVERSION.fullmatch(name)
    given, wanted = (TYPES[conversion[2]], TYPES[conversion[3]]) if conversion else (HALF, HALF)
    size = np.dtype(wanted).itemsize
    for form in forms:
        for (to, first, last), state in cases(form, given):
            for (mask, zeroing), on in ((m, on) for m in masks() for on in (True, False)):
                state.k[5] = state.k[5] & ~1 | on
                found = after(ins(form.name, to, first, last, mask=mask, zeroing=zeroing), state)
                (active,) = bits_of(state, mask, 1)
                (old,), (a,) = read(state, to, wanted, 1), read(state, first, given, 1)
                (b,) = read(state, last, given, 1)
                new = converted(b, wanted, truncates=False) if conversion else scalar_result(name, old, a, b)
                low = new if active else 0 if zeroing else old
                got = register(found, to)
                assert np.array_equal(got[:size].view(wanted), np.array([low], wanted), equal_nan=True), form.name
                rest = register(state, to if name.startswith("VF") else first)
                assert np.array_equal(got[size:16], rest[size:16]), form.name
                assert not got[16:].any(), form.name
                check_reads(found, last, np.dtype(given).itemsize, [active], form.name)


@pytest.mark.parametrize("forms", by_mnemonic(COMPARISONS))
def test_comparisons(forms: tuple[Form, ...]) -> None:
    """Lanes that the mask switches off, and bits above the lanes, are zero."""
    for form in forms:
        count = 1 if form.mnemonic == "VCMPSH" else form.vector_bytes // 2
        for ((to, first, last, _), state), mask in ((case, m) for case in cases(form, HALF) for m in ("", "k5")):
            pairs = list(zip(read(state, first, HALF, count), read(state, last, HALF, count), strict=True))
            active = bits_of(state, mask, count)
            relations = ["u" if isnan(x) or isnan(y) else "<" if x < y else ">" if x > y else "=" for x, y in pairs]
            for predicate in range(32):
                found = after(ins(form.name, to, first, last, predicate, mask=mask), state)
                holds = [relation in PREDICATES[predicate % 16] for relation in relations]
                want = sum((held and on) << i for i, (held, on) in enumerate(zip(holds, active, strict=True)))
                assert found.k[int(to[1:])] == want, (form.name, predicate)
                check_reads(found, last, 2, active, form.name)


def test_all_of_them_are_here() -> None:
    """The forms are found by the shape of their names, which must not silently stop matching."""
    assert len({f.mnemonic for f in PACKED}) == 22
    assert len({f.mnemonic for f in SCALARS}) == 24
    assert len(COMPARISONS) == 4
