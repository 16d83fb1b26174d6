"""Plans of the parts of a deconvolution as one: the parts take turns, so that all read weights and source together.

A part writes every other pixel of dst.  Where dst does not stay in L3, short turns have its neighbours written while
those are near.
"""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from asmdnn.generators.dot.conv_shape import TAPS, WEIGHTS
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Phase
from asmdnn.planning.phases import merged
from asmdnn.planning.plan import Plan
from asmdnn.planning.tuning import ConvolutionTuning
from asmdnn.records import replace


def turns_of(dst: MemoryDesc, tuning: ConvolutionTuning) -> int:
    """How often a part's turn comes while it uses a panel of weights."""
    return tuning.part_turns if dst.size_bytes > tuning.part_turns_bytes else 1


def joined(plans: Sequence[Plan], turns: int) -> Plan:
    """One plan of several with as many phases, which write different pixels of dst.  turns: for a panel of weights."""
    if len(plans) == 1:
        return plans[0]
    starts = accumulate((plan.constants["taps"].nbytes for plan in plans), initial=0)
    moved = [[taps_moved(phase, start) for phase in plan.phases] for plan, start in zip(plans, starts, strict=False)]
    phases = tuple(interleaved(together, turns) for together in zip(*moved, strict=True))
    taps = np.concatenate([plan.constants["taps"] for plan in plans])
    return replace(plans[0], phases=phases, constants={"taps": taps})


def taps_moved(phase: Phase, start_bytes: int) -> Phase:
    """The phase, with its tap lists at a later place in the constant."""
    records = phase.records.copy()
    records[:, 1 + TAPS] += start_bytes
    return replace(phase, records=records)


def interleaved(phases: Sequence[Phase], turns: int) -> Phase:
    """The records of all, as many from each in turn as use one panel of weights, in so many turns."""
    weights = phases[0].records[:, 1 + WEIGHTS]
    runs = turns * (1 + int(np.count_nonzero(np.diff(weights))))
    turn = [np.arange(len(phase.records)) * runs // len(phase.records) for phase in phases]
    order = np.argsort(np.concatenate(turn), kind="stable")
    together = merged(phases)
    return replace(phases[0], kernels=together.kernels, records=together.records[order], cycles=together.cycles[order])
