"""What planners choose by on the CPU at hand: its class's numbers, and those that `asmdnn tune --machine` found better.

They are kept as JSON, by the CPU's name and the level of f32 vectors, in the folder of tuned plans.  A row holds for
the numbers of the class that it was measured beside: when the sources of tunings change, it is not found.
"""

import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from asmdnn.files import content_of, replace_file
from asmdnn.forking import importing
from asmdnn.isa.cpu import cpu_name
from asmdnn.isa.vectors import f32_level
from asmdnn.jit.digests import digest_of
from asmdnn.jit.trust import make_private
from asmdnn.jit.tuned_folder import has_any, look_again, tuned_directory
from asmdnn.planning.host import detected
from asmdnn.planning.machine import Machine

if TYPE_CHECKING:  # what runs from a pack plans nothing
    from asmdnn.planning.tuning import Tuning

FILE: Final = "machine.json"
MOST_BYTES: Final = 1 << 20
SOURCES: Final = ("tuning.py", "move_tuning.py", "product_tuning.py", "amd_rows.py", "of_classes.py", "candidates.py")
Row = Mapping[str, Any]  # numbers by name


def tuning_here(machine: Machine, isa: str) -> "Tuning":
    """What planners choose by on a machine: with a kept row, if it is the CPU at hand and has no tuning of its own."""
    tuning = machine.tuning_at(isa)
    if machine is not detected() or not has_any():
        return tuning
    with importing():
        from asmdnn.planning.candidates import with_number  # most processes have no row

    for name, value in _row(str(path()), f32_level(isa)).items():
        tuning = with_number(tuning, name, value)
    return tuning


def path() -> Path:
    return tuned_directory() / FILE


def kept(isa: str) -> Row:
    """The kept row of this CPU for the level of f32 vectors of `isa`, read now; empty if there is none."""
    with importing():
        import json

    level = f32_level(isa)
    try:
        data = content_of(path(), MOST_BYTES)
    except OSError:
        return {}
    with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
        entry = json.loads(data).get(cpu_name(), {}).get(level)
        if entry is None or entry["sources"] != sources():
            return {}
        return {name: _candidate(name, value) for name, value in entry["numbers"].items()}
    _warn(f"{path()} makes no sense and is ignored: run asmdnn tune --machine again, or remove the file.")
    return {}


def keep(isa: str, row: Row) -> None:
    """Store a row for this CPU, in the place of the one before; an empty one removes it.  Raises OSError."""
    with importing():
        import json

    table: dict[str, Any] = {}
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads(content_of(path(), MOST_BYTES))
        table = found if isinstance(found, dict) else {}
    of_cpu = table.get(cpu_name())
    levels = of_cpu if isinstance(of_cpu, dict) else {}
    levels.pop(f32_level(isa), None)
    if row:
        levels[f32_level(isa)] = {"sources": sources(), "numbers": {name: as_json(row[name]) for name in row}}
    table[cpu_name()] = levels
    make_private(str(path().parent))
    replace_file(path(), json.dumps(table, indent=1).encode(), mode=0o600)
    forget_row()


def remove() -> bool:
    """Remove all rows of all CPUs; whether there were any."""
    with suppress(OSError):
        os.unlink(path())
        forget_row()
        return True
    return False


def forget_row() -> None:
    """The next engine reads the file again."""
    _row.cache_clear()
    look_again()


def as_json(value: Any) -> Any:
    """A number of a tuning as JSON has it: one by distance is a list."""
    return [value.spread, value.quarter, value.whole] if hasattr(value, "spread") else value


@cache
def sources() -> str:
    """sha256 of the sources that say what the numbers of classes are."""
    return digest_of(Path(__file__).with_name(name) for name in SOURCES)


@cache
def _row(file: str, level: str) -> Row:
    return kept(level)


def _candidate(name: str, value: Any) -> Any:
    """The candidate that JSON has so.  Raises KeyError for what is none."""
    with importing():
        from asmdnn.planning.candidates import CANDIDATES

    return {repr(as_json(each)): each for each in CANDIDATES[name]}[repr(value)]


@cache
def _warn(message: str) -> None:
    """Once a process."""
    warnings.warn(message, RuntimeWarning, stacklevel=6)
