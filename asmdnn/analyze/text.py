"""An analysis as tables for a terminal."""

from collections.abc import Iterator, Mapping

from asmdnn.analyze.model import Analysis, KernelAnalysis, KernelPart, Point, peak_of_all
from asmdnn.runtime.rates import Rates

BEATEN = 0.95  # measured below this share of a bound: then the bound is wrong, not the machine fast


def text_of(analysis: Analysis) -> str:
    lines = [analysis.problem, f"{analysis.implementation}, one thread", ""]
    lines += [*_loops(analysis), "", *_kernels(analysis), ""]
    if analysis.rates and analysis.point:
        lines += [*roofline(analysis.rates, analysis.peaks, analysis.point)]
    else:
        lines.append(f"roofline: not measured, {analysis.not_measured}")
    return "\n".join(lines)


def _loops(analysis: Analysis) -> Iterator[str]:
    yield f"loops, per pass; bounds: {analysis.mca}"
    yield (
        f"  {'kernel':>6} {'loop':<14} {'passes':>7} {'instr.':>6} {'flops':>6} {'load B':>6} {'store B':>7} "
        f"{'flop/B':>6} {'ports':>7} {'simul.':>7}  {'limit':<12} mix"
    )
    for kernel in analysis.kernels:
        for part in kernel.parts:
            yield _loop(kernel, part)


def _loop(kernel: KernelAnalysis, part: KernelPart) -> str:
    bound = part.bound
    name = "  " * part.depth + (part.name or "outside")
    mix = " ".join(f"{kind} {count}" for kind, count in part.mix.items())
    return (
        f"  {kernel.number:>6} {name:<14} {_cell(part.trips, 7, 1)} {part.instructions:>6} {part.flops:>6} "
        f"{part.loaded_bytes:>6} {part.stored_bytes:>7} {_cell(part.intensity, 6, 2)} "
        f"{_cell(bound.ports if bound else None, 7, 1)} {_cell(bound.simulated if bound else None, 7, 1)}  "
        f"{bound.ports_limit if bound else '-':<12} {mix}"
    )


def _kernels(analysis: Analysis) -> Iterator[str]:
    clock = f"; cycles of {analysis.rates.clock_ghz} GHz" if analysis.rates else ""
    yield f"kernels, cycles per call{clock}"
    yield (
        f"  {'kernel':>6} {'calls':>6} {'flops':>8} {'planned':>8} {'ports':>8} {'simul.':>8} {'hot':>8} "
        f"{'in order':>8} {'% peak':>6}  name"
    )
    beaten = False
    for kernel in analysis.kernels:
        measured, ports = kernel.measured, kernel.bound_cycles(simulated=False)
        beaten |= bool(measured and ports and measured.hot < BEATEN * ports)
        yield (
            f"  {kernel.number:>6} {kernel.calls:>6} {_cell(kernel.flops, 8, 0)} {kernel.expected:>8.0f} "
            f"{_cell(ports, 8, 0)} {_cell(kernel.bound_cycles(simulated=True), 8, 0)} "
            f"{_cell(measured.hot if measured else None, 8, 0)} "
            f"{_cell(measured.in_order if measured else None, 8, 0)} "
            f"{_cell(percent_of_peak(kernel, analysis.rates, analysis.peaks), 6, 0)}  {kernel.name}"
        )
    yield "  planned: the planner's model.  hot: one call over and over.  in order: all calls, as the plan has them"
    if beaten:
        yield "  a measured time below a bound says that LLVM's model of this CPU is too pessimistic there"


def percent_of_peak(kernel: KernelAnalysis, rates: Rates | None, peaks: Mapping[str, float]) -> float | None:
    """Of what its multiply-adds could do, each at its peak, in the plan's order."""
    if not rates or not kernel.measured or not kernel.multiply_adds:
        return None
    gflops = (kernel.flops or 0) / kernel.measured.in_order * rates.clock_ghz
    return 100 * gflops / peak_of_all(kernel.multiply_adds, peaks)


def roofline(rates: Rates, peaks: Mapping[str, float], point: Point) -> Iterator[str]:
    yield f"roofline of one core of {rates.cpu}, {rates.isa}, {rates.clock_ghz} GHz"
    if rates.disturbance:
        yield f"  {rates.disturbance}: measure again with --measure when the machine is at rest"
    width = max(10, *(len(f"{name} peak") for name in peaks))
    for name, gflops in peaks.items():
        yield f"  {name + ' peak':<{width}} {gflops:>8.1f} GFLOP/s"
    for name, gbs in rates.roofs:
        roof = f"   allows {point.roof(gbs):>7.1f} GFLOP/s" if point.flops else ""
        yield f"  {name + ' read':<{width}} {gbs:>8.1f} GB/s{roof}"
    yield f"  {'this call':<{width}} {point.gbs:>8.1f} GB/s     of {point.bytes:,} bytes, each tensor once"
    if point.flops:
        all_peaks = f"{point.peak_gflops:.1f}, of all its multiply-adds at their peaks"
        peak = "the peak" if len(point.multiply_adds) == 1 else all_peaks
        yield (
            f"  {'':{width}} {point.gflops:>8.1f} GFLOP/s  {point.flops:,.0f} flops, {point.intensity:.1f} flop/B, "
            f"{1e6 * point.seconds:.1f} us: {100 * point.share:.0f} % of {peak}"
        )
    else:
        yield f"  {'':{width}} {1e6 * point.seconds:>8.1f} us; no arithmetic, so it is no point in the picture"


def _cell(value: float | None, width: int, digits: int) -> str:
    return f"{'-' if value is None else format(value, f'.{digits}f'):>{width}}"
