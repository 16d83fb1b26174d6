"""Which products of a training step multiply bf16: only what they multiply is rounded.

Both operands of matrix products are data here, and each of them is read by several products: the forward pass and both
gradients.  So a value is converted once for all of them, also for those that see it transposed, and each product bears
its share.  So does attention, whose gradient, of f32 products, reads the numbers that it has multiplied: probabilities
are computed again.  Convolutions and their gradients by data read a copy of their source, in the format that they like;
those by weights read two; weights are packed with every call in any type.  Sums, activations, gradients, moments and
parameters stay f32.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from asmdnn.errors import Unimplemented
from asmdnn.network.fusion.maps import Group
from asmdnn.network.lowering.attention import ATTENTION, GRADIENT, forward_of, plain_attention
from asmdnn.network.lowering.convolutions import given_product
from asmdnn.network.lowering.gradients import weights_gradient
from asmdnn.network.narrow.narrow_costs import Costs, of_data
from asmdnn.network.narrow.storage import StorageTypes
from asmdnn.network.static import StaticGraph
from asmdnn.primitives.core.description import Description
from asmdnn.types import DataType, f32

MULTIPLIED = 3  # inputs of attention, at most; what comes after is a mask
VIEWS = {"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze"}


def rounded_products(graph: StaticGraph, groups: Sequence[Group], costs: Costs) -> StorageTypes:
    """The products that are expected to be faster so, with their shares of conversions."""
    makers, narrow = {group.result: group for group in groups}, costs.types.src
    read = {
        group.result: operands(graph, makers, group)
        for group in groups
        if is_product(graph, group) or is_attention(group)
    }
    uses = Counter(name for names in read.values() for name in names)
    found = dict[str, DataType]()
    for group in groups:
        if is_attention(group):
            found |= rounded_attention(groups, group, costs, sum(shares(costs, uses, read[group.result])))
            continue
        is_matrix, is_weights = group.result in read, is_weights_gradient(group)
        if not is_matrix and not is_weights and not is_convolution(graph, group):
            continue
        try:
            before, now = (costs.cycles(described(costs, group, dtype)) for dtype in (f32, narrow))
        except Unimplemented:
            continue
        if is_matrix:
            now += sum(shares(costs, uses, read[group.result]))
        else:
            converted = group.nodes[0].inputs[: 2 if is_weights else 1]
            now += sum(costs.conversion(graph.shape(name)) for name in converted)
        if now < before:
            found[group.x if is_weights else group.result] = narrow
    return StorageTypes({}, found)


def shares(costs: Costs, uses: Mapping[str, int], names: Sequence[str]) -> Iterator[int]:
    """Of conversions of values, of one of the products that read them."""
    return (costs.conversion(costs.graph.shape(name)) // uses[name] for name in names)


def rounded_attention(groups: Sequence[Group], group: Group, costs: Costs, conversions: int) -> Mapping[str, DataType]:
    """Attention, and its gradient, where the first is expected to be faster with conversions of what both read."""
    node, steps, narrow = group.node, costs.steps, costs.types.src
    try:
        before, now = (costs.cycles(plain_attention(steps, node, dtype)) for dtype in (f32, narrow))
    except Unimplemented:
        return {}
    reading = [
        other.result
        for other in groups
        if other.main is not None and other.main.key == GRADIENT and forward_of(steps, other.main) == node
    ]
    widened = len(reading) * costs.conversion(costs.graph.shape(node.inputs[0]))
    faster = now + conversions + widened < before
    return dict.fromkeys((group.result, *reading), narrow) if faster else {}


def is_attention(group: Group) -> bool:
    return group.main is not None and group.main.key == ATTENTION


def is_product(graph: StaticGraph, group: Group) -> bool:
    """Whether its main node multiplies matrices of f32."""
    node = group.main
    if node is None or node.key != "MatMul" or group.has_integers:
        return False
    return all(graph.values[x].dtype == np.float32 and len(graph.shape(x)) > 1 for x in node.inputs)


def is_convolution(graph: StaticGraph, group: Group) -> bool:
    """Whether its main node is a convolution of f32, or a transposed one, by weights that are data."""
    node = group.main
    if node is None or node.key not in ("Conv", "ConvTranspose") or group.has_integers or group.scale or group.second:
        return False
    return all(graph.values[x].dtype == np.float32 for x in node.inputs[:2]) and not graph.is_constant(node.inputs[1])


def is_weights_gradient(group: Group) -> bool:
    """Whether its main node is the gradient of a convolution's weights, whose operands are both data; with
    that of a bias it stays f32, as sums do."""
    return group.main is not None and group.main.key == "asmdnn.ConvWeightsGradient" and len(group.main.outputs) == 1


def operands(graph: StaticGraph, makers: dict[str, Group], group: Group) -> list[str]:
    """What it multiplies, as values that are converted; constants are packed once."""
    return [seen(makers, name) for name in group.node.inputs[:MULTIPLIED] if not graph.is_constant(name)]


def seen(makers: dict[str, Group], name: str) -> str:
    """The value that a value is only another view of."""
    group = makers.get(name)
    if group is None or group.main is None or group.maps or group.main.key not in VIEWS:
        return name
    return seen(makers, group.main.inputs[0])


def described(costs: Costs, group: Group, dtype: DataType) -> Description:
    """The product of operands of a type: matrices in row-major order, images in any."""
    node, graph = group.main, costs.graph
    assert node is not None
    if node.key == "MatMul":
        left, right = (graph.shape(name) for name in node.inputs)
        return of_data(left, right, graph.shape(group.x), dtype)
    if is_weights_gradient(group):
        return weights_gradient(costs.steps, node, dtype)
    return given_product(costs.steps, node, dtype)
