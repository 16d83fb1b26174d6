"""Group and instance normalisation as group norms, with maps after them as post-ops."""

import numpy as np

from asmdnn.memory import MemoryDesc
from asmdnn.network.fusion.maps import Group
from asmdnn.network.lowering.integer_tail import tail_of
from asmdnn.network.lowering.lowering import ImageFormats, Lowering
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.normalization.channel_description import GroupNormForward
from asmdnn.types import PropKind, f32


def lower_channel_norm(steps: Steps, group: Group) -> None:
    """In the format that is there; scale and shift are constants of channels, or of groups (operator set 18)."""
    node = group.node
    source, channels = steps.place(node.inputs[0]), steps.shape(node.inputs[0])[1]
    constants = {}
    for argument, name in zip(("scale", "shift"), node.inputs[1:], strict=True):
        data = steps.value(name).data
        if data is None:
            raise Refused(f"its {argument} {name} is no constant")
        constants[argument] = (f"{name} of channels", np.repeat(data.ravel(), channels // data.size))
    vector, tail = MemoryDesc((channels,), f32, "a"), tail_of(steps, group)
    desc = GroupNormForward(
        PropKind.forward_inference,
        source.desc,
        steps.result_format(source.desc.dims),
        groups=node.get("num_groups", channels),
        epsilon=node.get("epsilon", 1e-5),
        scale=vector,
        shift=vector,
    )
    steps.add(
        group.nodes,
        group.label,
        desc,
        {"src": source, **tail.places()},
        {"dst": group.result},
        constants=constants,
        attr=tail.attr(),
    )


LOWERINGS = {
    "InstanceNormalization": Lowering(lower_channel_norm, ImageFormats.CHOOSES, of_floats=True),
    "GroupNormalization": Lowering(lower_channel_norm, ImageFormats.BLOCKS, of_floats=True),
}
