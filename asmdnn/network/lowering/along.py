"""What works along an axis: local response normalization, cumulative sums and products."""

import numpy as np

from asmdnn.network.descriptors import any_format
from asmdnn.network.fusion.maps import Group
from asmdnn.network.lowering.lowering import ImageFormats, Lowering
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.normalization.lrn_backward_description import LRNBackward
from asmdnn.primitives.normalization.lrn_description import LRNForward
from asmdnn.primitives.reduction.cumulative import CumulativeProduct, CumulativeSum
from asmdnn.types import PropKind


def lower_lrn(steps: Steps, group: Group) -> None:
    """Across channels, in the format that src has."""
    node = group.node
    source = steps.place(node.inputs[0])
    numbers = (node.get("alpha", 1e-4), node.get("beta", 0.75), node.get("bias", 1.0))
    result = any_format(source.desc.dims)
    desc = LRNForward(
        PropKind.forward_inference, "lrn_across_channels", source.desc, result, node.get("size"), *numbers
    )
    steps.add(group.nodes, group.label, desc, {"src": source}, {"dst": group.result})


def lower_lrn_gradient(steps: Steps, group: Group) -> None:
    """src and diff_dst as the first of them lies."""
    node = group.node
    source = steps.place(node.inputs[0])
    after = steps.place(node.inputs[1], source.desc)
    numbers = node.get("size"), node.get("alpha"), node.get("beta"), node.get("bias")
    desc = LRNBackward("lrn_across_channels", source.desc, after.desc, any_format(source.desc.dims), *numbers)
    steps.add(group.nodes, group.label, desc, {"src": source, "diff_dst": after}, {"diff_src": group.result})


def lower_cumulative(steps: Steps, group: Group) -> None:
    """In the format that src has."""
    node = group.node
    source, axis = steps.place(node.inputs[0]), steps.value(node.inputs[1]).data
    if axis is None:
        raise Refused(f"its axis {node.inputs[1]} is no constant")
    flags = (bool(node.get("exclusive", 0)), bool(node.get("reverse", 0)))
    kind = CumulativeSum if node.op == "CumSum" else CumulativeProduct
    desc = kind(source.desc, any_format(source.desc.dims), int(np.ravel(axis)[0]), *flags)
    steps.add(group.nodes, group.label, desc, {"src": source}, {"dst": group.result})


LOWERINGS = {
    "LRN": Lowering(lower_lrn, ImageFormats.BLOCKS, of_floats=True),
    "asmdnn.LRNGradient": lower_lrn_gradient,
    **dict.fromkeys(("CumSum", "CumProd"), Lowering(lower_cumulative, of_floats=True)),
}
