"""A pair of convolutions as one primitive, if it is expected to be faster by strips; else as two."""

from asmdnn.network.fusion.maps import Group
from asmdnn.network.lowering.convolutions import constants_of, convolution, lower_conv
from asmdnn.network.lowering.maps import Tail
from asmdnn.network.lowering.sources import cheapest
from asmdnn.network.steps import Steps
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.depthwise import Depthwise
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.convolution.pairs.plan import takes_strips
from asmdnn.primitives.convolution.pairs.strips import NAME
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import has_stored_plans
from asmdnn.primitives.shapes.windows import FIELDS
from asmdnn.records import replace


def lower_pair(steps: Steps, group: Group) -> None:
    """One primitive or two.  Raises Refused."""
    first, second = group.node, group.second
    assert second is not None
    before, after = Tail(steps, group.maps, group.x), Tail(steps, second.maps, second.x)
    desc, depthwise = convolution(steps, first), convolution(steps, second.node)
    window = {name: getattr(depthwise, name) for name in FIELDS}
    post_op = Depthwise(depthwise.weights, depthwise.bias, **window)
    at = len(before.post_ops())
    attr = Attr([*before.post_ops(), post_op, *after.post_ops()])
    if not steps.asking.whether(in_strips, desc, attr):
        lower_conv(steps, replace(group, second=None))
        lower_conv(steps, second)
        return
    source = cheapest(steps, first.inputs[0], steps.place(first.inputs[0]), desc, attr)
    desc = desc.with_formats({"src": source.desc})
    own = constants_of(steps, second.node, depthwise)
    constants = constants_of(steps, first, desc) | {f"dw_{name}_{at}": value for name, value in own.items()}
    places = {f"{name.rpartition('_')[0]}_{at + 1}": place for name, place in after.places().items()}
    places = {"src": source, **before.places(), **places}
    steps.add(group.nodes, group.label, desc, places, {"dst": second.result}, constants=constants, attr=attr)


def in_strips(desc: ConvolutionForward, attr: Attr, engine: Engine) -> bool:
    """Whether the pair's primitive works by strips; where the planners decide, phases need not be planned to know."""
    if not (has_stored_plans() or takes_strips(desc, attr, engine)):
        return False
    return primitive_desc(desc, attr, engine).implementation.startswith(NAME)
