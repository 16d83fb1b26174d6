"""The plan of a recurrent layer, backward: for every layer and direction a phase or two for every step, from the last
to the first, then gradients of weights, bias and input as products over all steps at once.

A step's cell makes the gradients of the sums inside its gates (`sums`), and a product with weights_iter transposed
hands them on to the step before.  With X and H the inputs and the states before, a row a step and sequence,

    diff_weights_layer = X^T sums    diff_weights_iter = H^T sums    diff_bias = 1^T sums    diff_src = sums W^T

Of a linear-before-reset GRU, H^T and weights_iter take `iterated` for `sums`; a GRU's candidate has (r h) for h.
Rows after the end of a padded sequence are zeros in all of them.
"""

from functools import partial
from typing import NamedTuple

from asmdnn.generators.dot.matmul_shape import TileKernel
from asmdnn.isa.dot import F32, Types, dot_level, f32_dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.phase import flushing
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.planning.unhindered import without_needless_barriers
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.backward import DIFF
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import cycles_beside_tiles
from asmdnn.primitives.products.matrices import panel_columns
from asmdnn.primitives.recurrent.backward_context import BackwardContext
from asmdnn.primitives.recurrent.backward_description import RecurrentBackward
from asmdnn.primitives.recurrent.backward_factors import FACTORS, packed_of
from asmdnn.primitives.recurrent.backward_layer import BackwardLayer
from asmdnn.primitives.recurrent.backward_sums import add_sums_over_steps
from asmdnn.primitives.recurrent.factors import ONLY
from asmdnn.primitives.reorder.copies import Inside, ways_as_passed_or_copied
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.types import FLOATS, f32


class BackwardRequest(NamedTuple):
    """A backward pass, and for whom."""

    desc: RecurrentBackward
    engine: Engine


def request_of(desc: RecurrentBackward, attr: Attr, engine: Engine) -> BackwardRequest:
    """Raises Refused."""
    refuse_attr(attr)
    for name, tensor in desc.tensors().items():
        if tensor.dtype not in FLOATS:
            raise Refused(f"{name} is {tensor.dtype}, {ONLY}")
        if tensor.may_overlap and (name.startswith((f"{DIFF}src", f"{DIFF}weights", f"{DIFF}bias"))):
            raise Refused(f"{name} has elements that share a place")
    return BackwardRequest(desc, engine)


def inside_of(request: BackwardRequest, way: str) -> Inside:
    """The plan of the backward pass that multiplies in one way.  Raises Refused."""
    desc, engine = request
    types = FACTORS[way](desc, engine)
    tensors = desc.tensors()
    formats = {name: kernel_format(name, tensor, engine, types) for name, tensor in tensors.items()}
    passed = {name: of_type(formats[name], x.dtype) if x.is_any else x for name, x in tensors.items()}
    plan = planned(BackwardContext(desc, formats, engine, types), way)
    check_pays(plan, request, types)
    return Inside(plan, passed, engine.tuning, engine.isa)


def check_pays(plan: Plan, request: BackwardRequest, types: Types) -> None:
    """Raise Refused for pairs where f32 is expected to take fewer cycles, unless weights are packed so."""
    desc, engine = request
    if types == F32 or all(getattr(desc, name) == plan.tensors[name] for name in packed_of(desc)):
        return
    cycles = cycles_beside_tiles(plan, (TileKernel,), engine)
    other = inside_of(request, "floats").plan.cycles
    if cycles >= other:
        raise Refused(f"{cycles:.0f} cycles are expected, {other} of f32")


plans = ways_as_passed_or_copied(request_of, {way: partial(inside_of, way=way) for way in FACTORS}, f32_dot_level)


def kernel_format(name: str, tensor: MemoryDesc, engine: Engine, types: Types) -> MemoryDesc:
    """Weights in panels of what they are multiplied to: rows of all gates, or of a projection's outputs; of pairs, of
    two neighbours of these.  Rows that are read may be of the type of factors, too.  All else is f32: tensors of other
    types become that in front, gradients are rounded once, after."""
    dims, tag = tensor.dims, LETTERS[: tensor.ndims]
    if name in RecurrentBackward.PACKED:
        width = panel_columns(dims[2], lanes_of(dot_level(types, engine.isa)))
        rows = tag[3:] if types.group == 1 else f"{tag[3:-1]}{tag[-1].upper()}"
        tag = f"abC{rows}{width}c" + f"{types.group}{tag[-1]}" * (types.group > 1)
        return MemoryDesc(dims, types.weights, tag)
    is_read = not name.startswith(DIFF) or name.startswith(f"{DIFF}dst")
    return MemoryDesc(dims, types.src if is_read and tensor.dtype == types.src else f32, tag)


def planned(context: BackwardContext, way: str) -> Plan:
    """All layers, the last one first."""
    s, tensors, assembly = context.sizes, context.tensors, context.assembly
    is_concat = context.desc.direction == "bidirectional_concat"
    output = context.time.layer("diff_dst_layer", tensors["diff_dst_layer"])
    for number in reversed(range(s.layers)):
        of_source = context.gradient_of_source(number)
        for direction in range(s.directions):
            of_output = output.element(direction * s.out) if is_concat else output
            layer = BackwardLayer(context, number, direction, of_output)
            layer.add_steps()
            add_sums_over_steps(layer, of_source)
        output = of_source
    outputs = tuple(name for name in tensors if name.startswith(DIFF) and not name.startswith(f"{DIFF}dst"))
    assembly.phases = list(flushing(assembly.phases))
    name = context.multiplier.implementation(way, assembly.phases)
    return without_needless_barriers(assembly.plan(name, tensors, outputs))
