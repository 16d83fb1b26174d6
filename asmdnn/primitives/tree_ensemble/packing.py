"""The tables that trees are walked by, out of a Forest: see generators/trees/walk.py."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from asmdnn.errors import InvalidArguments, counted
from asmdnn.forests import Forest
from asmdnn.generators.trees.codes import WORD_BYTES, features_of
from asmdnn.generators.trees.walk import CHILD_BYTES, COLUMNS, MOST_STEPS, MOST_UNITS, UNIT_BYTES, WALKS
from asmdnn.primitives.tree_ensemble.description import MOST_TREES, list_of, padded

Array = npt.NDArray[Any]
IDENTITIES = {"sum": -0.0, "min": np.inf, "max": -np.inf}  # what changes nothing, zeros included
PAIR_UNITS = 4
VALUE = CHILD_BYTES // UNIT_BYTES  # units from a node's code to its value


class TreeTables(NamedTuple):
    """Tensors of a TreeEnsemble, and what it says of them beside."""

    nodes: Array  # s32[2 units]
    order: Array  # s32[lists, words]
    values: Array | None  # f32[blocks, leaves, 8]
    trees: int
    mirrored: bool


def packed(forest: Forest, features: int, columns: int, aggregate: str = "sum") -> TreeTables:
    """Raises InvalidArguments for a forest that is none, or too large."""
    check(forest, features, columns)
    single = forest.values.shape[1] == 1
    nodes, roots = nodes_of(forest, features, single, aggregate)
    lists = [np.flatnonzero(forest.targets == c) for c in range(columns)] if single else [np.arange(len(roots))]
    trees = max(1, *map(len, lists))
    order = np.zeros((len(lists), list_of(trees)), np.int32)
    for row, own in zip(order, lists, strict=True):
        fill_order(row, nodes, roots[own], np.maximum(forest.depths[own], 1))
    values = None if single else values_of(forest, aggregate)
    mirrored = bool((forest.features >= features).any())
    return TreeTables(nodes.view(np.int32), order, values, trees, mirrored)


def check(forest: Forest, features: int, columns: int) -> None:
    """Raise InvalidArguments unless every way leads on in its own tree, to a leaf within its depth."""
    n, width = len(forest.lefts), forest.values.shape[1]
    roots, leaf = forest.roots, is_leaf(forest)
    if not 1 <= len(roots) <= MOST_TREES or n * PAIR_UNITS > MOST_UNITS:
        raise InvalidArguments(
            f"a forest has {len(roots)} trees of {counted(n, 'node')}: it has 1 to {MOST_TREES}, and fewer nodes"
        )
    if roots[0] != 0 or (np.diff(roots) <= 0).any() or roots[-1] >= n:
        raise InvalidArguments("roots must begin with 0 and go up, each where its tree begins")
    if not ((forest.features >= 0) & (forest.features < 2 * features)).all():
        raise InvalidArguments(f"features must be from 0 to {2 * features - 1}")
    ends = np.append(roots[1:], n)
    tree = np.repeat(np.arange(len(roots)), ends - roots)
    inner = ~leaf
    if not ((forest.lefts > np.arange(n)) & (forest.lefts + 1 < ends[tree]))[inner].all():
        raise InvalidArguments("lefts must lie after their node, and with the next one in its tree")
    if ((forest.lefts - roots[tree])[inner] % 2 != 1).any():
        raise InvalidArguments("lefts must be at odd distances from their root")
    if not ((forest.leaves >= 0) & (forest.leaves < len(forest.values))).all():
        raise InvalidArguments(f"leaves must be rows of values, from 0 to {len(forest.values) - 1}")
    if not ((forest.targets >= 0) & (forest.targets + width <= columns)).all():
        raise InvalidArguments(f"targets must be columns from 0 to {columns - width}")
    if not ((forest.depths >= 0) & (forest.depths <= MOST_STEPS)).all():
        raise InvalidArguments(f"depths must be from 0 to {MOST_STEPS}")


def is_leaf(forest: Forest) -> Array:
    return np.asarray(np.isnan(forest.thresholds) & (forest.lefts == np.arange(len(forest.lefts)) - 1))


def codes_of(x: Array) -> Array:
    """u32 in the order of floats; NaN is no number of the order."""
    bits = (np.asarray(x, np.float32) + np.float32(0)).view(np.uint32)  # -0 as 0
    return np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))


def nodes_of(forest: Forest, features: int, single: bool, aggregate: str) -> tuple[Array, Array]:
    """The table, and the places of roots.  The first pair is a leaf that changes nothing; a root has a pair alone."""
    n, leaf = len(forest.lefts), is_leaf(forest)
    sizes = np.diff(np.append(forest.roots, n))
    tree = np.repeat(np.arange(len(sizes)), sizes)
    inside = np.arange(n) - forest.roots[tree]  # a root is 0, then come pairs
    pairs = sizes // 2 + 1
    first = 1 + np.cumsum(pairs) - pairs
    place = PAIR_UNITS * (first[tree] + (inside + 1) // 2) + np.where(inside > 0, (inside + 1) % 2, 0)
    table = np.zeros(2 * padded(PAIR_UNITS * int(1 + pairs.sum())), np.uint32)
    own = np.where(forest.features >= features, features_of(features) - features, 0) + forest.features
    table[2 * place] = np.where(np.isnan(forest.thresholds), 0, codes_of(forest.thresholds))
    table[2 * place + 1] = np.where(leaf, 0, WORD_BYTES * own)
    table[2 * (place + VALUE)] = np.where(leaf, place - 1, place[np.where(leaf, 0, forest.lefts)])
    if single:
        table[2 * VALUE + 1] = np.float32(IDENTITIES[aggregate]).view(np.uint32)
        values = forest.values[forest.leaves, 0].astype(np.float32).view(np.uint32)
    else:
        values = WORD_BYTES * COLUMNS * (1 + forest.leaves.astype(np.uint32))
    table[2 * (place + VALUE) + 1] = np.where(leaf, values, 0)
    table[2 * VALUE] = np.uint32(0xFFFFFFFF)  # the left of the first leaf
    return table, place[forest.roots]


def fill_order(row: Array, nodes: Array, roots: Array, depths: Array) -> None:
    """The list of the trees of a column, and their steps beside the roots."""
    groups = max(1, -(-len(roots) // WALKS))
    places, steps = np.zeros(groups * WALKS, np.int32), np.ones(groups * WALKS, np.uint32)
    places[: len(roots)], steps[: len(roots)] = roots, depths
    row[-len(places) :] = places
    row[0] = -len(places)
    nodes[2 * roots + 2] = depths
    nodes[2 * places[::WALKS] + 3] = steps.reshape(-1, WALKS).max(1)


def values_of(forest: Forest, aggregate: str) -> Array:
    """Blocks of columns; the first row changes nothing."""
    leaves, columns = forest.values.shape
    blocks = -(-columns // COLUMNS)
    whole = np.zeros((padded(leaves + 1), blocks * COLUMNS), np.float32)
    whole[0] = IDENTITIES[aggregate]
    whole[1 : leaves + 1, :columns] = forest.values
    return np.ascontiguousarray(whole.reshape(len(whole), blocks, COLUMNS).swapaxes(0, 1))
