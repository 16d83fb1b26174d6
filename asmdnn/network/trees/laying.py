"""Any trees as those that are walked: one comparison for all modes, both ways of a node side by side, breadth first.

x < t is x <= the number before t; a node that sends NaN the other way compares -x, and its ways change places; x = t
is x <= t, and then x < t.
"""

from typing import Any, NamedTuple

import numpy as np

from asmdnn.definitions.trees import STARTS
from asmdnn.forests import Forest
from asmdnn.network.arrays import Array
from asmdnn.network.graph import Node
from asmdnn.network.trees.plain import EQ, GT, GTE, LEAF, LEQ, LT, MEMBER, NEQ, PlainTrees, check, levels
from asmdnn.records import replace

# Whether it compares -x, whether with the number before, and whether the true way is the left one; by mode and by where
# NaN goes.  A right way is taken by NaN.
CASES = {
    (LEQ, False): (False, False, True), (LEQ, True): (True, True, False),
    (LT, False): (False, True, True), (LT, True): (True, False, False),
    (GTE, False): (True, False, True), (GTE, True): (False, True, False),
    (GT, False): (True, True, True), (GT, True): (False, False, False),
}  # fmt: skip


def forest_of(
    node: Node, trees: PlainTrees, features: int, columns: int, aggregate: str, dtype: np.dtype[np.generic]
) -> Forest:
    """What is walked, with thresholds for rows of `dtype`.  Raises InvalidArguments."""
    check(node, trees, features, columns)
    tree, level = levels(node, trees)
    trees, tree, level = compared(trees, tree, level)
    values, rows, targets = leaves_of(trees, tree, columns, aggregate)
    ways = one_way(trees, features)
    inner = trees.modes != LEAF
    roots, first = places_of_pairs(tree, level, inner, len(trees.roots))
    known = np.zeros(len(trees.roots) + 2 * np.count_nonzero(inner), np.int64)  # the node at each place
    known[roots] = trees.roots
    for i, side in enumerate((ways.left, ways.right)):
        known[first[inner] + i] = side[inner]
    depths = np.zeros(len(roots), np.int64)
    np.maximum.at(depths, tree[inner], level[inner] + 1)
    return Forest(
        thresholds=lowered(ways.splits, dtype)[known],
        features=ways.features[known].astype(np.int32),
        lefts=np.where(inner[known], first[known], np.arange(len(known)) - 1).astype(np.int32),
        leaves=np.where(inner[known], 0, rows[known]).astype(np.int32),
        roots=roots.astype(np.int32),
        depths=depths.astype(np.int32),
        targets=targets.astype(np.int32),
        values=values.astype(dtype),
    )


class Ways(NamedTuple):
    """Of every node: f64 splits, and where x <= split leads to, and the rest with NaN."""

    splits: Array
    features: Array
    left: Array
    right: Array


def one_way(trees: PlainTrees, features: int) -> Ways:
    """All modes as one."""
    negated, before, left_is_true = (np.zeros(len(trees.modes), bool) for _ in range(3))
    for (mode, tracks), case in CASES.items():
        which = (trees.modes == mode) & (trees.tracks == tracks)
        negated[which], before[which], left_is_true[which] = case
    splits = np.where(negated, -trees.splits, trees.splits)
    below = np.where(splits == -np.inf, np.nan, np.nextafter(splits, -np.inf))
    inner = trees.modes != LEAF
    splits = np.where(inner, np.where(before, below, splits), np.nan)
    of_row = np.where(inner, trees.features + np.where(negated, features, 0), 0)
    ways = ((trees.on_true, trees.on_false), (trees.on_false, trees.on_true))
    return Ways(splits, of_row, *(np.where(left_is_true, a, b) for a, b in ways))


def places_of_pairs(tree: Array, level: Array, inner: Array, count: int) -> tuple[Array, Array]:
    """Where roots lie, and the ways of every inner node: of each tree the root, then pairs, upper levels first."""
    order = np.lexsort((np.arange(len(tree)), level, tree))
    order = order[inner[order]]
    pairs = np.bincount(tree[order], minlength=count)
    roots = np.cumsum(1 + 2 * pairs) - (1 + 2 * pairs)
    first = np.zeros(len(tree), np.int64)
    rank = np.arange(len(order)) - (np.cumsum(pairs) - pairs)[tree[order]]
    first[order] = roots[tree[order]] + 1 + 2 * rank
    return roots, first


def lowered(splits: Array, dtype: np.dtype[np.generic]) -> Array:
    """The largest numbers of the type that are not above."""
    with np.errstate(over="ignore"):
        found = splits.astype(dtype)
    return np.asarray(np.where(found > splits, np.nextafter(found, dtype.type(-np.inf)), found), dtype)


def leaves_of(trees: PlainTrees, tree: Array, columns: int, aggregate: str) -> tuple[Array, Array, Array]:
    """Rows of values; the row of each node; the first column of each tree.

    Of one column where every tree gives to one alone.  What a leaf does not give changes nothing.
    """
    rows, leaves = np.zeros(len(trees.modes), np.int64), np.flatnonzero(trees.modes == LEAF)
    rows[leaves] = np.arange(len(leaves))
    givers = tree[trees.givers]
    least, most = np.full(len(trees.roots), columns), np.full(len(trees.roots), -1)
    np.minimum.at(least, givers, trees.columns)
    np.maximum.at(most, givers, trees.columns)
    given = np.bincount(trees.columns, minlength=columns) > 0
    single = bool((most <= least).all() and (aggregate == "sum" or given.all()))
    targets = np.where(most < 0, 0, least) if single else np.zeros(len(trees.roots), np.int64)
    values = np.full((len(leaves), 1 if single else columns), STARTS[aggregate])
    if not single:
        values[:, ~given] = 0.0
    where = (rows[trees.givers], np.zeros_like(trees.columns) if single else trees.columns)
    ways = {"sum": np.add, "min": np.minimum, "max": np.maximum}
    ways[aggregate].at(values, where, trees.weights)
    return values, rows, targets


def compared(trees: PlainTrees, tree: Array, level: Array) -> tuple[PlainTrees, Array, Array]:
    """Nodes of equality as two of order, one pair for each number that is looked for."""
    which = np.flatnonzero((trees.modes == EQ) | (trees.modes == NEQ) | (trees.modes == MEMBER))
    if not len(which):
        return trees, tree, level
    chains = Chains(trees, tree)
    for at in which.tolist():
        chains.split(at, trees.members.get(at, (float(trees.splits[at]),)))
    arrays: dict[str, Any] = {name: np.array(values) for name, values in chains.lists.items()}
    tree = arrays.pop("tree")
    trees = replace(trees, **arrays)
    return trees, tree, longest_ways(trees)


def longest_ways(trees: PlainTrees) -> Array:
    """How many steps every node is from its root, at most."""
    found, front = np.zeros(len(trees.modes), np.int64), trees.roots
    while len(front):
        front = front[trees.modes[front] != LEAF]
        step = found.max() + 1
        front = np.unique(np.concatenate([trees.on_true[front], trees.on_false[front]]))
        found[front] = step
    return found


class Chains:
    """Lists of nodes that grow."""

    def __init__(self, trees: PlainTrees, tree: Array) -> None:
        names = ("modes", "features", "splits", "on_true", "on_false", "tracks")
        self.lists = {name: getattr(trees, name).tolist() for name in names} | {"tree": tree.tolist()}

    def split(self, at: int, numbers: tuple[float, ...]) -> None:
        """Node `at` becomes the first of two for each number: x > t leads on, x < t to the false way, and what is left
        to the true one."""
        of = self.lists
        on_true, on_false, tracks = of["on_true"][at], of["on_false"][at], of["tracks"][at]
        if of["modes"][at] == NEQ:  # NaN is unequal
            on_true, on_false, tracks = on_false, on_true, False
        ends = sorted({number for number in numbers if number == number}) or [np.nan]
        places = [at, *range(len(of["modes"]), len(of["modes"]) + 2 * len(ends) - 1)]
        for values in of.values():
            values += [values[at]] * (2 * len(ends) - 1)
        for i, number in enumerate(ends):
            first, second = places[2 * i : 2 * i + 2]
            following = on_false if i + 1 == len(ends) else places[2 * i + 2]
            self.set(first, LEQ, number, second, following, tracks)
            self.set(second, LT, number, on_false, on_true, False)

    def set(self, at: int, mode: int, split: float, on_true: int, on_false: int, tracks: bool) -> None:
        new = {"modes": mode, "splits": split, "on_true": on_true, "on_false": on_false, "tracks": tracks}
        for name, value in new.items():
            self.lists[name][at] = value
