"""Sums over decision trees, whose tables are packed once."""

import numpy as np

from asmdnn.forests import Forest
from asmdnn.network.descriptors import row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import Array
from asmdnn.network.operators.own import OWN
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.tree_ensemble.description import TreeEnsemble
from asmdnn.primitives.tree_ensemble.packing import packed
from asmdnn.types import f32, s32


def lower_trees(steps: Steps, group: Group) -> None:
    """Raises Refused."""
    node = group.node
    x, *names = node.inputs
    arrays = [steps.value(name).data for name in names]
    if steps.value(x).dtype != np.float32 or any(array is None for array in arrays):
        raise Refused(f"{x} is {steps.value(x).dtype.name}, trees are walked by f32")
    *of_forest, base = (np.asarray(array) for array in arrays)
    tables = packed(Forest(*of_forest), steps.shape(x)[1], len(base), node.get("aggregate"))
    constants: dict[str, Array] = {"nodes": tables.nodes, "order": tables.order, "base": base}
    if tables.values is not None:
        constants["values"] = tables.values
    source = steps.plain(x, f32)
    descs = {
        name: row_major(array.shape, f32 if array.dtype == np.float32 else s32) for name, array in constants.items()
    }
    desc = TreeEnsemble(
        src=source.desc,
        nodes=descs["nodes"],
        order=descs["order"],
        values=descs.get("values"),
        base=descs["base"],
        dst=row_major(steps.shape(group.result)),
        trees=tables.trees,
        aggregate=node.get("aggregate"),
        mirrored=tables.mirrored,
    )
    weights = {name: (f"{group.result} {name}", array) for name, array in constants.items()}
    steps.add(group.nodes, group.label, desc, {"src": source}, {"dst": group.result}, constants=weights)


LOWERINGS = {f"{OWN}.TreeEnsemble": lower_trees}
