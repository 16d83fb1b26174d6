"""What follows a normalization: a scale and a shift, each or none, rounded once together; and checks of them."""

from functools import lru_cache

from asmdnn.errors import InvalidArguments, shown
from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.postops import ExpressionOp, Operand, PostOp
from asmdnn.generators.functions.program import Program
from asmdnn.primitives.attributes.numbers import check_flag, finite


def affine(scale: Operand | None, shift: Operand | None) -> tuple[PostOp, ...]:
    """x * scale + shift."""
    operands = tuple(operand for operand in (scale, shift) if operand is not None)
    return (ExpressionOp(_affine(scale is not None, shift is not None), operands),) if operands else ()


@lru_cache
def _affine(has_scale: bool, has_shift: bool) -> Program:
    build = Builder(1 + has_scale + has_shift)
    x, *rest = build.inputs
    if has_scale and has_shift:
        return build.finish(build.fma(x, *rest))
    return build.finish(x * rest[0] if has_scale else x + rest[0])


def checked_epsilon(owner: str, epsilon: float) -> float:
    """An f32 number of at least 0.  Raises InvalidArguments."""
    if finite(f"{owner}.epsilon", epsilon) < 0:
        raise InvalidArguments(f"{owner}.epsilon must not be negative, it is {shown(epsilon)}")
    return float(epsilon)


def check_statistics(owner: str, given: bool, mean: object, variance: object, needs_mean: bool = True) -> None:
    """Both or none, and both if they are given.  Raises InvalidArguments."""
    check_flag(f"{owner}.use_global_stats", given)
    if needs_mean and (mean is None) != (variance is None):
        missing = "mean" if mean is None else "variance"
        raise InvalidArguments(f"{owner} lacks {missing}: give mean and variance, or none of them")
    if not needs_mean and mean is not None:
        raise InvalidArguments(f"{owner} has a mean, which the RMS form does not have: leave it out")
    if given and variance is None:
        raise InvalidArguments(f"{owner}.use_global_stats needs mean and variance")
