"""What is noted while instructions are emitted, and read where a listing is asked for.

Most functions run and are never read, while the words of a listing take ten times an instruction.  So an instruction
leaves a Note of what cannot be found out later; `Notes.detail` goes through all of them in their order, since names of
registers change while code is written.
"""

from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, Final, NamedTuple

from asmdnn.isa.callers import Callers
from asmdnn.isa.code import Detail, Holders
from asmdnn.isa.effects import effect_of_jump
from asmdnn.isa.encoder import text_of
from asmdnn.isa.label import Label
from asmdnn.isa.memory_operand import Pointer
from asmdnn.isa.naming import Naming
from asmdnn.isa.operands import Register
from asmdnn.isa.registers import RegisterFile

_NO_NUMBER: Final = -1
_new: Final = tuple.__new__  # half the time of a named tuple's own constructor


class Note(NamedTuple):
    """An instruction at `start` of its piece.  author, line: who wrote it.  number: its place among the assembler's."""

    start: int
    mnemonic: str
    operands: tuple[Any, ...] = ()
    role: str = ""
    author: CodeType | None = None
    line: int = 0
    holders: Holders = ()
    number: int = _NO_NUMBER

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
    def source(self) -> str:
        """File and line, as a listing says them; empty where nobody is known."""
        return f"{self.path.rpartition('/')[2]}:{self.line}" if self.author else ""


class Notes:
    """Those of an assembler.  files: the register files it has now.  fixed: registers that always hold the same."""

    def __init__(self, files: Callable[[], Sequence[RegisterFile]], fixed: Mapping[Register, str]) -> None:
        self._files, self._fixed = files, tuple(fixed.items())
        self._known: tuple[RegisterFile, ...] = ()
        self._callers = Callers()
        self._log: list[Note | tuple[Register | Pointer, str] | None] = []  # None: values are forgotten
        self._changes, self._holders = -1, self._fixed
        self._effects: list[str] | None = None  # of each entry, once asked for; of two threads both find the same

    def add(self, start: int, mnemonic: str, operands: tuple[Any, ...], role: str) -> Note:
        """Of an instruction that is emitted now."""
        changes = 0
        for file in self._known or self._find_files():
            changes += file.changes
        if changes != self._changes:
            self._changes = changes
            self._holders = (*self._fixed, *(held for file in self._known for held in file.holders()))
        author, line = self._callers.find()
        note = _new(Note, (start, mnemonic, operands, role, author, line, self._holders, len(self._log)))
        self._log.append(note)
        return note

    def forget_files(self) -> None:
        """There are other register files now."""
        self._known = ()

    def _find_files(self) -> Sequence[RegisterFile]:
        self._known = tuple(self._files())
        return self._known

    def call(self, operand: Register | Pointer, name: str) -> None:
        """`operand` holds `name` from here on, as naming.py says."""
        self._log.append((operand, name))

    def forget_values(self) -> None:
        """Here the code may be reached from elsewhere."""
        self._log.append(None)

    def detail(self, note: Note) -> Detail:
        """What `asmdnn explain` says; no more notes may follow."""
        if note.number == _NO_NUMBER:
            effect = _effect(note, Naming())
        else:
            self._effects = effects = self._effects or self._find_effects()
            effect = effects[note.number]
        return Detail(note.mnemonic, note.operands, effect, note.holders, note.path)

    def _find_effects(self) -> list[str]:
        """One for each entry of the log."""
        naming, found = Naming(), []
        for entry in self._log:
            if entry is None:
                naming.forget_values()
            elif isinstance(entry, Note):
                naming.hold(entry.holders)
                found.append(_effect(entry, naming))
                continue
            else:
                naming.call(*entry)
            found.append("")
        return found


def _effect(note: Note, naming: Naming) -> str:
    if note.target:
        return effect_of_jump(note.mnemonic, note.target.name)
    return naming.effect(note.mnemonic, note.operands)
