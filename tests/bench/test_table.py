"""The table of bench: columns in line, at any width, and nothing wider than the terminal."""

from dataclasses import replace

import pytest

from asmdnn.bench.drivers import driver_of
from asmdnn.bench.report import Record
from asmdnn.bench.table import COLUMNS, WHOLE, TableLayout

RECORD = Record("mb1ic3ih8oc4oh6kh3ph0", "net:conv", 2, "--conv mb1ic3ih8oc4oh6kh3ph0", "conv", "net:conv")
TIMED = replace(RECORD, status="passed", ok=True, us=100.0, peer="onednn", peer_us=200.0, speedup=2.0, impl="direct")
COPIED = replace(TIMED, driver="shuffle", bandwidth_gbs=12.25, copy_us=90.0, copy_fraction=0.9)
LONG = replace(TIMED, title="n" * 99)


@pytest.mark.parametrize("width", [WHOLE, 132, 100, 80, 60, 40])
def test_rows_line_up_with_the_header_and_fit(width: int) -> None:
    layout = TableLayout.of(width)
    lines = [layout.row(record) for record in (TIMED, LONG, COPIED)]
    lines += [layout.header(driver_of(name)) for name in ("conv", "shuffle")]
    assert len({line.rindex("  ") for line in lines}) == 1
    assert max(map(len, lines)) <= width
    assert len(layout.row(replace(LONG, status="unimplemented")).splitlines()[0]) <= width


def test_the_whole_table() -> None:
    layout = TableLayout.of(WHOLE)
    assert layout.columns == COLUMNS
    assert " 12.2     90 " in layout.row(COPIED)
    assert layout.row(TIMED).startswith("net:conv ")
    assert layout.row(replace(RECORD, status="skipped", reason="why")).endswith("skipped: why")
    assert layout.row(LONG).startswith("n" * 39 + "... ")


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (100, ["us", "GFLOP/s", "% peak", "peer us", "speedup", "error/tol"]),
        (80, ["us", "GFLOP/s", "speedup", "error/tol"]),
        (60, ["us", "GFLOP/s"]),
    ],
)
def test_a_narrow_terminal_keeps_what_counts(width: int, titles: list[str]) -> None:
    assert [column.title for column in TableLayout.of(width).columns] == titles


@pytest.mark.parametrize("width", [WHOLE, 80])
def test_a_failure_says_how_to_repeat_it(width: int) -> None:
    text = TableLayout.of(width).row(replace(RECORD, status="failed", ok=False, reason="wrong"))
    assert text.splitlines()[-1].strip() == f"asmdnn bench {RECORD.args}"
    assert ("failed: wrong" in text) == (width == WHOLE)
    assert "wrong" in text
