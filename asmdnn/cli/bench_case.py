"""One problem of `asmdnn bench`: build it here and in the peer, check both, time both."""

import math
import os
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import asmdnn as dnn
from asmdnn.cli.convolution import Layouts, OwnConvolution, layouts, unsupported
from asmdnn.cli.options import Case
from asmdnn.cli.problems import FLOAT_BYTES
from asmdnn.cli.reference import Answer, Verdict, judge, make_data, numpy_answer, rounding_tolerance
from asmdnn.cli.report import Record, listed
from asmdnn.cli.timing import interleaved
from asmdnn.errors import AsmdnnError, Unimplemented
from asmdnn.isa.cpu import supported_isas
from asmdnn.isa.levels import isa_of
from asmdnn.runtime.peak import fma_gflops

if TYPE_CHECKING:
    from asmdnn.cli.peers.onednn import OnednnConvolution

# numpy does some 20 GFLOP/s in float64: above, the answer would take seconds, and the peer's result is the reference.
LARGEST_NUMPY_FLOPS = 40e9
PEER_FACTOR = 2  # then both results are off by up to the tolerance
COPIES_IN_MEMORY = 12  # of the arguments at the same time: data, ours, the peer's, float64 answer, tolerance, indices


def prepare(case: Case) -> Callable[[], Record]:
    """A call that runs `case`.  Its settings are checked now: AsmdnnError if they are wrong or cannot be met here."""
    settings = case.settings
    engine = dnn.Engine(isa=settings.isa, threads=settings.threads)
    if isa_of(engine.isa) not in supported_isas():
        raise Unimplemented(f"--isa={engine.isa}: this machine has only {', '.join(i.name for i in supported_isas())}")
    if settings.peer:
        from asmdnn.cli.peers.onednn_library import load

        load().cap_isa(engine.isa)
    record = replace(listed(case), isa=engine.isa, threads=engine.threads, peer=settings.peer or None)
    reason = unsupported(case.problem) or _too_large(case)
    if reason:
        return partial(replace, record, status="skipped", reason=reason)
    return partial(_run, record, case, layouts(case), engine)


def _run(record: Record, case: Case, wanted: Layouts, engine: dnn.Engine) -> Record:
    settings = case.settings
    with ExitStack() as stack:
        try:
            own = OwnConvolution(case, wanted, engine)
        except Unimplemented as error:
            return replace(record, status="unimplemented", ok=False, reason=_one_line(error))
        except AsmdnnError as error:
            return replace(record, status="failed", ok=False, reason=_one_line(error))
        record = replace(record, impl=own.implementation)
        peer = None
        if settings.peer:
            peer = stack.enter_context(closing(_make_peer(case, wanted, record)))
            record = replace(record, peer_impl=peer.implementation)
        if "C" in settings.mode:
            record = _check(record, case, own, peer)
        if "P" in settings.mode and record.ok is not False:
            record = _time(record, case, own, peer)
    return record


def _make_peer(case: Case, wanted: Layouts, record: Record) -> "OnednnConvolution":
    from asmdnn.cli.peers.onednn import OnednnConvolution

    settings = case.settings
    tags, isa, threads = wanted.tags, record.isa or "", record.threads or 1
    return OnednnConvolution(case.problem, settings.dir, settings.post_ops, tags, isa, threads)


def _too_large(case: Case) -> str:
    problem = case.problem
    dims = (problem.src_dims, problem.weights_dims, problem.dst_dims)
    needed = sum(math.prod(d) for d in dims) * FLOAT_BYTES * COPIES_IN_MEMORY
    available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > available:
        return f"needs about {needed / 2**30:.0f} GiB of memory, the machine has {available / 2**30:.0f}"
    return ""


def _check(record: Record, case: Case, own: OwnConvolution, peer: "OnednnConvolution | None") -> Record:
    """`ok`, the reference and the error; integers must be equal, real numbers within the derived tolerance."""
    settings, problem = case.settings, case.problem
    verdict = Verdict(0.0, 0.0)
    reference = ""
    for exact in (True, False):
        data = make_data(problem, settings.has_bias, settings.post_ops, exact)
        from_peer = peer.compute(data) if peer else None
        if from_peer is not None and problem.flops > LARGEST_NUMPY_FLOPS:
            tolerance = 0.0 if exact else PEER_FACTOR * rounding_tolerance(problem, data, settings.post_ops)
            answer = Answer(from_peer, tolerance, "onednn")
        else:
            answer = numpy_answer(problem, data, settings.post_ops)
            if from_peer is not None and (wrong := judge(from_peer, answer, exact)).reason:
                return replace(record, status="failed", ok=False, reason=f"the peer is wrong: {wrong.reason}")
        reference = answer.source
        verdict = judge(own.compute(data), answer, exact)
        if verdict.reason:
            break
    return replace(
        record,
        status="failed" if verdict.reason else "passed",
        ok=not verdict.reason,
        reason=verdict.reason,
        reference=reference,
        max_error=verdict.max_error,
        error_ratio=verdict.ratio,
    )


def _time(record: Record, case: Case, own: OwnConvolution, peer: "OnednnConvolution | None") -> Record:
    """Medians of interleaved samples, and what follows from them."""
    settings, problem = case.settings, case.problem
    data = make_data(problem, settings.has_bias, settings.post_ops, exact=False)
    calls: list[Any] = [own.run]
    own.write(data)
    if peer:
        peer.write(data)
        calls.append(peer.run)
    seconds, *peer_seconds = interleaved(calls, settings.max_ms * 1e-3)
    read_twice = data.dst.nbytes if "sum" in settings.post_ops else 0
    moved = sum(a.nbytes for a in (data.src, data.weights, data.bias, data.dst) if a is not None) + read_twice
    gflops = problem.flops / seconds * 1e-9
    record = replace(
        record,
        status=record.status if record.ok else "timed",
        us=round(seconds * 1e6, 3),
        gflops=round(gflops, 3),
        bandwidth_gbs=round(moved / seconds * 1e-9, 3),
        peak_fraction=round(gflops / fma_gflops(record.isa or "", record.threads or 1), 4),
    )
    if peer_seconds:
        us = round(peer_seconds[0] * 1e6, 3)
        record = replace(record, peer_us=us, speedup=round(peer_seconds[0] / seconds, 4))
    return record


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
