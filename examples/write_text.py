"""An LSTM that learns to write, a character at a time: what it writes before, and after some hundred steps.

python -m examples.write_text [FILE]        without FILE: this project's own pages

A step (forward pass, gradients through time, Adam's update) is one native call, which is proved in front.  The network
that writes has what was learned as constants, and carries the LSTM's states from call to call.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import asmdnn as dnn
from examples.command import command

Array = np.ndarray[Any, Any]
ROOT = Path(__file__).resolve().parent.parent
LENGTH, BATCH, WIDTH, UNITS = 48, 32, 32, 128
STEPS, RATE = 1000, 1e-2
MOST_CHARACTERS = 400_000  # of a text


class Text:
    """A text, and its characters' numbers."""

    def __init__(self, text: str) -> None:
        self.alphabet = sorted({*text})
        numbers = {character: number for number, character in enumerate(self.alphabet)}
        self.codes = np.array([numbers[character] for character in text], np.int64)

    def batch(self, random: np.random.Generator) -> tuple[Array, Array]:
        """Characters, i64[LENGTH, BATCH], and those that follow."""
        starts = random.integers(0, len(self.codes) - LENGTH - 1, BATCH)
        places = np.arange(LENGTH)[:, None] + starts
        return self.codes[places], self.codes[places + 1]


def parameters(graph: dnn.Graph, count: int) -> dict[str, Any]:
    """Of an alphabet of so many characters; the forget gates start open."""
    bias = np.zeros((1, 8 * UNITS), np.float32)
    bias[:, 2 * UNITS : 3 * UNITS] = 1
    return {
        "table": graph.parameter("table", (count, WIDTH)),
        "w": graph.parameter("w", (1, 4 * UNITS, WIDTH), "glorot_uniform"),
        "r": graph.parameter("r", (1, 4 * UNITS, UNITS), "glorot_uniform"),
        "b": graph.parameter("b", bias.shape, bias),
        "head": graph.parameter("head", (UNITS, count)),
    }


def scores_of(
    graph: dnn.Graph, x: Any, weights: Mapping[str, Any], states: Sequence[Any] = ()
) -> tuple[Any, tuple[Any, ...]]:
    """Of each character the scores of what follows, [steps * sequences, count], and the LSTM's last states."""
    rows = graph.apply("Gather", weights["table"], x)
    more = (None, *states) if states else ()
    y, *last = graph.apply(
        "LSTM", rows, *(weights[name] for name in ("w", "r", "b")), *more, hidden_size=UNITS, results=3
    )
    return graph.apply("Reshape", y, np.array([-1, UNITS])) @ weights["head"], tuple(last)


def step_of(engine: dnn.Engine, count: int, steps: int, seed: int = 0) -> dnn.TrainingStep:
    """The training step of a batch; the rate falls to 0 in so many of them."""
    graph = dnn.Graph("writer", seed=seed)
    x, t = (graph.input(name, (LENGTH, BATCH), np.int64) for name in ("x", "t"))
    scores, _ = scores_of(graph, x, parameters(graph, count))
    loss = graph.apply("SoftmaxCrossEntropyLoss", scores, graph.apply("Reshape", t, np.array([-1])))
    return graph.train(loss, dnn.optim.Adam(dnn.optim.cosine(RATE, steps)), clip_norm=1.0, engine=engine)


def trained(step: dnn.TrainingStep, text: Text, steps: int, seed: int = 0) -> list[float]:
    """The loss of each step, in nats a character."""
    random, losses = np.random.default_rng(seed), list[float]()
    step.check()  # proves bounds, order, and that a weight is written after its last reader
    for number in range(1, steps + 1):
        x, t = text.batch(random)
        losses.append(step(x=x, t=t))
        if number % max(1, steps // 10) == 0:
            print(f"step {number:4}  loss {losses[-1]:.3f} {'#' * int(30 * min(1, losses[-1] / losses[0]))}")
    return losses


def written(engine: dnn.Engine, step: dnn.TrainingStep, text: Text, start: str, count: int, seed: int = 0) -> str:
    """A start, and so many characters after it, each drawn by what the network expects.

    Raises ValueError for a character of the start that the text does not have."""
    graph = dnn.Graph("reader")
    x = graph.input("x", (1, 1), np.int64)
    states = [graph.state(name, (1, 1, UNITS)) for name in ("h", "c")]
    scores, last = scores_of(graph, x, step.parameters, states)
    for state, value in zip(states, last, strict=True):
        graph.update(state, value)
    net = graph.compile(shares=graph.apply("Softmax", scores), engine=engine)
    random, found = np.random.default_rng(seed), [text.alphabet.index(character) for character in start]
    for number in range(len(start) + count - 1):
        shares = net(np.array([[found[number]]]))[0].astype(np.float64)
        if number + 1 == len(found):
            found.append(int(random.choice(len(shares), p=shares / shares.sum())))
    return "".join(text.alphabet[code] for code in found)


def pages() -> str:
    """The prose of this project."""
    return "".join(path.read_text() for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))))


def main(words: Sequence[str]) -> None:
    given = Path(words[0]).read_text(errors="replace") if words else pages()
    if len(given) <= LENGTH + 1:
        sys.exit(f"write_text: the text has {len(given)} characters, it needs more than {LENGTH + 1}")
    text, engine = Text(given[:MOST_CHARACTERS]), dnn.Engine(threads=1)
    start, step = given[:1], step_of(engine, len(text.alphabet), STEPS)
    print(f"before:\n{written(engine, step, text, start, 200)!r}\n")
    begin = time.perf_counter()
    trained(step, text, STEPS)
    print(f"\nafter {time.perf_counter() - begin:.1f} s:\n{written(engine, step, text, start, 400)}")


if __name__ == "__main__":
    command(main, __doc__, most=1)
