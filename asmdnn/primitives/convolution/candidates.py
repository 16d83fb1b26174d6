"""Every plan of a convolution from which planners choose, to measure how good their choice is."""

from collections.abc import Callable, Iterator

from asmdnn.generators.dot.conv_shape import blocks_of
from asmdnn.isa.dot import f32_dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution import direct, multiplied
from asmdnn.primitives.convolution.description import ConvolutionForward, Desc
from asmdnn.primitives.convolution.pairs.pair import is_pair
from asmdnn.primitives.convolution.pairs.plan import every_height
from asmdnn.primitives.convolution.winograd import cut as cuts
from asmdnn.primitives.convolution.winograd.choice import forms_of, usable
from asmdnn.primitives.convolution.winograd.plan import level_of, prepared, with_cut
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.types import Algorithm

Candidate = tuple[str, Plan]  # what is special about it


def candidates(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Candidate]:
    """Direct convolution by panels of every width, if their format is open; every cut of Winograd's, if that may be; of
    a pair every height of strips."""
    if is_pair(attr):
        yield from every_height(desc, attr, at_level(engine, f32_dot_level(engine.isa)))
        return
    if desc.algorithm != Algorithm.convolution_winograd:
        yield from of_direct(desc, attr, engine, direct.planned)
    if desc.algorithm != Algorithm.convolution_direct:
        yield from of_winograd(desc, attr, engine)


def of_direct(
    desc: Desc, attr: Attr, engine: Engine, planned: Callable[[Desc, Attr, Engine], Plan]
) -> Iterator[Candidate]:
    """What `planned` makes of weights in panels of every width, if their format is open."""
    try:
        types = multiplied.types_for(desc, attr, engine)
        isa = multiplied.level_of(types, engine).isa
    except Refused:
        return
    for vectors in blocks_of(types, isa) if desc.weights.is_any else ():
        panel = vectors * lanes_of(isa)
        weights = direct.panels_desc(desc, panel)
        try:
            yield f"panels of {panel}", planned(desc.with_formats({"weights": weights}), attr, engine)
        except Refused:
            continue


def of_winograd(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Candidate]:
    engine = level_of(desc, engine)
    try:
        resolved, geometry = prepared(desc, engine)
    except Refused:
        return
    widths = usable(cuts.rows_of(engine.isa), -(-geometry.oc // lanes_of(engine.isa)))
    for cut in cuts.candidates(geometry, engine.isa, forms_of(geometry, engine), widths):
        try:
            yield str(cut), with_cut(resolved, attr, engine, geometry, cut)
        except Refused:
            continue
