"""Who emits an instruction."""

import sys
from pathlib import Path
from types import FrameType
from typing import Final

_PACKAGE: Final = Path(__file__).parents[1]
_OWN: Final = (str(_PACKAGE / "isa"), str(_PACKAGE / "asm"))  # who writes instructions for others


def generator_line() -> tuple[str, int]:
    """File and line of the innermost caller outside the assembler: the generator's, not that of a helper here."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (
        frame.f_code.co_filename.startswith(_OWN) or frame.f_code.co_filename.endswith("contextlib.py")
    ):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else ("", 0)
