"""What the walk concludes from flags; and programs of integer instructions against this CPU's arithmetic."""

from typing import Any

import numpy as np
import pytest

from asmdnn.isa.assembler import Assembler, low32, mem
from asmdnn.isa.levels import AVX2
from asmdnn.proof.kernel import Contract, Kernel
from asmdnn.proof.state import State
from asmdnn.proof.values import JUNK, NUMBER, AbstractValue, Base, add, join, multiply, number, subtract
from asmdnn.proof.walk import Walker, WalkState, decide, written_by_both
from tests.support.native import Kernel as Native

ARGUMENT = AbstractValue(Base("argument", 1), 8)


def decided(kind: str, a: int, b: int, mnemonic: str) -> bool | None:
    state = State()
    state.compare = (kind, number(a), number(b))
    return decide(mnemonic, state)


@pytest.mark.parametrize(
    ("a", "b", "true"),
    [(3, 3, {"je", "jae", "jbe", "jge", "jle"}), (2, 3, {"jne", "jb", "jbe", "jl", "jle"}),
     (-1, 3, {"jne", "ja", "jae", "jl", "jle"})],
)  # fmt: skip
def test_conditions(a: int, b: int, true: set[str]) -> None:
    for mnemonic in ("je", "jne", "jb", "jae", "ja", "jbe", "jl", "jge", "jg", "jle"):
        assert decided("difference", a, b, mnemonic) == (mnemonic in true)
    assert decided("difference", a, b, "jo") is None
    assert decided("unsigned", a, b, "jl") is None


def test_what_depends_on_data_is_open() -> None:
    state = State()
    assert decide("je", state) is None
    state.compare = ("difference", NUMBER, number(1))
    assert decide("je", state) is None
    state.compare = ("difference", ARGUMENT, number(8))
    assert decide("je", state) is None
    state.compare = ("difference", ARGUMENT, ARGUMENT)
    assert decide("je", state) is True


def test_values() -> None:
    assert add(ARGUMENT, number(-8)) == AbstractValue(Base("argument", 1), 0)
    assert add(ARGUMENT, NUMBER) == AbstractValue(Base("argument", 1), None)
    assert add(ARGUMENT, ARGUMENT) == JUNK and subtract(number(1), ARGUMENT) == JUNK
    assert subtract(ARGUMENT, AbstractValue(Base("argument", 1), 3)) == number(5)
    assert multiply(ARGUMENT, number(1)) == ARGUMENT and multiply(ARGUMENT, number(2)) == JUNK
    assert add(JUNK, number(1)) == JUNK and multiply(JUNK, number(3)) == JUNK
    assert join(ARGUMENT, number(0)) == JUNK and join(number(1), number(2)) == NUMBER
    assert join(ARGUMENT, AbstractValue(Base("argument", 2), 8)) == AbstractValue(Base("argument", -1), None)
    assert add(number((1 << 63) - 1), number(1)) == number(-(1 << 63))


OPERATIONS = (
    "ADD", "SUB", "AND", "OR", "XOR", "IMUL", "SHL", "SHR", "SAR", "MOV", "INC", "DEC", "LEA", "CMOVZ", "JNZ", "JB",
)  # fmt: skip


def random_program(random: np.random.Generator, asm: Any) -> None:
    """Constants in three registers, then operations on them in 64 and in 32 bits, stored to frame[0][0:3]."""
    out, *registers = (asm.gp.take(name) for name in ("out", "a", "b", "c"))
    asm.MOV(out, mem(asm.frame))
    for register in registers:
        asm.MOV(register, int(random.integers(-(1 << 31), 1 << 31)) >> int(random.integers(0, 32)))
    for place in range(24):
        name = str(random.choice(OPERATIONS))
        wide = bool(random.integers(2)) or name in ("LEA", "SHL", "SHR", "SAR")
        a, b = (r if wide else low32(r) for r in random.choice(np.array(registers, object), 2))
        amount = int(random.integers(1, 31))
        if name in ("SHL", "SHR", "SAR"):
            getattr(asm, name)(a, amount)
        elif name in ("INC", "DEC"):
            getattr(asm, name)(a)
        elif name == "LEA":
            asm.LEA(a, mem(b, amount, index=a, scale=4))
        elif name in ("JNZ", "JB"):
            skip = asm.new_label(f"skip{place}")
            asm.CMP(a, b)
            getattr(asm, name)(skip)
            asm.ADD(a, amount)
            asm.bind(skip)
        else:
            getattr(asm, name)(a, b)
    for i, register in enumerate(registers):
        asm.MOV(mem(out, 8 * i), register)
    asm.ret()


class Watch(Walker):
    """Remembers the registers at RET, of every path."""

    def touch(self, *_: Any) -> None:
        pass

    def leave(self, state: WalkState, step: Any) -> None:
        self.found = [*getattr(self, "found", []), state.registers[:]]


@pytest.mark.isa("avx2")
def test_integers_are_what_the_cpu_computes() -> None:
    """Whatever the walk knows to be a number is that number; and it knows most of them."""
    random, known, total = np.random.default_rng(3), 0, 0
    for _ in range(150):
        asm = Assembler("random", listing=True)
        random_program(random, asm)
        code = asm.finish()
        out, frame = np.zeros(3, np.int64), np.zeros(1, np.int64)
        frame[0] = out.ctypes.data
        Native(code.data)(frame.ctypes.data)
        watch = Watch(Kernel("random", Contract(AVX2, 1, None), code), None)
        watch.walk()
        paths = [[registers[number] for number in (1, 2, 6)] for registers in watch.found]
        for i, real in enumerate(out.tolist()):
            possible = [path[i] for path in paths]
            assert any(v.base is None and v.offset in (None, real) for v in possible), (code.listing, i, real, possible)
            known += len(possible) == 1 and possible[0].offset == real
            total += 1
    assert known > total // 3


def test_what_two_ways_have_written() -> None:
    """One may store at once what the other does in parts, or less."""
    whole, parts = {(1, 0, 64), (2, 0, 8)}, {(1, 0, 32), (1, 32, 64), (2, 4, 16)}
    assert written_by_both(whole, parts) == written_by_both(parts, whole) == {(1, 0, 64), (2, 4, 8)}
    assert written_by_both({(1, 0, 64)}, {(1, 0, 32)}) == {(1, 0, 32)}
    assert written_by_both({(1, 0, 64)}, {(2, 0, 64)}) == set()
    assert written_by_both({(1, 0, 8), (1, 8, 16)}, {(1, 0, 8), (1, 8, 12)}) == {(1, 0, 8), (1, 8, 12)}
