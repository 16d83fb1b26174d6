"""The roofline as a chart: lines, dots and words in pixels, which svg.py and png.py write down.

Both axes are logarithmic.  Source: Williams, Waterman, Patterson, "Roofline" (2009); a roof for every memory level, as
in Ilic, Pratas, Sousa, "Cache-aware roofline model" (2014).
"""

import math
from collections.abc import Iterator, Mapping

from asmdnn.analyze.model import Analysis, KernelAnalysis, Point
from asmdnn.errors import InvalidArguments
from asmdnn.isa.multiply_adds import FMA
from asmdnn.records import dataclass
from asmdnn.runtime.rates import Rates

WIDTH, HEIGHT = 860.0, 540.0
LEFT, RIGHT, TOP, BOTTOM = 76.0, 40.0, 78.0, 62.0
INK, SOFT, GRID = "#23272f", "#5d6675", "#e6e4df"
ROOFS = {"L1": "#197a5a", "L2": "#2a6fb0", "L3": "#8a45b5", "DRAM": "#b5602a"}
PEAK, ACCENT = "#23272f", "#c2372b"


@dataclass(frozen=True, slots=True)
class Polyline:
    """A polyline."""

    points: tuple[tuple[float, float], ...]
    colour: str
    width: float = 1.0
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Marker:
    x: float
    y: float
    radius: float
    colour: str
    filled: bool = True


@dataclass(frozen=True, slots=True)
class Text:
    """anchor: start, middle or end; angle in degrees, counter-clockwise."""

    x: float
    y: float
    text: str
    size: float = 12.0
    colour: str = SOFT
    anchor: str = "start"
    angle: float = 0.0
    bold: bool = False


Shape = Polyline | Marker | Text


@dataclass(frozen=True, slots=True)
class Axes:
    """Powers of ten: [x0, x1] of flops per byte and [y0, y1] of GFLOP/s; the upper end need not be a whole decade."""

    x0: int
    x1: int
    y0: int
    y1: float

    def place(self, intensity: float, gflops: float) -> tuple[float, float]:
        x = LEFT + (math.log10(intensity) - self.x0) / (self.x1 - self.x0) * (WIDTH - LEFT - RIGHT)
        y = HEIGHT - BOTTOM - (math.log10(gflops) - self.y0) / (self.y1 - self.y0) * (HEIGHT - TOP - BOTTOM)
        return round(x, 2), round(y, 2)


def chart_of(analysis: Analysis) -> tuple[Shape, ...]:
    """Raises InvalidArguments where nothing was measured."""
    rates, point = analysis.rates, analysis.point
    if rates is None or point is None:
        raise InvalidArguments(f"there is no roofline to draw: {analysis.not_measured}")
    kernels = [kernel for kernel in analysis.kernels if kernel.measured and kernel.flops and intensity_of(kernel)]
    peaks = {name: analysis.peaks[name] for name in point.multiply_adds or (FMA,)}
    axes = axes_of(rates, peaks, point)
    return (
        *_frame(axes, analysis),
        *_roofs(axes, rates, peaks),
        *_kernel_dots(axes, rates, kernels),
        *_point(axes, rates, point),
    )


def axes_of(rates: Rates, peaks: Mapping[str, float], point: Point) -> Axes:
    """Around all corners and the point; peaks: those of its multiply-adds."""
    highest_peak = max(peaks.values())
    lowest = min(0.1, point.intensity) if point.flops else 0.1
    highest = max(100.0, 2 * point.intensity, 2 * highest_peak / rates.dram_gbs)
    bottom = lowest * rates.dram_gbs
    if point.flops:
        bottom = min(bottom, point.gflops)
    left, right = math.floor(math.log10(lowest)), math.ceil(math.log10(highest))
    return Axes(left, right, math.floor(math.log10(bottom)), math.log10(2.2 * highest_peak))


def intensity_of(kernel: KernelAnalysis) -> float | None:
    """flops of a call for each byte between registers and L1."""
    moved = sum((part.loaded_bytes + part.stored_bytes) * (part.trips or 0) for part in kernel.parts)
    return kernel.flops / moved if kernel.flops and moved else None


def _frame(axes: Axes, analysis: Analysis) -> Iterator[Shape]:
    rates = analysis.rates
    assert rates is not None
    yield Text(LEFT, 30, analysis.problem, 16, INK, bold=True)
    about = f"{analysis.implementation} on one core of {rates.cpu}, {rates.clock_ghz} GHz"
    yield Text(LEFT, 52, about, 12.5)
    for decade in range(axes.x0, axes.x1 + 1):
        top, bottom = axes.place(10.0**decade, 10.0**axes.y1), axes.place(10.0**decade, 10.0**axes.y0)
        yield Polyline((top, bottom), GRID)
        yield Text(bottom[0], bottom[1] + 20, f"{10.0**decade:g}", anchor="middle")
    for decade in range(axes.y0, math.floor(axes.y1) + 1):
        left, right = axes.place(10.0**axes.x0, 10.0**decade), axes.place(10.0**axes.x1, 10.0**decade)
        yield Polyline((left, right), GRID)
        yield Text(left[0] - 10, left[1] + 4, f"{10.0**decade:g}", anchor="end")
    yield Text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, "flops per byte", 12.5, INK, "middle")
    yield Text(x=22, y=(TOP + HEIGHT - BOTTOM) / 2, text="GFLOP/s", size=12.5, colour=INK, anchor="middle", angle=90)


def _roofs(axes: Axes, rates: Rates, peaks: Mapping[str, float]) -> Iterator[Shape]:
    """A slope for each level up to the highest peak, and the peaks."""
    highest = max(peaks.values())
    for name, gflops in peaks.items():
        right = axes.place(10.0**axes.x1, gflops)
        yield Polyline((axes.place(gflops / rates.l1_gbs, gflops), right), PEAK, 2.0)
        yield Text(right[0], right[1] - 8, f"{name} peak {gflops:g} GFLOP/s", 12, PEAK, "end")
    angle = math.degrees(
        math.atan2(
            (HEIGHT - TOP - BOTTOM) / (axes.y1 - axes.y0),
            (WIDTH - LEFT - RIGHT) / (axes.x1 - axes.x0),
        )
    )
    for number, (name, gbs) in enumerate(rates.roofs):
        begin = max(10.0**axes.x0, 10.0**axes.y0 / gbs)
        end = highest / gbs
        yield Polyline((axes.place(begin, begin * gbs), axes.place(end, highest)), ROOFS[name], 1.8)
        middle = 10 ** (0.5 * (math.log10(begin) + math.log10(end)))
        x, y = axes.place(middle, middle * gbs)
        lift = math.radians(angle)
        shift = 6 if number < len(rates.roofs) // 2 else -15  # above its line, or below: L2 and L3 may be close
        x, y = x - shift * math.sin(lift), y - shift * math.cos(lift)
        yield Text(
            x=round(x, 2),
            y=round(y, 2),
            text=f"{name} {gbs:g} GB/s",
            size=11.5,
            colour=ROOFS[name],
            anchor="middle",
            angle=round(angle, 1),
        )


def _kernel_dots(axes: Axes, rates: Rates, kernels: list[KernelAnalysis]) -> Iterator[Shape]:
    """Each kernel's calls in the plan's order, over what it moves between registers and L1."""
    for kernel in kernels:
        intensity = intensity_of(kernel)
        if kernel.measured and kernel.flops and intensity:
            gflops = kernel.flops / kernel.measured.in_order * rates.clock_ghz
            if 10.0**axes.x0 <= intensity <= 10.0**axes.x1 and gflops >= 10.0**axes.y0:
                yield Marker(*axes.place(intensity, gflops), 4.0, ROOFS["L1"], filled=False)
    if kernels:
        yield Marker(LEFT + 10, HEIGHT - BOTTOM - 14, 4.0, ROOFS["L1"], filled=False)
        yield Text(LEFT + 20, HEIGHT - BOTTOM - 10, "kernels: bytes between registers and L1", 11.5)


def _point(axes: Axes, rates: Rates, point: Point) -> Iterator[Shape]:
    if not point.flops:
        yield Text(LEFT + 10, TOP + 18, f"no arithmetic: {point.gbs:.1f} GB/s of its tensors", 12.5, ACCENT)
        return
    x, y = axes.place(point.intensity, point.gflops)
    roof = axes.place(point.intensity, max(point.roof(rates.dram_gbs), point.gflops))
    yield Polyline(((x, y), roof), ACCENT, 1.2, dashed=True)
    yield Marker(x, y, 6.0, ACCENT)
    share = f"{100 * point.share:.0f} % of the {'peaks' if len(point.multiply_adds) > 1 else 'peak'}"
    anchor, shift = ("end", -12.0) if x > WIDTH - RIGHT - 230 else ("start", 12.0)
    yield Text(x + shift, y + 18, f"{point.gflops:.1f} GFLOP/s, {share}", 12.5, ACCENT, anchor, bold=True)
    yield Text(x + shift, y + 35, f"{point.intensity:.1f} flop/B, each tensor once", 11.5, SOFT, anchor)
