"""Stretches of straight code that were emitted before: copied, not emitted again.

Kernels of one family have most of their code in common: the body of a loop, or what happens to a register block after
it.  To emit an instruction takes microseconds, to copy a kilobyte less than that.  So a generator may say what a
stretch depends on (`Assembler.stretch`), and gets what the same code was before.  What it need not say is known here:
which registers are taken, and what for, and how much of the stack.

The bytes are those that would be emitted: constants are added to the pool in the same order, and distances to them are
set anew.  A stretch is kept only if it is straight (no label, no jump), leaves registers taken as it found them, and
takes no stack.
"""

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from asmdnn.isa.layout import Piece
from asmdnn.isa.operands import Register
from asmdnn.isa.pool import Pool
from asmdnn.isa.registers import RegisterFile

LIMIT_BYTES: Final = 8 << 20  # of code that is kept in a process
KEPT_SHARE: Final = 0.5  # of the limit, what stays when it is reached: the stretches that came last
ENTRY_BYTES: Final = 2_000  # what Python keeps beside the code, about
_FIELD_BYTES: Final = 4

Constant = tuple[bytes, int]  # data, alignment


class CodeStretch(NamedTuple):
    """The bytes, the constants that they ask for, in order, and the registers that are taken in between.

    offsets: where the constants lie in the pool that the distances in `data` are for.  fixes: of each distance where it
    stands, and where its instruction ends.  referred: of each, which constant, and where in it.
    """

    data: bytes
    constants: tuple[Constant, ...]
    offsets: tuple[int, ...]
    fixes: tuple[tuple[int, int], ...]
    referred: tuple[tuple[int, int], ...]
    taken: tuple[frozenset[Register], ...]  # of each register file
    touches_upper: bool

    def paste(self, piece: Piece, pool: Pool, files: Sequence[RegisterFile]) -> None:
        """Add it to the end of a piece."""
        start = len(piece.data)
        piece.data += self.data
        offsets = tuple([pool.add(*constant) for constant in self.constants])
        piece.pool_fixes += [(start + place, start + end) for place, end in self.fixes]
        if offsets != self.offsets:
            for (place, _), (constant, offset) in zip(self.fixes, self.referred, strict=True):
                field = slice(start + place, start + place + _FIELD_BYTES)
                piece.data[field] = (offsets[constant] + offset).to_bytes(_FIELD_BYTES, "little", signed=True)
        for file, taken in zip(files, self.taken, strict=True):
            file.ever_taken |= taken


class Stretches:
    """Those of the process, of LIMIT_BYTES together.  Without a lock: each step is one operation of a dict."""

    def __init__(self) -> None:
        self._known: dict[Hashable, CodeStretch] = {}
        self._bytes = 0

    @property
    def count(self) -> int:
        return len(self._known)

    def get(self, key: Hashable) -> CodeStretch | None:
        return self._known.get(key)

    def put(self, key: Hashable, stretch: CodeStretch) -> None:
        self._known[key] = stretch
        self._bytes += len(stretch.data) + ENTRY_BYTES
        if self._bytes > LIMIT_BYTES:
            self._shrink()

    def clear(self) -> None:
        self._known.clear()
        self._bytes = 0

    def _shrink(self) -> None:
        """Forget the oldest."""
        entries = list(self._known.items())
        left = sum(len(stretch.data) + ENTRY_BYTES for _, stretch in entries)
        for key, stretch in entries:
            if left <= KEPT_SHARE * LIMIT_BYTES:
                break
            self._known.pop(key, None)
            left -= len(stretch.data) + ENTRY_BYTES
        self._bytes = left


STRETCHES: Final = Stretches()


class StretchRecorder:
    """What is emitted into a piece from here on; `finish` says it as a CodeStretch, or None if it cannot be kept."""

    def __init__(self, piece: Piece, pool: Pool, files: Sequence[RegisterFile]) -> None:
        self.piece, self.pool, self.files = piece, pool, files
        self.begin, self.fixes, self.asked = len(piece.data), len(piece.pool_fixes), len(pool.asked)
        self.found = [file.holders() for file in files]
        self.before = [file.ever_taken for file in files]
        for file in files:
            file.ever_taken = set()

    def finish(self, piece: Piece, files: Sequence[RegisterFile], touches_upper: bool) -> CodeStretch | None:
        """piece, files: those that the assembler has now."""
        taken = tuple(frozenset(file.ever_taken) for file in self.files)
        for file, before in zip(self.files, self.before, strict=True):
            file.ever_taken |= before
        holders = [file.holders() for file in files]
        if piece is not self.piece or holders != self.found or piece.label_fixes:
            return None
        constants = list(dict.fromkeys(self.pool.asked[self.asked :]))
        fixes, referred = [], []
        for place, end in piece.pool_fixes[self.fixes :]:
            distance = int.from_bytes(piece.data[place : place + _FIELD_BYTES], "little", signed=True)
            found = self.pool.constant_at(distance)
            if found is None:
                return None
            if found[0] not in constants:  # asked for before, and there whenever this is pasted
                constants.append(found[0])
            fixes.append((place - self.begin, end - self.begin))
            referred.append((constants.index(found[0]), found[1]))
        offsets = tuple(self.pool.add(*constant) for constant in constants)
        data = bytes(piece.data[self.begin :])
        return CodeStretch(
            data=data, constants=tuple(constants), offsets=offsets, fixes=tuple(fixes), referred=tuple(referred),
            taken=taken, touches_upper=touches_upper,
        )  # fmt: skip
