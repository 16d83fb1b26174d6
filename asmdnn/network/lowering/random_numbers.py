"""Random numbers without a seed, or by one that calls pass, have no kernel: numpy draws them."""

from asmdnn.network.fusion.maps import Group
from asmdnn.network.operators.own import DRAWN, OWN
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused


def refuse(steps: Steps, group: Group) -> None:
    if group.node.inputs:
        raise Refused("its numbers are drawn by the seed that a call passes")
    raise Refused("its numbers have no seed, so that each call draws others: give the node one, by which all are known")


LOWERINGS = {f"{OWN}.{DRAWN}": refuse}
