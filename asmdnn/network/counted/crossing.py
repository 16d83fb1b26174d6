"""Values with two counted axes, such as scores of places for one another: each axis goes through a node by itself.

A rule says of one axis that no place reads another one along it, or what the places that do not count must be.  It
says so whatever there is along other axes, so two rules hold together.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple

from asmdnn.network.counted.choosing import Chooser, CountedChoice
from asmdnn.network.counted.collecting import FilledPlaces
from asmdnn.network.counted.passed import passed_on
from asmdnn.network.counted.reading import CountedReading
from asmdnn.network.counted.rules import ELEMENT_WISE, REDUCTIONS
from asmdnn.network.graph import NOTHING, Node
from asmdnn.records import replace

OPERATORS: Final = {
    *ELEMENT_WISE.split(), *REDUCTIONS.split(), "Softmax", "LogSoftmax", "MatMul", "Transpose", "Unsqueeze", "Squeeze",
}  # fmt: skip
MOST: Final = 2  # axes of a value

Pair = tuple[int, int, CountedChoice]  # an operand, one of its axes, and what counts there
Counted = dict[int, CountedChoice]  # by axis


class CrossedAxis(NamedTuple):
    """What one choice counts of a node.  axes: by number of operand; filled: what those need, and the result's axis."""

    choice: CountedChoice
    axes: Mapping[int, int]
    filled: FilledPlaces


def crossed(w: Chooser, node: Node, pairs: Sequence[Pair]) -> tuple[Node, Counted] | None:
    """The node with operands as all axes need them, and the axes of its result; None for one that mixes places."""
    if node.domain or node.op not in OPERATORS:
        return None
    values = [w.value(name) if name != NOTHING else None for name in node.inputs]
    found = parted(pairs, lambda axes: passed_on(CountedReading(node, values, axes)))
    is_mean = node.op == "ReduceMean"  # which is over as many as count, not over all that are read
    if found is None or (is_mean and any(one.filled.axis is None for one in found)):
        return None
    filled = [(one, i) for one in found for i in one.filled.numbers if i in one.axes]
    if len({node.inputs[i] for _, i in filled}) < len({i for _, i in filled}):  # one value as two operands
        return None
    results = [(one.filled.axis, one.choice) for one in found if one.filled.axis is not None]
    axes = dict(results)
    if len(axes) < len(results) or len(axes) > MOST:
        return None
    names = list(node.inputs)
    for one, i in filled:
        names[i] = w.filled(names[i], one.axes[i], one.choice, one.filled.numbers[i])
    return replace(node, inputs=tuple(names)), axes


def parted(
    pairs: Sequence[Pair], passed: Callable[[Mapping[int, int]], FilledPlaces | None]
) -> list[CrossedAxis] | None:
    """All axes in parts that go through a node together; None if that cannot be."""
    if not pairs:
        return []
    (first, axis, choice), *others = pairs
    for joined in companions(first, choice, others):
        axes = {first: axis, **{i: own for i, own, _ in joined}}
        filled = passed(axes)
        rest = None if filled is None else parted([x for x in others if x not in joined], passed)
        if filled is not None and rest is not None:
            return [CrossedAxis(choice, axes, filled), *rest]
    return None


def companions(first: int, choice: CountedChoice, others: Sequence[Pair]) -> Iterator[tuple[Pair, ...]]:
    """Axes of other operands that may be the same one as that of the first, at most one of each, most of them first."""
    operands = sorted({i for i, _, of in others if i != first and of == choice})
    several = [[None, *(x for x in others if x[0] == i and x[2] == choice)] for i in operands]
    found = [tuple(x for x in picked if x is not None) for picked in product(*several)]
    yield from sorted(found, key=len, reverse=True)
