"""ResNet-50's 53 convolutions as a table: what was planned for each, whether it is right, and how fast it is."""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import NamedTuple

import asmdnn as dnn
from asmdnn.bench.case import prepare
from asmdnn.bench.conv_work import ConvCase, ConvWork
from asmdnn.bench.options import Reader
from asmdnn.bench.post_ops import joined
from asmdnn.bench.problems import ConvProblem
from asmdnn.bench.report import Record
from asmdnn.cli.progress import Progress
from asmdnn.runtime.peak import multiply_add_gflops

NETWORK = "resnet_50_network"
BUDGET_MS = 400  # a layer's measurements; all of them then take half a minute


class Size(NamedTuple):
    """Of a plan: tiles are the records of its schedule, kernels the different pieces of machine code they call."""

    tiles: int
    kernels: int


@dataclass(frozen=True, slots=True)
class Layer:
    """One row: a convolution of the network, its plan's size, and what the bench found."""

    number: int
    case: ConvCase
    size: Size
    record: Record


def network(engine: dnn.Engine, peer: str) -> list[ConvCase]:
    """The convolutions in network order for one image, with bias and post-ops; checked and timed, also in `peer`."""
    reader = Reader()
    options = f"--mode=CP --mb=1 --isa={engine.isa} --threads={engine.threads} --max-ms-per-prb={BUDGET_MS}"
    reader.read([*options.split(), f"--peer={peer or 'none'}", f"--batch={NETWORK}"], Path.cwd())
    return reader.cases


def run(cases: Sequence[ConvCase], engine: dnn.Engine) -> Iterator[Layer]:
    """Each layer when it is done, equal layers each for itself; the bar is on stderr, and only on a terminal."""
    calls = [prepare(case) for case in cases]
    with Progress(len(cases), sys.stderr) as progress:
        for index, (case, call) in enumerate(zip(cases, calls, strict=True)):
            progress.update(index, title(case.problem))
            record = call()
            progress.clear()
            yield Layer(index + 1, case, plan_size(case, engine) if record.impl else Size(0, 0), record)


def plan_size(case: ConvCase, engine: dnn.Engine) -> Size:
    """Planned once more, without generating anything; the bench does not keep its plan."""
    desc, attr = ConvWork(case).describe()
    plan = dnn.primitive_desc(desc, attr, engine).plan
    return Size(sum(len(phase.records) for phase in plan.phases), len(plan.specs))


def title(problem: ConvProblem) -> str:
    """The layer's name without the network's."""
    return problem.name.partition(":")[2] or problem.name


def shape(problem: ConvProblem) -> str:
    """For example "64x56x56 -> 256x56x56  1x1", with /2 for a stride of 2."""
    (_, *src), (_, *dst), kernel = problem.src_dims, problem.dst_dims, problem.weights_dims[-2:]
    stride = f"/{problem.strides[0]}" if max(problem.strides) > 1 else ""
    by = "x".join
    return f"{by(map(str, src)):>10} -> {by(map(str, dst)):<10} {by(map(str, kernel))}{stride}"


def header() -> str:
    return (
        f"{'#':>2} {'layer':<14} {'shape':^30} {'post-ops':<8} {'implementation':<18} {'tiles':>5} {'kernels':>7} "
        f"{'us':>8} {'GFLOP/s':>7} {'% peak':>6} {'speedup':>7}"
    )


def row(layer: Layer) -> str:
    """A failed layer adds why, and the command that repeats it."""
    record, problem = layer.record, layer.case.problem
    post_ops = joined(layer.case.settings.post_ops) or "-"
    percent = None if record.peak_fraction is None else 100 * record.peak_fraction
    cells = (
        f"{layer.number:>2} {title(problem):<14} {shape(problem):<30} {post_ops:<8} "
        f"{record.impl or '-':<18} {layer.size.tiles:>5} {layer.size.kernels:>7} {_cell(record.us, 8, 1)} "
        f"{_cell(record.gflops, 7, 1)} {_cell(percent, 6, 0)} {_cell(record.speedup, 7, 2)}"
    )
    return cells if record.ok else f"{cells}\n   {record.status}: {record.reason}\n   asmdnn bench {record.args}"


def _cell(value: float | None, width: int, digits: int) -> str:
    return f"{'-' if value is None else format(value, f'.{digits}f'):>{width}}"


def summary(layers: Sequence[Layer], engine: dnn.Engine, why_no_peer: str) -> str:
    """Verdict, geometric means over the layers, and the sum: an image through all of them."""
    right = sum(layer.record.ok is True for layer in layers)
    lines = [
        f"{right} of {len(layers)} layers are right: as numpy in float64, exactly on integers, to rounding on reals"
    ]
    timed = [layer for layer in layers if layer.record.us]
    if not timed:
        return lines[0]
    seconds = math.fsum(layer.record.us or 0 for layer in timed) * 1e-6
    gflops = math.fsum(layer.case.problem.flops for layer in timed) / seconds * 1e-9
    means = [geometric_mean([layer.record.gflops or 0 for layer in timed])]
    means.append(100 * means[0] / multiply_add_gflops(engine.isa, threads=engine.threads))
    lines.append(f"geometric means: {means[0]:.1f} GFLOP/s, {means[1]:.0f} % of the peak")
    total = f"an image through all of them: {seconds * 1e3:.2f} ms, {gflops:.1f} GFLOP/s"
    speedups = [layer.record.speedup for layer in timed if layer.record.speedup]
    if speedups:
        lines[-1] += f", speedup over oneDNN {geometric_mean(speedups):.3f} (least {min(speedups):.2f})"
        total += f"; oneDNN {math.fsum(layer.record.peer_us or 0 for layer in timed) * 1e-3:.2f} ms"
    else:
        lines[-1] += f"; no speedup: {why_no_peer}"
    return "\n".join([*lines, total])
