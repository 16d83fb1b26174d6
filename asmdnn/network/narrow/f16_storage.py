"""What is stored as f16 on a level that widens it: where a network waits for memory, and nothing takes more cycles.

No level here multiplies f16, so products stay those of f32.  Weights that one or two rows are multiplied by are read
once from beyond L2: as f16 they are half the bytes, and become f32 as they are loaded.  The same holds for values
beyond L2 that kernels convert as they store and load: what a convolution, a product, a map or a norm makes, and what
only maps, moves and joins read.  Products and poolings would widen such a value in a pass of its own, so what they read
stays f32, and so does what is in L2.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from asmdnn.network.fusion.maps import Group
from asmdnn.network.fusion.pairs import is_depthwise
from asmdnn.network.graph import NOTHING, Array
from asmdnn.network.narrow.narrow_groups import MOVES, NORMS, is_kept, key_of, results_of
from asmdnn.network.narrow.storage import Precision, StorageTypes
from asmdnn.network.static import StaticGraph
from asmdnn.primitives.core.engine import Engine
from asmdnn.types import f16, f32

F16 = np.finfo(np.float16)
LEAST = 2 * float(F16.tiny)  # half a step of denormals is 2^-12 of it
VIEWS = (MOVES | {"Concat"}) - {"MaxPool"}  # what need not copy, as long as both sides are of one type
CONVERTING = VIEWS | {""}  # and maps


def stored_as_f16(graph: StaticGraph, groups: Sequence[Group], engine: Engine, precision: Precision) -> StorageTypes:
    """Weights and values, by the results of groups."""
    kept = [group for group in groups if not is_kept(group.nodes, precision)]
    weights = {group.result: f16 for group in kept if waits_for_weights(graph, group, engine)}
    free = {group.result for group in kept} - {*graph.outputs.values()}
    values = {group.result for group in groups if group.result in free and makes_f16(graph, group, engine)}
    while beside := values & unfit(graph, groups, values):
        values -= beside
    return StorageTypes(dict.fromkeys(values, f16), weights=weights)


def waits_for_weights(graph: StaticGraph, group: Group, engine: Engine) -> bool:
    """Whether it multiplies few rows by constants beyond L2 that f16 holds to 11 bits."""
    node = group.main
    if node is None or node.key not in ("MatMul", "Gemm") or group.has_integers or group.scale or group.second:
        return False
    left, right = (graph.shape(name) for name in node.inputs[:2])
    if len(left) < 2 or len(right) != 2 or not is_f32(graph, node.inputs[0]):
        return False
    rows = prod(graph.shape(group.x)[:-1])
    if rows > engine.tuning.products.half_weights_rows or prod(right) * f32.size_bytes <= engine.l2_bytes:
        return False
    data, scale = graph.values[node.inputs[1]].data, abs(node.get("alpha", 1.0)) if node.op == "Gemm" else 1.0
    return data is not None and is_held(data, scale, 1 if node.get("transB", 0) else 0)


def is_held(weights: Array, scale: float, k: int) -> bool:
    """Whether f16 has room for all weights, and the largest of each column, along axis k, is no denormal: the others
    are then rounded by 2^-12 of it at most."""
    if weights.dtype != np.float32 or not weights.size:
        return False
    largest = np.maximum(weights.max(k), -weights.min(k)).astype(np.float64) * scale
    return bool(((largest == 0) | (largest >= LEAST)).all() and largest.max() <= F16.max)


def makes_f16(graph: StaticGraph, group: Group, engine: Engine) -> bool:
    """Whether a group can store its result as f16 as it goes, and that lies beyond L2."""
    name, key = group.result, key_of(group)
    if group.has_integers or group.scale or group.second or not is_f32(graph, name) or len(results_of(group)) > 1:
        return False
    if prod(graph.shape(name)) * f32.size_bytes <= engine.l2_bytes or not graph.shape(name):
        return False
    if key in ("Conv", "MatMul", "Gemm"):
        is_plain = graph.is_constant(group.node.inputs[1]) and is_f32(graph, group.node.inputs[0])
        return is_plain and not is_depthwise(graph, group)  # which may be the second one of a pair
    return key in NORMS | CONVERTING


def unfit(graph: StaticGraph, groups: Sequence[Group], values: set[str]) -> set[str]:
    """Those that some group does not read as it goes, and views whose sources and result are of two types."""
    found = set[str]()
    for group in groups:
        read = {name for node in group.nodes for name in node.inputs if name != NOTHING} - {group.result}
        key, is_used = key_of(group), group.result in values
        if group.has_integers or group.second or key not in CONVERTING or (key in VIEWS and not is_used):
            found |= read
        if key in VIEWS and not all(name in values or graph.is_constant(name) for name in read):
            found.add(group.result)
    return found


def is_f32(graph: StaticGraph, name: str) -> bool:
    return graph.values[name].dtype == np.float32
