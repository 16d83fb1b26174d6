"""Networks with states whose kernels make integers that a call has to look at: what makes these runs first, on its own.

So a call that is refused for them has written no state.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from asmdnn.network.arrays import Array
from asmdnn.network.fusion.maps import Group, operands_of
from asmdnn.network.graph import Node
from asmdnn.network.operators.own import OWN
from asmdnn.network.static import StaticGraph


def looked_at_first(graph: StaticGraph, groups: Sequence[Group], checked: Collection[str]) -> list[Sequence[Group]]:
    """The groups in pieces that run one after another.  checked: integers that a call looks at.

    One piece where nothing has to be first, and where integers depend on what a state becomes."""
    written = [node for node in graph.nodes if is_own(node, "Written")]
    if not written or not checked:
        return [groups]
    needs = operands_of(groups)
    left, early = [i for i, group in enumerate(groups) if is_looked_at(group, checked)], set[int]()
    while left:
        i = left.pop()
        left += needs[i] - early
        early |= {i}
    becomes = {node.get("now") for node in written} - {""}
    inside = [node for i in early for node in groups[i].nodes]
    if any(node in written or not becomes.isdisjoint(node.inputs) for node in inside):
        return [groups]
    first = [group for i, group in enumerate(groups) if i in early]
    return [first, [group for i, group in enumerate(groups) if i not in early]]


def is_own(node: Node, op: str) -> bool:
    return node.domain == OWN and node.op == op


def is_looked_at(group: Group, checked: Collection[str]) -> bool:
    """Whether it makes such integers, or says that they are to be looked at."""
    looks = any(is_own(node, "LookedAt") and node.inputs[1] in checked for node in group.nodes)
    return looks or any(name in checked for node in group.nodes for name in node.outputs)


class IntegersAgain:
    """Integers that a native part has made, which it writes as f32, as another one reads them: of types by name."""

    def __init__(self, dtypes: Mapping[str, np.dtype[Any]]) -> None:
        self.dtypes = dtypes

    def prepare(self) -> None:
        """There is nothing to be made."""

    def run(self, values: dict[str, Array], into: Mapping[str, Array] | None = None) -> None:
        """What is no number becomes the least integer, which is in no range."""
        with np.errstate(all="ignore"):
            values |= {name: values[name].astype(dtype, copy=False) for name, dtype in self.dtypes.items()}
