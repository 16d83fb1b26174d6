"""Integers of a caller as f32."""

import numpy as np

from asmdnn.network.descriptors import row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.reorder.reorder import Reorder


def lower_cast(steps: Steps, group: Group) -> None:
    """Of an input the low words, which are checked to be all, converted and rounded to nearest even."""
    node = group.main
    assert node is not None
    if steps.value(group.result).dtype != np.float32:
        raise Refused(f"Cast to {steps.value(group.result).dtype.name} has no kernel, to f32 it has one")
    made = steps.integers.get(node.inputs[0])
    if made:  # positions, which kernels make as f32
        steps.define(group.result, made)
        return
    source = steps.integers_of(node.inputs[0])
    desc = Reorder(source.desc, row_major(steps.shape(group.result)))
    steps.add(group.nodes, group.label, desc, {"src": source}, {"dst": group.result})


LOWERINGS = {"Cast": lower_cast}
