"""Who emits an instruction.

The line of a frame takes Python a walk through the table of lines of its code, longer than all else that is noted.  So
the instruction of Python where a frame stands is noted, and its line is looked up when a listing is asked for.
"""

from bisect import bisect_right
from functools import lru_cache
from os.path import dirname
from types import CodeType
from typing import Final

_PACKAGE: Final = dirname(dirname(__file__))
_OWN: Final = (f"{_PACKAGE}/isa/", f"{_PACKAGE}/asm/")  # who writes instructions for others
_KEPT: Final = 64  # tables of lines; a listing asks for those of few functions at a time


def is_own(code: CodeType) -> bool:
    """Whether this is code of the assembler: a helper here, and not the generator that calls it."""
    return code.co_filename.startswith(_OWN) or code.co_filename.endswith("contextlib.py")


def line_at(code: CodeType, place: int) -> int:
    """The line of `place`, an offset into the code's bytes (a frame's `f_lasti`)."""
    starts, lines = _lines_of(code)
    return lines[max(bisect_right(starts, place) - 1, 0)]


@lru_cache(_KEPT)
def _lines_of(code: CodeType) -> tuple[list[int], list[int]]:
    """Where each run of bytes begins, and its line; bytes without a line have that before them."""
    starts, lines, last = [], [], code.co_firstlineno
    for start, _, line in code.co_lines():
        last = line or last
        starts.append(start)
        lines.append(last)
    return starts, lines
