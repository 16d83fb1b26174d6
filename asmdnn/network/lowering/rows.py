"""Softmax, layer normalisation, and reductions."""

from math import prod

import numpy as np

from asmdnn.network.descriptors import any_format, row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.integer_tail import tail_of
from asmdnn.network.lowering.lowering import Lowering
from asmdnn.network.lowering.maps import Tail
from asmdnn.network.operators.definition import normal
from asmdnn.network.operators.normalization import softmax_axes
from asmdnn.network.operators.reductions import axes_to_reduce
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.normalization.layer_description import LayerNormForward
from asmdnn.primitives.reduction.description import ReductionAlgorithm, ReductionForward
from asmdnn.primitives.softmax.description import SoftmaxAlgorithm, SoftmaxForward
from asmdnn.types import PropKind

INFERENCE = PropKind.forward_inference
SOFTMAX: dict[str, SoftmaxAlgorithm] = {"Softmax": "accurate", "LogSoftmax": "log"}
REDUCTIONS: dict[str, ReductionAlgorithm] = {
    "ReduceSum": "sum",
    "ReduceMean": "mean",
    "ReduceMax": "max",
    "ReduceMin": "min",
    "ReduceProd": "mul",
    "ReduceL1": "norm_lp_sum",
    "ReduceL2": "norm_lp_sum",
    "ReduceSumSquare": "norm_lp_power_p_sum",
    "ReduceLogSumExp": "logsumexp",
}
POWERS = {"ReduceL1": 1.0}
OF_ANY = ("ReduceMax", "ReduceMin")  # whose results are elements


def lower_softmax(steps: Steps, group: Group) -> None:
    """Over one axis; over several of old operator sets as rows of a matrix."""
    node = group.node
    dims = steps.shape(node.inputs[0])
    axes = softmax_axes(node, len(dims))
    tail = Tail(steps, group.maps, group.x)
    if len(axes) == 1 or all(dims[axis] == 1 for axis in axes[1:]):
        source, axis = steps.place(node.inputs[0]), axes[0]
    elif group.maps:
        raise Refused("maps after a softmax over several axes have no kernel")
    else:
        rows = (prod(dims[: axes[0]]), prod(dims[axes[0] :]))
        plain = steps.plain(node.inputs[0])
        source, axis = Place(plain.buffer, plain.desc.reshape(rows)), 1
    dst = any_format(source.desc.dims, steps.type_of(group.result))
    desc = SoftmaxForward(INFERENCE, SOFTMAX[node.op], source.desc, dst, axis)
    places = {"src": source, **tail.places()}
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, attr=tail.attr())


def lower_layer_norm(steps: Steps, group: Group) -> None:
    """Over the last axes, which are one row; scale and shift are constants of that row."""
    node = group.node
    x, *names = node.inputs
    dims = steps.shape(x)
    axis = normal(node.get("axis", -1), len(dims))
    if any(node.outputs[1:]):
        raise Refused("its mean and deviation are results that have no kernel here")
    shape = (prod(dims[:axis]), prod(dims[axis:]))
    columns = row_major(shape[1:])
    constants = {}
    for argument, name in zip(("scale", "shift"), names, strict=False):
        data = steps.value(name).data if name != NOTHING else None
        if name != NOTHING and (data is None or data.size != shape[1]):
            raise Refused(f"its {argument} {name} is no constant of a row")
        if data is not None:
            constants[argument] = (name, np.reshape(data, shape[1:]))
    tail = tail_of(steps, group, lambda one: folded_rows(one, dims, axis, shape))
    plain = steps.plain(x, steps.kept(x).desc.dtype)
    source = Place(plain.buffer, plain.desc.reshape(shape))
    dst = row_major(shape, steps.type_of(group.result))
    scale, shift = (columns if argument in constants else None for argument in ("scale", "shift"))
    is_rms = node.op == "RMSNormalization"
    desc = LayerNormForward(INFERENCE, source.desc, dst, node.get("epsilon", 1e-5), scale, shift, rms=is_rms)
    places = {"src": source, **tail.places()}
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, constants=constants, attr=tail.attr())


def folded_rows(one: tuple[int, ...], dims: tuple[int, ...], axis: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The dims of a tensor that is broadcast to the result, as rows and columns.  Raises Refused."""
    found = []
    for own, whole, size in ((one[:axis], dims[:axis], shape[0]), (one[axis:], dims[axis:], shape[1])):
        if own != whole and any(n != 1 for n in own):
            raise Refused(f"a tensor of dims {one} is broadcast along some axes of {dims} only")
        found.append(size if own == whole else 1)
    return tuple(found)


def lower_reduction(steps: Steps, group: Group) -> None:
    """Of any axes; results without dims are vectors of one element."""
    node = group.node
    x = node.inputs[0]
    dims = steps.shape(x)
    given = steps.value(node.inputs[1]).data if len(node.inputs) > 1 and node.inputs[1] != NOTHING else None
    axes = axes_to_reduce(node, len(dims), given)
    if not axes or 0 in dims:
        raise Refused("nothing is reduced")
    source, result = steps.place(x), tuple(1 if i in axes else n for i, n in enumerate(dims))
    if group.maps and not node.get("keepdims", 1):
        raise Refused("maps after a reduction that drops axes have no kernel")
    tail = Tail(steps, group.maps, group.x)
    dst = any_format(result) if node.get("keepdims", 1) else row_major(result)
    desc = ReductionForward(REDUCTIONS[node.op], source.desc, dst, POWERS.get(node.op, 2.0))
    places = {"src": source, **tail.places()}
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, attr=tail.attr())


LOWERINGS = {
    **dict.fromkeys(SOFTMAX, Lowering(lower_softmax, of_floats=True)),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), Lowering(lower_layer_norm, of_floats=True)),
    **{name: Lowering(lower_reduction, of_floats=name not in OF_ANY) for name in REDUCTIONS},
}
