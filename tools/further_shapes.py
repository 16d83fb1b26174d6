"""What a further shape of an open network costs, by stage: `python tools/further_shapes.py [MODEL.onnx ...]`, from the
repository's root; without a file an encoder of 6 x 384 by tokens, and ResNet-50 by batch, of random weights.

Milliseconds of this thread's CPU, the median and the least of further shapes, each of which comes once.  The first two
shapes make the template.  Kernels are there if the tool has run before: their generation counts as loading.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from statistics import median
from time import thread_time
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.network import compiled, lowered, planned
from asmdnn.network.template.template import Template
from asmdnn.primitives.core import implementation
from asmdnn.runtime import execution

WIDTHS = (160, 320, 200, 501, 640, 333, 960, 77, 1280, 720, 411, 250, 599)  # of images with 48 rows
TOKENS = (16, 64, 33, 128, 100, 256, 17, 384, 50, 200, 511, 77, 300)
BATCHES = tuple(range(1, 11))
Shapes = Sequence[dict[str, tuple[int, ...]]]
random = np.random.default_rng(0)


def weights(*dims: int) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = random.standard_normal(dims) / np.sqrt(np.prod(dims[1:]))
    return np.asarray(found, np.float32)


def encoder(layers: int = 6, size: int = 384, heads: int = 12) -> dnn.Network:
    graph = dnn.Graph("encoder 6x384")
    h: Any = graph.input("x", (1, "tokens", size))

    def linear(x: Any, inputs: int, outputs: int) -> Any:
        return x @ weights(inputs, outputs) + weights(outputs)

    def normalized(x: Any) -> Any:
        return graph.apply("LayerNormalization", x, np.ones(size, np.float32), np.zeros(size, np.float32), axis=-1)

    for _ in range(layers):
        parts = (graph.apply("Reshape", linear(h, size, size), np.array((0, 0, heads, -1))) for _ in range(3))
        q, k, v = (graph.apply("Transpose", x, perm=(0, 2, 1, 3)) for x in parts)
        scores = q @ graph.apply("Transpose", k, perm=(0, 1, 3, 2)) / np.float32((size // heads) ** 0.5)
        mixed = graph.apply("Transpose", graph.apply("Softmax", scores, axis=-1) @ v, perm=(0, 2, 1, 3))
        h = normalized(h + linear(graph.apply("Reshape", mixed, np.array((0, 0, size))), size, size))
        h = normalized(h + linear(graph.apply("Gelu", linear(h, size, 4 * size)), 4 * size, size))
    return graph.compile(y=h, engine=dnn.Engine(threads=1))


def resnet50() -> dnn.Network:
    graph = dnn.Graph("ResNet-50")

    def conv(x: Any, inputs: int, outputs: int, kernel: int, stride: int = 1) -> Any:
        own, pads = (weights(outputs, inputs, kernel, kernel), weights(outputs)), (kernel // 2,) * 4
        return graph.apply("Conv", x, *own, pads=pads, strides=(stride, stride))

    def relu(x: Any) -> Any:
        return graph.apply("Relu", x)

    h: Any = relu(conv(graph.input("x", ("batch", 3, 224, 224)), 3, 64, 7, 2))
    h, channels = graph.apply("MaxPool", h, kernel_shape=(3, 3), strides=(2, 2), pads=(1,) * 4), 64
    for blocks, width, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for block in range(blocks):
            step = 1 if block else stride
            short = h if block else conv(h, channels, 4 * width, 1, step)
            inner = relu(conv(relu(conv(h, channels, width, 1)), width, width, 3, step))
            h, channels = relu(conv(inner, width, 4 * width, 1) + short), 4 * width
    rows = graph.apply("Flatten", graph.apply("GlobalAveragePool", h))
    return graph.compile(y=graph.apply("Gemm", rows, weights(2048, 1000)), engine=dnn.Engine(threads=1))


def of_file(path: str) -> tuple[str, dnn.Network, Shapes]:
    """A recogniser: its input's last dim is open."""
    net = dnn.load_onnx(path, engine=dnn.Engine(threads=1))
    (name,) = net.inputs
    return path.rpartition("/")[2], net, [{name: (1, 3, 48, width)} for width in WIDTHS]


class Stages:
    """Milliseconds by stage; what a stage calls of others counts for these."""

    def __init__(self) -> None:
        self.spent, self.inner = defaultdict[str, float](float), list[float]()

    def watch(self, owner: Any, name: str, stage: str) -> None:
        function = getattr(owner, name)
        setattr(owner, name, self.timed(function, stage))

    def timed(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            start = thread_time()
            self.inner.append(0.0)
            try:
                return function(*arguments, **named)
            finally:
                taken = thread_time() - start
                self.spent[stage] += 1e3 * (taken - self.inner.pop())
                if self.inner:
                    self.inner[-1] += taken

        return call


def rows(net: Any, shapes: Shapes, stages: Stages) -> list[dict[str, float]]:
    """Of each shape after the second."""
    found = []
    for shape in shapes:
        stages.spent.clear()
        stages.timed(lambda shape: net.at(shape).prepare_to_run(), "other")(shape)
        found.append(dict(stages.spent))
    return found[2:]


def lines(title: str, found: Sequence[dict[str, float]]) -> Iterator[str]:
    yield f"{title}: {len(found)} further shapes{'':20}median{'':4}least"
    for stage in dict.fromkeys(stage for row in found for stage in row):
        spent = [row.get(stage, 0.0) for row in found]
        yield f"  {stage:50}{median(spent):8.1f} {min(spent):8.1f}"
    sums = [sum(row.values()) for row in found]
    yield f"  {'all':50}{median(sums):8.1f} {min(sums):8.1f}"


def main(files: Sequence[str]) -> None:
    stages = Stages()
    stages.watch(Template, "apply", "template: numbers, decisions, descriptions")
    stages.watch(lowered.ModelLowering, "of", "what no template fits, and making one")
    stages.watch(implementation, "_find_plan", "plans of primitives")
    stages.watch(planned, "compiled", "join, barriers, arena")
    stages.watch(compiled, "program_of", "kernels loaded, tables of the call")
    stages.watch(execution, "kernel_cache", "kernels loaded, tables of the call")
    cases: list[tuple[str, Any, Shapes]] = [of_file(path) for path in files] or [
        ("encoder 6x384", encoder(), [{"x": (1, tokens, 384)} for tokens in TOKENS]),
        ("ResNet-50", resnet50(), [{"x": (batch, 3, 224, 224)} for batch in BATCHES]),
    ]
    for title, net, shapes in cases:
        net._kept = None  # a shape that the disk has is not planned
        for line in lines(title, rows(net, shapes, stages)):
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
