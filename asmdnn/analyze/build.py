"""From a primitive descriptor to its analysis."""

import math
from collections.abc import Mapping, Sequence

from asmdnn.analyze import mca
from asmdnn.analyze.measure import Bench
from asmdnn.analyze.model import Analysis, Bound, KernelAnalysis, KernelPart, Point, added, peak_of_all
from asmdnn.analyze.parts import LoopBody, bodies_of, trips_of
from asmdnn.analyze.text import percent_of_peak
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.explain.kernels import listing_of, read_kernel
from asmdnn.explain.model import CodeLoop
from asmdnn.generators.contract import KernelSpec
from asmdnn.isa.assembler import Line
from asmdnn.isa.multiply_adds import FMA
from asmdnn.planning.host import require_executable
from asmdnn.planning.phase import Phase
from asmdnn.planning.plan import Plan
from asmdnn.primitives.core.descriptor import PrimitiveDesc
from asmdnn.records import replace
from asmdnn.runtime.peak import multiply_add_gflops
from asmdnn.runtime.rates import Rates, clock_ghz, rates

Trips = dict[CodeLoop, float | None]


def analyze(pd: PrimitiveDesc, problem: str, cpu: str = "", again: bool = False) -> Analysis:
    """Everything; `cpu` is llvm-mca's model, `again` measures the machine's rates anew.

    Kernels run if this machine has the ISA level; otherwise only what needs no execution is there.  Raises
    InvalidArguments for an unknown cpu, Unimplemented where PeachPy is missing.
    """
    not_measured = why_not_executable(pd.engine.isa)
    listed = [taken_apart(pd.plan, number) for number in range(len(pd.plan.specs))]
    found, about = modelled([body.lines for bodies, _ in listed for body in bodies], pd.engine.isa, cpu, not_measured)
    bounds = iter(found)
    measured = None if not_measured else rates(pd.engine.isa, again)
    bench = Bench(pd) if measured else None
    kernels = tuple(
        kernel_analysis(pd.plan, number, bodies, trips, [next(bounds) for _ in bodies], bench)
        for number, (bodies, trips) in enumerate(listed)
    )
    peaks = peaks_of(pd.plan, kernels, measured) if measured else {}
    point = point_of(pd.plan, kernels, bench, peaks) if bench else None
    if measured and point and exceeds(point, kernels, measured, peaks):
        measured = rates(pd.engine.isa, exceeded=measured)
        peaks = peaks_of(pd.plan, kernels, measured, again=True)
        point = replace(point, peak_gflops=peak_of_all(point.multiply_adds, peaks))
    return Analysis(
        problem=problem,
        implementation=pd.implementation,
        isa=pd.engine.isa,
        mca=about,
        not_measured=not_measured,
        kernels=kernels,
        rates=measured,
        peaks=peaks,
        point=point,
    )


def peaks_of(plan: Plan, kernels: Sequence[KernelAnalysis], roofs: Rates, again: bool = False) -> dict[str, float]:
    """GFLOP/s of the multiply-adds of these kernels, each on the level of the kernel, and of FMA."""
    levels = dict.fromkeys(
        (name, plan.specs[k.number].isa) for k in kernels for p in k.parts for name in p.multiply_adds
    )
    peaks = {FMA: roofs.fma_gflops}
    for name, isa in levels:
        if name != FMA:
            found = multiply_add_gflops(isa, name, reached=math.inf if again else 0.0)
            peaks[name] = max(peaks.get(name, 0.0), round(found, 1))
    return peaks


def exceeds(point: Point, kernels: Sequence[KernelAnalysis], roofs: Rates, peaks: Mapping[str, float]) -> bool:
    """Whether a result is above the roof, which must then have been measured too low."""
    shares = [percent_of_peak(kernel, roofs, peaks) or 0 for kernel in kernels]
    return point.share > 1 or point.gbs > roofs.l1_gbs or max(shares, default=0) > 100


def modelled(bodies: Sequence[Sequence[Line]], isa: str, cpu: str, not_measured: str) -> tuple[list[Bound | None], str]:
    """What llvm-mca says, and which CPU it models, or why it says nothing.  Only a `cpu` that was asked for and does
    not work is an error."""
    nothing: list[Bound | None] = [None] * len(bodies)
    if not mca.is_installed():
        return nothing, mca.MISSING
    try:
        model, found = mca.modelled(bodies, isa, not not_measured, cpu)
        return found, f"LLVM's model of {model}"
    except InvalidArguments as error:
        if cpu:
            raise
        return nothing, str(error)


def why_not_executable(isa: str) -> str:
    """ "" if this machine runs the level."""
    try:
        require_executable(isa)
    except Unimplemented as error:
        return str(error)
    return ""


def taken_apart(plan: Plan, number: int) -> tuple[list[LoopBody], Trips]:
    """The bodies of a kernel's loops, and how often a call runs each."""
    spec = plan.specs[number]
    listing, size_bytes = listing_of(spec)
    loops = read_kernel(spec, listing, size_bytes).loops
    return bodies_of(listing, loops), trips_of(listing, loops, spec, plan, phase_of(plan, spec))


def phase_of(plan: Plan, spec: KernelSpec) -> Phase:
    """The first phase that calls the kernel."""
    return next(phase for phase in plan.phases if any(used == spec for used, _ in phase.by_kernel()))


def kernel_analysis(
    plan: Plan,
    number: int,
    bodies: Sequence[LoopBody],
    trips: Trips,
    bounds: Sequence[Bound | None],
    bench: Bench | None,
) -> KernelAnalysis:
    parts = tuple(part_of(body, trips[body.loop], bound) for body, bound in zip(bodies, bounds, strict=True))
    uses = [use for phase in plan.phases for use in phase.uses() if use[0] == plan.specs[number]]
    calls, expected = sum(use[1] for use in uses), sum(use[2] for use in uses)
    measured = bench.kernel(number, clock_ghz()) if bench else None
    return KernelAnalysis(number, plan.specs[number].name, calls, parts, expected / calls, measured)


def part_of(body: LoopBody, trips: float | None, bound: Bound | None) -> KernelPart:
    loaded, stored = body.moved_bytes
    return KernelPart(
        name=body.loop.name,
        depth=body.loop.depth,
        trips=trips,
        instructions=len(body.lines),
        mix=body.mix,
        multiply_adds=body.multiply_adds,
        loaded_bytes=loaded,
        stored_bytes=stored,
        bound=bound,
    )


def point_of(plan: Plan, kernels: Sequence[KernelAnalysis], bench: Bench, peaks: Mapping[str, float]) -> Point:
    """flops are those that the instructions do, padding lanes included; none where they cannot be told."""
    known = [(kernel.multiply_adds, kernel.calls) for kernel in kernels if kernel.multiply_adds is not None]
    total = added(known) if len(known) == len(kernels) else {}
    return Point(total, bytes_moved(plan), bench.primitive_seconds(), peak_of_all(total, peaks))


def bytes_moved(plan: Plan) -> int:
    """Every tensor once; an output twice where the first phase that touches it reads it."""
    total = sum(desc.size_bytes for desc in plan.tensors.values())
    for name in plan.outputs:
        for phase in plan.phases:
            used = [spec.footprint() for spec, _, _ in phase.uses()]
            places = [view.buffer for view in phase.arguments]
            touched = [r for f in used for r in (*f.reads, *f.writes) if places[r.argument] == name]
            if touched:
                reads = any(places[r.argument] == name for f in used for r in f.reads)
                total += plan.tensors[name].size_bytes if reads else 0
                break
    return total
