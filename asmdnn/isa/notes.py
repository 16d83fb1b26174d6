"""What is noted while instructions are emitted, and read where a listing is asked for.

Most functions run and are never read, while the words of a listing take ten times an instruction.  So an instruction
leaves only what cannot be found out later, in a list of plain values: an object for each would be the larger part of
what writing it takes.  `Notes.detail` goes through all of them in their order, since names of registers change while
code is written.
"""

from collections.abc import Callable, Mapping, Sequence
from sys import _getframe
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

from asmdnn.forking import importing
from asmdnn.isa.callers import is_own, line_at
from asmdnn.isa.code import Detail, Holders
from asmdnn.isa.encoder import text_of
from asmdnn.isa.label import Label
from asmdnn.isa.memory_operand import Pointer
from asmdnn.isa.operands import Register
from asmdnn.isa.registers import RegisterFile

_FIELDS: Final = 7  # of a note in the log


class Note(NamedTuple):
    """An instruction at `start` of its piece.  author: the code that wrote it, and `place` in its bytes.
    number: where it stands in the log, -1 if nowhere."""

    start: int
    mnemonic: str
    operands: tuple[Any, ...] = ()
    role: str = ""
    author: CodeType | None = None
    place: int = 0
    holders: Holders = ()
    number: int = -1

    @property
    def text(self) -> str:
        """In Intel syntax; of a jump to a label without the label."""
        return self.mnemonic.lower() if self.target else text_of(self.mnemonic, self.operands)

    @property
    def target(self) -> Label | None:
        """Where it jumps to."""
        first = self.operands[0] if self.operands else None
        return first if isinstance(first, Label) else None

    @property
    def path(self) -> str:
        return self.author.co_filename if self.author else ""

    @property
    def line(self) -> int:
        """Of the file that wrote it."""
        return line_at(self.author, self.place) if self.author else 0

    @property
    def source(self) -> str:
        """File and line, as a listing says them; empty where nobody is known."""
        return f"{self.path.rpartition('/')[2]}:{self.line}" if self.author else ""


class Notes:
    """Those of an assembler.  files: the register files it has now.  fixed: registers that always hold the same."""

    def __init__(self, files: Callable[[], Sequence[RegisterFile]], fixed: Mapping[Register, str]) -> None:
        self._files, self._fixed = files, tuple(fixed.items())
        self._holders: Holders | None = None  # None: something was taken or freed
        self._is_own: dict[CodeType, bool] = {}
        self._log: list[Any] = []  # the fields of each note; without a mnemonic, what happens to names
        self._apart: set[int] = set()  # notes of what is written at the end, where names are those of the CPU
        self._effects: dict[int, str] | None = None  # by number, once asked for; of two threads both find the same

    def add(self, start: int, mnemonic: str, operands: tuple[Any, ...], role: str) -> int:
        """The number of an instruction that is emitted now.  It is its innermost caller's outside the assembler."""
        frame = _getframe(2)  # the frames of this function and of who calls it are the assembler's
        code = frame.f_code
        if self._is_own.get(code, True):
            frame = self._author(frame)
            code = frame.f_code
        log = self._log
        number = len(log)
        log += (start, mnemonic, operands, role, code, frame.f_lasti, self._holders or self._find_holders())
        return number

    def _author(self, frame: FrameType) -> FrameType:
        """The innermost frame from here on that is not the assembler's, or the outermost."""
        known = self._is_own
        while known.get(frame.f_code, True):
            if frame.f_code not in known:
                known[frame.f_code] = is_own(frame.f_code)
            elif frame.f_back is None:
                break
            else:
                frame = frame.f_back
        return frame

    def add_apart(self, start: int, mnemonic: str, operands: tuple[Any, ...], role: str, after: int) -> int:
        """The number of an instruction that is written at the end, for who wrote the note `after`; -1 for nobody."""
        number = len(self._log)
        author = self._log[after + 4 : after + _FIELDS] if after >= 0 else (None, 0, ())
        self._log += (start, mnemonic, operands, role, *author)
        self._apart.add(number)
        return number

    def at(self, number: int) -> Note:
        """That note."""
        return Note._make((*self._log[number : number + _FIELDS], number))

    def forget_holders(self) -> None:
        """Registers were taken or freed, or there are other register files now."""
        self._holders = None

    def _find_holders(self) -> Holders:
        files = self._files()
        for file in files:
            file.on_change = self.forget_holders
        self._holders = found = (*self._fixed, *(held for file in files for held in file.holders()))
        return found

    def call(self, operand: Register | Pointer, name: str) -> None:
        """`operand` holds `name` from here on, as naming.py says."""
        self._log += (0, "", (operand, name), "", None, 0, ())

    def forget_values(self) -> None:
        """Here the code may be reached from elsewhere."""
        self._log += (0, "", (), "", None, 0, ())

    def detail(self, note: Note) -> Detail:
        """What `asmdnn explain` says; no more notes may follow."""
        self._effects = effects = self._effects or self._find_effects()
        return Detail(note.mnemonic, note.operands, effects[note.number], note.holders, note.path)

    def _find_effects(self) -> dict[int, str]:
        with importing():
            from asmdnn.isa.naming import Naming  # most processes read no listing
        naming, found = Naming(), {}
        for number in range(0, len(self._log), _FIELDS):
            note = self.at(number)
            if number in self._apart:
                found[number] = Naming().effect(note.mnemonic, note.operands)
            elif note.mnemonic:
                naming.hold(note.holders)
                found[number] = naming.effect(note.mnemonic, note.operands)
            elif note.operands:
                naming.call(*note.operands)
            else:
                naming.forget_values()
        return found
