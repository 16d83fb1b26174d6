"""A kernel taken apart into its loops: what a pass does, and how many passes a call makes."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from asmdnn.explain.classes import bytes_of, class_of, flops_of
from asmdnn.explain.model import CodeLoop
from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.dot.conv_tile import ConvTile
from asmdnn.isa.assembler import Line
from asmdnn.isa.multiply_adds import peak_of
from asmdnn.isa.operands import Register
from asmdnn.planning.phase import Phase
from asmdnn.planning.plan import Plan
from asmdnn.records import dataclass

OUTSIDE = CodeLoop("", -1, -1, -1, 0)


@dataclass(frozen=True, slots=True)
class LoopBody:
    """The instructions of a loop that are in no inner loop."""

    loop: CodeLoop
    lines: tuple[Line, ...]

    @property
    def mix(self) -> dict[str, int]:
        return dict(Counter(class_of(*line.detail[:2]) for line in self.lines).most_common())

    @property
    def flops(self) -> int:
        return sum(self.multiply_adds.values())

    @property
    def multiply_adds(self) -> dict[str, int]:
        """The flops, by the instruction whose peak they are compared with."""
        found: Counter[str] = Counter()
        for line in self.lines:
            flops = flops_of(*line.detail[:2])
            if flops:
                found[peak_of(line.detail.mnemonic)] += flops
        return dict(found)

    @property
    def moved_bytes(self) -> tuple[int, int]:
        moved = [bytes_of(*line.detail[:2]) for line in self.lines]
        return sum(loaded for loaded, _ in moved), sum(stored for _, stored in moved)


def bodies_of(listing: Sequence[Line], loops: Sequence[CodeLoop]) -> list[LoopBody]:
    """The loops in the order of the code, then what is outside of them."""
    inside: dict[CodeLoop, list[Line]] = {loop: [] for loop in (*loops, OUTSIDE)}
    for line in listing:
        around = [loop for loop in loops if loop.begin <= line.offset < loop.end]
        inside[max(around, key=lambda loop: loop.depth, default=OUTSIDE)].append(line)
    return [LoopBody(loop, tuple(lines)) for loop, lines in inside.items()]


def trips_of(
    listing: Sequence[Line], loops: Sequence[CodeLoop], spec: KernelSpec, plan: Plan, phase: Phase
) -> dict[CodeLoop, float | None]:
    """Passes of each loop in a call of the phase, on average: from tap lists, or from the number that the code puts
    into the counter; None where neither says."""
    total: dict[CodeLoop, float | None] = {OUTSIDE: 1.0}
    if of_taps := tap_trips(loops, spec, plan, phase):
        return total | of_taps
    for loop in loops:
        outer = [total[other] for other in loops if is_inside(loop, other)]
        factor, trips = outer[-1] if outer else 1.0, constant_trips(listing, loop)
        total[loop] = None if trips is None or factor is None else trips * factor
    return total


def is_inside(loop: CodeLoop, other: CodeLoop) -> bool:
    return other.begin <= loop.begin and loop.end < other.end


def tap_trips(loops: Sequence[CodeLoop], spec: KernelSpec, plan: Plan, phase: Phase) -> dict[CodeLoop, float]:
    """The average number of taps in each group of the lists that the kernel's records walk, and of ends of runs in the
    loops around theirs; nothing for kernels with other loops."""
    taps = spec.footprint().taps
    outer = [loop for loop in loops if any(is_inside(other, loop) for other in loops)]
    inner = [loop for loop in loops if loop not in outer]
    runs = isinstance(spec, ConvTile) and spec.types.run is not None
    if not taps or len(taps.groups) != len(inner) or len(outer) != len(inner) * runs:
        return {}
    lists = list(tap_lists(spec, plan, phase))
    records = [users for users, _ in lists]
    found = dict(zip(inner, np.average([counts for _, counts in lists], 0, records).tolist(), strict=True))
    if isinstance(spec, ConvTile) and outer:
        ends = [spec.run_ends(counts) for _, counts in lists]
        found |= zip(outer, np.average(ends, 0, records).tolist(), strict=True)
    return found


def tap_lists(spec: KernelSpec, plan: Plan, phase: Phase) -> Iterator[tuple[int, list[int]]]:
    """How many of the kernel's records walk each list, and the number of taps of each group of it."""
    taps = spec.footprint().taps
    assert taps is not None
    view = phase.arguments[taps.argument]
    values = plan.constants[view.buffer]
    of_kernel = np.concatenate([numbers for used, numbers in phase.by_kernel() if used == spec])
    starts, users = np.unique(phase.records[of_kernel, 1 + taps.argument], return_counts=True)
    for start, records in zip(starts.tolist(), users.tolist(), strict=True):
        at, counts = (view.offset_bytes + start) // 8, []
        for _ in taps.groups:
            counts.append(int(values[at]))
            at += 1 + counts[-1] * len(taps.targets)
        yield records, counts


def constant_trips(listing: Sequence[Line], loop: CodeLoop) -> float | None:
    """The number that is put into the counter before the loop, if the last write there is of a number."""
    step = max((line for line in listing if line.offset < loop.jump), key=lambda line: line.offset)
    if step.detail.mnemonic != "SUB" or step.detail.operands[1] != 1:
        return None
    counter = step.detail.operands[0]
    before = [line for line in listing if line.offset < loop.begin and _writes(line, counter)]
    if before and before[-1].detail.mnemonic == "MOV" and type(before[-1].detail.operands[1]) is int:
        return float(before[-1].detail.operands[1])
    return None


def _writes(line: Line, reg: Register) -> bool:
    return bool(line.detail.operands) and line.detail.operands[0] is reg and line.detail.mnemonic not in ("CMP", "TEST")
