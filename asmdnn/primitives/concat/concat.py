"""Concatenation: tensors one after the other along an axis, in any formats and types."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.generators.move.conversion import Conversion
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.isa.vectors import NARROWEST, f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.sequences import items
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Phase
from asmdnn.planning.refusal import Refused
from asmdnn.planning.rounds import without_barrier
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import in_vectors, scales_of_sources
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.copies import Inside, as_passed_or_copied
from asmdnn.primitives.reorder.schedule import ScaledConversion, reorder_phases
from asmdnn.primitives.reorder.style import MoveStyle
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.primitives.shapes.tensors import check_tensor, refuse_overlap
from asmdnn.records import dataclass, replace

NAME = "concat"


def descs_of(name: str, value: Any) -> tuple[MemoryDesc, ...]:
    """A sequence of descriptors as a tuple, or InvalidArguments."""
    try:
        found = items(value)
    except Exception:  # whatever the caller's object does
        found = ()
    if not found or not all(isinstance(desc, MemoryDesc) for desc in found):
        raise InvalidArguments(f"{name} must be one MemoryDesc or more, not {shown(value)}")
    return found


def axis_of(axis: Any, ndims: int) -> int:
    """An axis that may count from the end, or InvalidArguments; integers of numpy are some, too."""
    is_whole = isinstance(axis, int | np.integer) and not isinstance(axis, bool)
    if not is_whole or not -ndims <= axis < ndims:
        raise InvalidArguments(
            f"axis is {shown(axis)}, the tensors have {counted(ndims, 'dim')}: use {-ndims} to {ndims - 1}"
        )
    return int(axis) % ndims


@dataclass(frozen=True, slots=True)
class Concat:
    """`dst[.., i, ..] = srcs[k][.., i - starts[k], ..]` along `axis`: each source after the one before.

    srcs: dims equal but for the axis, whose sizes add up to dst's; the arguments are src0, src1, ...  Any formats and
    types, each converted as a reorder does it, and multiplied by its scales before, if attributes say so.  Raises
    InvalidArguments.
    """

    srcs: tuple[MemoryDesc, ...]
    dst: MemoryDesc
    axis: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "srcs", descs_of("srcs", self.srcs))
        check_tensor("dst", self.dst)
        object.__setattr__(self, "axis", axis_of(self.axis, self.dst.ndims))
        for k, src in enumerate(self.srcs):
            wanted = list(self.dst.dims)
            if src.ndims == self.dst.ndims:
                wanted[self.axis] = src.dims[self.axis]
            if src.dims != tuple(wanted):
                raise InvalidArguments(
                    f"src{k} has dims {src.dims}, they must be dst's but for axis {self.axis}: {wanted}"
                )
            if src.is_any:
                raise InvalidArguments(f"src{k} has the format any, a concatenation needs a real one")
        total = sum(src.dims[self.axis] for src in self.srcs)
        if total != self.dst.dims[self.axis]:
            raise InvalidArguments(
                f"axis {self.axis} of dst is {self.dst.dims[self.axis]}, the sources make it {total}"
            )

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each source begins along the axis."""
        sizes = [src.dims[self.axis] for src in self.srcs]
        return tuple(sum(sizes[:k]) for k in range(len(sizes)))

    def __str__(self) -> str:
        return f"concat of {', '.join(map(str, self.srcs))} to {self.dst}, axis {self.axis}"


def inside_of(desc: Concat, attr: Attr, engine: Engine) -> Inside:
    """The plan of a concatenation.  Raises Refused."""
    if attr.post_ops:
        raise Refused("a concatenation has no post-ops")
    scales = scales_of_sources(attr, {f"src{k}": src for k, src in enumerate(desc.srcs)})
    dst = row_or_same(desc)
    refuse_overlap(dst=dst)
    assembly = Assembly(engine.tuning, engine.isa)
    target = dst if can_be_cut(dst, desc) else row_major(dst.dims, dst)
    tuning = engine.tuning.moves
    streams, least_bytes = dst.size_bytes >= tuning.streaming_bytes, tuning.streamed_row_bytes
    isa = NARROWEST if streams else assembly.isa  # lines that go past the caches are whole lines with any width
    for k, (src, start) in enumerate(zip(desc.srcs, desc.starts, strict=True)):
        if 0 not in src.dims:
            part = target.submemory(src.dims, along(start, desc.axis, dst.ndims))
            buffers, numbers = source_of(f"src{k}", src, dst, scales)
            phases = reorder_phases(src, part, buffers, engine.tuning, numbers, MoveStyle(streams), isa=isa)
            phases = [streaming(phase, least_bytes) for phase in phases] if streams else phases
            assembly.add(without_barrier(phases) if assembly.phases else phases)
    tensors = {f"src{k}": src for k, src in enumerate(desc.srcs)} | {"dst": target}
    tensors |= in_vectors(scales)
    whole = assembly.plan(f"{NAME}:{f32_level(engine.isa)}", tensors, ("dst",))
    return Inside(whole, {**tensors, "dst": dst}, engine.tuning, assembly.isa)


plans = as_passed_or_copied(NAME, inside_of, f32_level)


def source_of(
    name: str, src: MemoryDesc, dst: MemoryDesc, scales: Mapping[str, MemoryDesc]
) -> tuple[tuple[str, ...], ScaledConversion | None]:
    """The buffers of a source's reorder, and what its elements become."""
    if name not in scales:
        return (name, "dst"), None
    steps = zip(scales[name].dims, scales[name].strides, strict=True)
    by_dim = tuple(stride if size > 1 else 0 for size, stride in steps)
    conversion = Conversion(src.dtype.name, dst.dtype.name, scaled=True)
    return (name, "dst", f"{name}_scales", "", ""), ScaledConversion(conversion, by_dim)


def streaming(phase: Phase, least_bytes: int) -> Phase:
    """Rows of so many bytes that lie apart go past the caches, too: each is whole lines, and written at once."""
    kernels = tuple(
        replace(spec, streaming=True)
        if isinstance(spec, RowsSpec)
        and spec.row_bytes >= least_bytes
        and spec.row_bytes % spec.vector_bytes == 0
        and spec.dst_step % spec.vector_bytes == 0
        else spec
        for spec in phase.kernels
    )
    return replace(phase, kernels=kernels)


def row_or_same(desc: Concat) -> MemoryDesc:
    """dst; if its format is any, that of the sources if they all have one, else plain."""
    if not desc.dst.is_any:
        return desc.dst
    tags = {src.tag for src in desc.srcs}
    tag = tags.pop() if len(tags) == 1 else None
    return MemoryDesc(desc.dst.dims, desc.dst.dtype, tag) if tag else row_major(desc.dst.dims, desc.dst)


def can_be_cut(dst: MemoryDesc, desc: Concat) -> bool:
    """Whether every source begins at a block of dst."""
    return all(start % dst.blocks[desc.axis] == 0 for start in desc.starts)


def along(start: int, axis: int, ndims: int) -> Sequence[int]:
    """Offsets of 0 but along an axis."""
    return [start if dim == axis else 0 for dim in range(ndims)]
