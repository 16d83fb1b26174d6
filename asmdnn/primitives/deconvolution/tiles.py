"""Deconvolutions of bf16 or bytes by tiles of AMX: the products of their parts."""

from collections.abc import Iterator

from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.description import DeconvolutionForward
from asmdnn.primitives.convolution.raster_tiles import by_parts, vector_cycles
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.deconvolution.parts import axes_of_parts, parts_of


def plans(desc: DeconvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """Nothing where no tiles multiply these types."""
    return by_parts(desc, attr, engine, axes_of_parts(desc), others)


def others(desc: DeconvolutionForward, engine: Engine) -> dict[str, float]:
    """What vectors are expected to take."""
    return {"vectors": vector_cycles(desc, engine, parts_of)}
