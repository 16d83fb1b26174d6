"""What all ways of a gather start from: its tensors as kernels take them, and loops over dst."""

from asmdnn.generators.move.gather import ARGUMENTS
from asmdnn.memory import MemoryDesc
from asmdnn.planning.loops import Box, Loop, merge
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.gather.description import Gather
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.primitives.shapes.tensors import refuse_overlap
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class GatherRequest:
    """passed: tensors as the caller has them; tensors: as kernels take them; box: loops over dst, in elements, beside
    src and indices: what src does along the indices is data."""

    desc: Gather
    engine: Engine
    passed: dict[str, MemoryDesc]
    tensors: dict[str, MemoryDesc]
    box: Box


def request_of(desc: Gather, attr: Attr, engine: Engine) -> GatherRequest:
    """Raises Refused."""
    refuse_attr(attr, "a gather")
    passed = {"src": desc.src, "dst": desc.dst, "indices": desc.indices}
    if desc.dst.is_any:
        passed["dst"] = row_major(desc.dst.dims, desc.dst)
    refuse_overlap(dst=passed["dst"])
    tensors = {name: row_major(x.dims, x) if x.inner_blocks else x for name, x in passed.items()}
    starts = tuple(tensors[name].offset0 for name in ARGUMENTS)
    return GatherRequest(desc, engine, passed, tensors, Box(starts, tuple(loops_of(desc, tensors))))


def loops_of(desc: Gather, tensors: dict[str, MemoryDesc]) -> list[Loop]:
    src, dst, indices = (tensors[name] for name in ARGUMENTS)
    end = desc.axis + indices.ndims
    distances = list[tuple[int, int, int]]()
    for dim, step in enumerate(dst.strides):
        if desc.axis <= dim < end:
            distances.append((0, step, indices.strides[dim - desc.axis]))
        else:
            distances.append((src.strides[dim if dim < desc.axis else dim - indices.ndims + 1], step, 0))
    return merge(Loop(extent, steps) for extent, steps in zip(dst.dims, distances, strict=True) if extent > 1)
