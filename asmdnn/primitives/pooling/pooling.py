"""The plans of a pooling, one for each strategy that takes it."""

from functools import partial

from asmdnn.isa.vectors import f32_level
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.primitives.core.implementation import implementations_of
from asmdnn.primitives.pooling.request import PoolRequest, request_of
from asmdnn.primitives.pooling.strategies import STRATEGIES, PoolStrategy
from asmdnn.records import replace


def planned(strategy: PoolStrategy, request: PoolRequest) -> Plan:
    """The plan of the strategy's kernels.  Raises Refused where it does not take the request."""
    tensors = strategy.formats(request)
    assembly = Assembly(request.engine.tuning, request.engine.isa)
    if not request.is_empty:
        maker = strategy.maker(request, tensors)
        strategy.check(maker)
        strategy.add(assembly, maker, tensors)
    outputs = tuple(name for name in tensors if name != "src")
    made = assembly.plan(f"{strategy.name}:{request.isa}", tensors, outputs)
    return replace(made, tensors=request.tensors) if strategy.as_bits else made


plans = implementations_of(
    request_of,
    {strategy.name: partial(planned, strategy) for strategy in STRATEGIES},
    f32_level,
    finish=lambda request, made: request.around.finished(made),
)
