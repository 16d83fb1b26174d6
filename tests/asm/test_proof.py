"""prove() finds what a test may miss, compare() what a proof cannot see; files link with C."""

import itertools
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("iced_x86")

from asmdnn import asm
from asmdnn.asm import mem
from asmdnn.emulator import EmulationFault
from asmdnn.errors import InvalidArguments
from asmdnn.proof.kernel import BrokenRule

PROTOTYPE = "void copy(const float *x, float *y, size_t n)"


def copying(write: Callable[[Any, Any, Any, Any, Any], None], **stated: Any) -> asm.CFunction:
    """A function whose body is `write(f, v, x, y, n)` with RET after."""

    @asm.function(PROTOTYPE, reads=stated.get("reads", {"x": "4*n"}), writes=stated.get("writes", {"y": "4*n"}))
    def copy(f: Any, x: Any, y: Any, n: Any) -> None:
        write(f, f.vector("f32"), x, y, n)
        f.ret()

    return copy


def whole_vectors(f: Any, v: Any, x: Any, y: Any, n: Any, tail: int = 0) -> None:
    t = v.registers.take("x")
    with f.steps(n, v.lanes, "vectors"):
        v.load(t, mem(x))
        v.store(mem(y), t)
        f.ADD(x, v.bytes)
        f.ADD(y, v.bytes)
    if tail:
        f.ADD(n, tail - 1)
        with v.first(n) as lanes:
            lanes.load(t, mem(x))
            lanes.store(mem(y), t)


def one_too_far(f: Any, v: Any, x: Any, y: Any, n: Any) -> None:
    whole_vectors(f, v, x, y, n, tail=2)


def right(f: Any, v: Any, x: Any, y: Any, n: Any) -> None:
    whole_vectors(f, v, x, y, n, tail=1)


def writes_x(f: Any, v: Any, x: Any, y: Any, n: Any) -> None:
    f.TEST(n, n)
    with f.when("NZ"):
        f.MOV(mem(x, size=4), 0)


def adds_pointers(f: Any, v: Any, x: Any, y: Any, n: Any) -> None:
    f.MOV(mem(x, index=y, size=4), 0)


def reads_beside_a_table(f: Any, v: Any, x: Any, y: Any, n: Any) -> None:
    f.MOV(x, mem(f.table(np.arange(4)), index=n, scale=8))


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (one_too_far, r"it reads bytes \[0, 4\) of argument 0|it reads through argument 0"),
        (writes_x, "it stores through argument 0, which the footprint does not say"),
        (adds_pointers, "mixes pointers"),
        (reads_beside_a_table, "it reads beside its constants"),
    ],
)
def test_mutants_die(write: Any, reason: str) -> None:
    copying(right).prove(n=range(40))
    with pytest.raises(BrokenRule, match=reason) as caught:
        copying(write).prove(n=range(40))
    assert "test_proof.py" in str(caught.value)  # the line that wrote it


def test_what_is_proved_is_said() -> None:
    found = copying(right).prove(n=range(20))
    assert (found.cases, found.is_bounded, found.unbounded) == (20, True, 0)
    assert str(found) == "copy at avx2: ABI, level, stack and control flow hold; footprint for 20 cases"


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"m": 3}, "names no integer argument"),
        ({"x": 3}, "names no integer argument"),
        ({"n": -1}, r"prove\(n=-1\) needs one or more integers from 0 to 18446744073709551615"),
        ({"n": []}, "needs one or more integers"),
        ({"n": "3"}, "needs one or more integers"),
        ({"n": range(30_000)}, "over 20001 cases or more: at most 20000 are walked; state fewer values of n"),
        ({"n": range(10**12)}, "over 20001 cases or more"),  # as a list it would take all memory
        ({"n": itertools.count()}, "over 20001 cases or more"),
    ],
)
def test_values_to_prove(values: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidArguments, match=what):
        copying(right).prove(**values)


def test_low_bytes_of_high_registers() -> None:
    """The decoder numbers ah to bh between bl and spl: sete r9b changes r9, not r13."""

    @asm.function("uint64_t flags(uint64_t a, uint64_t b)")
    def flags(f: Any, a: Any, b: Any) -> None:
        found = f.gp.claim(asm.register("r64", 9), "found")
        f.XOR(asm.low32(found), asm.low32(found))
        f.CMP(a, b)
        f.SETE(asm.register("r8", found.id))
        f.ret(found)

    assert [flags(3, b) for b in (2, 3)] == [0, 1]
    flags.prove()


def reference(x: Any, y: Any, n: int) -> None:
    y[:] = x


def test_compare() -> None:
    assert copying(right).compare(reference, cases=200).cases == 200
    with pytest.raises(asm.Mismatch, match=r"y\[\d+\] is .*, where the reference has") as caught:
        copying(whole_vectors).compare(reference, cases=200)
    assert len(caught.value.arguments) == 3


def test_compare_sees_what_is_written_beside() -> None:
    def beside(f: Any, v: Any, x: Any, y: Any, n: Any) -> None:
        right(f, v, x, y, n)
        f.MOV(mem(y, 64, size=4), 0)

    with pytest.raises(asm.Mismatch, match="bytes beside an array were written"):
        copying(beside).compare(reference, cases=50, n=range(8))


@pytest.mark.parametrize(
    ("tolerance", "allows"),
    [(asm.exact, 0), (asm.ulp(1), 1), (asm.within(1e-3), 3), (asm.within(0, 1e-6), 2)],
)
def test_tolerances(tolerance: Any, allows: int) -> None:
    one = np.float32(1)
    near = [one, np.nextafter(one, one * 2), one + np.float32(8e-7), one + np.float32(5e-4)]
    assert [bool(tolerance(x, one)) for x in near].count(True) == 1 + allows
    assert tolerance(np.float32(np.nan), np.float32(np.nan))
    assert not tolerance(np.float32(np.nan), one)


def test_a_loop_that_nothing_leaves() -> None:
    @asm.function("uint64_t f(uint64_t n)")
    def endless(f: Any, n: Any) -> None:
        f.TEST(n, n)
        with f.when("Z"), f.loop():
            f.ADD(n, 1)
        f.ret(n)

    with pytest.raises(BrokenRule, match=r"'control flow': no path from here leads to RET\n .*add rdi, 1"):
        endless.prove(n=range(3))
    for run, word in ((endless.emulate, "most_instructions"), (endless.trace, "most_steps")):
        with pytest.raises(EmulationFault, match=f"after 99 instructions: see that its loops end, or raise {word}"):
            run(0, **{word: 99})
        with pytest.raises(InvalidArguments, match=f"{word} must be an integer from 1 on, not 0"):
            run(0, **{word: 0})


@pytest.mark.parametrize("address", [0, 8, -1, 2**64, None, "strlen"])
def test_addresses_of_no_code(address: Any) -> None:
    with pytest.raises(InvalidArguments, match="address must be an integer, where code of 'strlen' lies, not"):
        asm.bench("size_t strlen(const char *s)", address, b"text\0")


def test_bench_counts_work() -> None:
    short, long = (copying(right).bench(*np.ones((2, n), np.float32), n) for n in (8, 8 << 12))
    assert 0 < short.ns < long.ns
    assert short.ticks < long.ticks


@asm.function(
    "int32_t pick(int32_t op, const int64_t *table, int64_t i, double x, int64_t b, int64_t c, int64_t d, int64_t e)",
    reads={"table": "8*(i + 1)"},
)
def pick(f: Any, op: Any, table: Any, i: Any, x: Any, b: Any, c: Any, d: Any, e: Any) -> None:
    """Something with a switch, a saved register, constants, and an argument on the stack."""
    kept = f.gp.claim(asm.register("r64", 3), "kept")
    f.MOV(kept, mem(table, index=i, scale=8))
    with f.switch(op, (0, 2)) as case:
        with case(0):
            f.ADD(kept, e)
        with case(2):
            f.MOV(kept, mem(f.table(np.array([5, 6, 7, 8])), index=b, scale=8))
        with case.other:
            f.NEG(kept)
    f.ret(kept)


MAIN = """
#include <stdio.h>
#include "pick.h"
int main(void) {
    const int64_t t[3] = {10, 20, 30};
    for (int op = -1; op < 4; op++) printf("%d ", pick(op, t, 2, 0.5, 3, 0, 0, 1000));
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
@pytest.mark.parametrize("format", ["o", "s"])
def test_files_link_with_c(tmp_path: Path, format: str) -> None:
    code = tmp_path / f"pick.{format}"
    pick.save(code, tmp_path / "pick.h", str(tmp_path / "pick.bin"))
    (tmp_path / "main.c").write_text(MAIN)
    command = ["gcc", "-Wall", "-Werror", "-std=c99", "-o", tmp_path / "main", tmp_path / "main.c", code]
    subprocess.run(command, check=True, capture_output=True)
    printed = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout
    table = np.array([10, 20, 30])
    assert printed.split() == ["-30", "1030", "-30", "8", "-30"]
    assert [int(x) for x in printed.split()] == [pick(op, table, 2, 0.5, 3, 0, 0, 1000) for op in range(-1, 4)]
    assert (tmp_path / "pick.bin").read_bytes() == pick.code


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    @asm.function("double root(double x)", calls={"sqrt": "double(double)"})
    def root(f: Any, x: Any) -> None:
        f.ret(f.call("sqrt", x))

    with pytest.raises(InvalidArguments, match="it calls addresses that only this process has"):
        root.save(tmp_path / "root.o")
    with pytest.raises(InvalidArguments, match=r"another suffix than .bin, .s, .nasm, .o, .h"):
        copying(right).save(tmp_path / "copy.txt")
    assert list(tmp_path.iterdir()) == []
