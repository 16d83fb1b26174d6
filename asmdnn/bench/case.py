"""One problem of `asmdnn bench`: build it here and in the peer, check both, time both."""

import os
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.analyze.dots import dots_of
from asmdnn.bench.copying import copy_call
from asmdnn.bench.driver import AnyCase, Array, Side, Work
from asmdnn.bench.judge import Answer, Verdict, judge
from asmdnn.bench.own import Own, PassedOver
from asmdnn.bench.peers import cap_isa
from asmdnn.bench.problem_text import Impossible
from asmdnn.bench.report import Record, listed
from asmdnn.bench.timing import interleaved
from asmdnn.bench.words import Settings
from asmdnn.errors import AsmdnnError, InvalidArguments, Unimplemented
from asmdnn.planning.host import require_executable
from asmdnn.planning.plan import Plan
from asmdnn.records import replace

# numpy does some 20 GFLOP/s in float64: above, the answer would take seconds, and the peer's result is the reference.
LARGEST_NUMPY_FLOPS = 40e9
PEER_FLOOR = 2.0**-32
PEER_FACTOR = 2  # then both results are off by up to the tolerance
TIMED, WITHOUT_RESULT = ("P", "CP", "F"), ("I", "R")  # modes
FAST_MS = 10  # benchdnn's, of mode F
COPIES_IN_MEMORY = 12  # of the arguments at the same time: data, ours, the peer's, float64 answer, tolerance, indices


def prepare(case: AnyCase) -> Callable[[], Record]:
    """A call that runs `case`.  Its settings are checked now: AsmdnnError if they are wrong or cannot be met here.

    The call raises InvalidArguments for what is no problem of the primitive.
    """
    settings = case.settings
    if settings.engine != "cpu":
        return partial(replace, listed(case), status="skipped", reason=f"--engine={settings.engine}: there is only cpu")
    if settings.unbuilt:
        return partial(replace, listed(case), status="unimplemented", reason=str(settings.unbuilt[0]))
    engine = dnn.Engine(isa=settings.isa, threads=settings.threads)
    require_executable(engine.isa)
    if settings.peer and settings.peer not in case.driver.peers:
        names = " and ".join(case.driver.peers) or "no other library"
        raise Unimplemented(f"--peer={settings.peer}: --{case.driver.name} can be compared with {names}")
    if settings.peer:
        cap_isa(settings.peer, engine.isa)
    record = replace(listed(case), isa=engine.isa, threads=engine.threads, peer=settings.peer or None)
    try:
        work = case.driver.work(case)
    except Unimplemented as error:
        return partial(replace, record, status="unimplemented", reason=_one_line(error))
    except Impossible as error:
        return partial(replace, record, status="skipped", reason=_one_line(error))
    reason = work if isinstance(work, str) else _too_large(work, settings)
    if isinstance(work, str) or reason:
        return partial(replace, record, status="skipped", reason=reason)
    return partial(_run, record, case, work, engine)


def _run(record: Record, case: AnyCase, work: Work[Any], engine: dnn.Engine) -> Record:
    settings = case.settings
    with ExitStack() as stack:
        try:
            desc, attr = work.describe()
            own = Own(desc, attr, engine, work.in_place, _filter(settings), work.internal)
        except PassedOver as error:
            return replace(record, status="skipped", reason=_one_line(error))
        except Unimplemented as error:
            return replace(record, status="unimplemented", ok=False, reason=_one_line(error))
        except InvalidArguments:
            raise
        except AsmdnnError as error:
            return replace(record, status="failed", ok=False, reason=_one_line(error))
        record = replace(record, impl=own.implementation)
        if settings.mode in WITHOUT_RESULT:
            return _only(settings.mode, record, work, own)
        peer: Side | None = None
        if settings.peer:
            try:
                peer = stack.enter_context(closing(work.peer(engine.isa, engine.threads)))
                record = replace(record, peer_impl=peer.implementation)
            except Unimplemented as error:
                record = replace(record, peer_impl="unimplemented", reason=f"no peer: {_one_line(error)}")
        if "C" in settings.mode:
            record = _check(record, work, own, peer)
        if settings.mode in TIMED and record.ok is not False:
            record = _time(record, case, work, attr.reads_dst(), own, peer)
    return record


def _only(mode: str, record: Record, work: Work[Any], own: Side) -> Record:
    """A primitive that is created, and perhaps run once, without looking at what it writes."""
    if mode == "I":
        return replace(record, status="initialized")
    own.compute(work.data(exact=work.exactness[-1]))
    return replace(record, status="executed")


def _filter(settings: Settings) -> Callable[[str], bool]:
    """By the names that --impl and --skip-impl have."""

    def accepts(name: str) -> bool:
        wanted = not settings.impl or any(part in name for part in settings.impl)
        return wanted and not any(part in name for part in settings.skip_impl)

    return accepts


def _too_large(work: Work[Any], settings: Settings) -> str:
    """Why it is left out, or nothing."""
    if settings.max_gflop and work.flops > settings.max_gflop * 1e9:
        return f"has {work.flops * 1e-9:.3g} GFLOP, --max-gflop-per-prb={settings.max_gflop:g}"
    if not settings.check_memory:
        return ""
    needed = work.argument_bytes * COPIES_IN_MEMORY
    available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > available:
        return f"needs about {needed / 2**30:.0f} GiB of memory, the machine has {available / 2**30:.0f}"
    return ""


def _check(record: Record, work: Work[Any], own: Side, peer: Side | None) -> Record:
    """`ok`, the reference and the error; exact results must be equal, others within the derived tolerance.  Mistrusted
    is what no kind of data says much of."""
    verdict = Verdict(0.0, 0.0)
    reference, doubts = "", []
    for exact in work.exactness:
        data = work.data(exact)
        from_peer = peer.compute(data) if peer else None
        if from_peer is not None and work.flops > LARGEST_NUMPY_FLOPS:
            answer = Answer(from_peer, PEER_FACTOR * work.tolerance(data), record.peer or "")
        else:
            answer = work.answer(data)
            lenient = replace(answer, tolerance=_lenient(answer.tolerance, work.peer_slack))
            if from_peer is not None and (wrong := judge(from_peer, lenient, exact)).reason:
                return replace(record, status="failed", ok=False, reason=f"the peer is wrong: {wrong.reason}")
        reference = answer.source
        verdict = judge(own.compute(data), answer, exact)
        if verdict.reason:
            break
        doubts.append(verdict.doubt)
    doubt = doubts[-1] if doubts and all(doubts) and not verdict.reason else ""
    return replace(
        record,
        status="failed" if verdict.reason else "mistrusted" if doubt else "passed",
        ok=not verdict.reason,
        reason=verdict.reason or doubt or record.reason,
        reference=reference,
        max_error=verdict.max_error,
        error_ratio=verdict.ratio,
    )


def _lenient(tolerance: Array | float, slack: float) -> Array | float:
    """For a peer that approximates, also near 0, where relative errors grow."""
    return tolerance if slack == 1 else np.maximum(tolerance, PEER_FLOOR) * slack


def _time(record: Record, case: AnyCase, work: Work[Any], reads_dst: bool, own: Own, peer: Side | None) -> Record:
    """Medians of interleaved samples, their low percentiles, and what follows from them."""
    data = work.data(exact=work.exactness[-1])
    moved = sum(array.nbytes for array in data.arrays.values()) + (data.arrays["dst"].nbytes if reads_dst else 0)
    calls: dict[str, Callable[[], object]] = {"own": own.run}
    own.write(data)
    if peer:
        peer.write(data)
        calls["peer"] = peer.run
    if case.driver.bandwidth_bound:
        calls["copy"] = copy_call(moved, record.threads or 1)
    settings = case.settings
    budget = min(settings.max_ms, FAST_MS if settings.mode == "F" else settings.max_ms)
    times = dict(zip(calls, interleaved(list(calls.values()), budget * 1e-3, settings.rounds), strict=True))
    seconds = {name: time.median for name, time in times.items()}
    us = {name: round(s * 1e6, 3) for name, s in seconds.items()}
    low_us = {name: round(time.low * 1e6, 3) for name, time in times.items()}
    record = replace(
        record,
        status=record.status if record.ok else "timed",
        us=us["own"],
        low_us=low_us["own"],
        bandwidth_gbs=round(moved / seconds["own"] * 1e-9, 3),
    )
    if work.flops:
        record = _share(record, own.plan, work.flops / seconds["own"] * 1e-9)
    if "copy" in seconds:
        record = replace(record, copy_us=us["copy"], copy_fraction=round(seconds["copy"] / seconds["own"], 4))
    if "peer" in seconds:
        record = replace(record, peer_us=us["peer"], speedup=round(seconds["peer"] / seconds["own"], 4))
        low_speedup = times["peer"].low / times["own"].low
        record = replace(record, low_peer_us=low_us["peer"], low_speedup=round(low_speedup, 4))
    return record


def _share(record: Record, plan: Plan, gflops: float) -> Record:
    """The speed, and of which peak it is how much; no share without PeachPy, which says what kernels multiply with."""
    record = replace(record, gflops=round(gflops, 3))
    try:
        dots = dots_of(plan, record.isa or "")
    except Unimplemented:
        return record
    peak = dots.peak_gflops(record.threads or 1, reached=gflops)
    return replace(record, peak_fraction=round(gflops / peak, 4), peak_of=dots.name)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
