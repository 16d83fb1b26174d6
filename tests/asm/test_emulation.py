"""`f.emulate(...)`: equal to a call, on any level; every access is held to what is stated."""

from typing import Any

import numpy as np
import pytest

from asmdnn import asm
from asmdnn.asm import low32, mem
from asmdnn.asm.emulation import EmulationFault
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.jit.native import ffi
from examples.asm import bits, newlines

LEVELS = ("avx2", "avx512_core")


@asm.function(
    "float dot(const float *x, const float *y, size_t n)", isa=LEVELS, reads={"x": "4*n", "y": "4*n"}
)  # fmt: skip
def dot(f: Any, x: Any, y: Any, n: Any) -> None:
    v = f.vector("f32")
    acc, t = v.registers.take("acc"), v.registers.take("x")
    v.zero(acc)
    with f.steps(n, v.lanes, "vectors"):
        v.load(t, mem(x))
        v.fma(acc, t, mem(y))
        f.ADD(x, v.bytes)
        f.ADD(y, v.bytes)
    with v.first(n) as lanes, v.registers.taken("y") as u:
        lanes.load(t, mem(x))
        lanes.load(u, mem(y))
        v.fma(acc, t, u)
    f.ret(v.sum([acc]))


@asm.function("void twice(const float *x, float *y, size_t n)", reads={"x": "4*n"}, writes={"y": "4*n"})
def twice(f: Any, x: Any, y: Any, n: Any) -> None:
    v = f.vector("f32")
    t = v.registers.take("x")
    with f.steps(n, v.lanes, "vectors"):
        v.load(t, mem(x))
        f.VADDPS(t, t, t)
        v.store(mem(y), t)
        f.ADD(x, v.bytes)
        f.ADD(y, v.bytes)
    with v.first(n) as lanes:
        lanes.load(t, mem(x))
        f.VADDPS(t, t, t)
        lanes.store(mem(y), t)
    f.ret()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n", [0, 1, 7, 16, 37])
def test_a_call_of_any_level(level: str, n: int) -> None:
    x, y = (np.random.default_rng(seed).integers(-8, 8, n).astype(np.float32) for seed in (1, 2))
    call = dot.emulate(x, y, n, isa=level)
    assert call.result == float(np.dot(x, y))  # exact: small integers
    assert call.touched == {"x": (4 * n, 0), "y": (4 * n, 0)}
    assert call.instructions > 0
    assert ("avx512f" in call.features) == (level == "avx512_core")


@pytest.mark.parametrize("n", [1, 8, 29])
def test_arrays_are_written_as_by_the_call(n: int) -> None:
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    emulated, called = np.zeros(n, np.float32), np.zeros(n, np.float32)
    assert twice.emulate(x, emulated, n).touched == {"x": (4 * n, 0), "y": (0, 4 * n)}
    twice(x, called, n)
    assert emulated.tobytes() == called.tobytes()


def test_an_access_beyond_what_is_stated_is_a_fault() -> None:
    @asm.function("int32_t after(const int32_t *x, size_t n)", reads={"x": "4*n"})
    def after(f: Any, x: Any, n: Any) -> None:
        f.MOV(low32(x), mem(x, index=n, scale=4, size=4))
        f.ret(x)

    with pytest.raises(EmulationFault, match=r"at 0x[0-9a-f]+: mov edi,.*reads 4 bytes at .* past the end of 'x'"):
        after.emulate(np.arange(8, dtype=np.int32), 3)


def test_what_is_only_read_is_not_written() -> None:
    @asm.function("void write(int64_t *x, int64_t n)", reads={"x": "8*n"})
    def write(f: Any, x: Any, n: Any) -> None:
        f.MOV(mem(x), n)
        f.ret()

    with pytest.raises(EmulationFault, match=r"which is read-only: 'x' \+ 0"):
        write.emulate(np.zeros(2, np.int64), 2)


INTEGERS = "int64_t total(int8_t a, uint16_t b, int64_t c, int32_t d, uint8_t e, int16_t f2, int64_t g, int8_t h)"


@asm.function(INTEGERS)
def total(f: Any, a: Any, *others: Any) -> None:
    for reg in others:
        f.ADD(a, reg)
    f.ret(a)


@asm.function("float last(double a, int64_t b, float c, float d, float e, float g, float h, float i, float j, float k)")
def last(f: Any, *given: Any) -> None:
    f.VADDSS(given[2], given[2], given[9])
    f.ret(given[2])


@asm.function("double second(double a, double b)")
def second(f: Any, a: Any, b: Any) -> None:
    f.ret(b)


def test_arguments_of_every_kind() -> None:
    given = (-5, 65535, -(1 << 40), -7, 200, -300, 1 << 41, -128)  # the last two arrive on the stack
    assert total.emulate(*given).result == total(*given) == sum(given)
    floats = (2.5, 1, 0.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 0.25)
    assert last.emulate(*floats).result == last(*floats) == 0.75
    assert second.emulate(1.0, 1 / 3).result == 1 / 3


@pytest.mark.parametrize(("ctype", "value"), [("int8_t", -3), ("uint8_t", 253), ("int32_t", -1), ("uint64_t", 1 << 63)])
def test_results_are_of_their_type(ctype: str, value: int) -> None:
    @asm.function(f"{ctype} same({ctype} x)")
    def same(f: Any, x: Any) -> None:
        f.ret(x)

    assert same.emulate(value).result == same(value) == value


def test_a_pointer_comes_back_as_one_of_this_process() -> None:
    @asm.function("const char *third(const char *x, size_t n)", reads={"x": "n"})
    def third(f: Any, x: Any, n: Any) -> None:
        f.ADD(x, 2)
        f.ret(x)

    text = np.frombuffer(b"abcdef", np.uint8)
    assert int(ffi.cast("size_t", third.emulate(text, 6).result)) == text.ctypes.data + 2


def test_what_does_not_end_is_stopped() -> None:
    @asm.function("void forever(int64_t x)")
    def forever(f: Any, x: Any) -> None:
        with f.loop("always"):
            f.ADD(x, 1)
        f.ret()

    with pytest.raises(EmulationFault, match="has not returned after 1000 instructions"):
        forever.emulate(1, most_instructions=1000)


def test_refusals() -> None:
    @asm.function("double root(double x)", calls={"sqrt": "double(double)"})
    def root(f: Any, x: Any) -> None:
        f.ret(f.call("sqrt", x))

    with pytest.raises(Unimplemented, match="emulate of 'root': it calls others"):
        root.emulate(2.0)
    with pytest.raises(InvalidArguments, match="dot is for avx2, avx512_core"):
        dot.emulate(np.zeros(1, np.float32), np.zeros(1, np.float32), 1, isa="avx512_core_amx")
    with pytest.raises(InvalidArguments, match="x of dot has 4 bytes, where"):
        dot.emulate(np.zeros(1, np.float32), np.zeros(9, np.float32), 9)
    with pytest.raises(InvalidArguments, match="x of dot is float64"):
        dot.emulate(np.zeros(1), np.zeros(1, np.float32), 1)


@pytest.mark.parametrize("n", [0, 1, 5, 130])
@pytest.mark.parametrize("count", [bits.by_popcnt, bits.by_table, bits.by_vector], ids=lambda f: f.__name__)
def test_counts_of_bits(count: Any, n: int) -> None:
    """by_vector needs a CPU that few have: here it runs all the same."""
    words = np.random.default_rng(n).integers(0, 1 << 64, n, np.uint64)
    assert count.emulate(words, n).result == sum(int(word).bit_count() for word in words)


def test_counts_of_bytes() -> None:
    text = np.frombuffer(b"one\ntwo\n" * 1000 + b"\n", np.uint8)  # more than 255 rounds of bytes
    assert newlines.count.emulate(text, len(text), ord("\n")).result == 2001


def test_an_instruction_that_is_not_known_is_named() -> None:
    @asm.function("void halves(uint8_t *x)", isa="avx512_core_fp16", reads={"x": "64"}, writes={"x": "64"})
    def halves(f: Any, x: Any) -> None:
        inverse = f.vectors().take("inverse")
        f.VMOVUPS(inverse, mem(x, size=64))
        f.VRCPPH(inverse, inverse)
        f.VMOVUPS(mem(x, size=64), inverse)
        f.ret()

    with pytest.raises(EmulationFault, match=r"vrcpph .* is not supported by this emulator"):
        halves.emulate(np.zeros(64, np.uint8))
