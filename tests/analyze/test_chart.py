"""The roofline: its arithmetic, where the point stands, and the files that it is drawn in."""

import json
import math
from xml.etree import ElementTree

import pytest

from asmdnn.analyze.chart import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axes,
    Marker,
    Polyline,
    Text,
    axes_of,
    chart_of,
)
from asmdnn.analyze.draw import svg_of
from asmdnn.analyze.json_form import json_of
from asmdnn.analyze.model import Analysis, Bound, KernelAnalysis, KernelPart, Measured, Point, peak_of_all
from asmdnn.analyze.text import BEATEN, percent_of_peak, text_of
from asmdnn.errors import InvalidArguments
from asmdnn.records import replace
from asmdnn.runtime.rates import Rates

RATES = Rates("a CPU", "avx2", clock_ghz=2.0, fma_gflops=64.0, l1_gbs=128.0, l2_gbs=64.0, l3_gbs=32.0, dram_gbs=8.0)
PEAKS = {"FMA": 64.0, "VDPBF16PS": 128.0}
PART = KernelPart(
    "loop", 0, trips=10.0, instructions=5, mix={"fma": 4, "branch": 1}, multiply_adds={"FMA": 64}, loaded_bytes=96,
    stored_bytes=32, bound=Bound(2.0, "P0", 2.5),
)  # fmt: skip
KERNEL = KernelAnalysis(0, "kernel", 3, (PART,), 20.0, Measured(25.0, 40.0))


def a_point(flops: float, size: int, seconds: float) -> Point:
    """Of FMA."""
    return Point({"FMA": flops} if flops else {}, size, seconds, PEAKS["FMA"])


POINT = a_point(4000.0, 1000, 1e-7)


def analysis(point: Point | None = POINT, rates: Rates | None = RATES) -> Analysis:
    return Analysis(
        "problem", "direct:avx2", isa="avx2", mca="LLVM's model of x", not_measured="" if rates else "no CPU",
        kernels=(KERNEL,), rates=rates, peaks=PEAKS, point=point,
    )  # fmt: skip


def test_a_point() -> None:
    point = POINT
    assert point.intensity == 4.0
    assert point.gflops == pytest.approx(40.0)
    assert point.gbs == pytest.approx(10.0)
    assert [point.roof(gbs) for _, gbs in RATES.roofs] == [64.0, 64.0, 64.0, 32.0]


def test_a_kernel() -> None:
    assert PART.intensity == 0.5
    assert KERNEL.flops == 640
    assert (KERNEL.bound_cycles(simulated=False), KERNEL.bound_cycles(simulated=True)) == (20.0, 25.0)
    assert percent_of_peak(KERNEL, RATES, PEAKS) == pytest.approx(100 * 640 / 40 * 2.0 / 64.0)
    unknown = replace(KERNEL, parts=(replace(PART, trips=None, bound=None),), measured=None)
    assert (unknown.flops, unknown.bound_cycles(False), percent_of_peak(unknown, RATES, PEAKS)) == (None, None, None)


def test_peaks_of_dot_products() -> None:
    """Each instruction's flops at its own peak, one after the other: here 320 / 64 + 640 / 128 ns."""
    half = replace(PART, multiply_adds={"VDPBF16PS": 64})
    mixed = replace(KERNEL, parts=(half, replace(PART, trips=5.0)))
    assert mixed.multiply_adds == {"VDPBF16PS": 640, "FMA": 320}
    assert peak_of_all({"VDPBF16PS": 640, "FMA": 320}, PEAKS) == pytest.approx(96.0)
    assert peak_of_all({}, PEAKS) == 64.0
    only = replace(KERNEL, parts=(half,))
    assert percent_of_peak(only, RATES, PEAKS) == pytest.approx(100 * 640 / 40 * 2.0 / 128.0)
    assert percent_of_peak(mixed, RATES, PEAKS) == pytest.approx(100 * 960 / 40 * 2.0 / 96.0)
    point = Point({"VDPBF16PS": 4000.0}, 1000, 1e-7, 128.0)
    assert [point.roof(gbs) for _, gbs in RATES.roofs] == [128.0, 128.0, 128.0, 32.0]
    text = text_of(analysis(point))
    assert "VDPBF16PS peak    128.0 GFLOP/s" in text and ": 31 % of the peak" in text
    both = Point({"VDPBF16PS": 640.0, "FMA": 320.0}, 1000, 2e-8, 96.0)
    assert ": 50 % of 96.0, of all its multiply-adds at their peaks" in text_of(analysis(both))
    words = [shape.text for shape in chart_of(analysis(both)) if isinstance(shape, Text)]
    assert {"FMA peak 64 GFLOP/s", "VDPBF16PS peak 128 GFLOP/s"} <= set(words)
    assert not any("FMA" in shape.text for shape in chart_of(analysis(point)) if isinstance(shape, Text))


def test_places() -> None:
    axes = Axes(-1, 3, 0, 2.0)
    assert axes.place(0.1, 1) == (LEFT, HEIGHT - BOTTOM)
    assert axes.place(1000, 100) == (WIDTH - RIGHT, TOP)
    assert axes.place(10, 10) == ((LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2)


def test_the_point_stands_where_it_must() -> None:
    point = POINT
    dots = [shape for shape in chart_of(analysis()) if isinstance(shape, Marker)]
    (filled,) = (dot for dot in dots if dot.filled)
    axes = axes_of(RATES, {"FMA": 64.0}, point)
    assert (filled.x, filled.y) == axes.place(4.0, 40.0)
    assert any((dot.x, dot.y) == axes.place(0.5, 640 / 40 * 2.0) for dot in dots)


def test_roofs_end_at_the_peak() -> None:
    axes = axes_of(RATES, {"FMA": 64.0}, POINT)
    lines = [shape for shape in chart_of(analysis()) if isinstance(shape, Polyline) and shape.width == 1.8]
    assert [line.points[1] for line in lines] == [axes.place(64 / gbs, 64) for _, gbs in RATES.roofs]


@pytest.mark.parametrize("point", [POINT, a_point(0.0, 1000, 1e-7), a_point(1.0, 10**6, 1e-3), a_point(1e9, 10, 1.0)])
def test_everything_is_on_the_sheet(point: Point) -> None:
    for shape in chart_of(analysis(point)):
        places = shape.points if isinstance(shape, Polyline) else ((shape.x, shape.y),)
        for x, y in places:
            assert 0 <= x <= WIDTH and 0 <= y <= HEIGHT, shape
    root = ElementTree.fromstring(svg_of(chart_of(analysis(point))))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "http" not in svg_of(chart_of(analysis(point))).replace("http://www.w3.org/2000/svg", "")


def test_words_are_escaped() -> None:
    assert "&lt;a&gt;" in svg_of([Text(1, 2, "<a>")])


def test_nothing_to_draw() -> None:
    with pytest.raises(InvalidArguments, match="there is no roofline to draw: no CPU"):
        chart_of(analysis(None, None))


def test_text_and_json() -> None:
    text = text_of(analysis())
    assert "40.0 GFLOP/s" in text and " % of the peak" in text
    assert "too pessimistic" not in text
    fast = KernelAnalysis(0, "kernel", 3, (PART,), 20.0, Measured(BEATEN * 20.0 - 1, 40.0))
    beaten = Analysis(
        "p", "i", isa="avx2", mca="m", not_measured="", kernels=(fast,), rates=RATES, peaks=PEAKS, point=POINT
    )
    assert "too pessimistic" in text_of(beaten)
    assert "not measured, no CPU" in text_of(analysis(None, None))
    assert "no arithmetic" in text_of(analysis(a_point(0.0, 1000, 1e-7)))
    data = json.loads(json_of(analysis()))
    assert data["schema"] == 1
    assert data["point"]["intensity"] == 4.0
    assert data["kernels"][0]["flops"] == 640
    assert (data["kernels"][0]["parts"][0]["flops"], data["point"]["flops"]) == (64, 4000.0)
    assert data["peaks"] == PEAKS
    assert data["kernels"][0]["parts"][0]["bound"] == {"ports": 2.0, "ports_limit": "P0", "simulated": 2.5}
    assert math.isclose(data["rates"]["dram_gbs"], 8.0)
