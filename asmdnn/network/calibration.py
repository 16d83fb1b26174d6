"""Which nodes stay f32 so that a network's outputs are as near to the definitions as a caller wants, for some inputs.

The steps that multiply or store fewer bits are put in the order of their own errors, and the fewest from the front that
bring the outputs' error below the limit stay f32: found by bisection, each try a plan and a run.  Error is the largest
difference to the definitions in float64, over the largest value of that output.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from asmdnn.errors import InvalidArguments
from asmdnn.network.accuracy import Verification, share
from asmdnn.network.declaring import names_of
from asmdnn.network.graph import Model
from asmdnn.network.narrow.storage import ErrorLimit, Precision
from asmdnn.network.network import Network
from asmdnn.network.of_model import network_of
from asmdnn.network.verification import is_narrow
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import replace


def network_within(
    model: Model,
    shapes: Any,
    constants: Any,
    *,
    engine: Engine,
    fallback: str | None,
    precision: Precision,
    limit: ErrorLimit | None,
) -> Network:
    """As `network_of`, with what the limit demands in f32.  Raises InvalidArguments if f32 itself is beyond it."""
    if limit is None:
        return network_of(model, shapes, constants, engine, fallback, precision)

    def make(precision: Precision) -> Network:
        return network_of(replace(model), shapes, constants, engine, fallback, precision)  # who holds plans by model

    return calibrated(make, precision, limit)


def calibrated(make: Callable[[Precision], Network], precision: Precision, limit: ErrorLimit) -> Network:
    """The network with the fewest steps in f32 that keeps the limit."""
    net = make(precision)
    report = net.verify(limit.feeds)

    def tried(names: Sequence[str]) -> tuple[Network, float]:
        one = make(replace(precision, keep_f32=tuple(sorted({*precision.keep_f32, *names}))))
        error = max(share(array, report.exact[name]) for name, array in one.run(limit.feeds).items())
        if one.model.states:
            one.reset()
        return one, error

    if max(one.from_f64 for one in report.outputs) <= limit.most:
        return net
    order = sensitive_first(net, report)
    found, error = tried(order)
    if error > limit.most:
        raise InvalidArguments(
            f"max_error={limit.most:g} is not reachable: in f32 outputs differ by {error:.1e} from definitions in "
            "float64; allow more"
        )
    low, high = 0, len(order)  # so many are too few; with so many `found` keeps the limit
    while high - low > 1:
        middle = (low + high) // 2
        one, error = tried(order[:middle])
        if error <= limit.most:
            found, high = one, middle
        else:
            low = middle
    return found


def sensitive_first(net: Network, report: Verification) -> list[str]:
    """A name for each step in fewer bits, that of the largest error of its own first; steps that cannot be compared
    come before all others."""
    plan = net.planned()
    (segment,) = plan.segments
    errors = {one.result: one.share for one in report}
    known = names_of(plan.model)
    found = list[tuple[float, str]]()
    for group in segment.segment.groups:  # type: ignore[union-attr]
        if is_narrow(segment.segment.storage, group):  # type: ignore[union-attr]
            names = (name for node in group.nodes for name in (node.name, *node.outputs) if name in known)
            found += [(-errors.get(group.result, inf), name) for name in list(names)[:1]]
    return [name for _, name in sorted(found)]
