"""What a plan multiplies with, and how fast that is: what the operations of a problem are a percentage of."""

import math
from collections import defaultdict
from typing import Final

from asmdnn.analyze.build import taken_apart
from asmdnn.analyze.model import peak_of_all
from asmdnn.isa.multiply_adds import FMA
from asmdnn.planning.plan import Plan
from asmdnn.records import dataclass
from asmdnn.runtime.peak import multiply_add_gflops

LEAST_SHARE: Final = 0.25  # of the most flops of an instruction: sums of columns of weights are fewer


@dataclass(frozen=True, slots=True)
class Dots:
    """The multiply-adds of a plan's products: flops by the instruction whose peak they are compared with, and a level
    that has each."""

    flops: dict[str, float]
    levels: dict[str, str]

    @property
    def name(self) -> str:
        """Of the instructions, joined by "+" where products are of several."""
        return "+".join(self.flops)

    def peak_gflops(self, threads: int = 1, reached: float = 0.0) -> float:
        """Of `threads` threads together, one instruction after the other, each at its peak; measured once a process,
        and again if a result has `reached` more.  Raises Unimplemented for a level that cannot be executed here."""
        peak = self._measured(threads, 0.0)
        return self._measured(threads, math.inf) if reached > peak else peak

    def _measured(self, threads: int, reached: float) -> float:
        peaks = {name: multiply_add_gflops(self.levels[name], name, threads, reached) for name in self.flops}
        return peak_of_all(self.flops, peaks)


def dots_of(plan: Plan, isa: str) -> Dots:
    """The dot products of other types than f32, if the plan has more of their flops than of f32's; else FMA, of the
    engine's level `isa`.

    f32 beside dot products is scales, functions, sums and transforms; a plan that multiplies f32 has few flops of
    dots, if any.  A loop whose passes neither the code nor the plan tells counts once, and f32 not at all in a kernel
    that has one: products of attention are such, and so are the powers between.  Raises Unimplemented where PeachPy is
    missing.
    """
    flops: defaultdict[str, float] = defaultdict(float)
    levels = {FMA: isa}
    for number, spec in enumerate(plan.specs):
        bodies, trips = taken_apart(plan, number)
        calls = sum(use[1] for phase in plan.phases for use in phase.uses() if use[0] == spec)
        is_known = all(trips[body.loop] is not None for body in bodies if body.flops)
        for body in bodies:
            for name, count in body.multiply_adds.items():
                if name != FMA or is_known:
                    flops[name] += calls * count * (trips[body.loop] or 1)
                    levels.setdefault(name, spec.isa)
    of_f32 = flops.pop(FMA, 0.0)
    most = max(flops.values(), default=0.0)
    dots = {name: count for name, count in flops.items() if count > LEAST_SHARE * most} if most > of_f32 else {FMA: 1.0}
    return Dots(dots, {name: levels[name] for name in dots})
