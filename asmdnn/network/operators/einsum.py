"""Einstein sums: the labels of an equation, and the dims that they lead to."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.errors import counted
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Shape, Type, Value

Labels = list[str]


def labels_of(equation: str, ndims: Sequence[int]) -> tuple[list[Labels], Labels]:
    """The labels of each operand's dims, and of the result's; those of an ellipsis are "-1", "-2", ... from the last.

    Raises ValueError.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims):
        raise ValueError(f"{counted(len(terms), 'term')} for {counted(len(ndims), 'operand')}")
    found = [labels_of_term(term, ndim) for term, ndim in zip(terms, ndims, strict=True)]
    every = [label for labels in found for label in labels]
    dots = sorted((label for label in {*every} if label[0] == "-"), key=int)
    if not arrow:  # what comes once, in order
        return found, [*dots, *sorted(label for label in every if every.count(label) == 1 and label[0] != "-")]
    front, ellipsis, after = right.partition("...")
    result = [*front, *(dots if ellipsis else ()), *after]
    if len({*result}) < len(result) or not {*result} <= {*every}:
        raise ValueError(f"labels {right} of the result are not labels of operands, each once")
    return found, result


def labels_of_term(term: str, ndim: int) -> Labels:
    front, ellipsis, after = term.partition("...")
    spare = ndim - len(front) - len(after)
    letters = front + after
    if spare < 0 or (spare and not ellipsis) or (letters and not letters.isalpha()):
        raise ValueError(f"labels {term} for {counted(ndim, 'dim')}")
    return [*front, *map(str, range(-spare, 0)), *after]


def sizes_of(node: Node, shapes: Sequence[Shape]) -> tuple[Shape, dict[str, int]]:
    """The result's dims, and the size of each label.  Raises ValueError."""
    terms, result = labels_of(node.get("equation"), [len(shape) for shape in shapes])
    sizes: dict[str, int] = {}
    for labels, shape in zip(terms, shapes, strict=True):
        for label, n in zip(labels, shape, strict=True):
            known = sizes.get(label, 1)
            if n != known and 1 not in (n, known):
                raise ValueError(f"label {label} has sizes {known} and {n}")
            sizes[label] = n if known == 1 else known
    return tuple(sizes[label] for label in result), sizes


def einsum(node: Node, *x: Any) -> Array:
    return np.asarray(np.einsum(node.get("equation").replace(" ", ""), *x))


def einsum_types(node: Node, *x: Value) -> list[Type]:
    return [(sizes_of(node, [value.shape for value in x])[0], np.result_type(*(value.dtype for value in x)))]


OPERATORS = {"Einsum": Operator(einsum, einsum_types)}
