"""Several phases: made equally wide, merged into one, and the barriers between them."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from asmdnn.generators.contract import KernelSpec
from asmdnn.planning.phase import NOTHING, Int64, Phase, Repeat
from asmdnn.records import altered, replace


def of_one_width(phases: Sequence[Phase]) -> tuple[Phase, ...]:
    """The phases with as many arguments as the one that has most, since one executor walks all; new ones are NOTHING.

    Arrays that phases shared stay shared.
    """
    width = max(len(phase.arguments) for phase in phases)
    narrow = {id(phase.records): phase.records for phase in phases if len(phase.arguments) < width}
    known = dict(zip(narrow, widened([*narrow.values()], 1 + width), strict=True))
    found = []
    for phase in phases:
        missing = width - len(phase.arguments)
        if missing:
            wide = known[id(phase.records)]
            repeats = tuple(Repeat(times, (*strides, *[0] * missing)) for times, strides in phase.repeats)
            phase = altered(phase, arguments=phase.arguments + (NOTHING,) * missing, records=wide, repeats=repeats)
        found.append(phase)
    return tuple(found)


def widened(narrow: Sequence[Int64], width: int) -> Iterator[Int64]:
    """Records with so many words, the new ones 0; read-only.  They are parts of one array, since the system clears the
    pages of a large one in far less time than those of many."""
    whole, at = np.empty((sum(map(len, narrow)), width), np.int64), 0
    for records in narrow:
        rows, words = records.shape
        wide = whole[at : at + rows]
        row = np.dtype((np.void, words * records.itemsize))  # copied whole: twice as fast as number by number
        source = np.ascontiguousarray(records)
        starts = np.ndarray(rows, row, wide, strides=wide.strides[:1])
        starts[:] = np.ndarray(rows, row, source, strides=source.strides[:1])
        wide[:, words:] = 0
        wide.setflags(write=False)
        at += rows
        yield wide


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
        has_barrier = not (phase.continues or phase.independent or (only_alone and phase.alone))
        only_alone = phase.alone and (only_alone or has_barrier or before is None)
        found.append(has_barrier)
    return found


def reads_where_written(phase: Phase, i: int, j: int) -> bool:
    """Whether each record reads argument i, and has it at the same place as argument j, which it writes."""
    starts = phase.arguments[i].offset_bytes == phase.arguments[j].offset_bytes
    strides = all(strides[i] == strides[j] for _, strides in phase.repeats)
    same = starts and strides and np.array_equal(phase.records[:, 1 + i], phase.records[:, 1 + j])
    return same and all(reads(spec, i) for spec in phase.kernels)


def reads(spec: KernelSpec, argument: int) -> bool:
    """Whether a kernel claims to: those that leave partial sums in a result do not read what is added in the end."""
    footprint = spec.footprint()
    return footprint is not None and any(read.argument == argument for read in footprint.reads)


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
