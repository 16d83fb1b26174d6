"""A place of the stack that is rounded down to whole lines lies up to 63 bytes lower: rules take both ends."""

from collections.abc import Callable

import pytest

from asmdnn.generators.contract import Footprint
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.levels import isa_of
from asmdnn.isa.vectors import vector_of
from asmdnn.proof.kernel import BrokenRule, Contract, Kernel
from asmdnn.proof.prove import prove

ISA, LINE = "avx512_core", 64


def kernel(emit: Callable[[Assembler], None]) -> Kernel:
    asm = Assembler("rounded", listing=True)
    emit(asm)
    asm.ret()
    return Kernel("rounded", Contract(isa_of(ISA), 2, Footprint((), ())), asm.finish())


def stores(room: int, begin: int, at: int = 0, multiple: int = LINE) -> Callable[[Assembler], None]:
    """A line is stored `at` bytes behind a rounded place: the one `begin` bytes into so much of the stack."""

    def emit(asm: Assembler) -> None:
        v = vector_of(ISA, asm)
        memory, pointer, x = asm.stack(room), asm.gp.take("line"), v.registers.take("data")
        v.zero(x)
        asm.LEA(pointer, mem(memory.form.base, memory.displacement + begin))
        asm.AND(pointer, -multiple)
        v.store(mem(pointer, at, size=LINE), x)

    return emit


@pytest.mark.parametrize(
    "make", [stores(2 * LINE, LINE - 1), stores(128, 127 - 64), stores(192, 63, 64), stores(64, 0, multiple=1)]
)
def test_what_stays_in_the_memory_is_proved(make: Callable[[Assembler], None]) -> None:
    prove(kernel(make))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (stores(LINE, LINE), "return address"),  # as high as if nothing were rounded
        (stores(2 * LINE, LINE - 1, at=LINE + 2), "return address"),
        (stores(2 * LINE, LINE - 1, at=-LINE - 129), "red zone"),  # as low as if all were
        (stores(2 * LINE, LINE - 1, multiple=48), "unknown origin"),
    ],
)
def test_what_may_leave_it_is_told(make: Callable[[Assembler], None], reason: str) -> None:
    with pytest.raises(BrokenRule, match=reason):
        prove(kernel(make))


def test_a_word_below_may_be_overwritten() -> None:
    """A pointer that was kept there is none any more."""

    def emit(asm: Assembler, apart: int) -> None:
        v = vector_of(ISA, asm)
        word, memory = asm.stack(8 + apart), asm.stack(2 * LINE)
        pointer, line, x = asm.gp.take("dst"), asm.gp.take("line"), v.registers.take("data")
        asm.MOV(pointer, mem(asm.frame, 0, size=8))
        asm.MOV(word.sized(8), pointer)
        v.zero(x)
        asm.LEA(line, mem(memory.form.base, memory.displacement + LINE // 2))
        asm.AND(line, -LINE)
        v.store(mem(line, 0, size=LINE), x)
        asm.MOV(pointer, word.sized(8))
        asm.MOV(line, mem(pointer, 0, size=8))

    with pytest.raises(BrokenRule, match="origin"):
        prove(kernel(lambda asm: emit(asm, 0)))
    with pytest.raises(BrokenRule, match="argument 0"):  # the pointer is known, and reads what nothing claims
        prove(kernel(lambda asm: emit(asm, 64)))
