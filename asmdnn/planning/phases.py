"""Several phases: merged into one, and the barriers between them."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np

from asmdnn.generators.contract import KernelSpec, TouchedArguments, touched_by
from asmdnn.planning.phase import Phase
from asmdnn.records import replace

MOST_KERNELS: Final = 1024  # whose arguments are known


def merged(phases: Sequence[Phase]) -> Phase:
    """One phase of the records of several without repeats, whose arguments are the same."""
    kernels = tuple(dict.fromkeys(spec for phase in phases for spec in phase.kernels))
    place = {spec: i for i, spec in enumerate(kernels)}
    records = np.concatenate([phase.records for phase in phases])
    records[:, 0] = np.concatenate([np.array([place[s] for s in x.kernels])[x.records[:, 0]] for x in phases])
    return Phase(kernels, phases[0].arguments, records, np.concatenate([phase.cycles for phase in phases]))


def sorted_by(phase: Phase, column: int) -> Phase:
    """The records of a phase without repeats by that number of theirs."""
    order = np.argsort(phase.records[:, column], kind="stable")
    return replace(phase, records=np.ascontiguousarray(phase.records[order]), cycles=phase.cycles[order])


def barriers_before(phases: Sequence[Phase]) -> list[bool]:
    """Whether a barrier stands before each phase.

    Not before one that continues or is independent, nor between phases that one thread runs alone.
    """
    found, only_alone = [], False
    for before, phase in pairwise((None, *phases)):
        assert phase is not None
        found.append(has_barrier(phase, only_alone))
        only_alone = phase.alone and (only_alone or found[-1] or before is None)
    return found


def has_barrier(phase: Phase, only_alone: bool) -> bool:
    """Whether a barrier stands before a phase; only_alone: one thread has run all since the last one."""
    return not (phase.continues or phase.independent or (only_alone and phase.alone))


def intervals(phases: Sequence[Phase]) -> list[list[Phase]]:
    """The phases from each barrier to the next."""
    found = list[list[Phase]]()
    for phase, has_barrier in zip(phases, barriers_before(phases), strict=True):
        if has_barrier or not found:
            found.append([])
        found[-1].append(phase)
    return found


def reads_where_written(phase: Phase, i: int, j: int) -> bool:
    """Whether each record that touches argument i or j reads i, and has it at the same place as j, which it writes."""
    starts = phase.arguments[i].offset_bytes == phase.arguments[j].offset_bytes
    if not starts or any(strides[i] != strides[j] for _, strides in phase.repeats):
        return False
    found = [arguments_of(spec) for spec in phase.kernels]
    touching = [each.touch(i) or each.touch(j) for each in found]
    records = phase.records[np.array(touching, np.bool_)[phase.records[:, 0]]]
    same = np.array_equal(records[:, 1 + i], records[:, 1 + j])
    return same and all(i in each.read for each, is_one in zip(found, touching, strict=True) if is_one)


@lru_cache(MOST_KERNELS)
def arguments_of(spec: KernelSpec) -> TouchedArguments:
    """Of a kernel.  Footprints have ranges for every row, if not for every element of a long sum, and shapes of a
    network have most kernels in common."""
    says = getattr(spec, "touched_arguments", None)
    return says() if says else touched_by(spec.footprint())


def may_be_overwritten(phases: Sequence[Phase], name: str, output: str) -> bool:
    """Whether an input of an output's descriptor is read where and when the output is written: each record of a phase
    that has one of them reads it, and writes the same place.  So no record reads what another one has written."""
    for phase in phases:
        old, new = ([i for i, view in enumerate(phase.arguments) if view.buffer == x] for x in (name, output))
        if len(old) != len(new) or len(old) > 1:
            return False
        if old and not reads_where_written(phase, old[0], new[0]):
            return False
    return True
