"""What a kernel begins and ends with: registers that it saves and restores, room on the stack."""

from collections.abc import Sequence
from typing import Any, Final

from asmdnn.isa.encoder import encoder_of
from asmdnn.isa.layout import Piece
from asmdnn.isa.notes import Notes
from asmdnn.isa.operands import Register, rsp

Written = tuple[Any, ...]  # an instruction: the mnemonic and the operands
_WORD_BYTES: Final = 8


def ends_of(
    saved: Sequence[Register], stack_bytes: int, calls: bool, touches_upper: bool
) -> tuple[list[Written], list[Written], int]:
    """(what saves, what restores, how far above rsp the return address is then).  calls: rsp is a multiple of 16
    after it; stack_bytes is one, too."""
    # RET's address and the saved registers are on the stack; one more slot makes an even number of them
    padding = (_WORD_BYTES if calls and len(saved) % 2 == 0 else 0) + stack_bytes
    save: list[Written] = [("PUSH", reg) for reg in saved]
    restore: list[Written] = [("POP", reg) for reg in reversed(saved)]
    if padding:
        save.append(("SUB", rsp, padding))
        restore.insert(0, ("ADD", rsp, padding))
    if touches_upper:
        restore.insert(0, ("VZEROUPPER",))
    return save, restore, padding + _WORD_BYTES * len(saved)


def fill(piece: Piece, instructions: Sequence[Written], notes: Notes | None, role: str) -> None:
    """The piece consists of these instructions; its first note says who wrote them."""
    data, found = bytearray(), []
    author = piece.notes[0] if piece.notes else -1
    for mnemonic, *operands in instructions:
        encoder = encoder_of(mnemonic)
        assert encoder is not None
        if notes:
            found.append(notes.add_apart(len(data), mnemonic, tuple(operands), role, author))
        data += encoder.choose(operands).encode(operands)
    piece.data, piece.notes = data, found
