"""An interpreter: programs of an accumulator machine run by a jump table, one entry for each operation.

python -m examples.asm.interpreter
"""

from typing import Any, Final

import numpy as np

from asmdnn import asm
from asmdnn.asm import FunctionBuilder, Register, low32, mem
from examples.asm.compiled import compiled
from examples.asm.table import Rows, microseconds, show
from examples.command import command

LOAD, GET, PUT, ADD, SUB, MUL, JUMP_IF, HALT = range(8)
CELLS: Final = 8


def word(operation: int, operand: int = 0) -> int:
    """An instruction: the operation in the low byte, a signed operand above it."""
    return operation | operand << 8


@asm.function(
    "int64_t run(const int64_t *program, size_t n, int64_t *cells, uint64_t fuel)",
    reads={"program": "8*n", "cells": "64"},
    writes={"cells": "64"},
)
def run(f: FunctionBuilder, program: Register, n: Register, cells: Register, fuel: Register) -> None:
    """Runs until HALT, the end of the program, or `fuel` instructions; the accumulator.

    LOAD x; GET, PUT, ADD, SUB, MUL of cell x modulo 8; JUMP_IF x: on to word x if the accumulator is not 0.  No program
    can reach other memory, since cells are counted modulo 8 and the place in the program is compared with its length.
    """
    total, at, code, x = (f.gp.take(name) for name in ("accumulator", "place", "operation", "operand"))
    f.XOR(low32(total), low32(total))
    f.XOR(low32(at), low32(at))
    end = f.label("end")

    def fetch() -> None:
        """The next instruction, if there is one and fuel is left."""
        f.CMP(at, n)
        f.JAE(end)
        f.SUB(fuel, 1)
        f.JB(end)
        f.MOV(code, mem(program, index=at, scale=8))
        f.ADD(at, 1)
        f.MOV(x, code)
        f.SAR(x, 8)
        f.MOVZX(low32(code), asm.register("r8", code.id))

    fetch()
    with f.switch(code, range(HALT + 1), "operation") as case:

        def follow() -> None:
            """To the block of the next instruction, without a way back to one common jump."""
            fetch()
            case.jump(code)

        with case(LOAD):
            f.MOV(total, x)
            follow()
        with case(GET):
            f.AND(x, CELLS - 1)
            f.MOV(total, mem(cells, index=x, scale=8))
            follow()
        with case(PUT):
            f.AND(x, CELLS - 1)
            f.MOV(mem(cells, index=x, scale=8), total)
            follow()
        for number, combine in ((ADD, f.ADD), (SUB, f.SUB), (MUL, f.IMUL)):
            with case(number):
                f.AND(x, CELLS - 1)
                combine(total, mem(cells, index=x, scale=8))
                follow()
        with case(JUMP_IF):
            f.TEST(total, total)
            f.CMOVNZ(at, x)
            follow()
        with case(HALT):
            f.JMP(end)
        with case.other:
            follow()
    f.bind(end)
    f.ret(total)


def run_in_python(program: Any, n: int, cells: Any, fuel: int) -> int:
    """The same, to compare with."""
    total = at = 0
    while at < n and fuel > 0:
        code, at, fuel = int(program[at]), at + 1, fuel - 1
        operation, x = code & 255, code >> 8
        cell = int(cells[x % CELLS])
        if operation == HALT:
            break
        if operation == JUMP_IF:
            at = x & (1 << 64) - 1 if total else at
        elif operation == PUT:
            cells[x % CELLS] = total
        else:
            known = {LOAD: x, GET: cell, ADD: total + cell, SUB: total - cell, MUL: total * cell}
            total = known.get(operation, total)
            total = (total + (1 << 63)) % (1 << 64) - (1 << 63)
    return total


# sum of squares: cell 0 counts down, cell 1 is the sum, cell 2 the square, cell 3 has 1
SQUARES: Final = [
    word(LOAD, 1), word(PUT, 3),
    word(GET, 0), word(MUL, 0), word(ADD, 1), word(PUT, 1),
    word(GET, 0), word(SUB, 3), word(PUT, 0), word(JUMP_IF, 2),
    word(GET, 1), word(HALT),
]  # fmt: skip


IN_C: Final = """int64_t total = 0;
size_t at = 0;
while (at < n && fuel--) {
    int64_t code = program[at++], x = code >> 8;
    switch (code & 255) {
        case 0: total = x; break;
        case 1: total = cells[x & 7]; break;
        case 2: cells[x & 7] = total; break;
        case 3: total += cells[x & 7]; break;
        case 4: total -= cells[x & 7]; break;
        case 5: total *= cells[x & 7]; break;
        case 6: at = total ? (size_t)x : at; break;
        case 7: return total;
    }
}
return total;"""


def drawn(rng: np.random.Generator, dtype: Any, size: int) -> Any:
    """Random programs, and cells."""
    return rng.integers(0, 9, size) | rng.integers(-4, 24, size) << 8


def main() -> None:
    print(run.prove(n=0, fuel=0))
    print(run.compare(run_in_python, cases=300, draw=drawn, n=range(1, 24), fuel=range(200)))
    program, cells = np.array(SQUARES, np.int64), np.zeros(CELLS, np.int64)

    def squares(machine: Any) -> int:
        cells[:] = 0
        cells[0] = 1000
        return int(machine(program, program.size, cells, 1 << 40))

    assert squares(run) == squares(run_in_python) == sum(k * k for k in range(1001))
    cells[0] = 1000  # which the program counts down to 0: a second run takes a different way, so each restores it
    restoring = np.concatenate([[word(LOAD, 1000), word(PUT, 0), word(LOAD), word(PUT, 1)], program[:9], program[9:]])
    restoring[13] = word(JUMP_IF, 6)
    in_c = compiled(run.prototype, IN_C)
    rows: Rows = {"this": run.bench(restoring, restoring.size, cells, 1 << 40)}
    if in_c:
        rows["a switch, gcc -O3"] = in_c.bench(restoring, restoring.size, cells, 1 << 40)
    rows["the same loop in Python"] = microseconds(lambda: squares(run_in_python), rounds=2)
    show("sum of 1000 squares, 8 instructions each", rows, 8000)


if __name__ == "__main__":
    command(main, __doc__)
