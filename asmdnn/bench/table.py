"""The table of `asmdnn bench`: whole where the output is kept, and cut to what a terminal has room for.

On a narrow terminal columns go, in the order of `Column.rank`, until the problem has room for its name; a reason goes
to a line of its own.
"""

from collections.abc import Callable
from typing import Final

from asmdnn.bench.driver import AnyDriver
from asmdnn.bench.report import Record
from asmdnn.records import dataclass

PROBLEM_WIDTH: Final = 42
LEAST_PROBLEM_WIDTH: Final = 24
WHOLE: Final = 1000  # columns of a line that nobody has to see at once
RESULT: Final = "unimplemented"  # the longest


@dataclass(frozen=True, slots=True)
class Column:
    """A column between the problem and the result; the greatest `rank` is the first to go.

    show: the cell of a record, and whether it is a share of a copy's speed.
    """

    title: str
    width: int
    rank: int
    show: Callable[[Record, bool], str]
    align: str = ">"

    def place(self, cell: str) -> str:
        """The cell at its side of the column."""
        return f"{cell:{self.align}{self.width}}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else format(value, f".{digits}f")


def _percent(value: float | None) -> str:
    return _number(None if value is None else 100 * value, 0)


COLUMNS: Final = (
    Column("implementation", 24, 5, lambda record, is_copy: record.impl or "-", "<"),
    Column("us", 10, 0, lambda record, is_copy: _number(record.us, 1)),
    Column("GFLOP/s", 8, 1, lambda record, is_copy: _number(record.bandwidth_gbs if is_copy else record.gflops, 1)),
    Column("% peak", 6, 3, lambda record, is_copy: _percent(record.copy_fraction if is_copy else record.peak_fraction)),
    Column("peer us", 10, 4, lambda record, is_copy: _number(record.peer_us, 1)),
    Column("speedup", 7, 2, lambda record, is_copy: _number(record.speedup, 2)),
    Column("at p10", 6, 6, lambda record, is_copy: _number(record.low_speedup, 2)),
    Column("error/tol", 9, 2, lambda record, is_copy: _number(record.error_ratio, 3)),
)
OF_BYTES: Final = {"GFLOP/s": "GB/s", "% peak": "% copy"}  # what the columns say where bytes are what counts


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns that `width` has room for, and the width that is left for the problem."""

    columns: tuple[Column, ...]
    problem_width: int

    @classmethod
    def of(cls, width: int) -> "TableLayout":
        """The layout of a terminal with `width` columns."""
        columns = list(COLUMNS)
        while columns and width - cls._taken(columns) < LEAST_PROBLEM_WIDTH:
            columns.remove(max(columns, key=lambda column: column.rank))
        return cls(tuple(columns), max(LEAST_PROBLEM_WIDTH, min(PROBLEM_WIDTH, width - cls._taken(columns))))

    @staticmethod
    def _taken(columns: list[Column]) -> int:
        return sum(1 + column.width for column in columns) + len(f"  {RESULT}")

    def header(self, driver: AnyDriver) -> str:
        """The line above the rows of one driver."""
        titles = [OF_BYTES.get(c.title, c.title) if driver.bandwidth_bound else c.title for c in self.columns]
        return self._line("problem", titles, "result")

    def row(self, record: Record) -> str:
        """The record's row; a failure adds its reason and the arguments that repeat it."""
        is_copy = record.copy_fraction is not None
        title, room = record.title, self.problem_width
        if len(title) > room:
            title = title[: room - 3] + "..."
        line = self._line(title, [column.show(record, is_copy) for column in self.columns], record.status)
        if record.reason:
            line += f": {record.reason}" if self.columns == COLUMNS else f"\n    {record.reason}"
        if record.ok is False and record.args:
            line += f"\n    asmdnn bench {record.args}"
        return line

    def _line(self, problem: str, cells: list[str], result: str) -> str:
        places = [column.place(cell) for column, cell in zip(self.columns, cells, strict=True)]
        return " ".join([f"{problem:<{self.problem_width}}", *places]) + f"  {result}"
