"""The library as if measurements had found other numbers."""

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

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
