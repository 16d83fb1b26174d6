"""The specs of gradients of recurrent cells: each with rows that have gaps, whole vectors and a tail."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.elementwise_code import INTERLEAVED
from asmdnn.generators.recurrent.gradients import CellGradient, GradientSpec, gradient_form, gradient_spec

CELLS = (
    *(CellGradient("vanilla", activation=activation) for activation in ("tanh", "logistic")),
    *(CellGradient("vanilla", activation="relu", alpha=alpha) for alpha in (0.0, 0.25)),
    *(CellGradient(algorithm) for algorithm in ("total", "peepholes", "gru", "gru_reset", "lbr_gru")),
    *(CellGradient("lstm", peephole) for peephole in (False, True)),
    CellGradient("lstm_projected"),
)


def gradients(isa: str) -> Iterator[GradientSpec]:
    """What is the same for all rows has no distance; there is one row, and there are more."""
    for cell in CELLS:
        form, elements = gradient_form(cell), LANES[isa] * INTERLEAVED + 5
        steps = [0 if name == "peephole" else 4 * elements + 12 for name, _ in (*form.reads, *form.results)]
        yield gradient_spec(isa, cell, 2, elements, steps)
    yield gradient_spec(isa, CellGradient("lstm"), 1, 3, [0] * len(gradient_form(CellGradient("lstm")).arguments))


FAMILIES = of_levels("recurrent_gradients", gradients=gradients)
