"""What the assembler makes: bytes, and lines that say what they are."""

from typing import Any, NamedTuple

from asmdnn.isa.operands import Register
from asmdnn.notebook import html_of
from asmdnn.records import dataclass

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


@dataclass(frozen=True, slots=True)
class Code:
    """Machine code with its constants after it, valid at every address that is a multiple of 64.

    `listing` covers every instruction when the assembler was asked for it, else it is None.  `tables` are the offsets
    that each jump by a table may go to, in the order of these jumps.
    """

    data: bytes
    listing: tuple[Line, ...] | None
    tables: tuple[tuple[int, ...], ...] = ()

    def _repr_html_(self) -> str:
        return html_of(self)
