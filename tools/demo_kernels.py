"""The kernels at work: 64 filters over a photograph, then ResNet-50's convolutions; all checked, the second timed.

python -m tools.demo_kernels [--isa NAME] [--threads N] [--docs]   exit status 1 when a check fails, 2 for bad options
"""
# ruff: noqa: RUF001 - the sheet is printed as mathematics writes it

import argparse
import io
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import cbook
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from PIL import Image

import asmdnn as dnn
from asmdnn.bench.peers import onednn_library
from asmdnn.bench.timing import interleaved
from asmdnn.cli.guard import guarded
from asmdnn.cli.info import cpu_brand
from asmdnn.errors import AsmdnnError
from asmdnn.runtime.other_work import OtherWork
from asmdnn.runtime.peak import multiply_add_gflops
from tools import filter_bank, resnet_table
from tools.filter_bank import FAMILIES, Doubles, Floats

ROOT = Path(__file__).resolve().parent.parent
SHEET = ROOT / "build" / "demo" / "filter_bank.png"
DOCS_SHEET = ROOT / "docs" / "images" / "filter_bank.png"
PHOTO = "grace_hopper.jpg"  # Grace Hopper, photographed by the U.S. Navy: public domain
TIMING_S = 0.3
FAILED = 1

# The sheet, in pixels at full size, where a panel shows its result pixel by pixel.
COLUMNS = 8
MARGIN, GAP, CAPTION, HEADING, BAND, INSET = 44, 14, 42, 40, 260, 63
DOTS_PER_INCH, DOCS_DOTS_PER_INCH, DOCS_COLOURS = 100, 44, 60
POINTS = 72 / DOTS_PER_INCH  # a pixel in the unit of font sizes
NIGHT, INK, DIM = "#0b0d12", "#e8eaf0", "#8a91a3"
# Zero has the page's colour: what a filter ignores goes dark.
SIGNED = LinearSegmentedColormap.from_list(
    "signed", ["#b5e6ff", "#38a8f5", "#176cb0", NIGHT, "#b8480a", "#ff8c32", "#ffdf9e"]
)
STRONGEST = 98.5  # percentile of |result|: a few edges at the photograph's border must not dim the rest


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--isa", default="", help="avx2, avx512_core, ...; default: the best that this machine has")
    options.add_argument("--threads", type=int, default=0, help="default: the OpenMP thread count")
    options.add_argument("--docs", action="store_true", help=f"also write {DOCS_SHEET.relative_to(ROOT)}")
    arguments = options.parse_args()
    return guarded(
        "demo-kernels", lambda: run(dnn.Engine(isa=arguments.isa, threads=arguments.threads), arguments.docs)
    )


def run(engine: dnn.Engine, docs: bool) -> int:
    """Both jobs, the second also when the first has failed."""
    peer, why_no_peer = "", ""
    try:
        peer = onednn_library.load().version
    except AsmdnnError as error:
        why_no_peer = str(error).removeprefix("--peer=onednn: ")
    SHEET.parent.mkdir(parents=True, exist_ok=True)  # a tree that cannot be written fails before anything is computed
    print(header(engine, peer or "not installed"), flush=True)
    others = OtherWork()
    statuses = [filter_bank_job(engine, docs), resnet_job(engine, why_no_peer)]
    others.warn(sys.stderr)
    return 0 if all(statuses) else FAILED


def header(engine: dnn.Engine, peer_version: str) -> str:
    """What the numbers below belong to."""
    versions = [f"{name} {metadata.version(name)}" for name in ("numpy", "PeachPy", "scipy", "matplotlib")]
    peak = multiply_add_gflops(engine.isa, threads=engine.threads)
    return (
        f"asmdnn {dnn.__version__} on {cpu_brand()}: ISA {engine.isa}, threads {engine.threads}, "
        f"measured f32 FMA peak {peak:.1f} GFLOP/s\n"
        f"Python {platform.python_version()}, {', '.join(versions)}, oneDNN {peer_version}"
    )


def filter_bank_job(engine: dnn.Engine, docs: bool) -> bool:
    """Filter, check, draw; whether the check passed."""
    pixels = photograph()
    image = np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])
    filters = filter_bank.bank()
    weights = filter_bank.colour_weights(filters)
    result = filter_bank.convolve(image, weights, engine)
    (times,) = interleaved([lambda: filter_bank.convolve(image, weights, engine)], TIMING_S)
    sizes = " -> ".join("x".join(map(str, array.shape)) for array in (image, result))
    what = f"64 filters of 3x7x7 on RGB, stride 2, {sizes}"
    print(f"\nFilter bank: {what}: {times.least * 1e3:.2f} ms a call of ops.conv2d")
    verdict, bound = filter_bank.check(image, weights, result)
    print(
        f"  against scipy in float64: {verdict.reason or 'right'}, largest error {verdict.max_error:.1e}; f32 rounding "
        f"may reach {bound:.1e}, and no element is beyond {100 * verdict.ratio:.1f} % of its own bound",
        flush=True,
    )
    figure = sheet(pixels, filters, result[0])
    figure.savefig(SHEET, dpi=DOTS_PER_INCH, metadata={"Software": None})
    print(f"  {SHEET}")
    if docs:
        write_small(figure, DOCS_SHEET)
        print(f"  {DOCS_SHEET}, {DOCS_SHEET.stat().st_size / 1000:.0f} kB")
    return not verdict.reason


def photograph() -> Floats:
    """f32 (600, 512, 3) from 0 to 1; it comes with matplotlib."""
    with Image.open(str(cbook.get_sample_data(PHOTO, asfileobj=False))) as photo:
        return np.asarray(photo.convert("RGB"), np.float32) / np.float32(255)


def resnet_job(engine: dnn.Engine, why_no_peer: str) -> bool:
    """The table, row by row; whether all layers are right."""
    peer = "" if why_no_peer else "onednn"
    beside = "beside oneDNN, samples interleaved in this process" if peer else "without oneDNN"
    print(f"\nResNet-50, 1 image: its 53 convolutions, each checked and measured for itself, {beside}")
    print(resnet_table.header(), flush=True)
    layers = []
    for layer in resnet_table.run(resnet_table.network(engine, peer), engine):
        print(resnet_table.row(layer), flush=True)
        layers.append(layer)
    print(resnet_table.summary(layers, engine, why_no_peer))
    return all(layer.record.ok for layer in layers)


class Page:
    """A figure whose places are pixels from the top left corner."""

    def __init__(self, width: int, height: int) -> None:
        self._size = width, height
        inches = width / DOTS_PER_INCH, height / DOTS_PER_INCH
        self.figure = Figure(figsize=inches, dpi=DOTS_PER_INCH, facecolor=NIGHT)

    def panel(self, x: int, y: int, wide: int, high: int, values: Floats | Doubles, strongest: float = 0) -> Axes:
        """An image: RGB as it is; brightness from 0 to 1 as grey; with `strongest`, the percentile of |values| that
        gets the last colour, signed values in two colours."""
        width, height = self._size
        axes = self.figure.add_axes((x / width, 1 - (y + high) / height, wide / width, high / height))
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        if strongest:
            largest = float(np.percentile(np.asarray(abs(values), np.float64), strongest)) or 1.0
            axes.imshow(values, SIGNED, vmin=-largest, vmax=largest, aspect="auto")
        else:
            axes.imshow(values, "gray", vmin=0, vmax=1, aspect="auto")
        return axes

    def text(self, x: float, y: float, words: str, size: int, **style: Any) -> None:
        """`words` with their base line at (x, y), `size` pixels high."""
        width, height = self._size
        self.figure.text(x / width, 1 - y / height, words, **{"size": size * POINTS, "color": INK, **style})


def sheet(photo: Floats, filters: dict[str, Doubles], result: Floats) -> Figure:
    """The photograph (h, w, 3), and under it result[i] with filter i in its corner, a family in each row."""
    high, wide = result.shape[1:]
    left, top = MARGIN + HEADING, 2 * MARGIN + BAND
    width, step = left + COLUMNS * (wide + GAP) - GAP + MARGIN, high + CAPTION + GAP
    page = Page(width, top + len(FAMILIES) * step - GAP + MARGIN)
    title(page, photo, result, left, width - MARGIN)
    for row, family in enumerate(FAMILIES):
        y = top + row * step
        page.text(left - 14, y + high / 2, family, 24, color=DIM, rotation=90, ha="right", va="center")
    for i, ((name, weights), values) in enumerate(zip(filters.items(), result, strict=True)):
        x, y = left + i % COLUMNS * (wide + GAP), top + i // COLUMNS * step
        page.panel(x, y, wide, high, values, STRONGEST if abs(weights.sum()) < 0.5 else 0)
        inset = page.panel(x + 6, y + high - INSET - 6, INSET, INSET, weights, strongest=100)
        inset.spines[:].set(visible=True, color=DIM, linewidth=POINTS)
        page.text(x + 1, y + high + 29, name, 24)
    return page.figure


def title(page: Page, photo: Floats, result: Floats, left: int, right: int) -> None:
    """The band at the top: what went in, what happened, and what the colours mean."""
    portrait = BAND * photo.shape[1] // photo.shape[0]
    page.panel(left, MARGIN, portrait, BAND, photo)
    x = left + portrait + 3 * GAP
    page.text(x, MARGIN + 74, "64 filters, one convolution", 76, weight="bold")
    page.text(x, MARGIN + 136, "asmdnn.ops.conv2d(photo, filters, stride=2, padding=3)", 36, family="monospace")
    (h, w, c), (oc, oh, ow) = photo.shape, result.shape
    page.text(x, MARGIN + 200, f"f32, {c} × {h} × {w}  →  {oc} × {oh} × {ow}", 30, color=DIM)
    page.text(x, MARGIN + 246, "7 × 7 taps on each of R, G, B, weighted as the eye sees them", 30, color=DIM)
    bar = 420
    page.text(right, MARGIN + 148, "where a filter's sum is 0", 26, color=DIM, ha="right")
    page.panel(right - bar, MARGIN + 170, bar, 26, np.linspace(-1, 1, bar)[None], strongest=100)
    for at, words, side in ((bar, "negative", "left"), (bar / 2, "0", "center"), (0, "positive", "right")):
        page.text(right - at, MARGIN + 232, words, 26, color=DIM, ha=side)


def write_small(figure: Figure, path: Path) -> None:
    """For a web page: smaller, and with few colours, which compress well."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=DOCS_DOTS_PER_INCH)
    path.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(drawn) as image:
        # The octree, because the default, median cut, spends the colours on the many dark pixels.
        few = image.convert("RGB").quantize(DOCS_COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        few.save(path, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
