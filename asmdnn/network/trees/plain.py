"""Trees as their authors write them, all nodes of all trees in one row of arrays, and what must hold of them."""

from collections.abc import Mapping

import numpy as np

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.network.arrays import Array
from asmdnn.network.graph import Node
from asmdnn.records import dataclass, field

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF = range(8)
MODES = {
    "BRANCH_LEQ": LEQ, "BRANCH_LT": LT, "BRANCH_GTE": GTE, "BRANCH_GT": GT, "BRANCH_EQ": EQ, "BRANCH_NEQ": NEQ,
    "LEAF": LEAF,
}  # fmt: skip
MOST_DEPTH = 4096  # steps of a tree
MOST_NODES = 1 << 28


@dataclass(frozen=True, eq=False)
class PlainTrees:
    """modes: of those above; on_true, on_false: nodes, of leaves nothing; tracks: where NaN is taken for true;
    roots: one for each tree, in the order of trees.  Leaves give weights: the node, the column, and what is added.
    members: the numbers that a node of the mode MEMBER looks for."""

    modes: Array
    features: Array
    splits: Array  # f64
    on_true: Array
    on_false: Array
    tracks: Array
    roots: Array
    givers: Array
    columns: Array
    weights: Array
    members: Mapping[int, tuple[float, ...]] = field(default_factory=dict)


def check(node: Node, trees: PlainTrees, features: int, columns: int) -> None:
    """Raise InvalidArguments for what is no trees."""
    inner, count = np.flatnonzero(trees.modes != LEAF), len(trees.modes)
    if not len(trees.roots):
        raise InvalidArguments(f"{node} has no trees: it must have at least one node")
    if count > MOST_NODES:
        raise InvalidArguments(f"{node} has {counted(count, 'node')} of trees, {MOST_NODES} are possible")
    wrong = inner[(trees.features[inner] < 0) | (trees.features[inner] >= features)]
    if len(wrong):
        which = f"its node {wrong[0]} compares feature {trees.features[wrong[0]]}"
        raise InvalidArguments(f"{node} is given rows of {features} features, and {which}")
    wrong = np.flatnonzero((trees.columns < 0) | (trees.columns >= columns))
    if len(wrong):
        raise InvalidArguments(f"{node} has a leaf that gives to {trees.columns[wrong[0]]}, there are {columns}")
    wrong = np.flatnonzero(trees.modes[trees.givers] != LEAF)
    if len(wrong):
        raise InvalidArguments(f"{node} has weights of its node {trees.givers[wrong[0]]}, which is no leaf")
    parents = np.bincount(np.concatenate([trees.on_true[inner], trees.on_false[inner]]), minlength=count)
    parents[trees.roots] += 1
    wrong = np.flatnonzero(parents != 1)
    if len(wrong):
        said = "that several lead to" if parents[wrong[0]] else "that no other one leads to"
        raise InvalidArguments(f"{node} has a node {wrong[0]} {said}: its nodes are no trees")


def levels(node: Node, trees: PlainTrees) -> tuple[Array, Array]:
    """The tree of every node, and how many steps it is from the root.  Raises InvalidArguments."""
    tree, level = np.full(len(trees.modes), -1), np.zeros(len(trees.modes), np.int64)
    front = trees.roots
    tree[front] = np.arange(len(front))
    for depth in range(1, MOST_DEPTH + 2):
        front = front[trees.modes[front] != LEAF]
        if not len(front):
            break
        if depth > MOST_DEPTH:
            raise InvalidArguments(f"{node} has a tree of more than {MOST_DEPTH} levels: so many are read")
        both = trees.on_true[front], trees.on_false[front]
        for side in both:
            tree[side], level[side] = tree[front], depth
        front = np.concatenate(both)
    lost = np.flatnonzero(tree < 0)
    if len(lost):
        raise InvalidArguments(f"{node} has a node {lost[0]} that leads to itself: its nodes are no trees")
    return tree, level


def places_of(node: Node, what: str, known: Array, wanted: Array) -> Array:
    """Where keys are among others, pairs of tree and node.  Raises InvalidArguments for one that is not there."""
    order = np.lexsort(known.T[::-1])
    ordered = known[order]
    twice = np.flatnonzero((ordered[1:] == ordered[:-1]).all(1))
    if len(twice):
        tree, number = ordered[twice[0]].tolist()
        raise InvalidArguments(f"{node} has two nodes {number} in tree {tree}")
    codes, keys = _codes(ordered, wanted)
    found = np.searchsorted(codes, keys)
    found[found == len(codes)] = 0
    lost = np.flatnonzero(codes[found] != keys) if len(codes) else np.arange(len(keys))
    if len(lost):
        tree, number = wanted[lost[0]].tolist()
        raise InvalidArguments(f"{node} has {what} {shown(number)} in tree {tree}, where no node is called so")
    return np.asarray(order[found])


def _codes(known: Array, wanted: Array) -> tuple[Array, Array]:
    """One number for each pair, in the order of pairs."""
    first, second = (np.unique(np.concatenate([known[:, i], wanted[:, i]]), return_inverse=True)[1] for i in (0, 1))
    codes = first * (second.max(initial=0) + 1) + second
    return codes[: len(known)], codes[len(known) :]
