"""Deconvolution with few output channels: tiles of dst whose pixels are reached by different kernel positions."""

from collections.abc import Iterator

from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.description import DeconvolutionForward
from asmdnn.primitives.convolution.few_outputs import planned_as, plans_as
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.deconvolution.parts import parts_of, whole


def planned(desc: DeconvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Plan `desc` for tensors as they are.  Raises Refused."""
    return planned_as(desc, attr, engine, whole, parts_of)


def plans(desc: DeconvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plans of a deconvolution with few output channels, best first; nothing for one with more."""
    yield from plans_as(desc, attr, engine, planned)
