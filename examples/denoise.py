"""An autoencoder that learns to take noise out of photographs.

    python -m examples.denoise        writes build/examples/denoised.png

It is given pieces with noise and learns what they were: four convolutions down to a quarter of the places, a
deconvolution back, and what is to be taken away.  Weights are parameters of a graph, so the network that reads a whole
photograph, which it has not seen, is the same function of other dims.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image

import asmdnn as dnn
from examples.command import command
from examples.models import file

Array = np.ndarray[Any, Any]
PICTURE: Final = Path(__file__).resolve().parent.parent / "build" / "examples" / "denoised.png"
SEEN, UNSEEN = ("astronaut", "coffee", "motorcycle_left"), "chelsea"
NOISE, SIDE, BATCH, STEPS, RATE = 0.1, 32, 16, 600, 6e-3
SHAPES: Final = {
    "enter": (24, 3, 3, 3),
    "down": (32, 24, 2, 2),
    "inside1": (32, 32, 3, 3),
    "inside2": (32, 32, 3, 3),
    "up": (32, 24, 2, 2),  # a deconvolution's: inputs first
    "leave": (3, 24, 3, 3),
}


def photograph(name: str) -> Array:
    """f32[3, height, width] from 0 to 1; sides are even."""
    with Image.open(file("scikit-image", f"data/{name}.png")) as opened:
        pixels = np.asarray(opened.convert("RGB"), np.float32) / 255
    high, wide = (side // 2 * 2 for side in pixels.shape[:2])
    return np.ascontiguousarray(pixels[:high, :wide].transpose(2, 0, 1))


def noisy(x: Array, random: np.random.Generator) -> Array:
    return x + np.float32(NOISE) * random.standard_normal(x.shape, np.float32)


def cleaned(graph: dnn.Graph, x: Any, weights: Mapping[str, Any]) -> Any:
    """What is left of images when their noise is taken away."""
    entered = graph.apply("Relu", graph.apply("Conv", x, weights["enter"], pads=(1, 1, 1, 1)))
    h = graph.apply("Relu", graph.apply("Conv", entered, weights["down"], strides=(2, 2)))
    for name in ("inside1", "inside2"):
        h = graph.apply("Relu", graph.apply("Conv", h, weights[name], pads=(1, 1, 1, 1)))
    h = graph.apply("Relu", entered + graph.apply("ConvTranspose", h, weights["up"], strides=(2, 2)))
    return x - graph.apply("Conv", h, weights["leave"], pads=(1, 1, 1, 1))


def step_of(engine: dnn.Engine, steps: int, seed: int = 0) -> dnn.TrainingStep:
    """The training step of a batch, by the mean square of what is wrong."""
    graph = dnn.Graph("denoiser", seed=seed)
    x, clean = (graph.input(name, (BATCH, 3, SIDE, SIDE)) for name in ("x", "clean"))
    kinds = {"leave": "zeros"}  # at first nothing is taken away
    weights = {name: graph.parameter(name, dims, kinds.get(name, "he_normal")) for name, dims in SHAPES.items()}
    wrong = cleaned(graph, x, weights) - clean
    loss = graph.apply("ReduceMean", wrong * wrong, keepdims=0)
    return graph.train(loss, dnn.optim.Adam(dnn.optim.cosine(RATE, steps, warmup=10)), engine=engine)


def trained(engine: dnn.Engine, photographs: list[Array], steps: int = STEPS) -> tuple[dnn.TrainingStep, list[float]]:
    """The step after so many, each of other pieces with other noise, and their losses."""
    step, random, losses = step_of(engine, steps), np.random.default_rng(0), list[float]()
    step.check()  # proves bounds, order, and that a weight is written after its last reader
    for number in range(1, steps + 1):
        pieces = []
        for image in (photographs[i] for i in random.integers(len(photographs), size=BATCH)):
            top, left = (int(random.integers(side - SIDE)) for side in image.shape[1:])
            pieces.append(image[:, top : top + SIDE, left : left + SIDE])
        clean = np.stack(pieces)
        losses.append(step(x=noisy(clean, random), clean=clean))
        if number % max(1, steps // 10) == 0:
            print(f"step {number:4}  loss {losses[-1]:.5f} {'#' * int(30 * min(1, losses[-1] / losses[0]))}")
    return step, losses


def reader_of(engine: dnn.Engine, step: dnn.TrainingStep, dims: tuple[int, ...]) -> dnn.Network:
    """The network that cleans one image of these dims, with what was learned as constants."""
    graph = dnn.Graph("reader")
    x = graph.input("x", (1, *dims))
    return graph.compile(clean=cleaned(graph, x, step.parameters), engine=engine)


def decibels(x: Array, clean: Array) -> float:
    """The peak signal-to-noise ratio."""
    return float(-10 * np.log10(np.mean(np.square(x - clean, dtype=np.float64))))


def main() -> None:
    engine = dnn.Engine(threads=1)
    photographs, clean = [photograph(name) for name in SEEN], photograph(UNSEEN)
    start = time.perf_counter()
    step, _ = trained(engine, photographs)
    seconds = time.perf_counter() - start
    before = noisy(clean, np.random.default_rng(1))
    (after,) = reader_of(engine, step, clean.shape)(before[None])
    print(f"a photograph that it has not seen: {decibels(before, clean):.1f} dB with noise, "
          f"{decibels(after, clean):.1f} without, after {seconds:.1f} s")  # fmt: skip
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.concatenate([before, after, clean], axis=2).transpose(1, 2, 0)
    Image.fromarray((pixels.clip(0, 1) * 255).astype(np.uint8)).save(PICTURE)
    print(f"with noise, without, and as it was: {PICTURE}")


if __name__ == "__main__":
    command(main, __doc__)
