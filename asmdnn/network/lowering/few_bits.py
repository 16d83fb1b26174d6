"""Products with weights of 4 or 8 bits and scales by groups."""

from math import prod

from asmdnn.network.descriptors import any_format, row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.integer_tail import tail_of
from asmdnn.network.lowering.products import folded
from asmdnn.network.operators.own import OWN
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.quantized.description import QuantizedMatMul
from asmdnn.types import f32, u8


def lower_few_bits(steps: Steps, group: Group) -> None:
    """All rows of all batches are rows of one product.  Raises Refused."""
    node = group.node
    a, *names = node.inputs
    left, result = steps.shape(a), steps.shape(group.result)
    constants = {}
    for argument, name in zip(("weights", "scales", "offsets"), names, strict=False):
        data = steps.value(name).data
        if data is None:
            raise Refused(f"its operand {name} is no constant")
        constants[argument] = name, data
    free = {name: any_format(x.shape, u8 if name == "weights" else f32) for name, (_, x) in constants.items()}
    tail = tail_of(steps, group, lambda dims: folded(dims, result))
    plain = steps.plain(a)
    src = Place(plain.buffer, plain.desc.reshape((prod(left[:-1]), left[-1])))
    dst = row_major((prod(left[:-1]), result[-1]), steps.type_of(group.result))
    point = 0.0 if "offsets" in free else node.get("zero_point")
    desc = QuantizedMatMul(src.desc, free["weights"], free["scales"], dst, free.get("offsets"), point)
    attr = Attr(tail.post_ops(), accumulation_mode="strict" if node.get("rounds") else "f32")
    places = {"src": src, **tail.places()}
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, constants=constants, attr=attr)


LOWERINGS = {f"{OWN}.MatMulNBits": lower_few_bits}
