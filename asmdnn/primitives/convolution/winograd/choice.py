"""Which cut is expected to be the fastest, and whether direct convolution is faster."""

from collections.abc import Collection
from math import inf

from asmdnn.exact import exact
from asmdnn.generators.dot.few_outputs_shape import MOST_OUTPUTS
from asmdnn.generators.winograd.forms import FORMS
from asmdnn.isa.dot import F32
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.winograd import WinogradDesc
from asmdnn.planning.machine import machine_of
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.convolution import few_outputs
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.winograd.cost import cycles_of, direct_cycles, least_cycles, packing_cycles
from asmdnn.primitives.convolution.winograd.cut import Form, WinogradCut, candidates, rows_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import MULTIPLIED, fast_pairs
from asmdnn.records import dataclass, replace
from asmdnn.types import Algorithm


@exact
@dataclass(frozen=True, slots=True, eq=False)
class CutChoice:
    """The best cut and what it is expected to take, in cycles, as direct convolution is: more than any if it is not to
    be compared with."""

    cut: WinogradCut
    cycles: float
    direct_cycles: float = inf

    def check(self) -> None:
        """Raise Refused if direct convolution is expected to be faster."""
        if self.direct_cycles <= self.cycles:
            expected = f"{self.cycles:.0f} cycles, direct convolution {self.direct_cycles:.0f}"
            raise Refused(f"{self.cut} is expected to take {expected}")


def choose(g: ConvGeometry, algorithm: Algorithm, weights: MemoryDesc, engine: Engine, packs: bool) -> CutChoice:
    """The best cut, with `auto` beside direct convolution.

    packs: the weights are transformed with every call.  Depends on shapes and caches alone, never on the threads.
    """
    isa, tuning = engine.isa, engine.tuning
    caches = replace(machine_of(engine.machine).caches, l2_bytes=engine.l2_bytes)
    lanes = lanes_of(isa)
    forms, widths = forms_of(g, engine), tuple(rows_of(isa))
    if engine.any_batch and g.mb > 1:  # the form, and whether one is taken, are those of an image alone
        alone = choose(replace(g, mb=1), algorithm, weights, engine, packs)
        alone.check()
        forms, algorithm = ((alone.cut.m, alone.cut.types),), Algorithm.convolution_winograd
    if isinstance(weights, WinogradDesc):
        if weights.panel not in (width * lanes for width in widths):
            raise Refused(f"weights are in panels of {weights.panel}, {isa} multiplies by {widths} times {lanes}")
        forms, widths = ((weights.m, MULTIPLIED[weights.dtype]),), (weights.panel // lanes,)
    costs: list[tuple[float, WinogradCut]] = []
    known = dict[object, float]()
    for form in sorted(forms, key=lambda form: -form[0]):  # fewer products first, which leave others no chance
        packing = packs * packing_cycles(g, form[0], lanes, tuning)
        if costs and packing + least_cycles(g, form, isa, tuning) >= min(cost for cost, _ in costs):
            continue
        cuts = candidates(g, isa, [form], usable(widths, -(-g.oc // lanes)))
        costs += [(packing + cycles_of(g, cut, isa, caches, tuning, known), cut) for cut in cuts]
    cycles, best = min(costs, key=lambda found: (found[0], -found[1].vectors))  # wider panels: longer runs of weights
    if algorithm == Algorithm.convolution_auto and not isinstance(weights, WinogradDesc):
        return CutChoice(best, cycles, directly(g, engine))
    return CutChoice(best, cycles)


def directly(g: ConvGeometry, engine: Engine) -> float:
    """The cycles of the fastest other algorithm."""
    tuning = engine.tuning
    if g.oc > MOST_OUTPUTS or g.groups > 1:
        return direct_cycles(g, engine.isa, tuning)
    tiles = few_outputs.choose_tiles(g, lanes_of(engine.isa), tuning.convolution.strip_pixels)
    direct = tuning.convolution.few_direct_share * few_outputs.direct_cycles([g], engine)
    return g.mb * min(direct, few_outputs.expected_cycles(g, tiles, engine))


def forms_of(g: ConvGeometry, engine: Engine) -> tuple[Form, ...]:
    """Those that may be chosen: of transformed tiles that are rounded to bf16, only where src and weights are bf16, and
    F(2x2), as F(4x4) has more than four times its error (docs/winograd.md).  Weights that are transformed for it say
    that it is wanted."""
    pairs = fast_pairs((g.types.src, g.types.weights), engine)
    return (*((m, F32) for m in FORMS), *([(2, pairs)] if pairs else ()))


def usable(widths: Collection[int], vectors: int) -> list[int]:
    """Panels that are not wider than all output channels; the only one there is."""
    return [width for width in widths if width <= vectors or len(widths) == 1]
