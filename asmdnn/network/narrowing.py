"""Which values of a network are stored in bf16, and which products multiply them: by cycles, if a caller allows it.

A product of bf16 is taken where it and the conversion in front of it are expected to cost less than the product of
f32, which may be Winograd's.  Its operand is bf16 in memory then, and so is what only moves it, takes the largest
elements, means or functions of it, and the result of a layer norm in front.  f32 stay: inputs and outputs, sums and
statistics, what has no kernel of bf16, and nodes that the caller names.  Kernels convert as they load and store.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, did_you_mean, shown
from asmdnn.isa.dot import BF16, levels_of
from asmdnn.network.descriptors import any_format, row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING, Model
from asmdnn.network.lowering.convolutions import convolution
from asmdnn.network.operators.own import OWN
from asmdnn.network.quantised.weights import MOVES
from asmdnn.network.static import StaticGraph
from asmdnn.network.steps import Steps
from asmdnn.network.storage import AS_DECLARED, Precision, StorageTypes
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.types import bf16

PRODUCTS = {"Conv", "MatMul", "Gemm"}
ATTENTION = f"{OWN}.Attention"
CARRIERS = MOVES | {"Concat", "AveragePool", "GlobalAveragePool", f"{OWN}.ChannelShuffle"}
# What keeps the type of its operands, beside maps.
VIEWS = {"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze"}
NORMS = {"LayerNormalization", "RMSNormalization"}


def names_of(model: Model) -> set[str]:
    """What `keep_f32` may name: nodes and their results."""
    nodes = model.body.nodes
    return ({node.name for node in nodes} | {name for node in nodes for name in node.outputs}) - {NOTHING}


def check_kept(model: Model, precision: Precision) -> None:
    """Raise InvalidArguments for names that no node has."""
    known = names_of(model)
    for name in precision.keep_f32:
        if name not in known:
            raise InvalidArguments(f"keep_f32 has {shown(name)}, which no node is called: {did_you_mean(name, known)}")


def storage_of(graph: StaticGraph, groups: Sequence[Group], engine: Engine, precision: Precision) -> StorageTypes:
    """What to multiply and to store in bf16.  Nothing on a level that would make f32 of it to multiply it."""
    allowed = precision.word in ("bf16", "fast") and bool(levels_of(BF16, engine.isa))
    return Narrowing(graph, groups, engine, precision).storage() if allowed else AS_DECLARED


class Narrowing:
    """makers: the group that makes each value; trains: of a training step, where both operands are data and only what
    is multiplied is rounded."""

    def __init__(self, graph: StaticGraph, groups: Sequence[Group], engine: Engine, precision: Precision) -> None:
        self.graph, self.groups, self.steps = graph, groups, Steps(graph, engine)
        self.makers, self.trains = {group.result: group for group in groups}, precision.trains
        kept = set(precision.keep_f32)
        self.kept = {group.result for group in groups if any({node.name, *node.outputs} & kept for node in group.nodes)}
        self.products: set[str] = set()
        self.converted: set[str] = set()
        shared = [group for group in groups if self.trains and self.is_product(group)]
        self.uses = Counter(name for group in shared for name in self.operands(group))

    def storage(self) -> StorageTypes:
        for group in self.groups:
            if self.is_product(group) and self.gains(group):
                self.products.add(group.result)
                self.converted.update(self.operands(group))
        if self.trains:
            return StorageTypes({}, dict.fromkeys(self.products, bf16))
        wanted = set[str]()
        for group in reversed(self.groups):
            if group.result in self.products:
                wanted.update(self.operands(group))
            elif group.result in wanted and self.is_carrier(group):
                wanted.update(name for node in group.nodes for name in node.inputs)
        wanted = {name for name in wanted if name in self.makers and self.may_be_narrow(name)}
        return StorageTypes(dict.fromkeys(wanted, bf16), dict.fromkeys(self.products, bf16))

    def is_product(self, group: Group) -> bool:
        """Whether its main node multiplies f32 by constants, or is attention."""
        node = group.main
        if node is None or group.behind or group.scale or group.has_integers or group.result in self.kept:
            return False
        if key_of(group) == ATTENTION:
            return True
        if self.trains:
            return node.key == "MatMul" and all(self.is_f32(x) and len(self.graph.shape(x)) > 1 for x in node.inputs)
        is_of_weights = node.op in PRODUCTS and not node.domain and self.graph.is_constant(node.inputs[1])
        return is_of_weights and len(self.graph.shape(node.inputs[1])) >= 2 and self.is_f32(node.inputs[0])

    def is_f32(self, name: str) -> bool:
        return self.graph.values[name].dtype == np.float32

    def is_carrier(self, group: Group) -> bool:
        return group.main is None or key_of(group) in CARRIERS

    def may_be_narrow(self, name: str) -> bool:
        """Whether what makes a value may store it so."""
        group = self.makers[name]
        is_free = name not in self.graph.outputs.values() and name not in self.kept and self.is_f32(name)
        makes = name in self.products or self.is_carrier(group) or key_of(group) in NORMS
        return is_free and makes and not group.has_integers and len(self.graph.shape(name)) > 0

    def gains(self, group: Group) -> bool:
        """Whether bf16 is expected to be faster, with the conversion of what comes as f32."""
        if key_of(group) == ATTENTION:
            return all(name in self.products or self.is_moved_product(name) for name in self.operands(group))
        wide = self.description(group)
        try:
            before, now = (self.cycles(desc) for desc in (wide, narrow(wide)))
        except Unimplemented:
            return False
        return now + sum(self.conversion(name) for name in self.operands(group)) < before

    def operands(self, group: Group) -> list[str]:
        """What a product multiplies, of which constant weights are no part."""
        assert group.main is not None
        count = 3 if key_of(group) == ATTENTION else 2 if self.trains else 1
        names = [name for name in group.main.inputs[:count] if name != NOTHING]
        return [self.seen(name) for name in names if not self.graph.is_constant(name)] if self.trains else names

    def seen(self, name: str) -> str:
        """The value that a value is only another view of: both are converted at once."""
        group = self.makers.get(name)
        if group is None or group.maps or key_of(group) not in VIEWS:
            return name
        assert group.main is not None
        return self.seen(group.main.inputs[0])

    def is_moved_product(self, name: str) -> bool:
        """Whether a value is what a product of bf16 makes, seen otherwise."""
        group = self.makers.get(name)
        if group is None or key_of(group) not in MOVES:
            return name in self.products
        assert group.main is not None
        return self.is_moved_product(group.main.inputs[0])

    def conversion(self, name: str) -> int:
        """Cycles to convert an operand, if nobody has done it and its maker cannot store it so: of a training step its
        share of them, as forward pass and gradients read it."""
        if name in self.converted or (not self.trains and name in self.makers and self.may_be_narrow(name)):
            return 0
        dims = self.graph.shape(name)
        return self.cycles(Reorder(row_major(dims), row_major(dims, bf16))) // max(1, self.uses[name])

    def cycles(self, desc: Description) -> int:
        """Expected; of pairs of bf16 as long as the CPU class takes for them, where weights are not what takes it."""
        pd, numbers = primitive_desc(desc, engine=self.steps.engine), self.steps.engine.tuning.products
        if isinstance(desc, Reorder) or not multiplies_pairs(pd.implementation):
            return pd.plan.cycles
        dims = desc.dst.dims  # type: ignore[attr-defined]
        rows = prod(dims) // (dims[-1] if isinstance(desc, MatMul) else dims[1])
        return pd.plan.cycles if rows <= numbers.half_weights_rows else int(pd.plan.cycles * numbers.bf16_cycles)

    def description(self, group: Group) -> Description:
        """The main node in f32."""
        node = group.main
        assert node is not None
        if node.op == "Conv":
            return convolution(self.steps, node)
        right = self.graph.shape(node.inputs[1])
        if self.trains:
            left, result = self.graph.shape(node.inputs[0]), self.graph.shape(group.x)
            front = [(1,) * (len(result) - len(dims)) for dims in (left, right)]
            return MatMul(row_major((*front[0], *left)), row_major((*front[1], *right)), row_major(result))
        k, n = right[::-1] if node.get("transB", 0) else right[-2:]
        rows = prod(self.graph.shape(group.x)) // n
        return MatMul(row_major((rows, k)), any_format((k, n)), row_major((rows, n)))


def multiplies_pairs(implementation: str) -> bool:
    """Whether an implementation's level has VDPBF16PS, which plans count as one FMA."""
    return bool(levels_of(BF16, implementation.rpartition(":")[2]))


def narrow(desc: Description) -> Description:
    """The same product of bf16; its bias stays f32."""
    tensors = {name: retyped for name in ("src", "weights", "dst") if (retyped := getattr(desc, name))}
    found = {name: any_format(x.dims, bf16) if x.is_any else row_major(x.dims, bf16) for name, x in tensors.items()}
    return replace(desc, **found)


def key_of(group: Group) -> str:
    """The main operator's name, behind its domain; "" for maps."""
    node = group.main
    return "" if node is None else node.key

