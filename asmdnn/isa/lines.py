"""Cache lines: of every x86-64 CPU they have one size."""

from typing import Final

LINE_BYTES: Final = 64
