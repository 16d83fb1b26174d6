"""The rule of Einstein sums: each operand's gradient is a sum of the result's and the other operands."""

from itertools import chain
from string import ascii_letters

import numpy as np

from asmdnn.network.gradients.table import Gradients, Rule, given_of
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import Node
from asmdnn.network.operators.einsum import labels_of as labels_of_equation
from asmdnn.network.operators.einsum import sizes_of


def einsum(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    shapes = [w.shape(x) for x in node.inputs]
    terms, result = labels_of_equation(node.get("equation"), [len(shape) for shape in shapes])
    _, sizes = sizes_of(node, shapes)
    letters = dict(zip(dict.fromkeys(chain(*terms)), ascii_letters, strict=False))
    named = [("".join(map(letters.__getitem__, labels))) for labels in (*terms, result)]
    every = [*zip(node.inputs, named, strict=False), (given_of(given), named[-1])]
    lengths = {letters[label]: size for label, size in sizes.items()}
    return [by_operand(w, every, i, lengths) for i in range(len(terms))]


def by_operand(w: GradientWords, every: list[tuple[str, str]], i: int, sizes: dict[str, int]) -> str:
    """every: operands with their labels, and the result's gradient.

    A label that the operand alone has is the same everywhere along: a factor of ones.  One that comes twice in it is
    its diagonal: a unit matrix.  Dims of 1 that meet others are summed over.
    """
    (x, term), operands = every[i], [each for j, each in enumerate(every) if j != i]
    made, spare = "", [letter for letter in ascii_letters if letter not in sizes]
    for label, size in zip(term, w.shape(x), strict=True):
        if size != sizes[label]:
            continue
        if label in made:
            operands.append((w.constant(np.eye(size)), label + spare[0]))
            label = spare.pop(0)
        elif not any((label, size) in zip(labels, w.shape(name), strict=True) for name, labels in operands):
            operands.append((w.constant(np.ones(size)), label))
        made += label
    equation = f"{','.join(labels for _, labels in operands)}->{made}"
    return w.reshaped(w("Einsum", *(name for name, _ in operands), equation=equation), *w.shape(x))


RULES: dict[str, Rule] = {"Einsum": einsum}
