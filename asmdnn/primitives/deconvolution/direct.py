"""Deconvolution, f32, forward: direct convolutions of the parts of dst, and the same between reorders."""

from collections.abc import Iterator

from asmdnn.isa.dot import F32, dot_level
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.description import DeconvolutionForward
from asmdnn.primitives.convolution.direct import NAME, planned_parts
from asmdnn.primitives.convolution.reordered import BETWEEN_REORDERS, between_reorders
from asmdnn.primitives.deconvolution.parts import parts_of
from asmdnn.primitives.engine import Engine


def planned(desc: DeconvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Plan `desc` for tensors as they are.  Raises Refused."""
    return planned_parts(desc, attr, engine, parts_of)


def plans(desc: DeconvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """Every way to compute `desc`, best first."""
    isa = dot_level(F32, engine.isa)
    try:
        yield planned(desc, attr, engine)
    except Refused as reason:
        yield Refusal(f"{NAME}:{isa}", str(reason))
    for word, roles in BETWEEN_REORDERS:
        name = f"{word}+{NAME}:{isa}"
        try:
            yield between_reorders(name, roles, desc, attr, engine, planned)
        except Refused as reason:
            yield Refusal(name, str(reason))
