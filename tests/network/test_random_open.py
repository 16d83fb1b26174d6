"""Random graphs with open dims, at random shapes in random order: the bits of a network planned for the shape alone."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.open import OpenNetwork
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
SIZE, CALLS = 8, 6  # steps of a graph, and calls of its network
MAPS = ("Relu", "HardSwish", "Sigmoid", "Softplus", "Erf")


class Image(NamedTuple):
    """A value of dims (n, channels, h, w), the last two halved so often."""

    symbol: Any
    channels: int
    halved: int


class OpenGraph:
    """A graph of an image of any size, and of its pixels as a sequence; which one is the seed's."""

    def __init__(self, seed: int, steps: int) -> None:
        self.random, self.graph = np.random.default_rng(seed), dnn.Graph(f"open {seed}")
        self.images = [Image(self.graph.input("x", ("n", 3, "h", "w")), 3, 0)]
        self.outputs = dict[str, Any]()
        for _ in range(steps):
            step = STEPS[self.random.integers(len(STEPS))]
            step(self, self.images[self.random.integers(max(0, len(self.images) - 2), len(self.images))])
        self.outputs["y"] = self.images[-1].symbol

    def array(self, *dims: int, terms: int = 1) -> np.ndarray[Any, Any]:
        return (self.random.standard_normal(dims) / np.sqrt(terms)).astype(np.float32)

    def add(self, symbol: Any, channels: int, halved: int) -> None:
        self.images.append(Image(symbol, channels, halved))

    def convolution(self, x: Image) -> None:
        size, channels = int(self.random.choice((1, 3, 5))), int(self.random.choice((4, 16, 24, 40)))
        stride = 1 + int(x.halved < 2 and self.random.integers(3) == 0)
        w = self.array(channels, x.channels, size, size, terms=x.channels * size * size)
        pads = {"pads": (size // 2,) * 4, "strides": (stride, stride)}
        y = self.graph.apply("Conv", x.symbol, w, self.array(channels), **pads)
        self.add(y, channels, x.halved + stride - 1)

    def depthwise(self, x: Image) -> None:
        w = self.array(x.channels, 1, 3, 3, terms=9)
        self.add(self.graph.apply("Conv", x.symbol, w, pads=(1,) * 4, group=x.channels), x.channels, x.halved)

    def map(self, x: Image) -> None:
        self.add(self.graph.apply(str(self.random.choice(MAPS)), x.symbol), x.channels, x.halved)

    def pooling(self, x: Image) -> None:
        op = str(self.random.choice(("MaxPool", "AveragePool")))
        y = self.graph.apply(op, x.symbol, kernel_shape=(3, 3), pads=(1,) * 4, strides=(1, 1))
        self.add(y, x.channels, x.halved)

    def join(self, x: Image) -> None:
        same = [y for y in self.images if y.halved == x.halved]
        y = same[self.random.integers(len(same))]
        if x.channels == y.channels:
            self.add(self.graph.apply("Add", x.symbol, y.symbol), x.channels, x.halved)
        elif x.channels + y.channels < 100:
            joined = self.graph.apply("Concat", x.symbol, y.symbol, axis=1)
            self.add(joined, x.channels + y.channels, x.halved)

    def weighted(self, x: Image) -> None:
        mean = self.graph.apply("GlobalAveragePool", x.symbol)
        w = self.array(x.channels, x.channels, 1, 1, terms=x.channels)
        scale = self.graph.apply("HardSigmoid", self.graph.apply("Conv", mean, w))
        self.add(self.graph.apply("Mul", x.symbol, scale), x.channels, x.halved)

    def sequence(self, x: Image) -> None:
        """Attention over the pixels, and a norm; an output."""
        g, c = self.graph, x.channels
        rows = g.apply("Transpose", g.apply("Reshape", x.symbol, np.array((0, c, -1))), perm=(0, 2, 1))
        rows = g.apply("LayerNormalization", rows, self.array(c), self.array(c), axis=-1)
        q, k, v = (g.apply("MatMul", rows, self.array(c, 8, terms=c)) for _ in range(3))
        scores = g.apply("Softmax", g.apply("MatMul", q, g.apply("Transpose", k, perm=(0, 2, 1))), axis=-1)
        self.outputs[f"sequence {len(self.outputs)}"] = g.apply("MatMul", scores, v)


STEPS: tuple[Callable[[OpenGraph, Image], None], ...] = (
    OpenGraph.convolution, OpenGraph.convolution, OpenGraph.depthwise, OpenGraph.map, OpenGraph.pooling, OpenGraph.join,
    OpenGraph.weighted, OpenGraph.sequence,
)  # fmt: skip


def check_equal_plans(one: dnn.Network, other: dnn.Network) -> None:
    """Equal kernels on equal records, so that a shape is as fast as in a network of its own."""
    plans = [net.segments[0].plan for net in (one, other)]  # type: ignore[union-attr]
    for mine, theirs in zip(*(plan.phases for plan in plans), strict=True):
        assert (mine.kernels, mine.arguments, mine.repeats) == (theirs.kernels, theirs.arguments, theirs.repeats)
        np.testing.assert_array_equal(mine.records, theirs.records)


def check(seed: int, isa: str) -> None:
    made = OpenGraph(seed, SIZE)
    nets: list[Any] = [made.graph.compile(engine=engine(threads, isa), **made.outputs) for threads in (1, 2, 3)]
    shapes = [(int(n), 3, int(h), int(w)) for n, h, w in made.random.integers((1, 5, 5), (4, 24, 40), (CALLS // 2, 3))]
    order = made.random.permutation([*shapes, *shapes]).tolist()
    wanted = dict[tuple[int, ...], dict[str, Any]]()
    for dims in map(tuple, order):
        feeds = {"x": np.random.default_rng(sum(dims)).standard_normal(dims).astype(np.float32)}
        if dims not in wanted:
            alone = made.graph.compile({"x": dims}, engine=engine(1, isa), **made.outputs)
            wanted[dims] = alone.run(feeds)
            check_equal_plans(nets[0].at({"x": dims}), alone)
        for net in nets:
            assert isinstance(net, OpenNetwork)
            for name, array in net.run(feeds).items():
                np.testing.assert_array_equal(array, wanted[dims][name], err_msg=f"{dims} {name}")


@pytest.mark.parametrize("seed", range(3))
def test_random_open_graphs(seed: int) -> None:
    check(seed, "avx2")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 60))
def test_more_random_open_graphs(seed: int) -> None:
    check(seed, "avx2")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60, 100))
@pytest.mark.isa("avx512_core")
def test_random_open_graphs_of_avx512(seed: int) -> None:
    check(seed, "avx512_core")
