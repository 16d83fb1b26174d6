"""Rule "definite assignment" of the stack: reads of bytes that nothing has written, and what is no such read."""

from typing import Any

import pytest

from asmdnn.generators.contract import Footprint, Range
from asmdnn.isa.assembler import Assembler, mem, register, rsp
from asmdnn.isa.levels import isa_of
from asmdnn.proof.kernel import Contract, Kernel
from tests.proof.mutants import Edit, violation_of
from tests.proof.test_assignment import CX, RAX, RBX, RCX, k, lines, x

LINE = 64


def code(edit: Edit, *, walked: bool, calls: bool = False) -> Kernel:
    """Nothing but these instructions: with a footprint, which is walked, or without one."""
    made = Assembler("alone", listing=True)
    made.VPXORD(x(31), x(31), x(31))  # so that there is a VZEROUPPER before each RET
    edit(made)
    made.ret()
    footprint = Footprint((Range(0, 0, 8),), ()) if walked else None
    return Kernel("alone", Contract(isa_of("avx512_core_amx"), None if calls else 1, footprint, calls), made.finish())


def slot(at: int, size: int = 8) -> Any:
    return mem(rsp, at, size=size)


def on_one_path(asm: Assembler) -> None:
    skip = asm.new_label("skip")
    asm.MOV(RAX, mem(asm.frame, size=8))
    asm.MOV(RCX, mem(RAX, size=8))
    asm.TEST(RCX, RCX)
    asm.JZ(skip)
    asm.MOV(slot(-8), RCX)
    asm.bind(skip)
    asm.MOV(RAX, slot(-8))


def in_a_later_round(asm: Assembler) -> None:
    """Written at the end of a round, read at its start."""
    asm.MOV(RCX, 3)
    with asm.loop(RCX, "rounds"):
        asm.MOV(RAX, slot(-16))
        asm.MOV(slot(-16), RCX)


def parts(*begins: int, size: int = 16) -> Edit:
    """A line is read where such parts of it have been written."""

    def edit(asm: Assembler) -> None:
        kind = {16: "xmm", 32: "ymm", 64: "zmm"}[size]
        for begin in begins:
            asm.VMOVUPS(slot(begin - LINE, size), x(31, kind))
        asm.VMOVUPS(x(0), slot(-LINE, LINE))

    return edit


def masked(stored: int, loaded: int) -> Edit:
    """A line is stored and loaded by masks of 16 bits."""

    def edit(asm: Assembler) -> None:
        eax = register("r32", 0)
        for number, bits in ((1, stored), (2, loaded)):
            asm.MOV(eax, bits)
            asm.KMOVW(k(number), eax)
        asm.VMOVUPS(slot(-LINE, LINE).masked(k(1)), x(31))
        asm.VMOVUPS(x(0).zeroed(k(2)), slot(-LINE, LINE))

    return edit


def narrowed_by_mask(bits: int) -> Edit:
    """Of a conversion that a mask stores in part."""

    def edit(asm: Assembler) -> None:
        eax = register("r32", 0)
        asm.MOV(eax, bits)
        asm.KMOVW(k(1), eax)
        asm.VPMOVDB(slot(-16, 16).masked(k(1)), x(31))
        asm.VMOVUPS(x(0, "xmm"), slot(-16, 16))

    return edit


def compressed(asm: Assembler) -> None:
    """How much a compression stores, its mask alone does not say at which places."""
    asm.KXNORW(k(1), k(1), k(1))
    asm.VPCOMPRESSD(slot(-LINE, LINE).masked(k(1)), x(31))
    asm.VMOVUPS(x(0), slot(-LINE, LINE))


def below_the_red_zone(room: int) -> Edit:
    """What was written where rsp was lower, and may have been overwritten since by a signal."""

    def edit(asm: Assembler) -> None:
        asm.SUB(rsp, room)
        asm.MOV(slot(0), 1)
        asm.ADD(rsp, room)
        asm.SUB(rsp, room)
        asm.MOV(RAX, slot(0))
        asm.ADD(rsp, room)

    return edit


def rounded(distance: int, *, first: int = -LINE) -> Edit:
    """A line is stored at a rounded place, and one is read that far from it, or from another one."""

    def edit(asm: Assembler) -> None:
        asm.LEA(RAX, mem(rsp, -LINE))
        asm.AND(RAX, -LINE)
        asm.LEA(RCX, mem(rsp, first))
        asm.AND(RCX, -LINE)
        asm.VMOVAPS(mem(RAX, size=LINE), x(31))
        asm.VMOVAPS(x(0), mem(RCX, distance, size=LINE))

    return edit


READS: dict[str, Edit] = {
    "a word": lines(("MOV", RAX, slot(-8))),
    "more than a word": lines(("MOV", slot(-8), 1), ("VMOVUPS", x(0, "xmm"), slot(-8 - 8, 16))),
    "a byte beside": lines(("MOV", slot(-8), 1), ("MOV", RAX, slot(-9))),
    "by pop": lines(("SUB", rsp, 8), ("POP", RAX)),
    "as the operand of a sum": lines(("VADDPS", x(0), x(31), slot(-LINE, LINE))),
    "in place": lines(("ADD", slot(-8), 1)),
    "one path": on_one_path,
    "a later round": in_a_later_round,
    "a line without one part": parts(0, 16, 48),
    "a line without its end": parts(0, size=32),
    "more lanes than were stored": masked(0x7FFF, 0xFFFF),
    "bytes that a mask left": narrowed_by_mask(0x7FFF),
    "what a compression may not reach": compressed,
    "below the red zone": below_the_red_zone(256),
    "beside a rounded place": rounded(-1),
    "from another rounded place": rounded(0, first=-LINE - 1),
}


@pytest.mark.parametrize("walked", [True, False])
@pytest.mark.parametrize("name", READS)
def test_a_read_of_bytes_that_nothing_wrote(name: str, walked: bool) -> None:
    found = violation_of(code(READS[name], walked=walked))
    assert found is not None and found.line is not None
    assert (found.rule, "of the stack" in found.reason) == ("definite assignment", True), found


def on_both_paths(asm: Assembler) -> None:
    other, end = asm.new_label("other"), asm.new_label("end")
    asm.MOV(RAX, mem(asm.frame, size=8))
    asm.MOV(RCX, mem(RAX, size=8))
    asm.TEST(RCX, RCX)
    asm.JZ(other)
    asm.VMOVUPS(slot(-LINE, LINE), x(31))
    asm.JMP(end)
    asm.bind(other)
    parts(0, 32, size=32)(asm)
    asm.bind(end)
    asm.VADDPS(x(0), x(31), slot(-LINE, LINE))


def in_this_round(asm: Assembler) -> None:
    asm.MOV(RCX, 3)
    with asm.loop(RCX, "rounds"):
        asm.MOV(slot(-16), RCX)
        asm.MOV(RAX, slot(-16))


NO_READS: dict[str, Edit] = {
    "a word": lines(("MOV", slot(-8), 1), ("MOV", RAX, slot(-8)), ("MOV", CX, slot(-5, 2))),
    "saved": lines(("PUSH", RBX), ("MOV", RBX, 1), ("POP", RBX)),
    "both paths": on_both_paths,
    "parts": parts(0, 16, 32, 48),
    "a round": in_this_round,
    "within the red zone": below_the_red_zone(128),
    "a rounded place": rounded(0),
    "a rounded place, by its neighbours": lambda asm: (
        parts(0, size=64)(asm), asm.VMOVUPS(slot(-2 * LINE, LINE), x(31)), asm.LEA(RAX, mem(rsp, -LINE)),
        asm.AND(RAX, -LINE), asm.VMOVAPS(x(0), mem(RAX, size=LINE)),
    )[0],
}  # fmt: skip


@pytest.mark.parametrize("walked", [True, False])
@pytest.mark.parametrize("name", NO_READS)
def test_what_is_no_such_read(name: str, walked: bool) -> None:
    assert violation_of(code(NO_READS[name], walked=walked)) is None


@pytest.mark.parametrize("edit", [masked(0x7FFF, 0x7F0F), narrowed_by_mask(0xFFFF)])
def test_the_walk_knows_masks(edit: Edit) -> None:
    assert violation_of(code(edit, walked=True)) is None


@pytest.mark.parametrize(("stored", "whole"), [("VPMOVDB", True), ("VPMOVDB", False), ("VPCOMPRESSD", False)])
def test_what_a_mask_stores_of_a_conversion(stored: str, whole: bool) -> None:
    """A footprint is written wholly only if the mask says so; of a compression it says how much, not where."""
    size = 16 if stored == "VPMOVDB" else LINE
    made = Assembler("alone", listing=True)
    made.VPXORD(x(31), x(31), x(31))
    made.MOV(register("r32", 0), 0xFFFF if whole or size == LINE else 0x7FFF)
    made.KMOVW(k(1), register("r32", 0))
    made.MOV(RAX, mem(made.frame, size=8))
    getattr(made, stored)(mem(RAX, size=size).masked(k(1)), x(31))
    made.ret()
    footprint = Footprint((), (Range(0, 0, size),))
    found = violation_of(Kernel("alone", Contract(isa_of("avx512_core"), 1, footprint), made.finish()))
    assert found is None if whole else found is not None and "not all written" in found.reason, found


def test_the_walk_knows_places_in_loops() -> None:
    """Four words are written, and a loop reads as many; or one too many, by rsp and an index."""

    def edit(asm: Assembler, rounds: int) -> None:
        asm.MOV(RCX, 0)
        for word in range(4):
            asm.MOV(slot(8 * word - 64), RCX)
        again = asm.new_label("again")
        asm.bind(again)
        asm.MOV(RAX, mem(rsp, -64, index=RCX, scale=8, size=8))
        asm.ADD(RCX, 1)
        asm.CMP(RCX, rounds)
        asm.JNZ(again)

    assert violation_of(code(lambda asm: edit(asm, 4), walked=True)) is None
    found = violation_of(code(lambda asm: edit(asm, 5), walked=True))
    assert found is not None and "8 bytes of the stack, 32 below its start" in found.reason, found


def test_places_below_the_red_zone_are_told_in_loops() -> None:
    """Also of what is addressed by rsp and an index, which the walk alone follows."""

    def edit(asm: Assembler) -> None:
        asm.MOV(RCX, 0)
        again = asm.new_label("again")
        asm.bind(again)
        asm.MOV(RAX, mem(rsp, -64, index=RCX, scale=8, size=8))
        asm.SUB(RCX, 1)
        asm.CMP(RCX, -10)
        asm.JNZ(again)

    found = violation_of(code(edit, walked=True))
    assert found is not None and found.rule in ("stack", "definite assignment"), found


def test_a_call_loses_what_is_below_rsp() -> None:
    def edit(asm: Assembler, at: int) -> None:
        asm.SUB(rsp, 16)
        asm.MOV(slot(at), 1)
        asm.VZEROUPPER()
        asm.call(mem(asm.frame, size=8))
        asm.MOV(RAX, slot(at))
        asm.ADD(rsp, 16)

    assert violation_of(code(lambda asm: edit(asm, 0), walked=False, calls=True)) is None
    found = violation_of(code(lambda asm: edit(asm, -8), walked=False, calls=True))
    assert found is not None and "8 bytes of the stack, 32 below its start" in found.reason, found


def counting(asm: Assembler, *, kept: bool) -> None:
    """As many words as a count says are written, then read; or the count has changed in between."""
    asm.MOV(RAX, mem(asm.frame, size=8))
    for write in (True, False):
        done = asm.new_label("done")
        for word in range(3):
            asm.CMP(RAX, word)
            asm.JZ(done)
            asm.MOV(*((slot(8 * word - 64), RAX) if write else (RCX, slot(8 * word - 64))))
        asm.bind(done)
        if write and not kept:
            asm.MOV(RAX, mem(asm.frame, 8, size=8))


def test_a_count_that_is_kept_says_what_was_written() -> None:
    assert violation_of(code(lambda asm: counting(asm, kept=True), walked=False, calls=True)) is None
    found = violation_of(code(lambda asm: counting(asm, kept=False), walked=False, calls=True))
    assert found is not None and "of the stack" in found.reason, found
