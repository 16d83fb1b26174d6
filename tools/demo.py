"""The main job: PP-OCRv4 reads a page; its three networks are proved, compared with onnxruntime, and timed beside it;
then the recogniser reads the lines in f32, bf16 and int8, and says what each costs and gives.

python -m tools.demo [--isa NAME] [--threads N] [--docs]        exit status 1 when a check fails, 2 for bad options
"""

import argparse
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from PIL import Image

import asmdnn as dnn
from asmdnn.bench.timing import PAUSE_S, interleaved
from asmdnn.cli.guard import guarded
from asmdnn.cli.info import cpu_brand
from asmdnn.errors import AsmdnnError
from asmdnn.runtime.other_work import OtherWork
from examples import models, ocr, quantize

ROOT: Final = Path(__file__).resolve().parent.parent
PICTURE: Final = ROOT / "build" / "demo" / "page.png"
DOCS_PICTURE: Final = ROOT / "docs" / "images" / "page.png"
WORDS: Final = ("segmentation", "markers of the coins", "object or background", "histogram")  # on the page
WORST: Final = 1e-4  # a difference to onnxruntime, of outputs that are probabilities
TIMING_S: Final = 0.5
ROWS: Final = 12  # of the slowest primitives
DOTS_PER_INCH: Final = 100
NIGHT, INK, DIM, BOX = "#0b0d12", "#e8eaf0", "#8a91a3", "#ff8c32"
FAILED: Final = 1


@dataclass(frozen=True)
class Part:
    """A network with an input from the page."""

    name: str
    file: str
    net: dnn.Network
    x: ocr.Floats


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--isa", default="", help="avx2, avx512_core, ...; default: the best that this machine has")
    options.add_argument("--threads", type=int, default=0, help="default: the OpenMP thread count")
    options.add_argument("--docs", action="store_true", help=f"also write {DOCS_PICTURE.relative_to(ROOT)}")
    arguments = options.parse_args()
    return guarded("demo", lambda: run(dnn.Engine(isa=arguments.isa, threads=arguments.threads), arguments.docs))


def run(engine: dnn.Engine, docs: bool) -> int:
    """Read, draw, check, time; the exit status."""
    try:
        models.download()
    except models.MissingModel as error:
        raise AsmdnnError(f"{error}; make demo-kernels needs no model") from None
    print(f"asmdnn {dnn.__version__} on {cpu_brand()}: ISA {engine.isa}, threads {engine.threads}\n", flush=True)
    reader = ocr.TextReader(engine)
    with Image.open(ocr.page()) as photo:
        page = photo.convert("RGB")
    lines = reader.read(page)
    for line in lines:
        print(f"  {line.confidence:.2f}  {line.text}")
    is_read = all(any(words in line.text for line in lines) for words in WORDS)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    for path in (PICTURE, *([DOCS_PICTURE] if docs else [])):
        picture(page, lines).savefig(path, dpi=DOTS_PER_INCH, metadata={"Software": None})
        print(f"  {path}", flush=True)
    every, others = list(parts(reader, page, lines)), OtherWork()
    are_right = [beside_peer(part, engine.threads) for part in every]
    for part in every:
        slowest(part)
    recogniser = quantize.Recogniser(quantize.lines_of_page(engine), engine)
    print("\nthe page's lines by precision:", *quantize.rows(list(recogniser.readings())), sep="\n  ", flush=True)
    others.warn(sys.stderr)
    return 0 if is_read and all(are_right) else FAILED


def parts(reader: ocr.TextReader, page: Image.Image, lines: list[ocr.Line]) -> Iterator[Part]:
    """The detector on the page, the two others on its longest line."""
    longest = ocr.cut_out(page, max(lines, key=lambda line: len(line.text)).corners)
    for name, file, x in (
        ("finds lines", ocr.DETECTOR, ocr.detector_input(page)),
        ("is it upright?", ocr.CLASSIFIER, ocr.line_input(longest, ocr.CLASSIFIER_WIDTH)),
        ("reads a line", ocr.RECOGNISER, ocr.line_input(longest, ocr.recogniser_width(longest))),
    ):
        yield Part(name, file, reader.network(file, x.shape), x)


def beside_peer(part: Part, threads: int) -> bool:
    """A row: size, proof, time, and what onnxruntime says to the same input; whether they agree."""
    part.net.check()  # raises where a proof fails
    y = part.net(part.x)
    out = np.empty_like(y)
    (given,), (result,) = part.net.inputs, part.net.outputs
    calls: list[Callable[[], object]] = [part.net.bind(**{given: part.x, result: out})]
    peer = peer_of(part, threads)
    if peer:
        calls.append(peer)
    mine, *theirs = (times.least for times in interleaved(calls, TIMING_S, pause_s=PAUSE_S * (threads > 1)))
    dims = "x".join(map(str, part.x.shape))
    row = f"{part.name:15} {dims:15} {len(part.net.model.body.nodes):4} nodes, proved, {mine * 1e3:8.2f} ms"
    if not peer:
        print(f"{row}; no onnxruntime to compare with: pip install onnxruntime", flush=True)
        return True
    worst = float(abs(peer()[0] - y).max())
    (other,) = theirs
    verdict = "" if worst <= WORST else f", WRONG: more than {WORST:.0e}"
    print(f"{row}, onnxruntime {other * 1e3:8.2f} ms, {other / mine:.2f}x; differs by {worst:.0e}{verdict}", flush=True)
    return worst <= WORST


def peer_of(part: Part, threads: int) -> Callable[[], Any] | None:
    """A run of the same model on the same input, if onnxruntime is there."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(models.file(ocr.PACKAGE, part.file), options)
    (given,) = part.net.inputs
    return lambda: session.run(None, {given: part.x})


def slowest(part: Part) -> None:
    """The primitives that take most of the time."""
    table = part.net.profile({next(iter(part.net.inputs)): part.x}).splitlines()
    print(f"\n{part.name}: {part.file}")
    print("\n".join(table[: ROWS + 1]))
    if len(table) > ROWS + 1:
        print(f"{'...':>10}")


def picture(page: Image.Image, lines: list[ocr.Line]) -> Figure:
    """The page with its lines in frames, and beside it what was read, at the same height."""
    wide, high = page.size
    figure = Figure(figsize=(14, 14 * high / (2 * wide)), dpi=DOTS_PER_INCH, facecolor=NIGHT)
    left, right = (figure.add_axes((x, 0, 0.5, 1)) for x in (0, 0.5))
    left.imshow(page, interpolation="bicubic", aspect="auto")
    for axes in (left, right):
        axes.set(xlim=(0, wide), ylim=(high, 0), facecolor=NIGHT)
        axes.axis("off")
    for line in lines:
        left.add_patch(Polygon(line.corners, fill=False, edgecolor=BOX, linewidth=1.5))
        y = float(line.corners[:, 1].mean())
        text = unicodedata.normalize("NFKC", line.text)  # full-width brackets are not in the font
        right.text(14, y, text, color=INK, size=14, va="center", family="DejaVu Sans")
        right.text(wide - 4, y, f"{line.confidence:.2f}", color=DIM, size=10, va="center", ha="right")
    return figure


if __name__ == "__main__":
    sys.exit(main())
