"""Floats of integers that nobody reads as integers."""

from asmdnn.network.fusion.maps import Group
from asmdnn.network.quantized.weights import DEQUANTIZE
from asmdnn.network.steps import Steps


def lower_dequantize(steps: Steps, group: Group) -> None:
    """In the format that the integers have."""
    steps.dequantizers[group.result] = group.node
    steps.make_floats(group.result)


LOWERINGS = {DEQUANTIZE: lower_dequantize}
