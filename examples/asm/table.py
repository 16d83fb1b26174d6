"""The table that each script ends with: time, cycles of the time stamp counter, and how often the first is as fast."""

from timeit import repeat
from typing import Any

import numpy as np

from asmdnn import asm
from asmdnn.asm import FunctionBuilder, Register, Timing

LEAST_SECONDS = 2e-3  # of a round
Rows = dict[str, "Timing | float"]


def microseconds(call: Any, rounds: int = 7) -> float:
    """Of one call from Python, the least of some rounds."""
    count = 1
    while (seconds := min(repeat(call, number=count, repeat=2))) < LEAST_SECONDS:
        count *= 4 if seconds < LEAST_SECONDS / 4 else 2
    return min(repeat(call, number=count, repeat=rounds)) / count * 1e6


def aligned(values: Any) -> Any:
    """A copy that starts at a multiple of 64 bytes, so that no row suffers for where numpy put it."""
    room = np.empty(values.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[:] = values
    return copy


def show(title: str, rows: Rows, elements: int = 1) -> None:
    """One line each: microseconds a call, cycles an element, and how often the first is as fast."""
    a_microsecond = ticks_of_a_microsecond()
    found = {name: row.ns / 1e3 if isinstance(row, Timing) else row for name, row in rows.items()}
    first = next(iter(found.values()))
    print(title)
    for name, us in found.items():
        print(f"  {name:34}{us:12.3f} us{us * a_microsecond / elements:12.2f} cycles{us / first:9.2f} x")


def ticks_of_a_microsecond() -> float:
    """How fast the time stamp counter runs, which is not always the clock of the core."""

    @asm.function("uint64_t count(uint64_t n)")
    def count(f: FunctionBuilder, n: Register) -> None:
        with f.steps(n, 1, "numbers"):
            pass
        f.ret(n)

    timing = count.bench(np.uint64(10_000))
    return timing.ticks / timing.ns * 1e3
