"""Random numbers by the seed that a call passes; without one numpy draws them."""

from asmdnn.definitions.random_numbers import stream_of
from asmdnn.network.descriptors import row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.lowering.indices import integer_words
from asmdnn.network.operators.own import DRAWN, OWN
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.random_numbers.random_numbers import RandomNumbers


def lower_numbers(steps: Steps, group: Group) -> None:
    node = group.node
    if not node.inputs:
        way = "give the node one, by which all are known, or load the model with seed='seed', and pass one in each call"
        raise Refused(f"its numbers have no seed, so that each call draws others: {way}")
    seed = integer_words(steps, node.inputs[0])
    dst, stream = row_major(steps.shape(group.result)), stream_of(0, node.get("place"))
    desc = RandomNumbers(dst, node.get("kind").lower(), stream)
    steps.add(group.nodes, group.label, desc, {"seed": seed}, {"dst": group.result})


LOWERINGS = {f"{OWN}.{DRAWN}": lower_numbers}
