"""Several phases: as wide as one another, as one, and where threads meet between them."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from asmdnn.planning.phase import NOTHING, Int64, Phase, Repeat


def of_one_width(phases: Sequence[Phase]) -> tuple[Phase, ...]:
    """The phases with as many arguments as the one that has most, since one executor walks all; new ones are NOTHING.

    Arrays that phases shared stay shared.
    """
    width = max(len(phase.arguments) for phase in phases)
    known: dict[int, Int64] = {}
    widened = []
    for phase in phases:
        missing = width - len(phase.arguments)
        if missing:
            wide = known.get(id(phase.records))
            if wide is None:
                wide = known[id(phase.records)] = np.pad(phase.records, ((0, 0), (0, missing)))
            repeats = tuple(Repeat(times, (*strides, *[0] * missing)) for times, strides in phase.repeats)
            phase = replace(phase, arguments=phase.arguments + (NOTHING,) * missing, records=wide, repeats=repeats)
        widened.append(phase)
    return tuple(widened)


def merged(phases: Sequence[Phase]) -> Phase:
    """One phase of the records of several without repeats, whose arguments are the same."""
    kernels = tuple(dict.fromkeys(spec for phase in phases for spec in phase.kernels))
    place = {spec: i for i, spec in enumerate(kernels)}
    records = np.concatenate([phase.records for phase in phases])
    records[:, 0] = np.concatenate([np.array([place[s] for s in x.kernels])[x.records[:, 0]] for x in phases])
    return Phase(kernels, phases[0].arguments, records, np.concatenate([phase.cycles for phase in phases]))


def waits(phases: Sequence[Phase]) -> list[bool]:
    """Whether all threads meet before each phase.

    Not before one that continues or is apart, nor between phases that one thread runs alone.
    """
    found, only_alone = [], False
    for before, phase in pairwise((None, *phases)):
        assert phase is not None
        meets = not (phase.continues or phase.apart or (only_alone and phase.alone))
        only_alone = phase.alone and (only_alone or meets or before is None)
        found.append(meets)
    return found
