"""Units of a group normalization: what one thread reads for statistics, and again for results while it is in L2.

A unit is a group of an image where its elements follow one another in memory, and an image where channels do.  The
phases of one unit are a group of records, which is repeated; statistics lie in scratch that each thread has of its own.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.steps import add_each, steps_of
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.post_ops import with_tensors
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.normalization.channel_description import GroupNormForward
from asmdnn.records import dataclass, replace

SIZES_OF_GROUPS, SIZES_OF_CHANNELS = ("mean", "variance"), ("scale", "shift")


@dataclass(frozen=True, slots=True)
class NormUnits:
    """images, parts: how many there are, a part of an image's channels each.  groups, channels: of a unit."""

    images: int
    parts: int
    groups: int
    channels: int

    def sizes(self, name: str) -> tuple[int, ...]:
        """Of a unit along the leading dims of a tensor that all of its dims have."""
        if name in SIZES_OF_CHANNELS:
            return (self.channels,)
        return (1, self.groups if name in SIZES_OF_GROUPS else self.channels)

    def first(self, name: str, desc: MemoryDesc) -> MemoryDesc:
        """The first unit of a tensor; one that broadcasts has all of its 1."""
        sizes = self.sizes(name)
        dims = (*map(min, sizes, desc.dims), *desc.dims[len(sizes) :])
        return MemoryDesc(dims, desc.dtype, strides=desc.strides, inner_blocks=desc.inner_blocks, offset0=desc.offset0)

    def moves(self, name: str, desc: MemoryDesc) -> tuple[int, ...]:
        """Bytes from image to image, and from part to part."""
        places = zip(self.sizes(name), desc.dims, desc.blocks, desc.strides, strict=False)
        moves = [desc.dtype.size_bytes * (size // block * stride) if n > 1 else 0 for size, n, block, stride in places]
        return (0,) * (2 - len(moves)) + tuple(moves)

    def desc(self, desc: GroupNormForward, tensors: Mapping[str, MemoryDesc]) -> GroupNormForward:
        """The normalization of the first unit of these tensors, its statistics in scratch."""
        names = [name for name in ("src", "dst", *SIZES_OF_CHANNELS) if name in tensors]
        own: dict[str, Any] = {name: self.first(name, tensors[name]) for name in names}
        return replace(desc, groups=self.groups, mean=None, variance=None, **own)

    def attr(self, attr: Attr, tensors: Mapping[str, MemoryDesc]) -> Attr:
        """Post-ops that read the first unit of their tensors."""
        first = {name: self.first(name, tensors[name]) for name in attr.tensors()}
        chain = [with_tensors(op, [first[f"{name}_{i}"] for name in op.tensors]) for i, op in enumerate(attr.post_ops)]
        return attr.changed(post_ops=chain)

    def cuts(self, desc: MemoryDesc) -> bool:
        """Whether units of a tensor begin where its blocks do."""
        return self.parts == 1 or desc.dims[1] == 1 or self.channels % desc.blocks[1] == 0

    def add(self, assembly: Assembly, one: Plan, after: Sequence[Plan], tensors: Mapping[str, MemoryDesc]) -> None:
        """All units, by the plan of the first one, and others after it that read its scratch."""
        places = {name: of_unit(name) for name in one.scratch_bytes}
        steps = [*steps_of(one, places), *(step for plan in after for step in steps_of(plan, {}))]
        moves = {name: self.moves(name, desc) for name, desc in tensors.items()}
        own = {places[name]: size for name, size in one.scratch_bytes.items()}
        add_each(assembly, steps, moves, (self.images, self.parts), own)


def of_unit(name: str) -> str:
    """The scratch that a thread has for what other plans have for all units."""
    return f"{name} of a unit"


def units_of(src: MemoryDesc, groups: int, engine: Engine, streams: bool) -> NormUnits | None:
    """Of a tensor of f32; None where they are too few for threads, or are not expected to be faster than a tensor as a
    whole.  Bits are the same.  streams: whether dst goes past the caches."""
    images, channels, *pixels = src.dims
    tuning = engine.tuning.normalization
    found = NormUnits(images, groups, 1, channels // groups)
    if not (found.cuts(src) and is_by_channels(src)):
        found = NormUnits(images, 1, groups, channels)
        if src.inner_blocks or src.strides[1] != 1:
            return None
    is_dense = src.is_dense and found.first("src", src).is_dense
    if not is_dense or found.images * found.parts < tuning.least_units:
        return None
    size = src.dtype.size_bytes * found.channels * prod(pixels)
    is_near = tuning.near_unit_bytes <= size <= tuning.far_unit_bytes
    return found if is_near or (streams and size <= tuning.unit_l2 * engine.l2_bytes) else None


def is_by_channels(src: MemoryDesc) -> bool:
    """Whether images are outside of channels, and these of pixels."""
    strides = [stride if n > 1 else None for n, stride in zip(src.dims, src.strides, strict=True)]
    outer = [stride for stride in strides[:2] if stride is not None]
    pixels = [stride for stride in strides[2:] if stride is not None]
    return all(a >= b for a, b in pairwise((*outer, max(pixels, default=0))))
