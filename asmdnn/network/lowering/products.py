"""MatMul and Gemm as matrix products: constant operands packed once, transposes as strides."""

from math import prod

import numpy as np

from asmdnn.network.descriptors import any_format, row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING
from asmdnn.network.lowering.maps import Tail
from asmdnn.network.steps import Place, Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.products.matmul import MatMul


def lower_matmul(steps: Steps, group: Group) -> None:
    """Of a matrix of weights: all rows of all batches are rows of one product."""
    node = group.main
    assert node is not None
    a, b = node.inputs
    left, right, result = steps.shape(a), steps.shape(b), steps.shape(group.result)
    if len(left) < 2 or len(right) < 2:
        raise Refused("a vector as an operand has no kernel, a matrix of one row or column has")
    weights = steps.value(b).data
    if weights is not None and len(right) == 2:
        rows = (prod(left[:-1]), left[-1])
        dst = (rows[0], right[1])
        tail = Tail(steps, group.maps, group.x, lambda dims: folded(dims, result))
        source = steps.plain(a)
        places = {"src": Place(source.buffer, source.desc.reshape(rows)), **tail.places()}
        desc = MatMul(places["src"].desc, any_format(right), row_major(dst))
        steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, {"weights": (b, weights)}, tail.attr())
        return
    tail = Tail(steps, group.maps, group.x)
    places = {"src": operand(steps, a, len(result)), "weights": operand(steps, b, len(result)), **tail.places()}
    desc = MatMul(places["src"].desc, places["weights"].desc, row_major(result))
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, {}, tail.attr())


def folded(dims: tuple[int, ...], result: tuple[int, ...]) -> tuple[int, int]:
    """The dims of a tensor that is broadcast to the result, all but the last one merged.  Raises Refused."""
    if all(n == 1 for n in dims[:-1]):
        return 1, dims[-1]
    if dims[:-1] == result[:-1]:
        return prod(dims[:-1]), dims[-1]
    raise Refused(f"a tensor of dims {dims} is broadcast along some axes of {result} only")


def operand(steps: Steps, name: str, ndim: int) -> Place:
    """A value as it lies, if it has no blocks, with batch axes of 1 in front."""
    dims = steps.shape(name)
    return steps.viewed(name, (1,) * (ndim - len(dims)) + dims)


def lower_gemm(steps: Steps, group: Group) -> None:
    """alpha goes into constant weights, c is the bias or a post-op of its own."""
    node = group.main
    assert node is not None
    a, b, *more = node.inputs
    weights, alpha, beta = steps.value(b).data, node.get("alpha", 1.0), node.get("beta", 1.0)
    if weights is None:
        raise Refused(f"its operand {b} is no constant")
    weights = np.float32(alpha) * (weights.T if node.get("transB", 0) else weights)
    source = steps.plain(a)
    if node.get("transA", 0):
        source = Place(source.buffer, source.desc.permute_axes((1, 0)))
    bias = more[0] if more else NOTHING
    constants = {"weights": (b, weights)}
    shape, bias_desc = steps.shape(group.result), None
    if bias != NOTHING:
        data = steps.value(bias).data
        if data is None:
            raise Refused(f"its operand {bias} is no constant")
        dims = (1,) * (2 - data.ndim) + data.shape
        bias_desc = row_major(dims)
        constants["bias"] = (bias, np.float32(beta) * data)
    tail = Tail(steps, group.maps, group.x)
    desc = MatMul(source.desc, any_format(weights.shape), row_major(shape), bias_desc)
    places = {"src": source, **tail.places()}
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, constants, tail.attr())


LOWERINGS = {"MatMul": lower_matmul, "Gemm": lower_gemm}
