"""Unwind information: where the caller's registers are, at every instruction of a kernel.

The canonical frame address (CFA) is rsp as it was before the call.  It and the places of saved registers are followed
through the listing, along every jump, so that they are right in prologues, epilogues and after an early return.
Sources: DWARF 4, section 6.4; System V ABI AMD64 psABI, figure 3.36 (register numbers) and section 4.2.4 (.eh_frame).
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from asmdnn.dump.kernel import JUMP
from asmdnn.errors import Unimplemented
from asmdnn.isa.assembler import Line
from asmdnn.jit.leb128 import uleb
from asmdnn.records import dataclass, replace

Tables = Sequence[Sequence[int]]

WORD: Final = 8
NUMBERS: Final = {
    "rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6, "rsp": 7,
    **{f"r{n}": n for n in range(8, 16)},
}  # fmt: skip
RETURN_ADDRESS: Final = 16
_CALLEE_SAVED: Final = ("rbx", "rbp", "r12", "r13", "r14", "r15")

_DEF_CFA, _DEF_CFA_OFFSET, _NOP = 0x0C, 0x0E, 0x00
_ADVANCE, _ADVANCE_1, _ADVANCE_2, _ADVANCE_4 = 0x40, 0x02, 0x03, 0x04
_OFFSET, _RESTORE = 0x80, 0xC0
_PC_RELATIVE_INT32: Final = 0x1B  # DW_EH_PE_pcrel | DW_EH_PE_sdata4


@dataclass(frozen=True, slots=True)
class Frame:
    """cfa: CFA - rsp in bytes.  saved: callee's registers with CFA - their place, in the order of saving."""

    cfa: int = WORD
    saved: tuple[tuple[str, int], ...] = ()


class FrameRow(NamedTuple):
    """From the instruction at `offset` on, the frame is this one."""

    offset: int
    frame: Frame


def rows(listing: Sequence[Line], tables: Tables = ()) -> list[FrameRow]:
    """The frame before the first instruction, and wherever it changes.  tables: where jumps by a table go, in order.

    Raises Unimplemented for code that moves rsp in another way than the assembler's prologue, or to different places on
    different paths.
    """
    frames = _frames(listing, tables)
    found: list[FrameRow] = []
    for line in listing:
        frame = frames.get(line.offset, found[-1].frame if found else Frame())  # unreachable code says nothing new
        if not found or frame != found[-1].frame:
            found.append(FrameRow(line.offset, frame))
    return found


def _frames(listing: Sequence[Line], tables: Tables) -> dict[int, Frame]:
    """The frame before every instruction that can be reached."""
    index = {line.offset: i for i, line in enumerate(listing)}
    indirect = (line.offset for line in listing if _is_indirect(line))
    by_table = dict(zip(indirect, tables, strict=False))
    frames = {0: Frame()}
    pending = [0]
    while pending:
        line = listing[index[pending.pop()]]
        frame = _after(line, frames[line.offset])
        for target in by_table.get(line.offset) or _successors(line):
            if target not in index:
                raise _lost(line, f"no instruction starts at {target:#x}")
            if target not in frames:
                frames[target] = frame
                pending.append(target)
            elif frames[target] != frame:
                raise _lost(line, f"on another path the stack differs at {target:#x}")
    return frames


def _is_indirect(line: Line) -> bool:
    return line.text.startswith("jmp ") and not JUMP.fullmatch(line.text)


def _successors(line: Line) -> Iterator[int]:
    mnemonic = line.text.partition(" ")[0]
    if jump := JUMP.fullmatch(line.text):
        yield int(jump[2], 16)
    if mnemonic not in ("jmp", "ret"):
        yield line.offset + len(line.data)


def _after(line: Line, frame: Frame) -> Frame:
    mnemonic, _, rest = line.text.partition(" ")
    operand, _, amount = rest.partition(", ")
    if mnemonic == "push":
        grown = replace(frame, cfa=frame.cfa + WORD)
        new = operand in _CALLEE_SAVED and operand not in dict(frame.saved)
        return replace(grown, saved=(*frame.saved, (operand, grown.cfa))) if new else grown
    if mnemonic == "pop":
        left = tuple(entry for entry in frame.saved if entry != (operand, frame.cfa))
        return Frame(frame.cfa - WORD, left)
    if mnemonic in ("sub", "add") and operand == "rsp" and amount.isdecimal():
        cfa = frame.cfa + (int(amount) if mnemonic == "sub" else -int(amount))
        return Frame(cfa, tuple(entry for entry in frame.saved if entry[1] <= cfa))
    if mnemonic in ("leave", "enter") or (operand == "rsp" and mnemonic not in ("cmp", "test")):
        raise _lost(line, "only push, pop, and add or sub of a number may move rsp")
    return frame


def _lost(line: Line, why: str) -> Unimplemented:
    return Unimplemented(f"no unwind information for {line.text} at {line.offset:#x}: {why}")


class Change(NamedTuple):
    """What a row changes: the new CFA - rsp or 0, registers saved since with their places, registers restored."""

    offset: int
    cfa: int
    saved: tuple[tuple[str, int], ...]
    restored: tuple[str, ...]


def changes(listing: Sequence[Line], tables: Tables = ()) -> list[Change]:
    """The rows after the first, each as what differs from the row before."""
    found = []
    before = Frame()
    for offset, frame in rows(listing, tables)[1:]:
        cfa = frame.cfa if frame.cfa != before.cfa else 0
        saved = tuple(entry for entry in frame.saved if entry not in before.saved)
        restored = tuple(name for name, _ in before.saved if name not in dict(frame.saved))
        found.append(Change(offset, cfa, saved, restored))
        before = frame
    return found


class EhFrame(NamedTuple):
    """The section's bytes, and where in them the int32 distance to the start of the code belongs."""

    data: bytes
    start_field: int


def eh_frame(listing: Sequence[Line], tables: Tables = ()) -> EhFrame:
    """One CIE and one FDE, which covers the code of the listing."""
    cie = bytes((1,)) + b"zR\0" + uleb(1) + _sleb(-WORD) + uleb(RETURN_ADDRESS) + bytes((1, _PC_RELATIVE_INT32))
    cie += bytes((_DEF_CFA, NUMBERS["rsp"], WORD, _OFFSET | RETURN_ADDRESS, 1))
    head = _entry(bytes(4) + cie)
    end = listing[-1].offset + len(listing[-1].data)
    program = b"".join(_instructions(changes(listing, tables)))
    to_cie = (len(head) + 4).to_bytes(4, "little")  # from this field back to the CIE at 0
    fde = _entry(to_cie + bytes(4) + end.to_bytes(4, "little") + b"\0" + program)
    return EhFrame(head + fde, len(head) + 8)


def _entry(body: bytes) -> bytes:
    body += bytes((_NOP,)) * (-(len(body) + 4) % WORD)
    return len(body).to_bytes(4, "little") + body


def _instructions(changed: Sequence[Change]) -> Iterator[bytes]:
    here = 0
    for offset, cfa, saved, restored in changed:
        yield _advance(offset - here)
        here = offset
        if cfa:
            yield bytes((_DEF_CFA_OFFSET,)) + uleb(cfa)
        for name, place in saved:
            yield bytes((_OFFSET | NUMBERS[name],)) + uleb(place // WORD)
        for name in restored:
            yield bytes((_RESTORE | NUMBERS[name],))


def _advance(distance: int) -> bytes:
    if distance < 0x40:
        return bytes((_ADVANCE | distance,))
    for code, size in ((_ADVANCE_1, 1), (_ADVANCE_2, 2), (_ADVANCE_4, 4)):
        if distance < 1 << 8 * size:
            return bytes((code,)) + distance.to_bytes(size, "little")
    raise Unimplemented(f"a kernel of {distance} bytes is too large for unwind information")


def _sleb(value: int) -> bytes:
    """Signed LEB128 of a number from -64 to 63."""
    return bytes((value & 0x7F,))
