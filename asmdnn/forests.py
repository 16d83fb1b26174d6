"""Decision trees as arrays: what definitions sum over, primitives pack and networks read.

A node sends a row x to the node lefts[node] if x[feature] <= threshold, and to the next one otherwise, NaN included.  A
leaf has the threshold NaN and the node before itself as its left one, so that a row stays where it is: every tree may
be walked for as many steps as the deepest one has.  Features from len(x) on are those of -x.
"""

from typing import Any

import numpy.typing as npt

from asmdnn.records import dataclass

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Forest:
    """Of n nodes, t trees and l leaves.  A leaf's row of values belongs to the columns from its tree's target on."""

    thresholds: Array  # floats[n]
    features: Array  # s32[n]
    lefts: Array  # s32[n]
    leaves: Array  # s32[n]: the row of values, 0 for other nodes
    roots: Array  # s32[t]
    depths: Array  # s32[t]: the longest way, in steps
    targets: Array  # s32[t]: the first column
    values: Array  # floats[l, width]


ARRAYS = tuple(Forest.__dataclass_fields__)
