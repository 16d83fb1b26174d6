"""A network of 8-bit integers from one of f32: PP-OCRv4's recogniser, calibrated on the lines of a page.

python -m examples.quantize [FILE]     reads the page in f32, bf16 and int8; FILE: where the int8 model is written

A third of the lines chooses the ranges of the integers; all of them are read, and the texts compared.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image

import asmdnn as dnn
from asmdnn.bench.timing import interleaved
from examples import models, ocr
from examples.command import command

KEPT: Final = models.KEPT.parent / "examples" / "recogniser_int8.onnx"
TIMING_S: Final = 3.0


@dataclass(frozen=True)
class Reading:
    """What a recogniser says of the page: texts of its lines, seconds of them all; error: at a place of a line, the
    largest difference of a probability to f32's, in the mean; peer_s: what onnxruntime takes for the same file."""

    name: str
    texts: tuple[str, ...]
    seconds: float
    error: float
    peer_s: float | None = None

    def __str__(self) -> str:
        peer = "" if self.peer_s is None else f", onnxruntime {self.peer_s * 1e3:.1f} ms"
        return f"{self.name:5} {self.seconds * 1e3:7.1f} ms{peer}, probabilities differ by {self.error:.4f} in the mean"

    def agrees_with(self, other: "Reading") -> int:
        """How many lines have the same text."""
        return sum(a == b for a, b in zip(self.texts, other.texts, strict=True))


class Recogniser:
    """The model in f32 and in fewer bits; engine: whose threads onnxruntime has, too."""

    def __init__(self, lines: Sequence[Any], engine: dnn.Engine) -> None:
        self.lines, self.engine = lines, engine
        self.path = models.file(ocr.PACKAGE, ocr.RECOGNISER)

    @cached_property
    def quantized(self) -> Any:
        """Calibrated on every third line."""
        (name,) = dnn.load_onnx(self.path, engine=self.engine).inputs
        feeds = [{name: x} for x in self.lines[::3]]
        return dnn.quantize(self.path, feeds, method="static", engine=self.engine)

    def readings(self) -> Iterator[Reading]:
        """In f32, bf16 and int8, timed in turns."""
        nets = {
            "f32": dnn.load_onnx(self.path, engine=self.engine),
            "bf16": dnn.load_onnx(self.path, engine=self.engine, precision="bf16"),
            "int8": dnn.load_onnx(self.quantized.data, engine=self.engine),
        }
        alphabet = ["", *nets["f32"].model.metadata["character"].splitlines(), " "]
        exact = [nets["f32"](x) for x in self.lines]
        files = {"f32": str(self.path), "int8": self.quantized.data}
        calls: dict[str, Callable[[], Any]] = {name: self.call(net) for name, net in nets.items()}
        calls |= {f"peer {name}": call for name, file in files.items() if (call := peer_of(file, self))}
        for call in calls.values():
            call()  # a shape's first runs plan, load and bind
            call()
        times = dict(zip(calls, (time.least for time in interleaved(list(calls.values()), TIMING_S)), strict=True))
        for name, net in nets.items():
            found = [net(x) for x in self.lines]
            error = float(np.mean([np.abs(a - b).max(axis=2).mean() for a, b in zip(found, exact, strict=True)]))
            texts = tuple(ocr.decoded(y[0], alphabet)[0] for y in found)
            yield Reading(name, texts, times[name], error, times.get(f"peer {name}"))

    def call(self, net: dnn.Network) -> Callable[[], Any]:
        return lambda: [net(x) for x in self.lines]


def peer_of(model: str | bytes, recogniser: Recogniser) -> Callable[[], Any] | None:
    """All lines in onnxruntime, if it is there."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = recogniser.engine.threads
    session = onnxruntime.InferenceSession(model, options)
    (given,) = session.get_inputs()
    return lambda: [session.run(None, {given.name: x}) for x in recogniser.lines]


def lines_of_page(engine: dnn.Engine) -> list[Any]:
    """Inputs of the recogniser: the lines of the page as its detector finds them."""
    with Image.open(ocr.page()) as photo:
        page = photo.convert("RGB")
    cut = [ocr.cut_out(page, corners) for corners in ocr.TextReader(engine).find(page)]
    return [ocr.line_input(line, ocr.recogniser_width(line)) for line in cut]


def rows(readings: Sequence[Reading]) -> list[str]:
    """What each costs and gives; the first one is f32's."""
    count = len(readings[0].texts)
    return [f"{one}; {one.agrees_with(readings[0])} of {count} lines are read as f32 reads them" for one in readings]


def main(words: list[str]) -> None:
    engine = dnn.Engine(threads=1)
    recogniser = Recogniser(lines_of_page(engine), engine)
    made, path = recogniser.quantized, Path(words[0]) if words else KEPT
    path.parent.mkdir(parents=True, exist_ok=True)
    made.save(path)
    before, after = made.file_bytes
    print(f"{path}: {before / 1e6:.1f} MB became {after / 1e6:.1f}, {len(made.nodes)} products of integers")
    readings = list(recogniser.readings())
    print("\n".join([*rows(readings), *readings[-1].texts]))


if __name__ == "__main__":
    command(main, __doc__, most=1)
