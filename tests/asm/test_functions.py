"""Functions in machine code do what C would: arguments, results, control flow, calls, memory of their own."""

import ctypes
import math
from typing import Any

import numpy as np
import pytest

from asmdnn import asm
from asmdnn.asm import low32, mem
from asmdnn.errors import InvalidArguments, Unimplemented
from tests.support.python import python
from tests.support.together import at_once

INTEGERS = ("int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "size_t", "bool")
LEVELS = [level for level in ("avx2", "avx512_core") if not asm.levels.level_of(level).missing()]


@asm.function(
    "float dot(const float *x, const float *y, size_t n)", isa=("avx2", "avx512_core"), reads={"x": "4*n", "y": "4*n"}
)
def dot(f: Any, x: Any, y: Any, n: Any) -> None:
    v = f.vector("f32")
    acc, t = v.registers.take("acc", 8), v.registers.take("x")
    for a in acc:
        v.zero(a)
    with f.steps(n, 8 * v.lanes, "blocks"):
        for j, a in enumerate(acc):
            v.load(t, mem(x, j * v.bytes))
            v.fma(a, t, mem(y, j * v.bytes))
        f.ADD(x, 8 * v.bytes)
        f.ADD(y, 8 * v.bytes)
    with f.steps(n, v.lanes, "vectors"):
        v.load(t, mem(x))
        v.fma(acc[0], t, mem(y))
        f.ADD(x, v.bytes)
        f.ADD(y, v.bytes)
    with v.first(n) as lanes, v.registers.taken("y") as u:
        lanes.load(t, mem(x))
        lanes.load(u, mem(y))
        v.fma(acc[0], t, u)
    f.ret(v.sum(acc))


@pytest.mark.parametrize("level", LEVELS)
def test_tails_at_run_time(level: str) -> None:
    at = dot.at(level)
    assert at.isa == level
    for n in (*range(40), 63, 64, 65, 127, 128, 129, 300):
        x, y = np.random.default_rng(n).integers(-9, 9, (2, n)).astype(np.float32)
        assert at(x, y, n) == int(x.astype(int) @ y.astype(int))


@pytest.mark.parametrize("level", LEVELS)
def test_a_tail_touches_no_other_lane(level: str) -> None:
    @asm.function("void copy(const float *x, float *y, size_t n)", isa=LEVELS, reads={"x": "4*n"}, writes={"y": "4*n"})
    def copy(f: Any, x: Any, y: Any, n: Any) -> None:
        v = f.vector("f32")
        t = v.registers.take("x")
        with v.first(n) as lanes:
            lanes.load(t, mem(x))
            lanes.store(mem(y), t)
        f.ret()

    for n in range(8):
        y = np.zeros(20, np.float32)
        copy.at(level)(np.arange(1, n + 1, dtype=np.float32), y, n)
        assert y.tolist() == [*range(1, n + 1)] + [0] * (20 - n)


@pytest.mark.parametrize("kind", INTEGERS)
def test_narrow_integers_fill_their_register(kind: str) -> None:
    """The ABI says nothing of the bits above; ctypes and cffi leave what they like there."""

    @asm.function(f"int64_t widened({kind} x)")
    def widened(f: Any, x: Any) -> None:
        f.ret(x)

    ctype = widened._prototype.arguments[0].type
    for value in {*ctype.range, 0, 1}:
        assert widened(value) == ((value + 2**63) % 2**64) - 2**63
        dirty = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64)(widened.address)
        garbage = 0xDEADBEEF << 8 * ctype.size_bytes if ctype.size_bytes < 8 else 0
        assert dirty((value % 2**64 & (1 << 8 * ctype.size_bytes) - 1 | garbage) % 2**64) == widened(value)
    for beyond in (ctype.range[0] - 1, ctype.range[1] + 1):
        with pytest.raises(InvalidArguments, match=rf"^x of widened is {beyond}, which is no"):
            widened(beyond)


def test_arguments_beyond_the_registers() -> None:
    names = ", ".join(f"int32_t a{i}, double b{i}" for i in range(11))

    @asm.function(f"double weighted({names})")
    def weighted(f: Any, *given: Any) -> None:
        total, x = f.vectors().take("sum").xmm, f.vectors().take("x").xmm
        f.VXORPS(total, total, total)
        for integer, number in zip(given[::2], given[1::2], strict=True):
            f.VCVTSI2SD(x, x, integer)
            f.VFMADD231SD(total, x, number)
        f.ret(total)

    assert sum(argument.on_stack for argument in weighted._prototype.arguments) == 5 + 3
    values = [(i + 1, 1.0 / (i + 3)) for i in range(11)]
    assert weighted(*(v for pair in values for v in pair)) == pytest.approx(sum(a * b for a, b in values), rel=1e-14)
    assert weighted(*[-1, 2.0] * 11) == -22
    weighted.prove()


@pytest.mark.parametrize(("result", "value"), [("float", 1.5), ("double", -2.25), ("int32_t", -7), ("uint8_t", 200)])
def test_results(result: str, value: Any) -> None:
    @asm.function(f"{result} constant(void)")
    def constant(f: Any) -> None:
        if isinstance(value, int):
            f.ret(value)
        else:
            f.ret(f.const(np.array(value, {"float": "f4", "double": "f8"}[result])))

    assert constant() == value


def test_switch() -> None:
    @asm.function("int64_t step(int64_t op, int64_t a, int64_t b)")
    def step(f: Any, op: Any, a: Any, b: Any) -> None:
        with f.switch(op, (-2, 3, 5)) as case:
            with case(-2):
                f.ADD(a, b)
            with case(3):
                f.SUB(a, b)
            with case(5):
                f.MOV(a, mem(f.table(np.arange(64) ** 2), index=b, scale=8))
            with case.other:
                f.XOR(low32(a), low32(a))
        f.ret(a)

    wanted = {-2: 11, 3: 3, 5: 16}
    for op in (*range(-5, 9), 2**63 - 1, -(2**63), 2**32 + 3):
        assert step(op, 7, 4) == wanted.get(op, 0)
    assert step.prove(op=range(-5, 9), a=0, b=range(64)).cases == 14 * 64


def test_conditions_and_loops() -> None:
    @asm.function("uint64_t collatz(uint64_t x)")
    def collatz(f: Any, x: Any) -> None:
        count, twice = f.gp.take("steps"), f.gp.take("3x")
        f.XOR(low32(count), low32(count))
        with f.loop("steps") as (_, end):
            f.CMP(x, 1)
            f.JE(end)
            f.ADD(count, 1)
            f.TEST(x, 1)
            with f.either("Z") as (then, otherwise):
                with then:
                    f.SHR(x, 1)
                with otherwise:
                    f.LEA(twice, mem(x, index=x, scale=2))
                    f.LEA(x, mem(twice, 1))
        f.CMP(count, 100)
        with f.when("A"):
            f.MOV(low32(count), 100)
        f.ret(count)

    assert [collatz(x) for x in (1, 2, 3, 27)] == [0, 1, 7, 100]
    collatz.prove()


def test_no_round_at_all() -> None:
    @asm.function("uint64_t rounds(uint64_t n)")
    def rounds(f: Any, n: Any) -> None:
        count = f.gp.take("rounds")
        f.XOR(low32(count), low32(count))
        with f.steps(n, 3, "threes"):
            f.ADD(count, 10)
        f.ADD(count, n)
        f.ret(count)

    assert [rounds(n) for n in (0, 1, 2, 3, 4, 9)] == [0, 1, 2, 10, 11, 30]


def test_locals_are_apart_and_aligned() -> None:
    @asm.function("uint64_t place(uint64_t x)")
    def place(f: Any, x: Any) -> None:
        a, b = f.local(24), f.local(8)
        at = f.gp.claim(asm.register("r64", 12), "address")  # callee-saved, so that one more word is on the stack
        f.MOV(a.shifted(16), x)
        f.MOV(b, 0)
        f.LEA(at, a)
        f.AND(at, 15)
        f.ADD(at, a.shifted(16))
        f.ret(at)

    assert place(77) == 77
    place.prove()


def test_callee_saved_registers_are_saved_whether_taken_or_named() -> None:
    @asm.function("int64_t named(int64_t x)")
    def named(f: Any, x: Any) -> None:
        rbx = asm.register("r64", 3)
        f.MOV(asm.register("r32", 15), 1)
        f.LEA(rbx, mem(x, 1))
        f.ret(rbx)

    assert named(41) == 42
    assert [line.text for line in named.listing[:2]] == ["push rbx", "push r15"]
    named.prove()


def test_what_changes_rbx_without_naming_it() -> None:
    @asm.function("uint64_t most(void)")
    def most(f: Any) -> None:
        f.gp.claim(asm.register("r64", 1), "ecx"), f.gp.claim(asm.register("r64", 2), "edx")
        rax = f.gp.claim(asm.register("r64", 0), "leaf")
        f.XOR(low32(rax), low32(rax))
        f.CPUID()
        f.ret(rax)

    assert most() >= 1
    assert most.listing[0].text == "push rbx"
    most.prove()


def test_calls() -> None:
    seen: list[tuple[float, int]] = []

    def note(x: float, n: int) -> int:
        seen.append((x, n))
        if n == 13:
            raise KeyError("thirteen")
        return -n

    @asm.function("double hyp(double a, double b)", calls={"sqrt": "double(double)"})
    def hyp(f: Any, a: Any, b: Any) -> None:
        f.VMULSD(a, a, a)
        f.VFMADD231SD(a, b, b)
        f.ret(f.call("sqrt", a))

    @asm.function("int64_t noted(double x, int32_t n)", isa=LEVELS, calls={"note": ("int32_t(double, int32_t)", note)})
    def noted(f: Any, x: Any, n: Any) -> None:
        kept = f.vector("f32").registers.take("what must live")
        f.vector("f32").broadcast(kept, f.const(np.float32(0.25)))
        first = f.call("note", x, n)
        second = f.call("note", x, first)
        f.ADD(second, first)
        f.ADD(second, n)
        word = f.gp.take("kept")
        f.VMOVD(low32(word), kept.xmm)
        f.SUB(word, int(np.float32(0.25).view(np.int32)))
        f.ADD(second, word)
        f.ret(second)

    assert hyp(3.0, 4.0) == 5.0
    for level in LEVELS:
        seen.clear()
        assert noted.at(level)(1.5, 7) == 7
        assert seen == [(1.5, 7), (1.5, -7)]
    with pytest.raises(KeyError, match="thirteen"):
        noted(1.0, 13)
    assert noted(2.0, 1) == 1
    assert hyp.prove().is_bounded
    noted.prove()


def test_threads_make_a_function_once() -> None:
    @asm.function("int64_t one(void)")
    def one(f: Any) -> None:
        made.append(1)
        f.ret(1)

    made: list[int] = []
    found: list[int] = []
    at_once(lambda _: found.append(one.address), 8)
    assert len(made) == 1
    assert len(set(found)) == 1


def test_numpy_free_start() -> None:
    """`import asmdnn.asm` brings neither numpy nor PeachPy."""

    code = "import asmdnn.asm, sys; print(sorted({'numpy', 'peachpy', 'iced_x86'} & set(sys.modules)))"
    assert python(code) == "[]"


def test_a_level_that_is_not_here() -> None:
    @asm.function("int64_t tiles(void)", isa="avx512_core_amx+vpclmulqdq")
    def tiles(f: Any) -> None:
        f.ret(1)

    if tiles.runs_here:
        pytest.skip("this CPU has AMX")
    tiles.prove()
    with pytest.raises(Unimplemented, match=r"^tiles at avx512_core_amx\+vpclmulqdq needs .*amx_tile.*, which this"):
        tiles()


def test_double_precision_tail_and_math() -> None:
    """Arguments and results that are no numbers stay what they are."""

    @asm.function("double same(double x)")
    def same(f: Any, x: Any) -> None:
        f.ret(x)

    assert math.isnan(same(math.nan))
    assert same(-math.inf) == -math.inf
    assert math.copysign(1, same(-0.0)) == -1
