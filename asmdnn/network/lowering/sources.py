"""In which formats convolutions and their gradients read tensors: as these lie, or copied, whatever takes less."""

from collections.abc import Mapping

from asmdnn.memory import MemoryDesc
from asmdnn.network.joining.place import Place
from asmdnn.network.steps import Steps
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.description import ConvolutionForward, DeconvolutionForward
from asmdnn.primitives.convolution_backward.description import ConvolutionBackwardData, ConvolutionBackwardWeights
from asmdnn.primitives.reorder.reorder import Reorder

Description = ConvolutionForward | DeconvolutionForward | ConvolutionBackwardData | ConvolutionBackwardWeights


def cheapest(steps: Steps, name: str, source: Place, desc: Description, attr: Attr, argument: str = "src") -> Place:
    """The operand as it lies, or in the format that the primitive likes best: what both take together decides, unless
    a copy is wanted anyhow."""
    liked = steps.chosen(desc, argument, attr)
    if source.desc.inner_blocks or liked == source.desc:
        return source
    if steps.choice.copies:
        return steps.place(name, liked)
    as_it_is = steps.asking.planned(desc.with_formats({argument: source.desc}), attr).plan.cycles
    copied = steps.asking.planned(desc.with_formats({argument: liked}), attr).plan.cycles
    copied += reorder_cycles(steps, name, source, liked)
    return source if as_it_is <= copied else steps.place(name, liked)


def operand_of(steps: Steps, name: str, desc: Description, attr: Attr, argument: str = "src") -> Place:
    """The operand in the description's type: what is there in another one is converted into the format that the
    primitive prefers."""
    wanted = getattr(desc, argument).dtype
    known = [place for place in steps.places.get(name, ()) if place.desc.dtype == wanted]
    if known:
        return cheapest(steps, name, known[0], desc, attr, argument)
    return steps.place(name, steps.chosen(desc, argument, attr))


def as_wanted(steps: Steps, desc: ConvolutionBackwardWeights, names: Mapping[str, str]) -> dict[str, Place]:
    """Places of several operands, values by argument: all as they lie, or all as the primitive likes them best."""
    sources = {argument: steps.place(name) for argument, name in names.items()}
    liked = {argument: steps.chosen(desc, argument) for argument in names}
    as_they_are = desc.with_formats({argument: place.desc for argument, place in sources.items()})
    more = sum(reorder_cycles(steps, name, sources[argument], liked[argument]) for argument, name in names.items())
    plain = steps.asking.planned(as_they_are).plan.cycles
    if plain <= steps.asking.planned(desc.with_formats(liked)).plan.cycles + more:
        return sources
    return {argument: steps.place(name, liked[argument]) for argument, name in names.items()}


def reorder_cycles(steps: Steps, name: str, source: Place, wanted: MemoryDesc) -> int:
    """What a copy in a format takes; nothing if there is one."""
    if any(place.desc == wanted for place in steps.places.get(name, ())):
        return 0
    return steps.asking.planned(Reorder(source.desc, wanted)).plan.cycles
