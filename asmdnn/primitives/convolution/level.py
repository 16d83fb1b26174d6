"""Which vectors a direct convolution takes: narrow ones, where wide ones would be half empty and cost twice as much."""

from collections.abc import Callable, Sequence
from typing import Generic

from asmdnn.isa.dot import F32
from asmdnn.isa.vectors import NARROWEST, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.convolution.description import ConvolutionDesc, Desc
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.multiplied import types_of
from asmdnn.primitives.convolution.tiling import ImageModel, Tiling
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class Fit(Generic[Desc]):
    """A convolution as a level computes it: `desc` with formats for src and dst, the weights' format, and for each part
    its geometry and tiling."""

    desc: Desc
    weights: MemoryDesc
    engine: Engine
    parts: Sequence[tuple[ConvGeometry, Tiling]]

    @property
    def width(self) -> int:
        """Output channels of a panel."""
        return self.parts[0][1].vectors * lanes_of(self.engine.isa)

    @property
    def cycles(self) -> float:
        """Expected, of an image."""
        isa, tuning = self.engine.isa, self.engine.tuning
        models = ((ImageModel(g, isa, tuning.convolution, tuning.phases), tiling) for g, tiling in self.parts)
        return sum(model.cycles(tiling) for model, tiling in models)


def fastest(desc: Desc, engine: Engine, fit: Callable[[Desc, Engine], Fit[Desc]]) -> Fit[Desc]:
    """The fit that is expected to be faster.  Raises Refused as the level of the engine does, if none takes it."""
    if not may_be_narrow(desc, engine):
        return fit(desc, engine)
    try:
        narrow = fit(with_wide_src(desc, lanes_of(engine.isa)), at_level(engine, NARROWEST))
    except Refused:
        return fit(desc, engine)
    try:
        wide = fit(desc, engine)
    except Refused:
        return narrow
    return narrow if engine.tuning.convolution.narrow_cost * narrow.cycles < wide.cycles else wide


def may_be_narrow(desc: ConvolutionDesc, engine: Engine) -> bool:
    """Whether the channels of a group are so many narrow vectors that they cost less than wide ones."""
    cost = engine.tuning.convolution.narrow_cost
    if types_of(desc) != F32 or cost >= 1:
        return False
    stored = desc.dst.dims if desc.dst.is_any else desc.dst.padded_dims
    narrow, wide = (-(-stored[1] // desc.groups // lanes_of(isa)) for isa in (NARROWEST, engine.isa))
    return cost * narrow < wide


def of_rows(desc: ConvolutionDesc, engine: Engine) -> Engine:
    """The engine with the level of the vectors that cost less, for rows, which take one after the other."""
    return at_level(engine, NARROWEST) if may_be_narrow(desc, engine) else engine


def with_wide_src(desc: Desc, lanes: int) -> Desc:
    """With src in the blocks of the wide level, as the layer before has it, where its format is open and no block has
    channels of two groups."""
    src = desc.src
    if not src.is_any or src.dims[1] // desc.groups % lanes:
        return desc
    return desc.with_formats({"src": MemoryDesc(src.dims, src.dtype, f"aBx{lanes}b")})
