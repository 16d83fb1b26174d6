"""Random trees, as data."""

import numpy as np

from asmdnn.forests import Forest

GOES_ON = 0.8  # the share of ways that do not end before the last step
SPLITS = np.array([-1.5, -0.0, 0.0, 0.5, np.nan, np.inf, -np.inf, 1e-45], np.float32)  # that features can be equal to


def lefts_of(random: np.random.Generator, start: int, depth: int) -> tuple[list[int], int]:
    """Of the nodes of a tree, the first of which is `start`, the left ones, and the steps to the deepest."""
    lefts, level, steps = [0], [start], 0
    for step in range(depth + 1):
        following: list[int] = []
        for node in level:
            if step < depth and (node == start or random.random() < GOES_ON):
                left, steps = start + len(lefts), step + 1
                following += [left, left + 1]
                lefts += [0, 0]
            else:
                left = node - 1  # a leaf
            lefts[node - start] = left
        level = following
    return lefts, steps


def forest_of(random: np.random.Generator, depths: list[int], features: int, columns: int, *, single: bool) -> Forest:
    """Trees of up to these depths, some ways of which end sooner; thresholds that elements are equal to, and NaN.

    single: each gives to one column."""
    nodes: list[int] = []
    roots, real = [], []
    for depth in depths:
        roots.append(len(nodes))
        found, steps = lefts_of(random, len(nodes), depth)
        nodes += found
        real.append(steps)
    lefts = np.array(nodes, np.int32)
    leaf = lefts == np.arange(len(lefts)) - 1
    drawn = np.where(random.random(len(lefts)) < 0.5, random.choice(SPLITS, len(lefts)), random.normal(size=len(lefts)))
    return Forest(
        thresholds=np.where(leaf, np.nan, drawn).astype(np.float32),
        features=np.where(leaf, 0, random.integers(0, 2 * features, len(lefts))).astype(np.int32),
        lefts=lefts,
        leaves=np.where(leaf, np.cumsum(leaf) - 1, 0).astype(np.int32),
        roots=np.array(roots, np.int32),
        depths=np.array(real, np.int32),
        targets=(random.integers(0, columns, len(depths)) if single else np.zeros(len(depths))).astype(np.int32),
        values=random.normal(size=(int(leaf.sum()), 1 if single else columns)).astype(np.float32),
    )
