"""Integers of a caller as f32."""

import numpy as np

from asmdnn.network.descriptors import row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.indices import integers_of, number_given, number_of
from asmdnn.network.operators.own import OWN
from asmdnn.network.passing import is_half
from asmdnn.network.steps import NUMBERS, Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.types import s32

READ = (np.float32, np.bool_, np.uint8, np.int8, np.uint16, np.int16, np.int32, np.int64)  # by kernels
PASSED_AS_F32 = (np.uint32, np.uint64, np.float64)  # as calls convert these, with one rounding


def lower_cast(steps: Steps, group: Group) -> None:
    """Of an input the low words, which are checked to be all, converted and rounded to nearest even.

    Between f32 and 16 bits, at the ends of a network, values stay as they lie: who reads or returns them converts."""
    node = group.node
    if any(is_half(steps.value(name).dtype) for name in (node.inputs[0], group.result)):
        steps.define(group.result, steps.kept(node.inputs[0]))
        return
    check_types(steps, node.inputs[0], group.result)
    if steps.value(node.inputs[0]).dtype in PASSED_AS_F32:
        steps.define(group.result, number_given(steps, node.inputs[0]))
        return
    source = integers_of(steps, node.inputs[0])
    desc = Reorder(source.desc, row_major(steps.shape(group.result)))
    steps.add(group.nodes, group.label, desc, {"src": source}, {"dst": group.result})


def check_types(steps: Steps, source: str, result: str) -> None:
    """Raise Refused for a type that no kernel reads or makes."""
    before, after = (steps.value(name).dtype for name in (source, result))
    if before not in (*READ, *PASSED_AS_F32):
        raise Refused(f"Cast of {before.name} has no kernel, of {', '.join(x.__name__ for x in READ)} it has some")
    if after != np.float32:
        raise Refused(f"Cast of {before.name} to {after.name} has no kernel, to float32 it has one")


def lower_number(steps: Steps, group: Group) -> None:
    """Integers of a caller that are no larger than the node says, which is checked."""
    node = group.node
    value = steps.value(node.inputs[0])
    if value.dtype.kind == "u" or value.dtype.itemsize < s32.size_bytes:
        steps.define(group.result, number_of(steps, node.inputs[0], node.get("limit")))
        return
    source = integers_of(steps, node.inputs[0], node.get("limit"))
    desc = Reorder(source.desc, row_major(steps.shape(group.result)))
    steps.add(group.nodes, group.label, desc, {"src": source}, {"dst": group.result})


def lower_integers(steps: Steps, group: Group) -> None:
    """f32 numbers as integers: the same place, for callers, numpy and look-ups."""
    node = group.node
    steps.integers.made[group.result] = Place(*steps.place(node.inputs[0]))
    steps.integers.bounds[group.result] = node.get("bounds")
    if node.get("origin", ""):
        steps.integers.origins[group.result] = node.get("origin")
    if steps.value(group.result).dtype in NUMBERS:
        steps.define(group.result, steps.integers.made[group.result])


def lower_looked_at(steps: Steps, group: Group) -> None:
    """The same place; a call has to look at the integers."""
    node = group.node
    steps.integers.look_at(node.inputs[1], node.get("limit"))
    steps.define(group.result, steps.place(node.inputs[0]))


LOWERINGS = {
    "Cast": lower_cast,
    f"{OWN}.Number": lower_number,
    f"{OWN}.Integers": lower_integers,
    f"{OWN}.LookedAt": lower_looked_at,
}
