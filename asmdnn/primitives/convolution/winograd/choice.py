"""Which cut is expected to be the fastest, and whether direct convolution is faster."""

from collections.abc import Collection

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
from asmdnn.primitives.convolution.winograd.cost import cycles_of, direct_cycles, packing_cycles
from asmdnn.primitives.convolution.winograd.cut import Form, WinogradCut, candidates, rows_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import MULTIPLIED, fast_pairs
from asmdnn.records import replace
from asmdnn.types import Algorithm


def choose(g: ConvGeometry, algorithm: Algorithm, weights: MemoryDesc, engine: Engine, packs: bool) -> WinogradCut:
    """The best cut; with `auto` Refused if direct convolution is expected to be faster.

    packs: the weights are transformed with every call.  Depends on shapes and caches alone, never on the threads.
    """
    isa, tuning = engine.isa, engine.tuning
    caches = replace(machine_of(engine.machine).caches, l2_bytes=engine.l2_bytes)
    lanes = lanes_of(isa)
    forms, widths = forms_of(g, engine), tuple(rows_of(isa))
    if engine.any_batch and g.mb > 1:  # the form, and whether one is taken, are those of an image alone
        alone = choose(replace(g, mb=1), algorithm, weights, engine, packs)
        forms, algorithm = ((alone.m, alone.types),), Algorithm.convolution_winograd
    if isinstance(weights, WinogradDesc):
        forms, widths = ((weights.m, MULTIPLIED[weights.dtype]),), (weights.panel // lanes,)
    cuts = list(candidates(g, isa, forms, usable(widths, -(-g.oc // lanes))))
    cost = {
        cut: cycles_of(g, cut, isa, caches, tuning) + packs * packing_cycles(g, cut.m, lanes, tuning) for cut in cuts
    }
    best = min(cost, key=lambda cut: (cost[cut], -cut.vectors))  # of equal ones wider panels: longer runs of weights
    if algorithm == Algorithm.convolution_auto and not isinstance(weights, WinogradDesc):
        other = direct_cycles(g, isa, tuning)
        if g.oc <= MOST_OUTPUTS and g.groups == 1:
            tiles = few_outputs.choose_tiles(g, lanes, tuning.convolution.strip_pixels)
            direct = tuning.convolution.few_direct_share * few_outputs.direct_cycles([g], engine)
            other = g.mb * min(direct, few_outputs.expected_cycles(g, tiles, engine))
        if other <= cost[best]:
            raise Refused(f"{best} is expected to take {cost[best]:.0f} cycles, direct convolution {other:.0f}")
    return best


def forms_of(g: ConvGeometry, engine: Engine) -> tuple[Form, ...]:
    """Those that may be chosen: of transformed tiles that are rounded to bf16, only where src and weights are bf16, and
    F(2x2), as F(4x4) has more than four times its error (docs/winograd.md).  Weights that are transformed for it say
    that it is wanted."""
    pairs = fast_pairs((g.types.src, g.types.weights), engine)
    return (*((m, F32) for m in FORMS), *([(2, pairs)] if pairs else ()))


def usable(widths: Collection[int], vectors: int) -> list[int]:
    """Panels that are not wider than all output channels; the only one there is."""
    return [width for width in widths if width <= vectors or len(widths) == 1]
