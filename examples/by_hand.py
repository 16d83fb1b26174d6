"""A network written in Python, from nothing: two rings of points are told apart, and the picture shows where.

python -m examples.by_hand        writes build/examples/rings.png

The weights are found here by gradient descent in numpy; asmdnn then answers for every pixel of the plane.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

import asmdnn as dnn
from examples.command import command

Floats = npt.NDArray[np.float32]
Layers = list[tuple[Floats, Floats]]  # of each layer: weights (in, out) and bias (out,)

PLOT: Final = Path(__file__).resolve().parent.parent / "build" / "examples" / "rings.png"
SIZES: Final = (2, 32, 32, 1)
POINTS, STEPS, RATE = 400, 400, 0.1
SIDE: Final = 200  # pixels


def rings(seed: int = 0) -> tuple[Floats, Floats]:
    """Points (n, 2) on two rings with some noise, and 0 for the inner or 1 for the outer (n, 1)."""
    random = np.random.default_rng(seed)
    outer = np.arange(POINTS) % 2
    angle = random.uniform(0, 2 * np.pi, POINTS)
    radius = 0.8 + 1.2 * outer + random.normal(0, 0.15, POINTS)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return points.astype(np.float32), outer[:, None].astype(np.float32)


def trained(points: Floats, wanted: Floats) -> Layers:
    """Weights after full-batch gradient descent on the cross-entropy."""
    random = np.random.default_rng(1)
    layers = [
        (random.standard_normal((m, n)).astype(np.float32) * np.float32(np.sqrt(2 / m)), np.zeros(n, np.float32))
        for m, n in pairwise(SIZES)
    ]
    for _ in range(STEPS):
        values: list[Any] = [points]
        for i, (weights, bias) in enumerate(layers):
            z = values[-1] @ weights + bias
            values.append(1 / (1 + np.exp(-z)) if i == len(layers) - 1 else np.maximum(z, 0))
        error = (values[-1] - wanted) / len(points)
        for i in reversed(range(len(layers))):
            weights, bias = layers[i]
            before = (error @ weights.T) * (values[i] > 0)
            layers[i] = weights - RATE * 10 * values[i].T @ error, bias - RATE * 10 * error.sum(axis=0)
            error = before
    return layers


def network(layers: Layers, rows: int, engine: dnn.Engine | None = None) -> dnn.Network:
    """Points (rows, 2) to the probability of the outer ring (rows, 1)."""
    graph = dnn.Graph("rings")
    x = graph.input("x", (rows, 2))
    for weights, bias in layers[:-1]:
        x = graph.apply("Relu", graph.apply("Gemm", x, weights, bias))
    return graph.compile(y=graph.apply("Sigmoid", graph.apply("Gemm", x, *layers[-1])), engine=engine)


def plane() -> Floats:
    """The middles of the picture's pixels, (200 * 200, 2)."""
    line = np.linspace(-3, 3, SIDE, dtype=np.float32)
    return np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)


def main() -> None:
    points, wanted = rings()
    layers = trained(points, wanted)
    net = network(layers, SIDE * SIDE)
    net.check()
    print(net.explain())
    answer = net(plane()).reshape(SIDE, SIDE)
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    axes.imshow(answer, "coolwarm", origin="lower", extent=(-3, 3, -3, 3), vmin=0, vmax=1, alpha=0.6)
    axes.scatter(points[:, 0], points[:, 1], c=wanted[:, 0], cmap="coolwarm", edgecolors="black", linewidths=0.4, s=14)
    PLOT.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PLOT, dpi=100, metadata={"Software": None})
    print(PLOT)


if __name__ == "__main__":
    command(main, __doc__)
