"""What quantised tensors stand for: scale * (element - zero point), as numbers that are multiplied.

A scale or a zero point belongs to one index of the dims of its mask, or to a group of neighbours along the last two.
A binary operation subtracts zero points and multiplies by scales, both broadcast over a view of the tensor in which a
dim of groups is two.  Where numbers are s32, it is one of integers, exact for any zero point.
"""

from collections.abc import Mapping
from math import prod

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.attributes.post_ops import Binary
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise import binary
from asmdnn.primitives.elementwise.binary import BinaryForward
from asmdnn.primitives.reorder import packed
from asmdnn.primitives.reorder.plan import reordered
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.records import dataclass
from asmdnn.types import FLOATS8, DataType, f32, s32

GROUPED_DIMS = 2  # the last ones
Cuts = tuple[tuple[bool, ...], tuple[int, ...]]  # which dims are cut into groups, and the sizes of these


@dataclass(frozen=True, slots=True)
class ElementNumbers:
    """The scales or the zero points of a tensor.

    name: the argument.  sizes, counts: of the groups along every dim; one that is not of the mask is a group.
    """

    name: str
    dtype: DataType
    dims: tuple[int, ...]
    sizes: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def passed(self) -> MemoryDesc:
        """As a caller passes them."""
        return MemoryDesc((prod(self.counts),), self.dtype, "a")

    def spread(self, cuts: Cuts) -> MemoryDesc:
        """As a tensor that broadcasts to one with dims cut so."""
        shape: list[int] = []
        for n, count, is_cut, size in zip(self.dims, self.counts, *cuts, strict=True):
            if not is_cut:
                shape.append(count)
            else:
                shape += [count, 1] if count in (1, n // size) else [n // size, size]
        return MemoryDesc(tuple(shape), self.dtype, LETTERS[: len(shape)])


def quantity_of(tensor: str, desc: MemoryDesc, attr: Attr, kind: str) -> ElementNumbers | None:
    """None if there are none.  Raises InvalidArguments, Refused."""
    given: Mapping[str, int] = dict(attr.scales if kind == "scales" else attr.zero_points)
    if tensor not in given:
        return None
    mask, groups = given[tensor], dict(attr.groups).get(tensor, (1, 1))
    if mask >> desc.ndims:
        raise Refused(f"{kind} of {tensor} have the mask {mask}, which is for more than {desc.ndims} dims")
    sizes, counts = [], []
    for dim, n in enumerate(desc.dims):
        along = groups[dim - desc.ndims + GROUPED_DIMS] if dim >= desc.ndims - GROUPED_DIMS else 1
        if mask >> dim & 1 and n % along:
            raise InvalidArguments(f"groups of {tensor} are {groups}, which do not divide its dim {dim}, {n}")
        sizes.append(along if mask >> dim & 1 else max(n, 1))
        counts.append(n // along if mask >> dim & 1 else 1)
    dtype = f32 if kind == "scales" else s32
    return ElementNumbers(f"{tensor}_{kind}", dtype, desc.dims, tuple(sizes), tuple(counts))


def add_numbers(
    assembly: Assembly, engine: Engine, tensor: tuple[str, MemoryDesc], target: MemoryDesc, attr: Attr
) -> dict[str, MemoryDesc]:
    """Adds the phases that bring a tensor, by its name and as it is passed, into scratch as row-major numbers; the
    arguments that they read beside it.  target: the scratch, which has the tensor's dims.  Raises Refused."""
    name, desc = tensor
    found = {kind: quantity_of(name, desc, attr, kind) for kind in ("zero_points", "scales")}
    room, source = assembly.room(room_of(name), target.size_bytes), View(name)
    points, scales = found["zero_points"], found["scales"]
    if not desc.nelems():
        return {each.name: each.passed for each in (points, scales) if each}
    if desc.inner_blocks or is_converted(desc.dtype):
        desc, source = add_plain(assembly, engine, tensor, target)
    first = points or scales
    if first is None:
        assembly.add_plan(reordered(Reorder(desc, target), NO_ATTR, engine), {"src": source, "dst": View(room)})
        return {}
    cuts = cuts_of(desc, [each for each in (points, scales) if each])
    steps = cut(desc, cuts), cut(target, cuts)
    if points and target.dtype == s32:  # whose scales follow the sums
        less = binary.integers_less(steps[0], points.spread(cuts), steps[1], engine)
        assembly.add_plan(less, {"src0": source, "src1": View(points.name), "dst": View(room)})
        return {points.name: points.passed}
    attrs = Attr([Binary("mul", scales.spread(cuts))]) if points and scales else NO_ATTR
    operation = BinaryForward("sub" if points else "mul", steps[0], first.spread(cuts), steps[1])
    made = binary.plan(operation, attrs, engine)
    if not isinstance(made, Plan):
        raise Refused(made.reason)
    places = {"src0": source, "src1": View(first.name), "dst": View(room)}
    if points and scales:
        places["binary_0"] = View(scales.name)
    assembly.add_plan(made, places)
    return {each.name: each.passed for each in (points, scales) if each}


def is_converted(dtype: DataType) -> bool:
    """Whether no binary operation reads elements of the type."""
    return dtype.in_a_byte > 1 or dtype in FLOATS8


def add_plain(
    assembly: Assembly, engine: Engine, tensor: tuple[str, MemoryDesc], target: MemoryDesc
) -> tuple[MemoryDesc, View]:
    """Adds the copy of a tensor, by its name and as it is passed, that a binary operation reads.  Raises Refused."""
    name, desc = tensor
    kind = target.dtype if is_converted(desc.dtype) else desc.dtype
    plain = row_major(desc.dims, MemoryDesc(desc.dims, kind, "any"))
    copy = assembly.room(f"plain {name}", plain.size_bytes)
    step = Reorder(desc, plain)
    made = packed.plan(step, NO_ATTR, engine) if desc.dtype.in_a_byte > 1 else reordered(step, NO_ATTR, engine)
    if not isinstance(made, Plan):
        raise Refused(made.reason)
    assembly.add_plan(made, {"src": View(name), "dst": View(copy)})
    return plain, View(copy)


def room_of(name: str) -> str:
    """The scratch with the numbers of a tensor."""
    return f"numbers of {name}"


def cuts_of(desc: MemoryDesc, quantities: list[ElementNumbers]) -> Cuts:
    """By the groups of quantities, which share their sizes."""
    sizes = [
        next((each.sizes[dim] for each in quantities if 1 < each.sizes[dim] < n), 1) for dim, n in enumerate(desc.dims)
    ]
    return tuple(size > 1 for size in sizes), tuple(sizes)


def cut(desc: MemoryDesc, cuts: Cuts) -> MemoryDesc:
    """The same elements with groups as a dim of their own."""
    dims, strides = [], []
    for n, stride, is_cut, size in zip(desc.dims, desc.strides, *cuts, strict=True):
        dims += [n // size, size] if is_cut else [n]
        strides += [stride * size, stride] if is_cut else [stride]
    return MemoryDesc(tuple(dims), desc.dtype, strides=tuple(strides), offset0=desc.offset0)
