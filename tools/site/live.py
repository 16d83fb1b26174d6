"""Pages that the library draws of its own work, shown inside pages of the site."""

from pathlib import Path
from typing import Final

import numpy as np

import asmdnn as dnn
from asmdnn.cli.main import main
from asmdnn.network.studio.page import html_of
from asmdnn.network.studio.variants import Variant, variant_of
from examples.train_digits import step_of

LAYER: Final = "mb1ic64ih56oc64oh56kh3ph1"
MACHINES: Final = ("zen4", "zen3", "sapphire_rapids")  # the first draws the network, so that every build is alike
FRAME: Final = (
    '<iframe src="{file}" title="{title}" style="width: 100%; height: 85vh; border: 1px solid #8884"></iframe>'
)


def write_live_pages(folder: Path) -> None:
    """Pages of a kernel, a network, a training step and the studio, and a page of the site around each."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["explain", "--conv", "--isa=avx512_core", f"--html={folder / 'kernel.html'}", LAYER]
    if main(words) != 0:
        raise RuntimeError(f"asmdnn {' '.join(words)} failed")
    engine = dnn.Engine(machine=MACHINES[0], threads=2)
    (folder / "network.html").write_text(small_network(engine).page())
    (folder / "training.html").write_text(step_of(engine, seed=0, steps=100).page())
    (folder / "studio.html").write_text(html_of("residual", variants()))
    wrap(
        folder, "kernel-explained", "kernel.html", "A kernel, explained",
        "Every instruction of a 3x3 convolution for AVX-512: bytes, role, and the line of Python that emitted it. "
        f"`asmdnn explain --conv --html=FILE {LAYER}` writes this page for any problem.",
    )  # fmt: skip
    wrap(
        folder, "network-drawn", "network.html", "A network, drawn",
        "Which operators became which primitives, their formats, and the memory between them over time. "
        "`asmdnn explain --html=FILE model.onnx` writes this page for any network.",
    )  # fmt: skip
    wrap(
        folder, "training-drawn", "training.html", "A training step, drawn",
        "Loss, gradients and updates of a small network that learns to read digits, as one call. "
        "`step.page()` returns this page for any training step.",
    )  # fmt: skip
    wrap(
        folder, "what-if", "studio.html", "What if: the studio",
        "A network as it is planned for other CPUs, threads and precisions: choose above, then a box of the graph. "
        "`asmdnn studio model.onnx` writes this page for any network.",
    )  # fmt: skip


def variants() -> list[Variant]:
    """The small network for several machines, precisions and numbers of threads."""
    return [
        variant_of(
            small_network(dnn.Engine(machine=machine, threads=threads), precision).planned("looked at"), precision
        )
        for machine in MACHINES
        for precision in ("f32", "fast")
        for threads in (1, 2, 4)
    ]


def wrap(folder: Path, name: str, file: str, title: str, text: str) -> None:
    frame = FRAME.format(file=file, title=title)
    (folder / f"{name}.md").write_text(f"# {title}\n\n{text}\n\n[On a page of its own]({file})\n\n{frame}\n")


def small_network(engine: dnn.Engine, precision: str = "f32") -> dnn.Network:
    """A residual block between a stem and a classifier."""
    random = np.random.default_rng(0)

    def weights(*dims: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
        return (random.standard_normal(dims) / 10).astype(np.float32)

    graph = dnn.Graph("residual")
    value = graph.input("image", (1, 3, 64, 64))
    value = graph.apply("Relu", graph.apply("Conv", value, weights(32, 3, 7, 7), pads=(3,) * 4, strides=(2, 2)))
    value = graph.apply("MaxPool", value, kernel_shape=(3, 3), strides=(2, 2), pads=(1,) * 4)
    inner = graph.apply("Relu", graph.apply("Conv", value, weights(32, 32, 3, 3), pads=(1,) * 4))
    inner = graph.apply("Conv", inner, weights(32, 32, 3, 3), pads=(1,) * 4)
    value = graph.apply("Relu", graph.apply("Add", value, inner))
    pooled = graph.apply("Flatten", graph.apply("GlobalAveragePool", value))
    scores = graph.apply("Softmax", graph.apply("Gemm", pooled, weights(32, 10)))
    return graph.compile(scores=scores, engine=engine, precision=precision)
