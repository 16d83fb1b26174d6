"""MatMul and Gemm as matrix products: constant operands packed once, transposes as strides."""

from math import prod

import numpy as np

from asmdnn.network.descriptors import any_format, row_major, stored
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.integer_tail import AnyTail, Start, tail_of
from asmdnn.network.lowering.integers import (
    IntegerSource,
    SignedWeights,
    bias_of,
    cheapest_way,
    is_product_of_integers,
    source_of,
    weights_of,
)
from asmdnn.network.lowering.lowering import Lower, Lowering
from asmdnn.network.lowering.zero_points import sums_of_rows, with_sums
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.records import replace
from asmdnn.types import DataType, f32, s8


def lower_product(steps: Steps, group: Group) -> None:
    """Of integers as such, where both operands are some."""
    floats = FLOATS[group.node.op]
    if is_product_of_integers(steps, group):
        cheapest_way(steps, group, (INTEGERS[group.node.op], floats), takes_first=True)
    else:
        floats(steps, group)


def multiply_floats(steps: Steps, group: Group) -> None:
    """Of a matrix of weights: all rows of all batches are rows of one product."""
    node = group.node
    a, b = node.inputs
    left, right, result = steps.shape(a), steps.shape(b), steps.shape(group.result)
    if len(left) < 2 or len(right) < 2:
        raise Refused("a vector as an operand has no kernel, a matrix of one row or column has")
    weights, dtype, factors = steps.constant(b), steps.type_of(group.result), factors_of(steps, group)
    if weights is not None and len(right) == 2:
        rows = (prod(left[:-1]), left[-1])
        dst = (rows[0], right[1])
        tail = tail_of(steps, group, lambda dims: folded(dims, result), reads_bytes=factors != f32)
        source = steps.plain(a, factors)
        places = {"src": Place(source.buffer, source.desc.reshape(rows)), **tail.places()}
        form = any_format(right, steps.weights_type(group.result))
        desc = MatMul(places["src"].desc, form, row_major(dst, dtype))
        steps.add(
            group.nodes,
            group.label,
            desc,
            places,
            {"dst": group.result},
            constants={"weights": (b, weights)},
            attr=tail.attr(),
        )
        return
    tail = tail_of(steps, group, reads_bytes=factors != f32)
    operands = {name: operand(steps, x, len(result), factors) for name, x in (("src", a), ("weights", b))}
    places = {**operands, **tail.places()}
    desc = MatMul(places["src"].desc, places["weights"].desc, row_major(result, dtype))
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, constants={}, attr=tail.attr())


def folded(dims: tuple[int, ...], result: tuple[int, ...]) -> tuple[int, int]:
    """The dims of a tensor that is broadcast to the result, all but the last one merged.  Raises Refused."""
    if all(n == 1 for n in dims[:-1]):
        return 1, dims[-1]
    if dims[:-1] == result[:-1]:
        return prod(dims[:-1]), dims[-1]
    raise Refused(f"a tensor of dims {dims} is broadcast along some axes of {result} only")


def factors_of(steps: Steps, group: Group) -> DataType:
    """The type of what is multiplied."""
    return steps.factor_type(group.result)


def operand(steps: Steps, name: str, ndim: int, factors: DataType = f32) -> Place:
    """A value as it lies, if it has no blocks, with batch axes of 1 in front, of the type that is multiplied."""
    dims = steps.shape(name)
    return steps.viewed(name, (1,) * (ndim - len(dims)) + dims, None if factors == f32 else factors)


def gemm_of_floats(steps: Steps, group: Group) -> None:
    """alpha goes into constant weights, c is the bias or a post-op of its own."""
    node = group.node
    a, b, *more = node.inputs
    weights, alpha, beta = steps.constant(b), node.get("alpha", 1.0), node.get("beta", 1.0)
    if weights is None:
        raise Refused(f"its operand {b} is no constant")
    weights = np.float32(alpha) * (weights.T if node.get("transB", 0) else weights)
    factors = factors_of(steps, group)
    source = steps.plain(a, factors)
    if node.get("transA", 0):
        source = Place(source.buffer, source.desc.permute_axes((1, 0)))
    bias = more[0] if more and beta else NOTHING  # by 0 it is not read, as in BLAS
    constants = {"weights": (b, weights)}
    shape, bias_desc = steps.shape(group.result), None
    if bias != NOTHING:
        data = steps.constant(bias)
        if data is None:
            raise Refused(f"its operand {bias} is no constant")
        dims = (1,) * (2 - data.ndim) + data.shape
        bias_desc = row_major(dims)
        constants["bias"] = (bias, np.float32(beta) * data)
    tail = tail_of(steps, group, reads_bytes=factors != f32)
    dst = row_major(shape, steps.type_of(group.result))
    form = any_format(weights.shape, steps.weights_type(group.result))
    desc = MatMul(source.desc, form, dst, bias_desc)
    places = {"src": source, **tail.places()}
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, constants=constants, attr=tail.attr())


def multiply_integers(steps: Steps, group: Group) -> None:
    """Sums are exact, what is after them is one expression of f32.  Raises Refused."""
    node = group.node
    a, b = node.inputs
    left, right, result = steps.shape(a), steps.shape(b), steps.shape(group.result)
    source = source_of(steps, a)
    if len(left) < 2 or len(right) < 2:
        raise Refused("a vector as an operand has no kernel, a matrix of one row or column has")
    if not steps.graph.is_constant(steps.dequantizers[b].inputs[0]):
        multiply_both(steps, group, source, source_of(steps, b))
        return
    if len(right) > 2:
        multiply_batches(steps, group, source, weights_of(steps, b, len(right) - 1))
        return
    rows, dst = (prod(left[:-1]), left[-1]), (prod(left[:-1]), right[1])
    weights, plain = weights_of(steps, b, 1), steps.plain_bytes(source.name)
    src = Place(plain.buffer, plain.desc.reshape(rows))
    sums = None if weights.rest is None else sums_of_rows(steps, group, source, src)
    start = with_sums(Start(source.numbers.scale * weights.scale), weights, sums)
    tail = tail_of(steps, group, lambda dims: folded(dims, result), start, reads_bytes=True)
    add_product(steps, group, source, weights=weights, src=src, dims=dst, tail=tail)


def multiply_batches(steps: Steps, group: Group, source: IntegerSource, weights: SignedWeights) -> None:
    """By a matrix of weights for each batch, or for each of some axes."""
    result = steps.shape(group.result)
    src = steps.viewed(source.name, (1,) * (len(result) - len(steps.shape(source.name))) + steps.shape(source.name))
    sums = None if weights.rest is None else sums_of_rows(steps, group, source, src)
    start = with_sums(Start(source.numbers.scale * weights.scale), weights, sums)
    array = weights.array.reshape((1,) * (len(result) - weights.array.ndim) + weights.array.shape)
    tail = tail_of(steps, group, None, start, reads_bytes=True)
    add_product(steps, group, source, weights=replace(weights, array=array), src=src, dims=result, tail=tail)


def multiply_both(steps: Steps, group: Group, source: IntegerSource, other: IntegerSource) -> None:
    """Of two tensors of integers, of which the second one is signed and symmetric.  Raises Refused."""
    if other.dtype != s8 or other.has_zero:
        raise Refused(f"its operand {other.floats} is not of signed integers around 0")
    result = steps.shape(group.result)
    start = Start(source.numbers.scale * other.numbers.scale)
    tail = tail_of(steps, group, None, start, reads_bytes=True)
    places = {
        name: steps.viewed(one.name, (1,) * (len(result) - len(steps.shape(one.name))) + steps.shape(one.name))
        for name, one in (("src", source), ("weights", other))
        if steps.bytes_of(one.name)
    }
    dst = row_major(result, stored(steps.value(group.result)))
    desc = MatMul(places["src"].desc, places["weights"].desc, dst)
    attr = Attr(tail.post_ops(), zero_points=source.zero_points)
    places |= tail.places()
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, constants=source.constants, attr=attr)


def gemm_of_integers(steps: Steps, group: Group) -> None:
    """alpha and beta go into what is after the sums.  Raises Refused."""
    node = group.node
    a, b, *more = node.inputs
    source, is_turned = source_of(steps, a), bool(node.get("transB", 0))
    if node.get("transA", 0):
        raise Refused("a first operand of integers that is transposed has no kernel")
    weights = weights_of(steps, b, 0 if is_turned else 1)
    if is_turned:
        weights = replace(weights, name=f"{weights.name} transposed", array=weights.array.T)
    beta = node.get("beta", 1.0)
    bias = bias_of(steps, more[0] if more and beta else NOTHING) * beta
    start = Start(source.numbers.scale * weights.scale * node.get("alpha", 1.0), bias)
    src = steps.plain_bytes(source.name)
    sums = None if weights.rest is None else sums_of_rows(steps, group, source, src)
    tail = tail_of(steps, group, None, with_sums(start, weights, sums), reads_bytes=True)
    add_product(steps, group, source, weights=weights, src=src, dims=steps.shape(group.result), tail=tail)


def add_product(
    steps: Steps,
    group: Group,
    source: IntegerSource,
    weights: SignedWeights,
    src: Place,
    dims: tuple[int, ...],
    tail: AnyTail,
) -> None:
    """The primitive with constant weights."""
    dst = row_major(dims, stored(steps.value(group.result)))
    desc = MatMul(src.desc, any_format(weights.array.shape, s8), dst)
    attr = Attr(tail.post_ops(), zero_points=source.zero_points)
    constants = {"weights": (weights.name, weights.array), **source.constants}
    places = {"src": src, **tail.places()}
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, constants=constants, attr=attr)


FLOATS: dict[str, Lower] = {"MatMul": multiply_floats, "Gemm": gemm_of_floats}
INTEGERS: dict[str, Lower] = {"MatMul": multiply_integers, "Gemm": gemm_of_integers}
LOWERINGS = dict.fromkeys(FLOATS, Lowering(lower_product, of_floats=True))
