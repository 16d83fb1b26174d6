"""Stochastic rounding, as a kind of primitive."""

from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.stochastic_rounding import stochastic_rounding
from asmdnn.primitives.stochastic_rounding.stochastic_rounding import StochasticRounding


def words(desc: StochasticRounding) -> Words:
    return Words("stochastic_rounding", "", dims_word(desc.src), "forward_training")


KINDS = (Kind(StochasticRounding, (stochastic_rounding.plans,), words),)
