"""Rows that are put where indices say: the scatters of ONNX, flattened by their decompositions."""

from asmdnn.network.fusion.maps import Group
from asmdnn.network.lowering.indices import indices_of
from asmdnn.network.operators.own import OWN
from asmdnn.network.steps import Steps
from asmdnn.primitives.scatter.description import Scatter
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.types import f32


def lower_scatter_rows(steps: Steps, group: Group) -> None:
    node = group.node
    x, name, updates = node.inputs
    dims = steps.shape(x)
    source, rows = steps.as_type(x, f32), steps.plain(updates, f32)
    numbers = indices_of(steps, name, dims[0], 0)
    desc = Scatter(source.desc, numbers.desc, rows.desc, row_major(dims, source.desc), 0, node.get("reduction"))
    inputs = {"src": source, "indices": numbers, "updates": rows}
    steps.add(group.nodes, group.label, desc, inputs, {"dst": group.result})


LOWERINGS = {f"{OWN}.ScatterRows": lower_scatter_rows}
