"""What several planners of convolutions refuse, in one way."""

from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import format_of
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.convolution.description import ConvolutionDesc


def check_weights(desc: ConvolutionDesc, wanted: MemoryDesc) -> None:
    """Raise Refused unless the format of the weights is left open, or this one."""
    weights = desc.weights
    if not weights.is_any and weights != wanted:
        letters = desc.letters("weights", weights)
        raise Refused(f"weights must be any or {format_of(wanted, letters)}, not {format_of(weights, letters)}")
