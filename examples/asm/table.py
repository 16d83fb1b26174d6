"""The table that each script ends with."""

from timeit import repeat
from typing import Any

from asmdnn.asm import Timing

LEAST_SECONDS = 2e-3  # of a round
Rows = dict[str, "Timing | float"]


def microseconds(call: Any, rounds: int = 7) -> float:
    """Of one call from Python, the least of some rounds."""
    count = 1
    while (seconds := min(repeat(call, number=count, repeat=2))) < LEAST_SECONDS:
        count *= 4 if seconds < LEAST_SECONDS / 4 else 2
    return min(repeat(call, number=count, repeat=rounds)) / count * 1e6


def show(title: str, rows: Rows) -> None:
    """One line each, in microseconds a call, and how often the first is as fast."""
    found = {name: row.ns / 1e3 if isinstance(row, Timing) else row for name, row in rows.items()}
    first = next(iter(found.values()))
    print(f"{title}\n" + "\n".join(f"  {name:34}{us:12.3f} us{us / first:9.2f} x" for name, us in found.items()))
