"""A graph as pieces that run one after another: native plans, and nodes without a kernel that numpy computes."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from asmdnn.errors import Unimplemented
from asmdnn.network.asking import Asking
from asmdnn.network.calls.running import result_name
from asmdnn.network.descriptors import input_desc
from asmdnn.network.folding.remembered import Remembered
from asmdnn.network.fusion.affine import fold_affine
from asmdnn.network.fusion.attention import attended
from asmdnn.network.fusion.bias_gradients import biases_beside_weights
from asmdnn.network.fusion.casting import casts_first
from asmdnn.network.fusion.depth import unfolded
from asmdnn.network.fusion.einsum import products
from asmdnn.network.fusion.gather_elements import taken
from asmdnn.network.fusion.group_norm import grouped_norms
from asmdnn.network.fusion.integer_bias import biases_as_floats
from asmdnn.network.fusion.integer_products import summed_as_floats
from asmdnn.network.fusion.integers import floats_apart, integers_kept
from asmdnn.network.fusion.layer_norm import layers_normalized
from asmdnn.network.fusion.maps import Group, groups_of, operands_of
from asmdnn.network.fusion.no_ops import without_no_ops
from asmdnn.network.fusion.numbers import as_numbers
from asmdnn.network.fusion.one_hot import looked_up
from asmdnn.network.fusion.padding import padded_within
from asmdnn.network.fusion.pairs import paired
from asmdnn.network.fusion.pool_padding import pooled_within
from asmdnn.network.fusion.recognition import recognised
from asmdnn.network.fusion.rows import with_batches
from asmdnn.network.fusion.several_scales import scales_apart
from asmdnn.network.fusion.shuffles import shuffled
from asmdnn.network.fusion.tiling import untiled
from asmdnn.network.fusion.upsampling import convolved_first
from asmdnn.network.fusion.views_after_maps import sunk
from asmdnn.network.graph import NOTHING
from asmdnn.network.joining.place import Place
from asmdnn.network.known import name_of
from asmdnn.network.layouts import FormatPath, FormatSearch
from asmdnn.network.looked_at_first import looked_at_first
from asmdnn.network.narrow.narrowing import narrowed
from asmdnn.network.narrow.storage import AS_DECLARED, IN_F32, Precision, StorageTypes
from asmdnn.network.static import StaticGraph
from asmdnn.network.steps import NUMBERS, Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass, replace

REWRITES = (
    biases_as_floats, summed_as_floats, scales_apart, integers_kept, without_no_ops, casts_first, padded_within,
    pooled_within, unfolded, untiled, taken, products, with_batches, recognised, layers_normalized, looked_up,
    as_numbers, grouped_norms, shuffled, attended, biases_beside_weights, sunk,
)  # fmt: skip
MOST_NAMED = 4  # refused nodes that an error names; a message has 500 characters


@dataclass(frozen=True, eq=False)
class GraphSegment:
    """Groups that run together; reads and makes: the values that it takes from before, and those that others read.

    way: how the groups of a network that is native throughout were lowered when they were asked for kernels.  storage:
    the types of values inside."""

    groups: tuple[Group, ...]
    is_native: bool
    reads: tuple[str, ...]
    makes: tuple[str, ...]
    way: FormatPath | None = None
    storage: StorageTypes = AS_DECLARED


def fused(graph: StaticGraph, remembered: Remembered | None = None) -> StaticGraph:
    """All rewrites that keep ONNX's operators.  remembered: what is known of the model from other shapes."""
    with np.errstate(all="ignore"):  # constants may be infinite, or no numbers
        for rewrite in REWRITES:
            graph = rewrite(graph)
        return floats_apart(convolved_first(fold_affine(graph, remembered or Remembered())))


def label_of(group: Group) -> str:
    return group.label


def segments_of(
    graph: StaticGraph,
    engine: Engine,
    fallback: str | None,
    precision: Precision = IN_F32,
    asking: Asking | None = None,
    in_place_of: Callable[[Group], str] = label_of,
) -> tuple[list[GraphSegment], dict[str, str]]:
    """The segments, and why nodes have no kernel, by the label of their group.

    in_place_of: what errors call a group.  Raises Unimplemented, which names all of them, unless fallback is "numpy".
    """
    refused = dict[str, str]()
    groups, storage = narrowed(graph, groups_of(graph), engine, precision, asking)
    groups = paired(graph, groups, {*storage.products, *storage.values})
    whole = replace(segment_of(graph, True, groups, groups), storage=storage)
    search = FormatSearch(Steps(subgraph(graph, whole), engine, storage, asking), groups)
    for group in groups:
        reason = try_to_lower(search, group)
        if reason:
            refused[group.label] = reason
            for way in search.ways:
                assume(way.steps, group)
    if refused and fallback is None:
        raise Unimplemented(sentence(groups, refused, in_place_of))
    if not groups:
        return [], refused
    if refused:
        runs = runs_of(groups, refused)
    else:
        way = search.end()
        runs = [(True, [*some]) for some in looked_at_first(graph, groups, way.steps.integers.checked)]
        if len(runs) == 1:
            return [replace(whole, way=way)], refused
    parts = (segment_of(graph, is_native, some, groups) for is_native, some in runs)
    return [replace(part, storage=storage) for part in parts], refused


def runs_of(groups: Sequence[Group], refused: Mapping[str, str]) -> list[tuple[bool, list[Group]]]:
    """The groups in runs of those with kernels and those without: all that can be computed of the one, then of the
    other, so that few calls are made.  Arithmetic of indices comes before all kernels."""
    needs, left, runs = operands_of(groups), dict(enumerate(groups)), list[tuple[bool, list[Group]]]()
    is_native = False
    while left:
        run = list[Group]()
        for i, group in list(left.items()):
            if not needs[i] & left.keys() and (group.label not in refused) == is_native:
                run.append(left.pop(i))
        runs += [(is_native, run)] * bool(run)
        is_native = not is_native
    return runs


def sentence(groups: Sequence[Group], refused: dict[str, str], in_place_of: Callable[[Group], str]) -> str:
    """How many nodes have no kernel, of which operators, and why the first ones have none."""
    found = {group.label: group for group in groups if group.label in refused}
    counts = Counter(name_of(group.nodes[0]) for group in found.values())
    ops = ", ".join(f"{op} {count} times" for op, count in counts.most_common(MOST_NAMED)) if len(counts) > 1 else ""
    named = "; ".join(f"{in_place_of(found[label])}: {reason}" for label, reason in list(refused.items())[:MOST_NAMED])
    more = f"; and {len(refused) - MOST_NAMED} more" if len(refused) > MOST_NAMED else ""
    words = f" ({ops})" if ops else ""
    has, them = ("has", "it") if len(refused) == 1 else ("have", "them")
    fallback = f"fallback='numpy' computes {them} in numpy"
    return f"{len(refused)} of the nodes {has} no kernel{words}, {fallback}: {named}{more}"


def try_to_lower(search: FormatSearch, group: Group) -> str:
    """Lower a group: "", or why there is no kernel for it."""
    try:
        search.lower(group)
    except Refused as reason:
        return str(reason)
    return ""


def assume(steps: Steps, group: Group) -> None:
    """The results of a group that numpy computes: plain tensors, and integers that may be indices."""
    for node in group.nodes:
        for name in node.outputs:
            if name == NOTHING or name not in steps.graph.values:
                continue
            if steps.value(name).dtype in NUMBERS:
                steps.places[name] = [Place(name, input_desc(steps.value(name)))]
            else:
                steps.integers.given.add(name)


def segment_of(graph: StaticGraph, is_native: bool, groups: Sequence[Group], every: Sequence[Group]) -> GraphSegment:
    inside = {id(group) for group in groups}
    own = {name for group in groups for node in group.nodes for name in node.outputs if name != NOTHING}
    read = dict.fromkeys(name for group in groups for node in group.nodes for name in node.inputs if name != NOTHING)
    others = {name for group in every if id(group) not in inside for node in group.nodes for name in node.inputs}
    others |= set(graph.outputs.values())
    reads = tuple(name for name in read if name not in own and not graph.is_constant(name))
    return GraphSegment(tuple(groups), is_native, reads, tuple(name for name in graph.values if name in own & others))


def subgraph(graph: StaticGraph, some: GraphSegment) -> StaticGraph:
    """The graph of a native segment, whose inputs are values that come from before."""
    nodes = tuple(node for group in some.groups for node in group.nodes)
    outputs = {result_name(name): name for name in some.makes}
    return StaticGraph(some.reads, outputs, nodes, graph.values)
