"""Who emits an instruction."""

import sys
from pathlib import Path
from types import CodeType
from typing import Final

_PACKAGE: Final = Path(__file__).parents[1]
_OWN: Final = (str(_PACKAGE / "isa"), str(_PACKAGE / "asm"))  # who writes instructions for others


class Callers:
    """Finds the innermost caller outside the assembler: the generator, not a helper here.  What it has met it knows."""

    def __init__(self) -> None:
        self._is_own: dict[CodeType, bool] = {}

    def find(self) -> tuple[CodeType | None, int]:
        """Its code and line; None if there is no such caller.  Asked through Notes: three frames are ours."""
        known, frame = self._is_own, sys._getframe(3)
        while frame is not None:
            code = frame.f_code
            is_own = known.get(code)
            if is_own is None:
                is_own = known[code] = code.co_filename.startswith(_OWN) or code.co_filename.endswith("contextlib.py")
            if not is_own:
                return code, frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        return None, 0
