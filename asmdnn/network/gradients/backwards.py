"""From a loss back to the values that gradients are wanted of: the chain rule, node by node, in reverse order.

Every value's gradients, one from each reader, are added in the order in which the readers stand behind one another, so
the bits do not depend on anything else.  Source: Griewank and Walther, Evaluating Derivatives (2008), chapter 3.
"""

from collections.abc import Sequence
from itertools import count
from math import prod

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.network.gradients.table import Gradients, rules
from asmdnn.network.gradients.words import GradientWords, KnownGraph
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.known import name_of

F32 = np.dtype(np.float32)


def differentiated(known: KnownGraph, nodes: Sequence[Node], loss: str, wrt: Sequence[str], first: int) -> list[str]:
    """The gradients of the loss by these values, whose nodes `known` takes in.  first: a number that no name has.

    Raises InvalidArguments for what is no loss or is not reached by it, Unimplemented for operators without a rule.
    """
    check_loss(known, loss)
    for name in wrt:
        if known.values[name].dtype != F32:
            raise InvalidArguments(f"{shown(name)} is {known.values[name].dtype.name}: only f32 values have gradients")
    depends = set(wrt)
    for node in nodes:
        if depends.intersection(node.inputs):
            depends.update(name for name in node.outputs if name != NOTHING and known.values[name].dtype == F32)
    numbers = count(first)
    start = Node("Identity", (loss,), (loss,), attributes={})
    parts: dict[str, list[str]] = {
        loss: [GradientWords(known, start, numbers).constant(np.ones(shape_of(known, loss)))]
    }
    for node in reversed(nodes):
        if not depends.intersection(node.inputs) or not parts.keys() & (set(node.outputs) - {NOTHING}):
            continue
        words = GradientWords(known, node, numbers)
        given = [words.sum_of(parts[name]) if parts.get(name) else None for name in node.outputs]
        for name, part in zip(node.inputs, gradients_of(words, node, given), strict=False):
            if name in depends and name != NOTHING:
                if part is None:
                    raise Unimplemented(f"{node} has no gradient by its operand {shown(name)}: leave it out of wrt")
                parts.setdefault(name, []).append(part)
    missing = [name for name in wrt if not parts.get(name)]
    if missing:
        raise InvalidArguments(
            f"the loss {shown(loss)} does not depend on {shown(missing[0])}, or by integers alone: leave it out of wrt"
        )
    return [GradientWords(known, start, numbers).sum_of(parts[name]) for name in wrt]


def shape_of(known: KnownGraph, name: str) -> tuple[int, ...]:
    return known.values[name].shape


def check_loss(known: KnownGraph, loss: str) -> None:
    """Raise InvalidArguments for what is no number of f32."""
    value = known.values[loss]
    if prod(value.shape) != 1 or value.dtype != F32:
        dims = "x".join(map(str, value.shape)) or "1"
        raise InvalidArguments(
            f"the loss {shown(loss)} is {value.dtype.name} {dims}, it must be one number of f32: take a mean or a sum"
        )


def gradients_of(words: GradientWords, node: Node, given: Gradients) -> Gradients:
    """By each input.  Raises Unimplemented where there is no rule."""
    rule = None if node.domain else rules().get(node.op)
    if rule is None:
        second = " (it computes a gradient itself: second derivatives end here)" if node.domain else ""
        raise Unimplemented(f"{node} has no gradient: {name_of(node)} has no rule{second}")
    return rule(words, node, given)
