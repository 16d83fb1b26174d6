"""Gradients of maxima by planes: every result of a window is added to the element that its place names.

That pays where channels are few, of which the other way has lanes, or windows large, of whose positions it looks at
each.  Planes are contiguous in all tensors.  Where windows reach into the padding, planes with as much of it are
scratch, from which diff_src is copied; what places name there is passed over.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from operator import mul

import numpy as np
import numpy.typing as npt

from asmdnn.generators.move.rows import RowsSpec
from asmdnn.generators.pooling.scattered_maxima import ARGUMENTS, NOWHERE, ScatteredMaximaSpec
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import NARROWEST, f32_level, lanes_of, vector_bytes
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly, constant_words
from asmdnn.planning.phase import MOST_CYCLES, Phase, View, records_of
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.pooling_backward.description import PoolingBackward
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES, f32, s32, u8

NAME = "scattered"
OFFSETS = "offsets of positions"  # a constant
PADDED = "planes with their padding"  # scratch
MOST_PIXELS = 1 << 14  # of a table, which L1 should hold
CALL_CYCLES, OUTPUT_CYCLES, CELL_CYCLES = 40, 5, 0.25
# As the other way takes them: of a vector of channels; and of an element that is copied to lie in one.
POSITION_CYCLES, PIXEL_CYCLES, COPIED_CYCLES = 1.6, 2.0, 0.25


@dataclass(frozen=True, slots=True)
class PaddedPlane:
    """before: padding in front of each axis; sizes: with all that windows reach into.  In elements of it: steps, from a
    position of the window to the next one, and strides, from a window to the next one.  own_steps, own_strides: in
    pixels of the plane without padding."""

    before: tuple[int, ...]
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    strides: tuple[int, ...]
    own_steps: tuple[int, ...]
    own_strides: tuple[int, ...]

    @property
    def cells(self) -> int:
        return prod(self.sizes)


def plan(request: tuple[PoolingBackward, Engine]) -> Plan:
    """Raises Refused."""
    desc, engine = request
    if desc.indices is None:
        raise Refused(f"it is of maxima, whose places are known, alg is {desc.alg}")
    given = {"diff_src": desc.diff_src, "diff_dst": desc.diff_dst, "indices": desc.indices}
    check_types(given)
    plane = padded_plane(desc)
    check_worth(desc, plane, engine)
    own = {name: row_major(tensor.dims, tensor) for name, tensor in given.items()}
    planes, pixels = prod(desc.diff_src.dims[:2]), desc.diff_src.dims[2:]
    assembly = Assembly(engine.tuning, engine.isa)
    offsets = offsets_of(desc, plane)
    assembly.constants[OFFSETS] = constant_words(offsets)
    is_padded = plane.sizes != pixels
    summed = assembly.room(PADDED, planes * plane.cells * F32_BYTES) if is_padded else "diff_src"
    assembly.add([*scattering(desc, plane, summed, len(offsets))])
    if is_padded:
        whole = MemoryDesc((*desc.diff_src.dims[:2], *plane.sizes), f32, own["diff_src"].tag)
        inside = whole.submemory(desc.diff_src.dims, (0, 0, *plane.before))
        add_reorder(assembly, Reordering(summed, inside, "diff_src", own["diff_src"]), "copied")
    return assembly.plan(f"{NAME}:{NARROWEST}", own, ("diff_src",))


def check_types(given: Mapping[str, MemoryDesc]) -> None:
    """Raise Refused for other types than kernels take, and unless planes are contiguous."""
    for name, tensor in given.items():
        wanted = (u8, s32) if name == "indices" else (f32,)
        if tensor.dtype not in wanted:
            raise Refused(f"{name} is {tensor.dtype}, it takes {' and '.join(map(str, wanted))}")
    known = [tensor for tensor in given.values() if not tensor.is_any]
    if not known or not all(is_planar(tensor) for tensor in known):
        raise Refused("planes of channels are not contiguous")


def is_planar(tensor: MemoryDesc) -> bool:
    """Whether it is row-major; where there is one element along an axis, its stride says nothing."""
    if tensor.inner_blocks or tensor.offset0:
        return False
    plain = row_major(tensor.dims, tensor)
    return all(n == 1 or a == b for n, a, b in zip(tensor.dims, tensor.strides, plain.strides, strict=True))


def padded_plane(desc: PoolingBackward) -> PaddedPlane:
    """Raises Refused for one that code does not reach."""
    axes = zip(
        desc.diff_src.dims[2:], desc.diff_dst.dims[2:], desc.kernel, desc.strides, desc.dilations, desc.padding_l,
        strict=True,
    )  # fmt: skip
    sizes = tuple(
        before + max(n, (made - 1) * stride + (k - 1) * (gap + 1) + 1 - before)
        for n, made, k, stride, gap, before in axes
    )
    if prod(sizes) * F32_BYTES > MAX_OFFSET:
        raise Refused("planes have 2 GiB or more")
    found = []
    for each in (strides_of(sizes), strides_of(desc.diff_src.dims[2:])):
        found.append(tuple(stride * (gap + 1) for stride, gap in zip(each, desc.dilations, strict=True)))
        found.append(tuple(stride * window for stride, window in zip(each, desc.strides, strict=True)))
    steps, strides, own_steps, own_strides = found
    return PaddedPlane(
        desc.padding_l, sizes, steps=steps, strides=strides, own_steps=own_steps, own_strides=own_strides
    )


def strides_of(sizes: Sequence[int]) -> tuple[int, ...]:
    """Row-major ones."""
    return tuple(prod(sizes[axis + 1 :]) for axis in range(len(sizes)))


def check_worth(desc: PoolingBackward, plane: PaddedPlane, engine: Engine) -> None:
    """Raise Refused where channels fill lanes and windows are small, and where there is nothing to be done."""
    (images, channels, *pixels), outputs = desc.diff_src.dims, prod(desc.diff_dst.dims[2:])
    if not desc.diff_src.nelems() or not outputs:
        raise Refused("there are no elements")
    lanes = lanes_of(f32_level(engine.isa))
    others = PIXEL_CYCLES * prod(pixels) + POSITION_CYCLES * outputs * prod(desc.kernel)
    others += COPIED_CYCLES * lanes * (prod(pixels) + 2 * outputs) if channels > 1 else 0
    others *= images * -(-channels // lanes)
    if images * channels * (2 * CALL_CYCLES + OUTPUT_CYCLES * outputs + CELL_CYCLES * plane.cells) > others:
        raise Refused(f"{channels} channels fill lanes, and windows have {prod(desc.kernel)} positions")


def offsets_of(desc: PoolingBackward, plane: PaddedPlane) -> npt.NDArray[np.int32]:
    """Of all positions, in bytes; or of all pixels from a window's first one on.  Raises Refused for too many."""
    places = np.array([*product(*map(range, desc.kernel))], np.int64)
    offsets = places @ plane.steps * F32_BYTES
    if not counts_pixels(desc):
        return offsets.astype(np.int32)
    numbers = places @ plane.own_steps
    if numbers[-1] >= MOST_PIXELS:
        raise Refused(f"windows span {numbers[-1] + 1} pixels of the plane, more than a table of {MOST_PIXELS} has")
    if len(np.unique(numbers)) < len(numbers):
        raise Refused("windows are wider than planes, so that numbers of pixels do not say which positions they are")
    found = np.full(numbers[-1] + 1, NOWHERE, np.int32)
    found[numbers] = offsets
    return found


def counts_pixels(desc: PoolingBackward) -> bool:
    """Whether places are numbers of pixels."""
    return desc.indices is not None and desc.indices.dtype == s32


def scattering(desc: PoolingBackward, plane: PaddedPlane, summed: str, positions: int) -> Iterator[Phase]:
    """Each plane is zeroed, and then written by the same part.  positions: that have an offset."""
    planes, outputs = prod(desc.diff_src.dims[:2]), prod(desc.diff_dst.dims[2:])
    first = -sum(map(mul, plane.before, strides_of(desc.diff_src.dims[2:])))
    zero = RowsSpec(isa=NARROWEST, rows=1, row_bytes=F32_BYTES * plane.cells, src_step=0, dst_step=0, zero=True)
    scatter = ScatteredMaximaSpec(
        isa=NARROWEST, cells=plane.cells, positions=positions, outputs=desc.diff_dst.dims[2:],
        steps=tuple(F32_BYTES * stride for stride in plane.strides),
        pixels=(first, *plane.own_strides) if counts_pixels(desc) else (),
    )  # fmt: skip
    number = np.arange(planes, dtype=np.int64)
    places = {"dst": F32_BYTES * plane.cells, "diff": F32_BYTES * outputs, "places": scatter.place_bytes * outputs}
    records = records_of(ARGUMENTS, {name: size * number for name, size in places.items()})
    views = (View("diff_dst"), View(summed), View("indices"), View(OFFSETS))
    zeroing = F32_BYTES * plane.cells // vector_bytes(NARROWEST)
    for spec, cycles in ((zero, zeroing), (scatter, OUTPUT_CYCLES * outputs)):
        costs = np.full(planes, min(MOST_CYCLES, CALL_CYCLES + cycles), np.int32)
        yield Phase((spec,), views, records, costs, continues=spec is scatter)
