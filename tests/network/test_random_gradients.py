"""Gradients of random graphs, by inputs and by weights: each rule against central differences in double precision, and
what a network computes against the definitions of its operators."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.graph import TensorType
from tests.network.nets import engine
from tests.network.random_graphs import RandomGraph
from tests.network.test_gradients import values_of

QUICK, ALL = range(8), range(8, 500)
SIZE = 8  # operators
STEP, TOLERANCE = 1e-5, 1e-5
MOST_ELEMENTS = 4000  # of weights that gradients are asked of


def with_weights(made: RandomGraph) -> dict[str, Any]:
    """Put inputs in the place of constants of f32 that nodes read after their first operand; returns all inputs."""
    graph, feeds = made.graph, dict[str, Any](made.feeds)
    for i, node in enumerate(graph._nodes):
        names = list(node.inputs)
        last = 3 if node.op == "BatchNormalization" else len(names)  # statistics have no gradient
        for at, name in enumerate(names[1:last], 1):
            array = graph._constants.get(name)
            if array is not None and array.dtype == np.float32 and 0 < array.size <= MOST_ELEMENTS and array.ndim:
                names[at] = f"input {name}"
                feeds[names[at]], graph._inputs[names[at]] = array, TensorType(array.dtype, array.shape)
        graph._nodes[i] = replace(node, inputs=tuple(names))
    return feeds


def loss_of(made: RandomGraph) -> Any:
    """One number, of which every element of every output has another share."""
    graph, total = made.graph, None
    for value in made.outputs().values():
        shares = made.array(*value.dims, terms=value.exact.size)
        part = graph.apply("ReduceSum", graph.apply("Mul", value.symbol, shares), keepdims=0)
        total = part if total is None else graph.apply("Add", total, part)
    return total


def reached(graph: dnn.Graph, loss: str) -> set[str]:
    """The values that the loss reads."""
    read = {loss}
    for node in reversed(graph._nodes):
        if not read.isdisjoint(node.outputs):
            read.update(node.inputs)
    return read


def check(seed: int) -> None:
    made = RandomGraph(seed, SIZE)
    graph, feeds, loss = made.graph, with_weights(made), loss_of(made)
    names = [name for name in feeds if name in reached(graph, loss.name)]
    forward = dnn.Graph("forward")
    forward._nodes, forward._constants = [*graph._nodes], dict(graph._constants)
    found = dict(zip(names, graph.gradients(loss, [graph.value(name) for name in names]), strict=True))
    random = np.random.default_rng(seed)
    for name, symbol in found.items():
        gradient = values_of(graph, feeds, symbol.name)
        direction = random.standard_normal(gradient.shape)
        direction /= np.linalg.norm(direction)

        def at(share: float, name: str = name, direction: Any = direction) -> float:
            moved = {**feeds, name: feeds[name].astype(np.float64) + share * STEP * direction}
            return float(values_of(forward, moved, loss.name))

        after, here, before = at(1), at(0), at(-1)
        slopes = (after - here) / STEP, (here - before) / STEP
        size = float(np.linalg.norm(gradient)) + abs(here) + 1
        if abs(slopes[0] - slopes[1]) > TOLERANCE * size:
            continue  # a corner between the three points, where two slopes are right
        assert abs(float((gradient * direction).sum()) - sum(slopes) / 2) <= TOLERANCE * size, f"{seed}: {name}"
    ends = {f"d {name}": d for name, d in found.items()}
    net = graph.compile(engine=engine(2), fallback="numpy", the_loss=loss, **ends)
    net.check()
    if not net.is_native:
        return  # some broadcasting after a layer norm has no kernel
    wrong = [str(difference) for difference in net.verify(feeds) if not difference.fits]
    assert not wrong, f"{seed}: {wrong}"


@pytest.mark.parametrize("seed", QUICK)
@pytest.mark.isa("avx2")
def test_gradients_of_random_graphs(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", ALL)
@pytest.mark.isa("avx2")
def test_gradients_of_more_random_graphs(seed: int) -> None:
    check(seed)
