"""Lists of values: what is in each is known before a network runs, so that its elements are values like others."""

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, counted, shown
from asmdnn.network.folding.bodies import OPSET, BodyFolding, number_of
from asmdnn.network.graph import NOTHING, Body, Node
from asmdnn.network.operators.definition import ints, normal
from asmdnn.network.splitting import decided_by_data

MOST_ELEMENTS = 4096
Names = tuple[str, ...]


class SequenceFolding(BodyFolding, Protocol):
    """What knows lists, too: the values in each, by its name."""

    sequences: dict[str, Names]


def constructed(folding: SequenceFolding, node: Node) -> Names:
    return node.inputs


def inserted(folding: SequenceFolding, node: Node) -> Names:
    elements, (value, at) = elements_of(folding, node), (*node.inputs[1:], NOTHING)[:2]
    place = place_of(folding, node, at, len(elements), len(elements), most=len(elements))
    return (*elements[:place], value, *elements[place:])


def erased(folding: SequenceFolding, node: Node) -> Names:
    elements = elements_of(folding, node)
    place = place_of(folding, node, (*node.inputs[1:], NOTHING)[0], len(elements) - 1, len(elements))
    return (*elements[:place], *elements[place + 1 :])


def chosen(folding: SequenceFolding, node: Node) -> str:
    elements = elements_of(folding, node)
    return elements[place_of(folding, node, node.inputs[1], 0, len(elements))]


def length(folding: SequenceFolding, node: Node) -> str:
    length = len(elements_of(folding, node))
    return folding.constant(f"{node.outputs[0]}: {length}", np.array(length, np.int64))


def parted(folding: SequenceFolding, node: Node) -> Names:
    """Parts of a tensor along an axis: of so many elements, of each of these numbers of elements, or of one."""
    x, by = (*node.inputs, NOTHING)[:2]
    shape = folding.values[x].shape
    axis = normal(node.get("axis", 0), len(shape))
    known = folding.values[by].data if by != NOTHING else np.array(1)
    if known is None:
        raise decided_by_data(node, by)
    sizes = ints(known)
    if not known.shape:
        (step,) = sizes
        if step < 1:
            raise InvalidArguments(f"{node} has parts of {step} elements: of 1 at least")
        sizes = tuple(min(step, shape[axis] - start) for start in range(0, shape[axis], step))
    if sum(sizes) != shape[axis] or min(sizes, default=0) < 0 or len(sizes) > MOST_ELEMENTS:
        raise InvalidArguments(f"{node} has parts of {shown(sizes)} elements, axis {axis} has {shape[axis]}")
    names = tuple(f"{node.outputs[0]}/part {i}" for i in range(len(sizes)))
    if names:
        split = folding.constant(f"{node.outputs[0]}/sizes", np.array(sizes, np.int64))
        add(folding, node, "Split", (x, split), names, axis=axis)
    if by != NOTHING or node.get("keepdims", 1):
        return names
    axes = folding.constant(f"{node.outputs[0]}/axis", np.array([axis], np.int64))
    return tuple(add(folding, node, "Squeeze", (name, axes), (f"{name} alone",)) for name in names)


def joined(folding: SequenceFolding, node: Node) -> str:
    elements, axis = elements_of(folding, node), node.get("axis")
    if not elements:
        raise InvalidArguments(f"{node} joins the list {shown(node.inputs[0])}, which has no elements")
    result = f"{node.outputs[0]}/joined"
    if node.get("new_axis", 0):
        axes = folding.constant(f"{result}, its axis", np.array([axis], np.int64))
        elements = tuple(add(folding, node, "Unsqueeze", (x, axes), (f"{result}/{i}",)) for i, x in enumerate(elements))
    return add(folding, node, "Concat", elements, (result,), axis=axis)


def mapped(folding: SequenceFolding, node: Node) -> tuple[Names, ...]:
    """A list for each result of a body, of elements in turn and of tensors as they are."""
    body, count = node.get("body"), len(elements_of(folding, node))
    fits = isinstance(body, Body) and len(body.inputs) == len(node.inputs) and len(body.outputs) == len(node.outputs)
    if not fits:
        raise InvalidArguments(
            f"{node} has no body with {counted(len(node.inputs), 'input')} and {counted(len(node.outputs), 'result')}"
        )
    several = [folding.sequences.get(name) or (name,) * count for name in node.inputs]
    if any(len(one) != count for one in several):
        raise InvalidArguments(f"{node} goes through lists of {[len(one) for one in several]} elements: of one length")
    rounds = [folding.inlined(body, dict(zip(body.inputs, now, strict=True))) for now in zip(*several, strict=True)]
    return tuple(zip(*rounds, strict=True)) or ((),) * len(node.outputs)


MADE: Mapping[str, Callable[[SequenceFolding, Node], Names]] = {
    "SequenceConstruct": constructed,
    "SequenceEmpty": lambda folding, node: (),
    "SequenceErase": erased,
    "SequenceInsert": inserted,
    "SplitToSequence": parted,
}
READ: Mapping[str, Callable[[SequenceFolding, Node], str]] = {
    "ConcatFromSequence": joined,
    "SequenceAt": chosen,
    "SequenceLength": length,
}
SEQUENCES = (*MADE, *READ, "SequenceMap")


def taken(folding: SequenceFolding, node: Node) -> dict[str, str]:
    """The values that a node makes which are no lists, by its outputs; lists are known from now on."""
    if node.op in READ:
        return {node.outputs[0]: READ[node.op](folding, node)}
    lists = mapped(folding, node) if node.op == "SequenceMap" else (MADE[node.op](folding, node),)
    for name, elements in zip(node.outputs, lists, strict=True):
        if len(elements) > MOST_ELEMENTS:
            raise Unimplemented(
                f"{node} makes a list of {counted(len(elements), 'element')}: of {MOST_ELEMENTS} at most"
            )
        folding.sequences[name] = elements
    return {}


def elements_of(folding: SequenceFolding, node: Node) -> Names:
    """Of its first input.  Raises InvalidArguments for a tensor."""
    found = folding.sequences.get(node.inputs[0])
    if found is None:
        raise InvalidArguments(f"{node} reads {shown(node.inputs[0])}, which is no list but a tensor")
    return found


def place_of(folding: SequenceFolding, node: Node, name: str, default: int, count: int, most: int | None = None) -> int:
    """A place in so many elements, which may be counted from the end; most: the last one, if that is behind them."""
    data = None if name == NOTHING else folding.values[name].data
    if name != NOTHING and data is None:
        raise decided_by_data(node, name)
    place = default if data is None else number_of(node, name, data)
    if not -count <= place <= (count - 1 if most is None else most):
        raise InvalidArguments(f"{node} takes place {place} of a list of {counted(count, 'element')}")
    return place + count if place < 0 else place


def add(folding: SequenceFolding, node: Node, op: str, inputs: Names, outputs: Names, **attributes: int) -> str:
    """A node on tensors; the name of its first result."""
    known = tuple(map(folding.known, inputs))
    folding.node(Node(op, known, outputs, attributes=attributes, name=node.name, domain="", opset=OPSET))
    return folding.known(outputs[0])
