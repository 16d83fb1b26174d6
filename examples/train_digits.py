"""A small CNN that learns to read digits: forward pass, gradients and Adam's update are one native call.

    python -m examples.train_digits

The images are scikit-learn's, 1,797 of 8x8 pixels.  Weights and moments are states, which the call reads and writes in
place; the network that reads digits takes what was learned.
"""

import gzip
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

import asmdnn as dnn
from examples.models import MissingModel, file

Array = np.ndarray[Any, Any]
PACKAGE = "scikit-learn"
BATCH, EPOCHS, RATE = 64, 20, 8e-3
SEEN = 1500  # images that it learns from
SHAPES = {"conv1": (16, 1, 3, 3), "conv2": (32, 16, 3, 3), "bias1": (16,), "bias2": (32,), "head": (128, 10)}


def scores_of(graph: dnn.Graph, x: Any, weights: Mapping[str, Any]) -> Any:
    """Two convolutions with pooling, then a product: the scores of ten digits."""
    for i in (1, 2):
        conv = graph.apply("Conv", x, weights[f"conv{i}"], weights[f"bias{i}"], pads=(1, 1, 1, 1))
        x = graph.apply("MaxPool", graph.apply("Relu", conv), kernel_shape=(2, 2), strides=(2, 2))
    return graph.apply("Flatten", x) @ weights["head"]


def adam(graph: dnn.Graph, state: Any, gradient: Any, rate: Any, corrections: tuple[Any, Any]) -> None:
    """Adam (Kingma and Ba, 2015): the corrections of both moments are numbers of the step."""
    first, second = (graph.state(f"{name} of {state.name}", SHAPES[state.name]) for name in ("mean", "square"))
    mean = graph.update(first, 0.9 * first + 0.1 * gradient)
    square = graph.update(second, 0.999 * second + 0.001 * (gradient * gradient))
    size = graph.apply("Sqrt", square * corrections[1]) + 1e-8
    graph.update(state, state - rate * (mean * corrections[0]) / size)


def step_of(engine: dnn.Engine, seed: int) -> dnn.Network:
    """The training step: (loss) for images, targets and the step's numbers."""
    graph, rng = dnn.Graph("step"), np.random.default_rng(seed)
    x, t = graph.input("x", (BATCH, 1, 8, 8)), graph.input("t", (BATCH,), np.int64)
    rate, mean, square = (graph.input(name, (1,)) for name in ("rate", "mean", "square"))
    weights: dict[str, Any] = {}
    for name, dims in SHAPES.items():
        size = np.sqrt(2 / np.prod(dims[1:] if len(dims) > 2 else dims[:1]))
        initial = np.zeros(dims) if name.startswith("bias") else rng.normal(0, size, dims)
        weights[name] = graph.state(name, dims, initial=initial.astype(np.float32))
    loss = graph.apply("SoftmaxCrossEntropyLoss", scores_of(graph, x, weights), t)
    for state, gradient in zip(weights.values(), graph.gradients(loss, [*weights.values()]), strict=True):
        adam(graph, state, gradient, rate, (mean, square))
    return graph.compile(loss=loss, engine=engine)


def trained(
    engine: dnn.Engine, images: Array, targets: Array, seed: int = 0, epochs: int = EPOCHS
) -> tuple[dnn.Network, list[float]]:
    """The step after all epochs, and the mean loss of each."""
    step, rng, number = step_of(engine, seed), np.random.default_rng(seed), 0
    losses: list[float] = []
    step.check()  # proves bounds, order, and that a weight is written after its last reader
    for epoch in range(epochs):
        order, found = rng.permutation(len(images)), list[float]()
        for start in range(0, len(images) - BATCH + 1, BATCH):
            some, number = order[start : start + BATCH], number + 1
            rate = RATE * (1 + np.cos(np.pi * number / (epochs * (len(images) // BATCH)))) / 2
            numbers = {"rate": rate, "mean": 1 / (1 - 0.9**number), "square": 1 / (1 - 0.999**number)}
            feeds = {name: np.array([value], np.float32) for name, value in numbers.items()}
            found.append(float(step.run({"x": images[some], "t": targets[some], **feeds})["loss"]))
        losses.append(float(np.mean(found)))
        print(f"epoch {epoch + 1:2}  loss {losses[-1]:.4f} {'#' * int(30 * min(1, losses[-1] / losses[0]))}")
    return step, losses


def reader_of(engine: dnn.Engine, step: dnn.Network, count: int) -> dnn.Network:
    """The network that reads digits, with what was learned as constants."""
    graph = dnn.Graph("reader")
    x = graph.input("x", (count, 1, 8, 8))
    learned = {name: np.array(step.state[name]) for name in SHAPES}
    return graph.compile(scores=scores_of(graph, x, learned), engine=engine)


def digits() -> tuple[Array, Array]:
    """Images, f32[n, 1, 8, 8] from 0 to 1, and what they show, in an order that a seed decides."""
    with gzip.open(file(PACKAGE, "digits.csv.gz"), "rt") as lines:
        rows = np.loadtxt(lines, delimiter=",")
    rows = rows[np.random.default_rng(1).permutation(len(rows))]
    return (rows[:, :64] / 16).astype(np.float32).reshape(-1, 1, 8, 8), rows[:, 64].astype(np.int64)


def accuracy(engine: dnn.Engine, step: dnn.Network, images: Array, targets: Array) -> float:
    """The share of images that are read right."""
    scores = reader_of(engine, step, len(images))(images)
    return float((scores.argmax(1) == targets).mean())


def main() -> None:
    try:
        images, targets = digits()
    except MissingModel as error:
        sys.exit(f"train_digits: {error}")
    engine, start = dnn.Engine(threads=1), time.perf_counter()
    step, _ = trained(engine, images[:SEEN], targets[:SEEN])
    seconds = time.perf_counter() - start
    right = accuracy(engine, step, images[SEEN:], targets[SEEN:])
    print(f"{100 * right:.1f}% of {len(images) - SEEN} digits that it has not seen are right, after {seconds:.2f} s")


if __name__ == "__main__":
    main()
