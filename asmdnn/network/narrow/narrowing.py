"""Which values of a network are stored in bf16, and which products multiply them: by cycles, if a caller allows it.

A product of bf16 is taken where it and the conversions around it are expected to cost less than the product of f32,
which may be Winograd's (choosing.py).  Its operand is bf16 in memory then, and so is what only moves it, takes the
largest elements, means or functions of it, and the result of a layer norm in front.  f32 stay: inputs and outputs, sums
and statistics, what has no kernel of bf16, and nodes that the caller names.  Kernels convert as they load and store.
"""

from collections.abc import Container, Sequence
from contextlib import suppress
from math import prod

import numpy as np

from asmdnn.errors import Unimplemented
from asmdnn.isa.dot import half_products
from asmdnn.network.asking import Asking
from asmdnn.network.fusion.maps import Group
from asmdnn.network.fusion.scaling import operands_of
from asmdnn.network.graph import NOTHING
from asmdnn.network.narrow.choosing import NarrowProduct, TypeChoice
from asmdnn.network.narrow.f16_storage import stored_as_f16
from asmdnn.network.narrow.narrow_costs import RECURRENT, Costs
from asmdnn.network.narrow.narrow_groups import MOVES, NORMS, PRODUCTS, is_carrier, is_kept, key_of, results_of
from asmdnn.network.narrow.narrow_training import rounded_products
from asmdnn.network.narrow.storage import AS_DECLARED, Precision, StorageTypes
from asmdnn.network.operators.own import OWN
from asmdnn.network.static import StaticGraph
from asmdnn.network.steps import Steps
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import replace
from asmdnn.types import f16

ATTENTION = f"{OWN}.Attention"
# Sums of integers that are floats after their scales.
SUMS = {f"{OWN}.MatMulInteger"}


def narrowed(
    graph: StaticGraph, groups: Sequence[Group], engine: Engine, precision: Precision, asking: Asking | None = None
) -> tuple[tuple[Group, ...], StorageTypes]:
    """The groups, and what to multiply and to store in fewer bits.  Where a level would make f32 of them to multiply
    them, f16 is stored alone.  Nothing where bits may not depend on the number of items, by which costs choose."""
    types = half_products(engine.isa)
    if engine.any_batch:
        return tuple(groups), AS_DECLARED
    if types is None or not precision.allows(types.src):
        stores = precision.allows(f16) and not precision.trains
        return tuple(groups), stored_as_f16(graph, groups, engine, precision) if stores else AS_DECLARED
    costs = Costs(Steps(graph, engine, asking=asking), types)
    if precision.trains:
        return tuple(groups), rounded_products(graph, groups, costs)
    narrowing = Narrowing(graph, groups, costs, precision)
    return narrowing.groups, narrowing.storage()


class Narrowing:
    """groups: the operand of a convolution is scaled by a group of its own where that lets it multiply bf16, and where
    that is faster; makers: the group that makes each value."""

    def __init__(self, graph: StaticGraph, groups: Sequence[Group], costs: Costs, precision: Precision) -> None:
        self.graph, self.costs = graph, costs
        self.kept = {group.result for group in groups if is_kept(group.nodes, precision)}
        self.groups = tuple(part for group in groups for part in self.parts(group))
        self.kept |= {group.result for group in self.groups if is_kept(group.nodes, precision)}
        self.makers = {name: group for group in self.groups for name in results_of(group)}
        self.products: set[str] = set()

    def parts(self, group: Group) -> tuple[Group, ...]:
        """The group, or the product in front of it and the rest."""
        if group.scale is None:
            return (group,)
        plain, (result,) = replace(group, scale=None), group.scale.outputs
        found = operands_of(self.graph, group.scale.inputs, self.graph.shape(result))
        with suppress(Unimplemented):  # what bf16 does not take stays as it is
            if found is not None and self.is_product(plain) and self.costs.gains_apart(group, *found):
                return Group(None, (group.scale,), found[0], result), plain
        return (group,)

    def storage(self) -> StorageTypes:
        self.choose_products()
        wanted = self.wanted()
        wanted |= self.addends(wanted)
        wanted = {name for name in wanted if name in self.makers and self.may_be_narrow(name)}
        wanted -= {name for name in wanted if key_of(self.makers[name]) in NORMS and self.is_added(name)}
        narrow = self.costs.types.src
        return StorageTypes(dict.fromkeys(wanted, narrow), dict.fromkeys(self.products, narrow))

    def choose_products(self) -> None:
        candidates, wide = list[NarrowProduct](), list[str]()
        for group in self.groups:
            found = self.candidate(group) if self.is_product(group) else None
            if found is not None:
                candidates.append(found)
            elif group.main is not None and group.node.op in PRODUCTS:
                wide += self.operands(group)
        choice = TypeChoice(candidates, wide, self.conversion, self.comes_as_stored)
        self.products = choice.chosen
        choice.make()

    def candidate(self, group: Group) -> NarrowProduct | None:
        """None of what has no kernel of bf16.  Attention is willing where all that it reads comes so; recurrent layers
        count all types alike, and take pairs on CPUs that are quick at it."""
        operands = tuple(self.operands(group))
        if key_of(group) == ATTENTION:
            return NarrowProduct(group.result, operands, 0, -1, lambda: all(map(self.comes_narrow, operands)))
        with suppress(Unimplemented):
            if key_of(group) not in RECURRENT:
                return NarrowProduct(group.result, operands, *self.costs.both(group))
            if self.costs.has_pairs(group):
                most = 1 + sum(map(self.conversion, operands))
                return NarrowProduct(group.result, operands, most, 0)
        return None

    def wanted(self) -> set[str]:
        """What products of bf16 read, and what becomes it by groups that carry values."""
        found = set[str]()
        for group in reversed(self.groups):
            if group.result in self.products:
                found.update(self.operands(group))
            elif not found.isdisjoint(results_of(group)) and is_carrier(group):
                found.update(self.carried(group))
        return found

    def addends(self, wanted: Container[str]) -> set[str]:
        """What only products add to results that are rounded as well: the other branch of a block, say."""
        readers = {name: list[Group]() for name in self.products}
        for group in self.groups:
            for name in {name for node in group.nodes for name in node.inputs} & self.products:
                readers[name].append(group)
        return {
            name
            for name, groups in readers.items()
            if groups and all(self.adds(group, name) and group.result in wanted for group in groups)
        }

    def adds(self, group: Group, name: str) -> bool:
        """Whether a product of bf16 reads a value after its sums, element by element."""
        is_whole = self.graph.shape(name) == self.graph.shape(group.result)
        return group.result in self.products and is_whole and name not in self.operands(group)

    def is_added(self, name: str) -> bool:
        """Whether a residual sum reads a value, whose roundings would add up from layer to layer: it stays f32, and
        products read a copy."""
        return any(name in node.inputs for group in self.groups if group.main is not None for node in group.maps)

    def carried(self, group: Group) -> list[str]:
        """What is read; of maps without the small tensors that are read again and again."""
        names = [name for node in group.nodes for name in node.inputs if name != NOTHING]
        if group.main is not None:
            return names
        whole = prod(self.graph.shape(group.result))
        return [name for name in names if prod(self.graph.shape(name)) == whole]

    def is_product(self, group: Group) -> bool:
        """Whether its main node multiplies f32 by constants, or is attention."""
        node = group.main
        if node is None or group.second or group.scale or group.has_integers or group.result in self.kept:
            return False
        if key_of(group) == ATTENTION:
            return True
        if key_of(group) in RECURRENT:
            return group.result != NOTHING and all(self.graph.is_constant(name) for name in node.inputs[1:3])
        if node.op not in PRODUCTS or node.domain or not self.is_f32(node.inputs[0]):
            return False
        both = node.op == "MatMul" and self.is_f32(node.inputs[1]) and len(self.graph.shape(node.inputs[0])) >= 2
        return (both or self.graph.is_constant(node.inputs[1])) and len(self.graph.shape(node.inputs[1])) >= 2

    def operands(self, group: Group) -> list[str]:
        """What a product multiplies, of which weights are no part."""
        count = 3 if key_of(group) == ATTENTION else 2 if key_of(group) == "MatMul" else 1
        return [name for name in group.node.inputs[:count] if name != NOTHING and not self.graph.is_constant(name)]

    def is_f32(self, name: str) -> bool:
        return self.graph.values[name].dtype == np.float32

    def may_be_narrow(self, name: str) -> bool:
        """Whether what makes a value may store it so."""
        group = self.makers[name]
        is_free = name not in self.graph.outputs.values() and name not in self.kept and self.is_f32(name)
        makes = name in self.products or is_carrier(group) or key_of(group) in NORMS | SUMS
        return is_free and makes and not group.has_integers and len(self.graph.shape(name)) > 0

    def comes_as_stored(self, name: str) -> bool:
        """Whether a value may be bf16 as it is made, which inputs are not."""
        return name in self.makers and self.may_be_narrow(name)

    def comes_narrow(self, name: str) -> bool:
        """Whether a value is made as bf16, or is one that is, seen otherwise."""
        group = self.makers.get(name)
        if group is None or not self.may_be_narrow(name):
            return False
        return group.main is None or key_of(group) not in MOVES or self.comes_narrow(group.main.inputs[0])

    def conversion(self, name: str) -> int:
        """Cycles to convert a value."""
        return self.costs.conversion(self.graph.shape(name))
