"""Kernels that do nothing where dst is src: only there, and only where both have the same bytes."""

from dataclasses import replace

import pytest

from asmdnn.generators.move.rows import RowsSpec
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.proof.contracts import contract_of, kernel_of
from asmdnn.proof.kernel import Kernel
from asmdnn.proof.prove import prove
from tests.proof.mutants import find, violation_of, with_bytes

IN_PLACE = RowsSpec(isa="avx2", rows=3, row_bytes=52, src_step=64, dst_step=64, in_place=True)


def opposite() -> Kernel:
    """It copies where both are one memory, and elsewhere leaves dst as it is."""
    line = find(IN_PLACE, "jne")
    assert line.data[0] == 0x75
    return with_bytes(IN_PLACE, line.offset, b"\x74" + line.data[1:])


def test_rows_in_place() -> None:
    prove(kernel_of(IN_PLACE))
    for rows, row_bytes in ((1, 20), (2, 544)):
        prove(kernel_of(replace(IN_PLACE, rows=rows, row_bytes=row_bytes, src_step=560, dst_step=560)))


def test_the_other_way_round() -> None:
    found = violation_of(opposite())
    assert found is not None and "of argument 1 are not all written" in str(found)


@pytest.mark.parametrize("steps", [(64, 60), (60, 64)])
def test_rows_that_lie_elsewhere_in_dst(steps: tuple[int, int]) -> None:
    spec = replace(IN_PLACE, src_step=steps[0], dst_step=steps[1])
    found = violation_of(kernel_of(spec))
    assert found is not None and "of argument 1 are not all written" in str(found)


def test_what_src_does_not_read() -> None:
    """Rows of which dst has more than src."""
    contract = contract_of(IN_PLACE)
    assert contract.footprint is not None
    narrow = tuple(replace(x, end_bytes=x.end_bytes - 4) for x in contract.footprint.reads)
    less = replace(contract, footprint=replace(contract.footprint, reads=narrow))
    assert violation_of(Kernel("narrow", less, kernel_of(IN_PLACE).code)) is not None


@pytest.mark.parametrize(("at", "is_proved"), [(0, True), (4, False)])
def test_addresses_beside_an_argument_show_nothing(at: int, is_proved: bool) -> None:
    """src + 4 may be dst: then bytes of dst are not those of src."""
    asm = Assembler("beside", listing=True)
    src, dst, word = (asm.gp.take(name) for name in ("src", "dst", "word"))
    asm.MOV(src, mem(asm.frame))
    asm.MOV(dst, mem(asm.frame, 8))
    asm.ADD(src, at)
    elsewhere = asm.new_label("elsewhere")
    asm.CMP(src, dst)
    asm.JNE(elsewhere)
    asm.ret()
    asm.bind(elsewhere)
    asm.MOV(word, mem(src, -at))
    asm.MOV(mem(dst), word)
    asm.ret()
    copied = replace(IN_PLACE, rows=1, row_bytes=8)
    found = violation_of(Kernel("beside", contract_of(copied), asm.finish()))
    assert (found is None) == is_proved
