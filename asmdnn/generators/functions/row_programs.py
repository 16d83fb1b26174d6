"""The functions of gradients that need sums over a row, as programs: what is summed, and what comes of it.

softmax     dx = y * (dy - sum of dy * y)                    of the result y, and of its gradient dy
log         dx = dy - e^y * sum of dy
layer norm  dx = f * (g - mean of g - h * mean of g * h)     h = (x - mean) * f, g = dy * scale
RMS norm    dx = f * (g - h * mean of g * h)

f = 1 / sqrt(variance + epsilon) is a tensor of its own: a root and a division for every vector would take longer than
all the rest.
"""

from functools import lru_cache
from typing import NamedTuple

from asmdnn.generators.functions.eltwise.exponential import flushed_exp
from asmdnn.generators.functions.expression import Builder, Term
from asmdnn.generators.functions.program import Program


class RowPrograms(NamedTuple):
    """Of src and the operands; the result of the sums, too."""

    sums: Program
    result: Program


@lru_cache
def softmax_programs(log: bool) -> RowPrograms:
    """Of y, dy."""
    build = Builder(2)
    y, dy = build.inputs
    sums = build.finish(dy if log else dy * y)
    build = Builder(3)
    y, dy, total = build.inputs
    return RowPrograms(sums, build.finish(dy - flushed_exp(build, y) * total if log else y * (dy - total)))


def scaled_softmax_programs(scale: float) -> RowPrograms:
    """Of dy and y: the gradient of softmax(scale * x)."""
    build = Builder(2)
    dy, y = build.inputs
    sums = build.finish(dy * y)
    build = Builder(3)
    dy, y, total = build.inputs
    return RowPrograms(sums, build.finish(y * (dy - total) * scale))


def factor_program(epsilon: float) -> Program:
    """f of the variance."""
    build = Builder(1)
    return build.finish(1.0 / build.op("sqrt", build.inputs[0] + epsilon))


@lru_cache
def norm_programs(elements: int, centred: bool, scaled: bool) -> RowPrograms:
    """Of x, dy, the mean if it is `centred`, f, and the scale if it is `scaled`."""
    inputs = 3 + centred + scaled

    def values(build: Builder) -> tuple[Term, Term, Term]:
        x, dy, *rest = build.inputs
        mean = rest.pop(0) if centred else None
        factor = rest.pop(0)
        return (x if mean is None else x - mean) * factor, dy * rest.pop(0) if scaled else dy, factor

    build = Builder(inputs)
    h, g, _ = values(build)
    sums = build.finish(*([g] if centred else []), g * h)
    build = Builder(inputs + 1 + centred)
    h, g, factor = values(build)
    of_g, of_both = (build.inputs[-2] if centred else None), build.inputs[-1]
    share = 1.0 / elements
    shifted = g if of_g is None else g - of_g * share
    return RowPrograms(sums, build.finish(factor * (shifted - h * (of_both * share))))


@lru_cache
def row_sums_program(statistics: int, shifts: bool) -> Program:
    """What the gradients of a scale and of a shift sum: dy * h of x, dy, the mean if there are two statistics, and f;
    and dy if it `shifts`.  Without statistics dy alone, of dy."""
    build = Builder(2 + statistics if statistics else 1)
    if not statistics:
        return build.finish(*build.inputs)
    x, dy, *mean, factor = build.inputs
    return build.finish(dy * ((x - mean[0] if mean else x) * factor), *[dy] * shifts)


@lru_cache
def scaled_program(scaled: bool) -> Program:
    """diff_src of dy, factor, and the scale, where statistics were given."""
    build = Builder(2 + scaled)
    dy, factor, *scale = build.inputs
    return build.finish(dy * (factor * scale[0] if scale else factor))


@lru_cache
def centred_sums(masked: bool = False, stores: bool = False) -> Program:
    """What is summed of x, dy, and the mean: dy, and dy * (x - mean).  masked: of x, dy, mask, mean, with dy where the
    mask is not 0.  stores: what dy is then comes before the sums."""
    build = Builder(3 + masked)
    x, dy, *mask, mean = build.inputs
    dy = build.where(mask[0] > 0.0, dy, 0.0) if mask else dy
    return build.finish(*[dy] * stores, dy, dy * (x - mean))


@lru_cache
def prelu_program(results: tuple[int, ...]) -> Program:
    """0: diff_src, of x, dy, weights; 1: what is summed for weights, of x, dy."""
    build = Builder(2 + (0 in results))
    x, dy, *weights = build.inputs
    made = {1: lambda: build.where(x > 0.0, 0.0, x * dy), 0: lambda: build.where(x > 0.0, dy, weights[0] * dy)}
    return build.finish(*(made[result]() for result in results))


@lru_cache
def same_program(count: int) -> Program:
    """What it is given."""
    build = Builder(count)
    return build.finish(*build.inputs)
