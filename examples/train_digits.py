"""A small CNN that learns to read digits: forward pass, gradients and Adam's update are one native call.

    python -m examples.train_digits

The images are scikit-learn's, 1,797 of 8x8 pixels.  The call reads and writes weights and moments in place; the network
that reads digits takes what was learned.
"""

import gzip
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

import asmdnn as dnn
from examples.command import command
from examples.models import file

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


def step_of(engine: dnn.Engine, seed: int, steps: int) -> dnn.TrainingStep:
    """The training step of a batch; the rate falls to 0 in so many of them."""
    graph = dnn.Graph("digits", seed=seed)
    x, t = graph.input("x", (BATCH, 1, 8, 8)), graph.input("t", (BATCH,), np.int64)
    weights = {
        name: graph.parameter(name, dims, "zeros" if name.startswith("bias") else "he_normal")
        for name, dims in SHAPES.items()
    }
    loss = graph.apply("SoftmaxCrossEntropyLoss", scores_of(graph, x, weights), t)
    return graph.train(loss, dnn.optim.Adam(dnn.optim.cosine(RATE, steps)), engine=engine)


def trained(
    engine: dnn.Engine, images: Array, targets: Array, seed: int = 0, epochs: int = EPOCHS
) -> tuple[dnn.TrainingStep, list[float]]:
    """The step after all epochs, and the mean loss of each."""
    batches, rng = len(images) // BATCH, np.random.default_rng(seed)
    step, losses = step_of(engine, seed, epochs * batches), list[float]()
    step.check()  # proves bounds, order, and that a weight is written after its last reader
    for epoch in range(epochs):
        order = rng.permutation(len(images))[: batches * BATCH].reshape(batches, BATCH)
        losses.append(float(np.mean([step(x=images[some], t=targets[some]) for some in order])))
        print(f"epoch {epoch + 1:2}  loss {losses[-1]:.4f} {'#' * int(30 * min(1, losses[-1] / losses[0]))}")
    return step, losses


def reader_of(engine: dnn.Engine, step: dnn.TrainingStep, count: int) -> dnn.Network:
    """The network that reads digits, with what was learned as constants."""
    graph = dnn.Graph("reader")
    x = graph.input("x", (count, 1, 8, 8))
    return graph.compile(scores=scores_of(graph, x, step.parameters), engine=engine)


def digits() -> tuple[Array, Array]:
    """Images, f32[n, 1, 8, 8] from 0 to 1, and what they show, in an order that a seed decides."""
    with gzip.open(file(PACKAGE, "digits.csv.gz"), "rt") as lines:
        rows = np.loadtxt(lines, delimiter=",")
    rows = rows[np.random.default_rng(1).permutation(len(rows))]
    return (rows[:, :64] / 16).astype(np.float32).reshape(-1, 1, 8, 8), rows[:, 64].astype(np.int64)


def accuracy(engine: dnn.Engine, step: dnn.TrainingStep, images: Array, targets: Array) -> float:
    """The share of images that are read right."""
    scores = reader_of(engine, step, len(images))(images)
    return float((scores.argmax(1) == targets).mean())


def main() -> None:
    images, targets = digits()
    engine, start = dnn.Engine(threads=1), time.perf_counter()
    step, _ = trained(engine, images[:SEEN], targets[:SEEN])
    seconds = time.perf_counter() - start
    right = accuracy(engine, step, images[SEEN:], targets[SEEN:])
    print(f"{100 * right:.1f}% of {len(images) - SEEN} digits that it has not seen are right, after {seconds:.2f} s")


if __name__ == "__main__":
    command(main, __doc__)
