"""Every plan of a deconvolution that planners choose from: to measure how good their choice is."""

from collections.abc import Iterator

from asmdnn.isa.dot import f32_dot_level
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.candidates import Candidate, of_direct
from asmdnn.primitives.convolution.description import DeconvolutionForward
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.deconvolution import direct


def candidates(desc: DeconvolutionForward, attr: Attr, engine: Engine) -> Iterator[Candidate]:
    """Parts of dst by panels of every width, if the format of weights is open."""
    yield from of_direct(desc, attr, at_level(engine, f32_dot_level(engine.isa)), direct.planned)
