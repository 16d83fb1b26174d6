"""The specs of gradients of recurrent cells: each with rows that have gaps, whole vectors and a tail; and with rows of
bf16 that it reads, and that products take."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.elementwise_code import INTERLEAVED
from asmdnn.generators.recurrent.gradients import (
    CellGradient,
    GradientSpec,
    TypedGradientSpec,
    gradient_form,
    gradient_spec,
)
from asmdnn.isa.levels import AVX512_CORE_BF16
from asmdnn.types import bf16, f32

CELLS = (
    *(CellGradient("vanilla", activation=activation) for activation in ("tanh", "logistic")),
    *(CellGradient("vanilla", activation="relu", alpha=alpha) for alpha in (0.0, 0.25)),
    *(CellGradient(algorithm) for algorithm in ("total", "peepholes", "gru", "gru_reset", "lbr_gru")),
    *(CellGradient("lstm", peephole) for peephole in (False, True)),
    CellGradient("lstm_projected"),
)


def gradients(isa: str) -> Iterator[GradientSpec | TypedGradientSpec]:
    """What is the same for all rows has no distance; there is one row, and there are more."""
    for cell in CELLS:
        form, elements = gradient_form(cell), LANES[isa] * INTERLEAVED + 5
        steps = [0 if name == "peephole" else 4 * elements + 12 for name, _ in (*form.reads, *form.results)]
        yield gradient_spec(isa, cell, 2, elements, steps)
    yield gradient_spec(isa, CellGradient("lstm"), 1, 3, [0] * len(gradient_form(CellGradient("lstm")).arguments))


ROUNDED = ("diff", "h", "before", "sums", "iterated", "total", "reset")  # to bf16, where weights are


def rounded_gradients() -> Iterator[GradientSpec | TypedGradientSpec]:
    """As plans have them: with all of these, and only those that products take; a single short row."""
    isa = AVX512_CORE_BF16.name
    for cell in CELLS:
        form, elements = gradient_form(cell), LANES["avx512_core"] * INTERLEAVED + 5
        places = (*form.reads, *form.results)
        for names in (ROUNDED, ROUNDED[3:]):
            kinds = [bf16 if name in names else f32 for name, _ in places]
            sizes = [kind.size_bytes for kind in kinds]
            steps = [0 if place[0] == "peephole" else n * elements + 12 for place, n in zip(places, sizes, strict=True)]
            yield gradient_spec(isa, cell, 2, elements, steps, [kind.name for kind in kinds])
    lstm = gradient_form(CellGradient("lstm"))
    kinds = [bf16 if name in ROUNDED else f32 for name, _ in (*lstm.reads, *lstm.results)]
    yield gradient_spec(isa, CellGradient("lstm"), 1, 3, [0] * len(kinds), [kind.name for kind in kinds])


FAMILIES = {
    **of_levels("recurrent_gradients", gradients=gradients),
    "recurrent_gradients-rounded": rounded_gradients,
}
