"""Trees out of the attributes of TreeEnsembleClassifier, TreeEnsembleRegressor, and TreeEnsemble of operator set 5."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted, did_you_mean, shown
from asmdnn.network.arrays import Array
from asmdnn.network.graph import Node
from asmdnn.network.trees.plain import LEAF, MEMBER, MODES, PlainTrees, places_of
from asmdnn.records import replace

NODE_LISTS = ("nodes_nodeids", "nodes_featureids", "nodes_modes", "nodes_truenodeids", "nodes_falsenodeids")


def floats_of(node: Node, name: str) -> Array:
    """f64 of a list, or of the tensor that may stand in its place."""
    tensor = node.get(f"{name}_as_tensor")
    given = node.get(name, ()) if tensor is None or not np.size(tensor) else tensor
    return np.asarray(given, np.float64).ravel()


def of_length(node: Node, name: str, values: Sequence[Any] | Array, count: int, like: str) -> Any:
    """The values, if there are so many.  Raises InvalidArguments."""
    if len(values) != count:
        raise InvalidArguments(f"{node} has {len(values)} {name} and {count} {like}: there must be as many")
    return values


def keyed_trees(node: Node, prefix: str) -> PlainTrees:
    """Trees whose nodes have numbers of their own; prefix: of the attributes of leaves.  Raises InvalidArguments."""
    trees = np.asarray(node.get("nodes_treeids", ()), np.int64)
    count = len(trees)
    lists = {name: of_length(node, name, node.get(name, ()), count, "nodes_treeids") for name in NODE_LISTS}
    unknown = next((mode for mode in lists["nodes_modes"] if mode not in MODES), None)
    if unknown is not None:
        raise InvalidArguments(f"{node} has a node of mode {shown(unknown)}: {did_you_mean(unknown, MODES)}")
    modes = np.array([MODES[mode] for mode in lists["nodes_modes"]], np.int64)
    own = np.stack([trees, np.asarray(lists["nodes_nodeids"], np.int64)], 1)
    inner, sides = np.flatnonzero(modes != LEAF), {}
    for name in ("nodes_truenodeids", "nodes_falsenodeids"):
        wanted = np.stack([trees, np.asarray(lists[name], np.int64)], 1)[inner]
        sides[name] = np.zeros(count, np.int64)
        sides[name][inner] = places_of(node, name, own, wanted)
    columns, pairs, weights = given(node, prefix)
    return PlainTrees(
        modes=modes,
        features=np.asarray(lists["nodes_featureids"], np.int64),
        splits=of_length(node, "nodes_values", floats_of(node, "nodes_values"), count, "nodes_treeids"),
        on_true=sides["nodes_truenodeids"],
        on_false=sides["nodes_falsenodeids"],
        tracks=tracks_of(node, count, "nodes_treeids"),
        roots=roots_of(node, trees, [side[inner] for side in sides.values()]),
        givers=places_of(node, f"{prefix}_nodeids", own, pairs),
        columns=columns,
        weights=weights,
    )


def given(node: Node, prefix: str) -> tuple[Array, Array, Array]:
    """What leaves give: columns, the tree and the node of each, and weights.  Raises InvalidArguments."""
    like = f"{prefix}_ids"
    columns = np.asarray(node.get(like, ()), np.int64)
    pairs = np.zeros((len(columns), 2), np.int64)
    for i, name in enumerate((f"{prefix}_treeids", f"{prefix}_nodeids")):
        pairs[:, i] = of_length(node, name, node.get(name, ()), len(columns), like)
    weights = of_length(node, f"{prefix}_weights", floats_of(node, f"{prefix}_weights"), len(columns), like)
    return columns, pairs, weights


def tracks_of(node: Node, count: int, like: str) -> Array:
    """Where NaN is taken for true.  Raises InvalidArguments."""
    name = "nodes_missing_value_tracks_true"
    return np.asarray(of_length(node, name, node.get(name, ()) or (0,) * count, count, like), np.int64) > 0


def roots_of(node: Node, trees: Array, sides: list[Array]) -> Array:
    """The node of every tree that no other one leads to.  Raises InvalidArguments."""
    is_child = np.zeros(len(trees), bool)
    for side in sides:
        is_child[side] = True
    roots = np.flatnonzero(~is_child)
    names, places = np.unique(trees, return_inverse=True)
    counts = np.bincount(places[roots], minlength=len(names))
    if (counts != 1).any():
        at = int(np.flatnonzero(counts != 1)[0])
        found = f"{counts[at]} nodes in tree {names[at]} that no other one leads to"
        raise InvalidArguments(f"{node} has {found}: it must have one root")
    return roots[np.argsort(trees[roots], kind="stable")]


def indexed_trees(node: Node) -> PlainTrees:
    """Trees of TreeEnsemble, leaves after the other nodes.  Raises InvalidArguments."""
    features, like = np.asarray(node.get("nodes_featureids"), np.int64), "nodes_featureids"
    count = len(features)
    modes, splits = (np.asarray(node.get(name)).ravel() for name in ("nodes_modes", "nodes_splits"))
    for name, values in (("nodes_modes", modes), ("nodes_splits", splits)):
        of_length(node, name, values, count, like)
    if modes.max(initial=0) > MEMBER:
        raise InvalidArguments(f"{node} has a node of mode {modes.max()}: modes are from 0 to {MEMBER}")
    columns, weights = np.asarray(node.get("leaf_targetids"), np.int64), np.asarray(node.get("leaf_weights")).ravel()
    leaves = len(of_length(node, "leaf_weights", weights, len(columns), "leaf_targetids"))
    roots = np.asarray(node.get("tree_roots"), np.int64)
    if len(roots) and not 0 <= roots.min() <= roots.max() < count:
        raise InvalidArguments(f"{node} has tree_roots from {roots.min()} to {roots.max()} of {counted(count, 'node')}")
    if len(np.unique(roots)) < len(roots):
        raise InvalidArguments(f"{node} has one of its tree_roots twice")

    def whole(values: Array, fill: int) -> Array:
        return np.append(values, np.full(leaves, fill))

    return with_own_leaves(
        PlainTrees(
            modes=whole(modes.astype(np.int64), LEAF),
            features=whole(features, 0),
            splits=whole(splits.astype(np.float64), 0),
            on_true=whole(side_of(node, "true", count, leaves), 0),
            on_false=whole(side_of(node, "false", count, leaves), 0),
            tracks=whole(tracks_of(node, count, like), 0) > 0,
            roots=roots,
            givers=np.arange(count, count + leaves),
            columns=columns,
            weights=weights.astype(np.float64),
            members=members_of(node, modes),
        )
    )


def side_of(node: Node, side: str, count: int, leaves: int) -> Array:
    """Where nodes lead to, leaves being counted after them.  Raises InvalidArguments."""
    to, is_leaf = (
        np.asarray(of_length(node, name, node.get(name), count, "nodes_featureids"), np.int64)
        for name in (f"nodes_{side}nodeids", f"nodes_{side}leafs")
    )
    most = np.where(is_leaf != 0, leaves, count)
    wrong = np.flatnonzero((to < 0) | (to >= most))
    if len(wrong):
        at = wrong[0]
        what = "leaves" if is_leaf[at] else "nodes"
        raise InvalidArguments(f"{node} has nodes_{side}nodeids {to[at]} and {most[at]} {what}: it must be below")
    return np.where(is_leaf != 0, to + count, to)


def with_own_leaves(trees: PlainTrees) -> PlainTrees:
    """The trees, a leaf that is on both sides of a node, as a tree of one leaf is written, twice."""
    both = np.flatnonzero((trees.modes != LEAF) & (trees.on_true == trees.on_false) & (trees.on_true >= 0))
    both = both[trees.modes[trees.on_true[both]] == LEAF]
    if not len(both):
        return trees
    count, leaf = len(trees.modes), trees.on_true[both]
    on_false = trees.on_false.copy()
    on_false[both] = np.arange(count, count + len(both))
    more = {"modes": LEAF, "features": 0, "splits": 0.0, "on_true": 0, "tracks": False}
    found: dict[str, Any] = {
        name: np.append(getattr(trees, name), np.full(len(both), value)) for name, value in more.items()
    }
    at = leaf - trees.givers[0]  # leaves give in their order
    return replace(
        trees,
        **found,
        on_false=np.append(on_false, np.zeros(len(both), np.int64)),
        givers=np.append(trees.givers, np.arange(count, count + len(both))),
        columns=np.append(trees.columns, trees.columns[at]),
        weights=np.append(trees.weights, trees.weights[at]),
    )


def members_of(node: Node, modes: Array) -> dict[int, tuple[float, ...]]:
    """The numbers that nodes of the mode MEMBER look for, by node: a list of NaN after each set."""
    nodes = np.flatnonzero(modes == MEMBER)
    given = np.asarray(node.get("membership_values", ()), np.float64).ravel()
    ends = np.flatnonzero(np.isnan(given))
    if len(ends) != len(nodes):
        sets = f"{len(ends)} sets that end in NaN"
        raise InvalidArguments(
            f"{node} has membership_values of {sets}, and {counted(len(nodes), 'node')} of mode MEMBER"
        )
    starts = [0, *(ends + 1).tolist()]
    return {int(n): tuple(given[a:b].tolist()) for n, a, b in zip(nodes, starts, ends, strict=False)}
