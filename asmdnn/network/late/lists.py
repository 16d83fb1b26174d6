"""Lists of tensors, as tuples of arrays, when data have decided what is in them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.network.folding.bodies import number_of
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.definition import normal

MOST_ELEMENTS: Final = 100_000
List = tuple[Array, ...]
Given = Sequence[Any]  # what a node reads: arrays, lists, None for what is left out


def elements(node: Node, given: Given) -> List:
    """The list that comes first."""
    if not isinstance(given[0], tuple):
        raise InvalidArguments(f"{node} reads {shown(node.inputs[0])}, which is no list")
    return given[0]


def place(node: Node, at: Array | None, default: int, size: int, most: int) -> int:
    """One of `size` places, from the end where it is negative, up to `most`.  Raises InvalidArguments."""
    if at is None:
        return default
    number = number_of(node, node.inputs[-1], at)
    if not -size <= number <= most:
        raise InvalidArguments(f"{node} takes place {number} of a list of {counted(size, 'element')}")
    return number + size if number < 0 else number


def inserted(node: Node, given: Given) -> List:
    old, (value, at) = elements(node, given), (*given[1:], None)[:2]
    if len(old) >= MOST_ELEMENTS:
        raise InvalidArguments(f"{node} makes a list of more than {MOST_ELEMENTS} elements: join some before")
    i = place(node, at, len(old), len(old), len(old))
    return (*old[:i], value, *old[i:])


def erased(node: Node, given: Given) -> List:
    old = elements(node, given)
    i = place(node, (*given[1:], None)[0], len(old) - 1, len(old), len(old) - 1)
    return (*old[:i], *old[i + 1 :])


def chosen(node: Node, given: Given) -> Array:
    old = elements(node, given)
    return old[place(node, given[1], 0, len(old), len(old) - 1)]


def parted(node: Node, given: Given) -> List:
    x, by = (*given, None)[:2]
    axis = normal(node.get("axis", 0), x.ndim)
    size, one = x.shape[axis], by is None
    sizes = np.array(1) if by is None else np.asarray(by)
    if not sizes.shape:
        step = int(sizes)
        if step < 1:
            raise InvalidArguments(f"{node} has parts of {step} elements: of 1 at least")
        ends = list(range(step, size, step))
    else:
        if sizes.sum() != size or sizes.min(initial=0) < 0:
            raise InvalidArguments(f"{node} has parts of {shown(sizes)} elements, axis {axis} has {size}")
        ends = np.cumsum(sizes)[:-1].tolist()
    parts = tuple(np.split(x, ends, axis)) if size or sizes.size else ()
    return tuple(np.squeeze(part, axis) for part in parts) if one and not node.get("keepdims", 1) else parts


def joined(node: Node, given: Given) -> Array:
    old, axis = elements(node, given), node.get("axis")
    if not old:
        raise InvalidArguments(f"{node} joins the list {shown(node.inputs[0])}, which has no elements")
    return np.stack(old, axis) if node.get("new_axis", 0) else np.concatenate(old, axis)


OPERATORS: Final[Mapping[str, Callable[[Node, Given], Any]]] = {
    "ConcatFromSequence": joined,
    "SequenceAt": chosen,
    "SequenceConstruct": lambda node, given: tuple(given),
    "SequenceEmpty": lambda node, given: (),
    "SequenceErase": erased,
    "SequenceInsert": inserted,
    "SequenceLength": lambda node, given: np.array(len(elements(node, given)), np.int64),
    "SplitToSequence": parted,
}


def inputs_of(node: Node, values: Mapping[str, Any]) -> list[Any]:
    """What a node reads.  Raises InvalidArguments for what nobody has made."""
    try:
        return [None if name == NOTHING else values[name] for name in node.inputs]
    except KeyError as error:
        raise InvalidArguments(f"{shown(error.args[0])} is read before it is made") from None


def tensor(node: Node, name: str, values: Mapping[str, Any]) -> Array:
    """What a node reads that is no list.  Raises InvalidArguments."""
    found = values.get(name)
    if not isinstance(found, np.ndarray):
        what = "is read before it is made" if found is None else f"is a list: {node.op} takes tensors"
        raise InvalidArguments(f"{shown(name)}, which {node} reads, {what}")
    return found
