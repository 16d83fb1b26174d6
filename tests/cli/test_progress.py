"""The bar is drawn on a terminal only, within its width, and leaves nothing after."""

import io
import os

import pytest

from asmdnn.cli.progress import WIPE, Progress


class Terminal(io.StringIO):
    """A terminal with so many columns, as its device would say."""

    columns = 60

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 12345


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    found = Terminal()
    monkeypatch.setattr("os.get_terminal_size", lambda file: os.terminal_size((found.columns, 24)))
    return found


def test_nothing_in_a_pipe() -> None:
    stream = io.StringIO()
    with Progress(3, stream) as bar:
        bar.update(1, "first")
        bar.clear()
    assert stream.getvalue() == ""


def test_bar_on_a_terminal(terminal: Terminal) -> None:
    with Progress(4, terminal) as bar:
        bar.update(1, "a label that is much longer than the rest of the line has room for")
        drawn = terminal.getvalue()
        bar.update(4, "end")
    assert "\n" not in terminal.getvalue()
    assert drawn.startswith("[###...........] 1/4 0:00 a label")
    assert len(drawn) == 59  # one column less than the terminal has
    assert terminal.getvalue().endswith(WIPE)


def test_the_bar_follows_a_resized_terminal(terminal: Terminal) -> None:
    with Progress(2, terminal) as bar:
        for columns in (100, 40, 20, 80):
            terminal.columns = columns
            before = len(terminal.getvalue())
            bar.update(1, "label " * 30)
            drawn = terminal.getvalue()[before:].removeprefix(WIPE)
            assert len(drawn) == (columns - 1 if columns > 20 else 0)


@pytest.mark.parametrize(("total", "columns"), [(0, 80), (3, 20)])
def test_no_bar_without_work_or_room(terminal: Terminal, total: int, columns: int) -> None:
    terminal.columns = columns
    with Progress(total, terminal) as bar:
        bar.update(0, "x")
    assert terminal.getvalue() == ""
