"""Pad as a primitive; negative widths cut off first, which costs nothing."""

from asmdnn.network.descriptors import row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.views import cut
from asmdnn.network.operators.moves import pad_widths
from asmdnn.network.operators.spans import AxisSpan
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.concat.pad import MODES, Pad


def lower_pad(steps: Steps, group: Group) -> None:
    """Of constant widths, and with a constant value."""
    node = group.node
    x, pads, value, axes = (*node.inputs, *[NOTHING] * 3)[:4]
    data = {name: steps.value(name).data if name != NOTHING else None for name in (pads, value, axes)}
    if value != NOTHING and data[value] is None:
        raise Refused(f"its value {value} is no constant")
    mode, dims = node.get("mode", "constant"), steps.shape(x)
    if mode not in MODES:
        raise Refused(f"mode {mode} has no kernel, {', '.join(MODES)} have")
    widths = pad_widths(node, len(dims), data[pads], data[axes])
    firsts = [max(0, -a) for a, _ in widths]
    kept = [AxisSpan(first, n - max(0, -b) - first) for n, first, (_, b) in zip(dims, firsts, widths, strict=True)]
    if any(each.size <= 0 for each in kept):
        raise Refused("nothing of its operand is left")
    source = steps.plain(x)
    source = Place(source.buffer, cut(source.desc, kept))
    given = data[value]
    fill = float(node.get("value", 0.0) if given is None else given.ravel()[0])
    desc = Pad(source.desc, row_major(steps.shape(group.result)), tuple(max(0, a) for a, _ in widths), mode, fill)
    steps.add(group.nodes, group.label, desc, {"src": source}, {"dst": group.result})


LOWERINGS = {"Pad": lower_pad}
