"""What softmax computes of a number, as programs."""

from functools import lru_cache

from asmdnn.generators.functions.chain import compose, operands_of
from asmdnn.generators.functions.eltwise.exponential import flushed_exp
from asmdnn.generators.functions.eltwise.logarithm import log
from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.program import Program


@lru_cache
def power() -> Program:
    """e^x."""
    build = Builder(1)
    return build.finish(flushed_exp(build, build.inputs[0]))


@lru_cache
def exponential(before: tuple[PostOp, ...]) -> Program:
    """e^(before(x, operands) - most)."""
    build = Builder(2 + len(operands_of(before)))
    *inputs, most = build.inputs
    return build.finish(flushed_exp(build, build.insert(compose(before), inputs) - most))


@lru_cache
def quotient(after: tuple[PostOp, ...]) -> Program:
    """after(x * factor, operands)."""
    build = Builder(2 + len(operands_of(after)))
    x, factor, *operands = build.inputs
    return build.finish(build.insert(compose(after), [x * factor, *operands]))


@lru_cache
def logarithm(before: tuple[PostOp, ...], after: tuple[PostOp, ...]) -> Program:
    """after(before(x, its operands) - most - log_sum, its operands)."""
    own = len(operands_of(before))
    build = Builder(3 + own + len(operands_of(after)))
    x, most, log_sum, *operands = build.inputs
    result = build.insert(compose(before), [x, *operands[:own]]) - most - log_sum
    return build.finish(build.insert(compose(after), [result, *operands[own:]]))


@lru_cache
def probability(before: tuple[PostOp, ...], after: tuple[PostOp, ...]) -> Program:
    """after(e^(before(x, its operands) - most) * factor, its operands)."""
    own = len(operands_of(before))
    build = Builder(3 + own + len(operands_of(after)))
    x, most, factor, *operands = build.inputs
    result = flushed_exp(build, build.insert(compose(before), [x, *operands[:own]]) - most) * factor
    return build.finish(build.insert(compose(after), [result, *operands[own:]]))


@lru_cache
def log_program() -> Program:
    build = Builder(1)
    return build.finish(log(build, build.inputs[0]))
