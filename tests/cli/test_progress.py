"""The bar is drawn on a terminal only, within its width, and leaves nothing behind."""

import io

import pytest

from asmdnn.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_in_a_pipe() -> None:
    stream = io.StringIO()
    with Progress(3, stream) as bar:
        bar.update(1, "first")
        bar.clear()
    assert stream.getvalue() == ""


def test_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    stream = Terminal()
    with Progress(4, stream) as bar:
        bar.update(1, "a label that is much longer than the rest of the line has room for")
        drawn = stream.getvalue()
        bar.update(4, "end")
    assert "\n" not in stream.getvalue()
    assert drawn.startswith("\r[###...........] 1/4 0:00 a label")
    assert len(drawn) == 60  # the carriage return and one column less than the terminal has
    assert stream.getvalue().endswith("\r" + " " * 59 + "\r")


@pytest.mark.parametrize(("total", "columns"), [(0, "80"), (3, "20")])
def test_no_bar_without_work_or_room(monkeypatch: pytest.MonkeyPatch, total: int, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    stream = Terminal()
    with Progress(total, stream) as bar:
        bar.update(0, "x")
    assert stream.getvalue() == ""
