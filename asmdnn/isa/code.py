"""What the assembler makes: bytes, and lines that say what they are."""

from collections.abc import Callable
from typing import Any, NamedTuple

from asmdnn.isa.operands import Register
from asmdnn.notebook import html_of
from asmdnn.records import dataclass, field

Holders = tuple[tuple[Register, str], ...]  # registers that are taken, and what for


class Detail(NamedTuple):
    """What `asmdnn explain` says about an instruction besides.

    operands: of a jump to a label, the label.  effect: a formula on names, see naming.py.  path: the file of `source`.
    """

    mnemonic: str = ""
    operands: tuple[Any, ...] = ()
    effect: str = ""
    holders: Holders = ()
    path: str = ""


class Line(NamedTuple):
    """One instruction of a listing: where it is, its bytes, its text, what it is for and who emitted it."""

    offset: int
    data: bytes
    text: str
    role: str
    source: str
    detail: Detail = Detail()


@dataclass(frozen=True)
class Code:
    """Machine code with its constants after it, valid at every address that is a multiple of 64.

    code_bytes: of the instructions.  lines: finds the listing, and keeps what it found.  tables: the offsets that each
    jump by a table may go to, in the order of these jumps.
    """

    data: bytes
    code_bytes: int
    lines: Callable[[], tuple[Line, ...]] | None = field(default=None, compare=False, repr=False)
    tables: tuple[tuple[int, ...], ...] = ()

    @property
    def listing(self) -> tuple[Line, ...] | None:
        """Every instruction, written when it is first asked for; None if the assembler was made without."""
        return self.lines() if self.lines else None

    def _repr_html_(self) -> str:
        return html_of(self)
