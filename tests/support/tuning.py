"""The library as if measurements had found other numbers."""

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import asmdnn as dnn
from asmdnn.planning.host import as_machine, best_isa, host
from asmdnn.planning.machine import Machine
from asmdnn.planning.tuning import Tuning


def with_numbers(tuning: Tuning, group: str, **numbers: Any) -> Tuning:
    """The tuning with other numbers of a group."""
    return replace(tuning, **{group: replace(getattr(tuning, group), **numbers)})


def tuned(group: str, **numbers: Any) -> AbstractContextManager[Machine]:
    """Inside the block, engines are for a machine like the host that has other numbers of a group."""
    machine = host()
    own = machine.tuning_at(best_isa(machine).name)
    return as_machine(replace(machine, own_tuning=with_numbers(own, group, **numbers)))


def by_whole_rows(engine: dnn.Engine) -> dnn.Engine:
    """The engine, where one to four rows of src go by whole rows of plain weights however few these are: as many as it
    takes otherwise are long to test."""
    return replace(engine, tuning=with_numbers(engine.tuning, "products", tiles_apart=1))
