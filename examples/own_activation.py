"""An activation function that no library has, inside a network: it becomes part of the convolution's kernel.

python -m examples.own_activation
"""

from typing import Any

import numpy as np

import asmdnn as dnn
from examples.command import command


def wave(x: Any, slope: Any) -> Any:
    """Linear below 0; above it a wave that grows, with a slope for each channel."""
    return dnn.where(x > 0, dnn.square(x) / (1 + dnn.exp(-x)), slope * x)


def network(engine: dnn.Engine | None = None) -> dnn.Network:
    random = np.random.default_rng(0)
    weights = random.standard_normal((32, 3, 3, 3), np.float32) / 5
    slopes = np.linspace(0.01, 0.3, 32, dtype=np.float32).reshape(1, 32, 1, 1)
    graph = dnn.Graph("own activation")
    x = graph.input("x", (1, 3, 64, 64))
    y = graph.map(wave, graph.apply("Conv", x, weights, pads=(1, 1, 1, 1), name="conv"), slopes, name="wave")
    return graph.compile(y=y, engine=engine)


def main() -> None:
    net = network()
    print(net.explain())
    x = np.random.default_rng(1).standard_normal((1, 3, 64, 64)).astype(np.float32)
    for difference in net.verify({"x": x}):
        print(difference)


if __name__ == "__main__":
    command(main, __doc__)
