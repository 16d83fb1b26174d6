"""Unwind information of a kernel, from its bytes alone: kernels of packs and of the disk cache come without a listing.

The assembler's prologue is PUSH of callee-saved registers, then SUB rsp; an executor moves its argument in between.
The epilogue undoes exactly this, in reverse, and the sequence of bytes is looked for.  In between rsp stands still.
Sources: DWARF 4, section 6.4; System V ABI AMD64 supplement, figure 3.36 (register numbers), section 4.2.4 (.eh_frame).
"""

from collections.abc import Iterator
from typing import Final

from asmdnn.jit.leb128 import uleb
from asmdnn.records import dataclass

WORD: Final = 8
RSP, RETURN_ADDRESS = 7, 16
DWARF_NUMBER: Final = {3: 3, 5: 6, 12: 12, 13: 13, 14: 14, 15: 15}  # callee-saved: the CPU's number -> DWARF's
ABSOLUTE, RELATIVE_INT32 = 0x00, 0x1B  # DW_EH_PE_absptr; DW_EH_PE_pcrel | DW_EH_PE_sdata4

_DEF_CFA, _DEF_CFA_OFFSET, _ADVANCE_4, _REMEMBER, _RESTORE_STATE = 0x0C, 0x0E, 0x04, 0x0A, 0x0B
_OFFSET, _RESTORE = 0x80, 0xC0
_RET = b"\xc3"


@dataclass(frozen=True, slots=True)
class StackMove:
    """An instruction that moves rsp: after it, CFA - rsp is `cfa`; undo: the bytes that take it back."""

    end: int
    cfa: int
    register: int = -1
    undo: bytes = b""


def prologue(code: bytes) -> list[StackMove]:
    """The instructions at the start of a kernel that move rsp."""
    steps: list[StackMove] = []
    at, cfa = 0, WORD
    while True:
        push = _push_at(code, at)
        if push:
            size, register = push
            if register not in DWARF_NUMBER:
                return steps
            cfa += WORD
            steps.append(
                StackMove(at + size, cfa, register, code[at : at + size - 1] + bytes((code[at + size - 1] + 8,)))
            )
        elif code[at : at + 3] in (b"\x48\x83\xec", b"\x48\x81\xec"):  # SUB rsp, imm8 or imm32
            size = 4 if code[at + 1] == 0x83 else 7
            cfa += int.from_bytes(code[at + 3 : at + size], "little", signed=True)
            steps.append(StackMove(at + size, cfa, undo=code[at : at + 2] + b"\xc4" + code[at + 3 : at + size]))
        elif code[at : at + 1] in (b"\x48", b"\x49") and code[at + 1 : at + 2] in (b"\x89", b"\x8b"):
            if code[at + 2 : at + 3] < b"\xc0":  # MOV from or to memory: the body has begun
                return steps
            size = 3  # MOV register, register
        else:
            return steps
        at += size


def fde_program(code: bytes) -> bytes:
    """Call frame instructions, from CFA = rsp + 8 on, for every byte of the kernel."""
    steps = prologue(code)
    here, program = 0, bytearray()

    def advance(to: int) -> None:
        nonlocal here
        program.extend(bytes((_ADVANCE_4,)) + (to - here).to_bytes(4, "little"))
        here = to

    for step in steps:
        advance(step.end)
        program += bytes((_DEF_CFA_OFFSET,)) + uleb(step.cfa)
        if step.register >= 0:
            program += bytes((_OFFSET | DWARF_NUMBER[step.register],)) + uleb(step.cfa // WORD)
    for start in _epilogues(code, steps):
        program.append(_REMEMBER)
        at = start
        for i, step in reversed(list(enumerate(steps))):
            at += len(step.undo)
            advance(at)
            program += bytes((_DEF_CFA_OFFSET,)) + uleb(steps[i - 1].cfa if i else WORD)
            if step.register >= 0:
                program.append(_RESTORE | DWARF_NUMBER[step.register])
        advance(at + len(_RET))
        program.append(_RESTORE_STATE)
    return bytes(program)


def eh_frame(code: bytes, start: int, at: int | None = None) -> bytes:
    """A CIE, an FDE and the end mark, for code at the address `start`.

    at: the address of this data, for a distance of 32 bits; without it, `start` is written as it is.
    """
    encoding = ABSOLUTE if at is None else RELATIVE_INT32
    cie = bytes(4) + b"\x01zR\0" + uleb(1) + bytes((-WORD & 0x7F,)) + uleb(RETURN_ADDRESS) + bytes((1, encoding))
    head = _entry(cie + bytes((_DEF_CFA, RSP, WORD, _OFFSET | RETURN_ADDRESS, 1)))
    if at is None:
        place = start.to_bytes(8, "little") + len(code).to_bytes(8, "little")
    else:
        distance = start - (at + len(head) + 8)
        place = distance.to_bytes(4, "little", signed=True) + len(code).to_bytes(4, "little")
    to_cie = (len(head) + 4).to_bytes(4, "little")
    return head + _entry(to_cie + place + b"\0" + fde_program(code)) + bytes(4)


def _epilogues(code: bytes, steps: list[StackMove]) -> Iterator[int]:
    """Where the instructions that undo the prologue start, followed by RET."""
    sequence = b"".join(step.undo for step in reversed(steps)) + _RET
    start = code.find(sequence) if steps else -1
    while start >= 0:
        yield start
        start = code.find(sequence, start + len(sequence))


def _push_at(code: bytes, at: int) -> tuple[int, int] | None:
    """(bytes, register) of a PUSH."""
    prefix = code[at : at + 1] == b"\x41"
    opcode = code[at + prefix : at + prefix + 1]
    return (1 + prefix, opcode[0] - 0x50 + 8 * prefix) if b"\x50" <= opcode <= b"\x57" else None


def _entry(body: bytes) -> bytes:
    body += bytes(-(len(body) + 4) % WORD)
    return len(body).to_bytes(4, "little") + body
