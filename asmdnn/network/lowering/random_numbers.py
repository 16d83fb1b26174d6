"""Random numbers without a seed have no kernel: a native network computes the same in every call."""

from asmdnn.network.fusion.maps import Group
from asmdnn.network.operators.own import DRAWN, OWN
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused


def refuse(steps: Steps, group: Group) -> None:
    raise Refused("its numbers have no seed, so that each call draws others: give the node one, by which all are known")


LOWERINGS = {f"{OWN}.{DRAWN}": refuse}
