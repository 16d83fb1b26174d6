"""Constants made of dims that stand for several: arrays of objects, of which few operators make others."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.memory.traced import TracedNumber, integers
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Value

SEE_DIMS = {"Shape", "Size"}
# What numpy computes of objects as it does of integers, if no result leaves their type.
EXACT = {"Add", "Concat", "Gather", "Mul", "Reshape", "Slice", "Split", "Squeeze", "Sub", "Transpose", "Unsqueeze"}
INTEGERS = "iu"


def is_traced(array: Array | None) -> bool:
    return array is not None and array.dtype == object


def seen_dims(node: Node, value: Value | None) -> Array:
    """What Shape and Size say of a value."""
    if value is None:
        raise InvalidArguments(f"{node} has no operand")
    if node.op == "Size":
        return integers((prod(value.shape),)).reshape(())
    return integers(value.shape[node.get("start", 0) : node.get("end")])


def of_traced(node: Node, operator: Operator, inputs: Sequence[Value | None]) -> list[Value]:
    """The results of a node of which some operands are traced; spoils the trace where numpy would not be exact."""
    data = [value and value.data for value in inputs]
    dtype = np.dtype(operator.infer(node, *inputs)[0][1]) if operator.infer else type_of_first(inputs)
    is_cast = node.op == "Cast" and dtype.kind in INTEGERS
    if not (is_cast or node.op in EXACT) or node.domain or dtype.kind not in INTEGERS:
        spoil(data, f"{node} computes with numbers that stand for others")
    found = [data[0]] if is_cast else [np.asarray(array) for array in operator.results(node, *data)]
    return [Value(array.shape, dtype, in_range(array, dtype)) for array in found if array is not None]


def type_of_first(inputs: Sequence[Value | None]) -> np.dtype[Any]:
    return next(value.dtype for value in inputs if value is not None)


def in_range(array: Array, dtype: np.dtype[Any]) -> Array:
    """The array, whose elements a type holds; in numpy others would wrap around."""
    info, elements = np.iinfo(dtype), list[Any](array.ravel().tolist())
    for number in elements:
        if isinstance(number, int):
            continue
        if type(number.value) is not int or not info.min <= number <= info.max:
            number.trace.spoil(f"{number} is no {dtype}")
    return array


def spoil(data: Sequence[Array | None], why: str) -> None:
    for array in data:
        for n in [] if array is None or array.dtype != object else array.ravel().tolist():
            if type(n) is TracedNumber:
                n.trace.spoil(why)
