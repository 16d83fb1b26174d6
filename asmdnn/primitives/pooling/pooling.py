"""The plans of a pooling, one for each strategy that takes it: its kernels, reorders around them, post-ops after."""

from dataclasses import replace
from functools import partial

from asmdnn.isa.vectors import f32_level
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.primitives.core.implementation import implementations_of
from asmdnn.primitives.elementwise.separate_post_ops import separate_post_ops
from asmdnn.primitives.pooling.request import PoolRequest, request_of
from asmdnn.primitives.pooling.strategies import STRATEGIES, PoolStrategy
from asmdnn.primitives.reorder.copies import between_reorders

NAME = "pool"


def planned(strategy: PoolStrategy, request: PoolRequest) -> Plan:
    """Raises Refused where the strategy does not take the request."""
    tuning, isa = request.engine.tuning, request.engine.isa
    tensors = strategy.formats(request)
    assembly = Assembly(tuning, isa)
    if not request.is_empty:
        maker = strategy.maker(request, tensors)
        strategy.check(maker)
        strategy.add(assembly, maker, tensors)
    outputs = tuple(name for name in tensors if name != "src")
    made = assembly.plan(f"{strategy.name}:{request.isa}", tensors, outputs)
    if strategy.as_bits:
        made = replace(made, tensors=request.tensors)
    reads = ("dst",) if request.reads_dst else ()
    plan = between_reorders(made, request.tensors, tuning, reads, isa=isa)
    if request.separate_attr is None:
        return plan
    return separate_post_ops(NAME, plan, request.passed, request.separate_attr, request.engine)


plans = implementations_of(
    request_of, {strategy.name: partial(planned, strategy) for strategy in STRATEGIES}, f32_level
)
