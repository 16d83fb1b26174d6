"""What is written to a state: where the value lies, and which part of the state it is."""

import numpy as np

from asmdnn.memory import MemoryDesc
from asmdnn.network.descriptors import row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.joining.place import StateWindow
from asmdnn.network.operators.own import OWN
from asmdnn.network.passing import HALVES
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.types import f32


def lower_written(steps: Steps, group: Group) -> None:
    """The same place; joining has it lie in the state, or copies it there, after all that reads the state before."""
    node = group.node
    source, state = node.inputs[0], node.get("state")
    if steps.value(source).dtype != np.float32:
        raise Refused(f"state {state} is {node.get('dtype')}, and {steps.value(source).dtype.name} are written to it")
    steps.define(group.result, steps.place(source))
    dims, dtype = steps.shape(source) or (1,), HALVES.get(node.get("dtype"), f32)
    strides = row_major(tuple(node.get("dims"))).strides
    window = MemoryDesc(dims, dtype, strides=strides) if node.get("dims") else row_major(dims, dtype)
    steps.windows[group.result] = StateWindow(state, node.get("now"), window)


LOWERINGS = {f"{OWN}.Written": lower_written}
