"""Parameters that are numbers of bf16, without a copy in f32: each step rounds them at random, so that changes which
are less than half of what bf16 can show add up in the mean.  Source: Gupta and others, Deep Learning with Limited
Numerical Precision, 2015."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from asmdnn.network.arrays import Array
from asmdnn.network.graph import Node
from asmdnn.network.operators.own import OWN
from asmdnn.network.symbols import Symbol
from asmdnn.records import replace

SEED = "seed of rounding"  # the input that a step passes
STOCHASTIC = "stochastic"
COUNTED = 4  # random numbers are made in such groups


class RandomRounding:
    """Rounds one parameter after another in a graph: their random numbers follow one another."""

    def __init__(self, graph: Any) -> None:
        self.graph, self.seed, self.first = graph, graph.input(SEED, (1,), np.int32), 0

    def rounded(self, value: Symbol, dims: Sequence[int]) -> Symbol:
        made = f"{value.name} rounded"
        attributes = {"first": self.first % 2**32}
        self.graph._nodes.append(Node("RandomRounding", (value.name, self.seed.name), (made,), attributes, domain=OWN))
        self.first += -(-prod(dims) // COUNTED) * COUNTED
        return Symbol(self.graph, made)


def round_initial(graph: Any, names: Sequence[str]) -> None:
    """Have parameters begin with the nearest numbers of bf16."""
    for name in names:
        state = graph._states[name]
        graph._states[name] = replace(state, initial=nearest(state.initial))


def nearest(x: Array) -> Array:
    """f32 of x's dims: the nearest numbers of bf16, the even one of two at one distance; NaN and infinity stay."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1) & np.uint32(0xFFFF0000)).view(np.float32)
    made = np.where(np.isfinite(x), rounded, x).reshape(x.shape)
    made.setflags(write=False)
    return made
