"""Where the records of phases are cut into parts, one a thread."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from asmdnn.planning.phase import Int64, Phase


def split(phases: Sequence[Phase], parts: int) -> list[Int64]:
    """For each phase int64[parts + 1]: the first record of every part, and the end; equal phases share the array."""
    if parts == 1:
        whole = {phase.count: np.array((0, phase.count), np.int64) for phase in phases}
        return [whole[phase.count] for phase in phases]
    heads = [i for i, phase in enumerate(phases) if not phase.continues] + [len(phases)]
    known: dict[tuple[object, ...], Int64] = {}
    found = []
    for head, end in pairwise(heads):
        family = phases[head:end]
        first = family[0]
        key = (first.alone, first.rounds, id(first.groups), *(id(phase.cycles) for phase in family))
        if key not in known:
            known[key] = bounds_of(family, parts)
        found += [known[key]] * (end - head)
    return found


def bounds_of(family: Sequence[Phase], parts: int) -> Int64:
    """Of phases that continue one another."""
    first = family[0]
    if first.alone:
        return np.array([0] + [first.count] * parts, np.int64)
    done = np.zeros(len(first.records) + 1, np.int64)
    np.cumsum(np.sum([phase.cycles for phase in family], axis=0, dtype=np.int64), out=done[1:])
    if first.groups is None:
        return cut_evenly(done, parts, first.rounds)
    groups = cut_evenly(done[first.groups], parts, first.rounds)
    rounds, group = np.divmod(groups, len(first.groups) - 1)
    bounds: Int64 = rounds * len(first.records) + first.groups[group]
    return bounds


def cut_evenly(done: Int64, parts: int, rounds: int = 1) -> Int64:
    """int64[parts + 1]: where to cut so that parts cost nearly the same.

    done[i] is the cost of the first i items of a round, which comes `rounds` times; the cuts count through all.
    """
    cost, items = int(done[-1]), len(done) - 1
    whole, rest = np.divmod(rounds * np.arange(parts + 1), parts)  # rounds in front of a cut, and parts-ths of the next
    skipped = np.minimum(whole, rounds - 1)
    target, done = cost * (rest + parts * (whole - skipped)), parts * done
    above = np.searchsorted(done, target)
    below = np.maximum(above - 1, 0)
    cuts: Int64 = np.where(target - done[below] < done[above] - target, below, above) + skipped * items
    return cuts
