"""Deconvolution, f32, forward: direct convolutions of the parts of dst, and the same between reorders."""

from collections.abc import Iterator

from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.description import DeconvolutionForward
from asmdnn.primitives.convolution.direct import NAME, planned_parts
from asmdnn.primitives.convolution.reordered import plans_between_reorders
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.deconvolution.parts import parts_of


def planned(desc: DeconvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Plan `desc` for tensors as they are.  Raises Refused."""
    return planned_parts(desc, attr, engine, parts_of)


def plans(desc: DeconvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """Every way to compute `desc`, best first."""
    yield from plans_between_reorders(NAME, desc, attr, engine, planned)
