"""Gradients of inner products of bf16 and f16, as matmul plans them: sums are f32, and rounded once.

    diff_src (n, k) = diff_dst (n, o) * weights (o, k);   diff_weights (o, k) = diff_dst^T (o, n) * src (n, k)

k is as in typed.py; diff_bias is the sum of diff_dst's rows.
"""

from collections.abc import Iterator, Mapping

from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer
from asmdnn.primitives.inner_product.inner_product import InnerProductBackwardData, InnerProductBackwardWeights
from asmdnn.primitives.inner_product.typed import flat, is_view, order_of, ordered
from asmdnn.primitives.products import matmul_tiles
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.products.plan import refusals
from asmdnn.primitives.reduction.bias import with_bias
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.records import replace
from asmdnn.types import FLOATS, HALF_FLOATS

Gradient = InnerProductBackwardData | InnerProductBackwardWeights
OF_DATA = {"src": "diff_dst", "weights": "weights", "dst": "diff_src"}
OF_WEIGHTS = {"src": "diff_dst", "weights": "src", "dst": "diff_weights"}


def is_typed(desc: Gradient) -> bool:
    """Whether all are floats, and some of 16 bits."""
    types = {tensor.dtype for tensor in desc.tensors().values()}
    return types <= {*FLOATS} and not types.isdisjoint(HALF_FLOATS)


def plan(desc: Gradient, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """What every strategy of matmul says."""
    isa = f32_level(engine.isa)
    try:
        check_attr(attr)
        roles = OF_DATA if isinstance(desc, InnerProductBackwardData) else OF_WEIGHTS
        matrices, read, passed = matrices_of(desc, roles)
        for answer in matmul_tiles.plan(MatMul(**matrices), NO_ATTR, engine):
            if isinstance(answer, Refusal):
                yield answer
                continue
            bias = desc.diff_bias if isinstance(desc, InnerProductBackwardWeights) else None
            made = with_bias(renamed(answer, roles, read), bias, engine)
            yield between_reorders(made, passed, engine.tuning, isa=isa)
    except Refused as reason:
        yield from refusals(isa, str(reason))


def check_attr(attr: Attr) -> None:
    """Raise Refused for attributes that change anything."""
    if attr.post_ops or attr.quantizes:
        raise Refused("post-ops and scales of a backward pass are not implemented")


def matrices_of(
    desc: Gradient, roles: Mapping[str, str]
) -> tuple[dict[str, MemoryDesc], dict[str, MemoryDesc], dict[str, MemoryDesc]]:
    """Matmul's tensors; the gradient's by name as they are read; and as they are passed."""
    tensors = desc.tensors()
    order = order_of(tensors["diff_src" if "diff_src" in tensors else "src"])
    passed = {name: ordered(t, order) if t.is_any else t for name, t in tensors.items() if name != "diff_bias"}
    read = {name: t if is_read(t, order, name == roles["dst"]) else ordered(t, order) for name, t in passed.items()}
    matrices = {role: flat(read[name], order) for role, name in roles.items()}
    if roles is OF_WEIGHTS:
        matrices["src"] = matrices["src"].permute_axes((1, 0))
    return matrices, read, passed


def is_read(tensor: MemoryDesc, order: tuple[int, ...], is_written: bool) -> bool:
    """Whether it is a matrix as it is; one that is written has no padding, which would have to become zero."""
    return is_view(tensor, order) and not (is_written and tensor.has_padding)


def renamed(plan: Plan, roles: Mapping[str, str], read: Mapping[str, MemoryDesc]) -> Plan:
    """With the gradient's tensors."""
    order = [*read]
    tensors = {name: read[name] for name in sorted(roles.values(), key=order.index)}
    phases = tuple(phase.on({role: View(name) for role, name in roles.items()}) for phase in plan.phases)
    return replace(plan, phases=phases, tensors=tensors, outputs=(roles["dst"],), in_place=())
