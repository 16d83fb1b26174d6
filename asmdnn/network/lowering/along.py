"""What looks at neighbours along an axis: local response normalization."""

from asmdnn.network.fusion.maps import Group
from asmdnn.network.steps import Steps
from asmdnn.primitives.normalization.lrn_description import LRNForward
from asmdnn.types import PropKind


def lower_lrn(steps: Steps, group: Group) -> None:
    """Across channels, in the format that src has."""
    node = group.main
    assert node is not None
    source = steps.place(node.inputs[0])
    numbers = (node.get("alpha", 1e-4), node.get("beta", 0.75), node.get("bias", 1.0))
    desc = LRNForward(
        PropKind.forward_inference, "lrn_across_channels", source.desc, source.desc, node.get("size"), *numbers
    )
    steps.add(group.nodes, group.label, desc, {"src": source}, {"dst": group.result})


LOWERINGS = {"LRN": lower_lrn}
