"""How wide the terminal is and whether it has colours, and help that fits into it."""

import os
import re
import sys
import textwrap
from typing import Final, TextIO

from asmdnn import environment

LEAST_COLUMNS: Final = 40  # narrower help would be a word a line
_HANGING: Final = re.compile(r" *\S.*?\S {2,}|\w+: +| *")  # an option and the blanks after it, "Example: ", or blanks


def columns_of(stream: TextIO) -> int | None:
    """The columns of the terminal that `stream` writes to, as they are now; None for a pipe or a file."""
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except OSError:
        return None


COLOURS: Final = {"good": "32", "bad": "31", "soft": "2"}  # of ANSI's SGR: green, red, faint


def has_colours() -> bool:
    """On a terminal only, and not where NO_COLOR is set (https://no-color.org)."""
    return sys.stdout.isatty() and not environment.text("NO_COLOR") and environment.text("TERM") != "dumb"


def coloured(text: str, colour: str) -> str:
    """The text in one of COLOURS, where standard output shows them; as it is elsewhere, and for the colour ""."""
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if colour and has_colours() else text


def show_help(text: str) -> None:
    """Print help, its long lines folded if standard output is a terminal."""
    columns = columns_of(sys.stdout)
    print(fold(text, max(LEAST_COLUMNS, columns)) if columns else text)


def fold(text: str, columns: int) -> str:
    """Each line longer than `columns` as several, the later ones under the description that the first begins."""
    return "\n".join(part for line in text.splitlines() for part in _fold(line, columns))


def _fold(line: str, columns: int) -> list[str]:
    if len(line) <= columns:
        return [line]
    start = _HANGING.match(line)
    indent = start.end() if start and start.end() <= columns // 2 else 4
    later = " " * indent
    return textwrap.wrap(line, columns, subsequent_indent=later, break_long_words=False, break_on_hyphens=False)
