"""Sums over decision trees."""

import numpy as np

from asmdnn.definitions.rounding import UNIT_ROUNDOFF, Array
from asmdnn.forests import ARRAYS, Forest

MOST_AT_ONCE = 1 << 22  # places in trees of a block of rows
STARTS = {"sum": 0.0, "min": np.inf, "max": -np.inf}
JOINS = {"sum": np.add, "min": np.minimum, "max": np.maximum}


def reached(x: Array, forest: Forest) -> Array:
    """The leaf in every tree of every row: nodes (rows, trees)."""
    signed = np.concatenate([x, -x], 1)
    rows = np.arange(len(x))[:, None]
    at = np.broadcast_to(forest.roots, (len(x), len(forest.roots)))
    for _ in range(int(forest.depths.max(initial=0))):
        at = forest.lefts[at] + ~(signed[rows, forest.features[at]] <= forest.thresholds[at])
    return np.asarray(at)


def tree_ensemble(x: Array, forest: Forest, base: Array, aggregate: str = "sum") -> Array:
    """base + the sums over trees, in their order; of min and max the least and the largest.  In the type of x."""
    found = np.empty((len(x), len(base)), x.dtype)
    step = max(1, MOST_AT_ONCE // max(1, len(forest.roots)))
    for first in range(0, len(x), step):
        part = found[first : first + step]
        part[...] = base if aggregate == "sum" else STARTS[aggregate]
        places = forest.leaves[reached(x[first : first + step], forest)]
        width = forest.values.shape[1]
        for tree, target in enumerate(forest.targets.tolist()):
            columns = part[:, target : target + width]
            JOINS[aggregate](columns, forest.values[places[:, tree]].astype(x.dtype), out=columns)
        if aggregate != "sum":
            part += base
    return found


def tree_ensemble_error(x: Array, forest: Forest, base: Array, aggregate: str = "sum") -> Array:
    """A rounding for each tree of the sum of all sizes, or one of the largest of them."""
    sizes = Forest(**{name: getattr(forest, name) for name in ARRAYS if name != "values"}, values=abs(forest.values))
    trees, joins = (len(forest.roots) + 1, "sum") if aggregate == "sum" else (1, "max")
    return np.asarray(UNIT_ROUNDOFF * trees * tree_ensemble(x, sizes, abs(base), joins))
