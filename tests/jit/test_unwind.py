"""Unwind information from bytes: followed instruction by instruction, it knows where rsp was before the call."""

import pytest

from asmdnn.corpus.families import corpus
from asmdnn.isa.assembler import Assembler
from asmdnn.jit.unwind import DWARF_NUMBER, eh_frame, fde_program, prologue

PUSHED = {"rbx": 3, "rbp": 6, "r12": 12, "r13": 13, "r14": 14, "r15": 15}


def rows(program: bytes) -> dict[int, tuple[int, frozenset[int]]]:
    """(CFA - rsp, saved registers) from each offset on: an interpreter of the instructions that are used."""
    found, at, cfa, saved, kept = {0: (8, frozenset[int]())}, 0, 8, frozenset[int](), (8, frozenset[int]())
    i = 0
    while i < len(program):
        code = program[i]
        if code == 0x04:
            at += int.from_bytes(program[i + 1 : i + 5], "little")
            i += 5
        elif code == 0x0E:
            cfa, shift, i = 0, 0, i + 1
            while True:
                cfa |= (program[i] & 0x7F) << shift
                shift += 7
                i += 1
                if program[i - 1] < 0x80:
                    break
        elif code == 0x0A:
            kept, i = (cfa, saved), i + 1
        elif code == 0x0B:
            (cfa, saved), i = kept, i + 1
        elif code & 0xC0 == 0x80:
            saved |= {code & 0x3F}
            assert program[i + 1] * 8 == cfa, "a register is saved where it was just pushed"
            i += 2
        else:
            assert code & 0xC0 == 0xC0, f"instruction {code:#x}"
            saved -= {code & 0x3F}
            i += 1
        found[at] = (cfa, saved)
    return found


def followed(asm: Assembler) -> tuple[bytes, dict[int, tuple[int, frozenset[int]]]]:
    """The same from the listing, along the lines: what each instruction does to rsp."""
    code = asm.finish()
    state, body, found = (8, frozenset[int]()), (8, frozenset[int]()), {}
    for line in code.listing:
        found[line.offset] = state
        words = line.text.replace(",", "").split()
        cfa, saved = state
        if words[0] == "push":
            state = (cfa + 8, saved | {PUSHED[words[1]]})
        elif words[0] == "pop":
            state = (cfa - 8, saved - {PUSHED[words[1]]})
        elif words[:2] in (["sub", "rsp"], ["add", "rsp"]):
            state = (cfa + int(words[2]) * (1 if words[0] == "sub" else -1), saved)
        if words[0] == "ret":
            assert state == (8, frozenset())
            state = body
        elif words[0] != "pop" and words[:2] != ["add", "rsp"]:
            body = state
    return code.data, found


@pytest.mark.parametrize("family", sorted({type(spec).__name__ for spec in corpus()}))
def test_every_instruction_of_the_corpus(family: str) -> None:
    specs = [spec for spec in corpus() if type(spec).__name__ == family]
    for spec in specs[:: max(1, len(specs) // 4)]:
        asm = Assembler(spec.name, listing=True)
        spec.generate(asm)
        data, expected = followed(asm)
        derived = rows(fde_program(data))
        for offset, state in expected.items():
            last = max(start for start in derived if start <= offset)
            assert derived[last] == state, f"{spec.name} at {offset:#x}"


@pytest.mark.parametrize("code", [b"", b"\xc3", b"\x41", b"\x53", b"\x48\x83", b"\x48\x89", b"\xff" * 9, b"\x50\xc3"])
def test_bytes_that_end_anywhere(code: bytes) -> None:
    prologue(code)
    frame = eh_frame(code, 0x1000)
    assert frame.endswith(bytes(4))
    assert len(eh_frame(code, 0, 64)) % 4 == 0


def test_registers() -> None:
    assert set(DWARF_NUMBER.values()) == set(PUSHED.values())
