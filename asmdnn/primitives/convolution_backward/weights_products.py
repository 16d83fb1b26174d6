"""Gradients of weights of bf16 as products of pairs: one for each position of the kernel,

    diff_weights[r] (i, o) = src (i, pixels, D(r) further on) * diff_dst (pixels, o)

Pixels of all images are one row: those of an image in raster order, with zeros after each line, and after each image,
which stand for the padding on both sides.  So a position of the kernel is a distance in that row, and what lies beyond
an edge is 0.  src is copied with channels apart, so that neighbouring pixels are a pair at any distance, and
diff_dst is packed as pairs, once for all positions.  With strides, src is a row for each place in a cell.  Groups are
a batch of products.
"""

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import NamedTuple

from asmdnn.isa.dot import dot_level
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.concat import pad
from asmdnn.primitives.concat.pad import Pad
from asmdnn.primitives.convolution.description import ConvolutionDesc
from asmdnn.primitives.convolution_backward import grouped_weights, weights
from asmdnn.primitives.convolution_backward.description import BackwardWeights
from asmdnn.primitives.convolution_backward.weights import check, convolution_of, renamed
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import plan_of, try_all
from asmdnn.primitives.core.widening import cycles_of_fma, fast_pairs
from asmdnn.primitives.products import matmul_tiles
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.reduction.bias import with_bias
from asmdnn.primitives.reorder.as_f32 import as_f32
from asmdnn.primitives.reorder.copies import Reordering, add_reorder, between_reorders
from asmdnn.records import dataclass
from asmdnn.types import HALF_FLOATS

NAME = "products"
ROWS, PIXELS, PAIRS = "rows of channels", "rows of pixels", "pairs of pixels"  # scratch
IN_F32 = as_f32(grouped_weights.plans, weights.plans)


class Shift(NamedTuple):
    """Of a position of the kernel along an axis: its place in a cell of strides, and how many cells it is away."""

    place: int
    cells: int


@dataclass(frozen=True, slots=True)
class RasterAxis:
    """size: of a line, with zeros after it.  inside: elements of src at each place in a cell."""

    size: int
    inside: tuple[int, ...]
    shifts: tuple[Shift, ...]


def plans(desc: BackwardWeights, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plan of products for bf16, where that is expected to take less than one of f32; nothing for other types."""
    p, names = convolution_of(desc)
    if p.src.dtype != p.dst.dtype or p.src.dtype not in HALF_FLOATS:
        return
    name = f"{NAME}:{f32_level(engine.isa)}"
    try:
        check(desc, attr, halves=True)
        pairs = fast_pairs((p.src.dtype,), engine)
        if pairs is None:
            raise Refused(f"the level does not multiply pairs of {p.src.dtype}, or slowly")
        made = planned(p, f"{NAME}:{dot_level(pairs, engine.isa)}", engine)
        plan = with_bias(renamed(made, names), desc.diff_bias, engine)
    except Refused as reason:
        yield Refusal(name, str(reason))
        return
    other = next((x for x in try_all(IN_F32, desc, attr, engine) if isinstance(x, Plan)), None)
    cycles = cycles_of_fma(plan, engine)
    if other and cycles >= other.cycles:
        yield Refusal(name, f"{cycles} cycles are expected, {other.cycles} of f32")
    else:
        yield plan


def planned(p: ConvolutionDesc, name: str, engine: Engine) -> Plan:
    """The products, between reorders of what is not plain.  Raises Refused."""
    out, lanes = p.dst.dims[1] // p.groups, lanes_of(engine.isa)
    if p.groups > 1 and 2 * out < lanes:
        raise Refused(f"groups of {out} output channels leave more than half of {lanes} lanes empty")
    if not p.src.nelems() or not p.dst.nelems() or not p.weights.nelems():
        raise Refused("there are no elements")
    axes = tuple(axis_of(p, axis) for axis in range(len(p.kernel)))
    src, dst = (plain(tensor) for tensor in (p.src, p.dst))
    letters = LETTERS[: p.weights.ndims]
    first = len(letters) - len(p.kernel)
    order = letters[first:] + letters[: first - 2] + letters[first - 2 : first][::-1]
    weights = MemoryDesc(p.weights.dims, p.weights.dtype, order)
    assembly = Assembly(engine.tuning, engine.isa)
    add_products(assembly, axes, {"src": src, "weights": weights, "dst": dst}, engine)
    plan = assembly.plan(name, {"src": src, "weights": weights, "dst": dst}, ("weights",))
    given = {name: tensor for name, tensor in p.tensors().items() if not tensor.is_any}
    return between_reorders(plan, given, engine.tuning, isa=engine.isa)


def plain(tensor: MemoryDesc) -> MemoryDesc:
    """As it is, if it is not blocked; else with channels last."""
    return MemoryDesc(tensor.dims, tensor.dtype, "axb") if tensor.is_any or tensor.inner_blocks else tensor


def axis_of(p: ConvolutionDesc, axis: int) -> RasterAxis:
    """Raises Refused."""
    size, made, stride = p.src.dims[2 + axis], p.dst.dims[2 + axis], p.strides[axis]
    away = [r * (p.dilations[axis] + 1) - p.padding_l[axis] for r in range(p.kernel[axis])]
    shifts = tuple(Shift(n % stride, n // stride) for n in away)
    inside = tuple(len(range(place, size, stride)) for place in range(stride))
    if any(not inside[shift.place] for shift in shifts):
        raise Refused("a position of the kernel has no element of src at its place in a cell")
    before, after = max(0, -min(s.cells for s in shifts)), max(0, max(s.cells for s in shifts))
    return RasterAxis(max(max(inside) + before, made + after), inside, shifts)


def add_products(
    assembly: Assembly, axes: tuple[RasterAxis, ...], tensors: dict[str, MemoryDesc], engine: Engine
) -> None:
    """All phases.  Raises Refused."""
    src, weights, dst = tensors["src"], tensors["weights"], tensors["dst"]
    images, channels = src.dims[:2]
    out, into = weights.dims[-2 - len(axes) : -len(axes)]
    groups = channels // into
    lines = tuple(axis.size for axis in axes)
    image = prod(lines)
    pixels = images * image
    steps = [prod(lines[axis + 1 :]) for axis in range(len(lines))]
    positions = list(product(*(axis.shifts for axis in axes)))
    places = list(dict.fromkeys(tuple(shift.place for shift in position) for position in positions))
    around = int(any(shift.cells for position in positions for shift in position))  # images of zeros, on both sides
    row = (images + 2 * around) * image
    rows = MemoryDesc((images + 2 * around, channels, *lines), src.dtype, strides=(image, row, *steps))
    for number, place in enumerate(places):
        part = cell_of(src, place, axes)
        copy = Pad(part, rows, (around, *[0] * (len(lines) + 1)))
        buffer = assembly.room(f"{ROWS} {number}", channels * row * src.dtype.size_bytes)
        assembly.add_plan(plan_of((pad.plans,), copy, engine), {"src": View("src"), "dst": View(buffer)})
    product_plan = plan_of(
        (matmul_tiles.plan,),
        MatMul(
            MemoryDesc((groups, into, pixels), src.dtype, strides=(into * row, row, 1)),
            MemoryDesc((groups, pixels, out), dst.dtype, "any"),
            MemoryDesc((groups, into, out), weights.dtype, "abc"),
        ),
        engine,
    )
    add_pairs(assembly, dst, lines, product_plan.tensors["weights"], engine)
    size = channels * out * weights.dtype.size_bytes
    for number, position in enumerate(positions):
        buffer = f"{ROWS} {places.index(tuple(shift.place for shift in position))}"
        away = sum(shift.cells * step for shift, step in zip(position, steps, strict=True))
        start = src.dtype.size_bytes * (around * image + away)
        views = {"src": View(buffer, start), "weights": View(PAIRS), "dst": View("weights", number * size, size)}
        assembly.add_plan(product_plan, views)


def cell_of(src: MemoryDesc, place: tuple[int, ...], axes: tuple[RasterAxis, ...]) -> MemoryDesc:
    """The elements at a place in the cells."""
    inside = tuple(axis.inside[at] for axis, at in zip(axes, place, strict=True))
    strides = [step * len(axis.inside) for step, axis in zip(src.strides[2:], axes, strict=True)]
    offset = src.offset0 + sum(at * step for at, step in zip(place, src.strides[2:], strict=True))
    return MemoryDesc((*src.dims[:2], *inside), src.dtype, strides=(*src.strides[:2], *strides), offset0=offset)


def add_pairs(assembly: Assembly, dst: MemoryDesc, lines: tuple[int, ...], packed: MemoryDesc, engine: Engine) -> None:
    """diff_dst with zeros after lines, as the product reads it."""
    whole = MemoryDesc((*dst.dims[:2], *lines), dst.dtype, "axb")
    (groups, _, out), source = packed.dims, "dst"
    rows = MemoryDesc(packed.dims, packed.dtype, strides=(out, groups * out, 1))
    if whole.dims != dst.dims or dst != whole:
        source = assembly.room(PIXELS, whole.size_bytes)
        copy = Pad(dst, whole, (0,) * dst.ndims)
        assembly.add_plan(plan_of((pad.plans,), copy, engine), {"src": View("dst"), "dst": View(source)})
    assembly.scratch[PAIRS] = packed.size_bytes
    add_reorder(assembly, Reordering(source, rows, PAIRS, packed))
