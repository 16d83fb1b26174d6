"""Gradients of weights of bf16 with few input channels: direct tiles whose steps are pairs of pixels,

    diff_weights[o, i, r, s] = sum over n, v, w, of both u in (2w, 2w+1), of diff_dst[n, o, v, u] * src[n, i, y, x]

diff_dst has the two pixels of a pair beside each other, for a block of channels at a time, such as acBD64b2d.  Of
src a position of the kernel reads elements that lie apart by the stride.  So rows of src are copied, one place in the
cell of strides after the other, with zeros for the padding: there a pair are neighbours, wherever it begins.  A row's
last pair may be half of one, of which no more is read.  Padding of the other axes is in no list of taps.
"""

from collections.abc import Iterator
from math import prod

from asmdnn.generators.dot.conv_shape import blocks_of
from asmdnn.isa.dot import GROUP_BYTES, Types, dot_level
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
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.description import ConvolutionDesc
from asmdnn.primitives.convolution.direct import axes_of, panels_desc
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout
from asmdnn.primitives.convolution.taps import weights_rows
from asmdnn.primitives.convolution_backward.description import BackwardWeights
from asmdnn.primitives.convolution_backward.weights import (
    add_tiles,
    check,
    convolution_of,
    is_near,
    renamed,
    vectors_of,
)
from asmdnn.primitives.convolution_backward.weights_products import RasterAxis, axis_of, cell_of
from asmdnn.primitives.convolution_backward.weights_tiles import job_of
from asmdnn.primitives.convolution_backward.weights_units import FEW_CHANNELS, GradientPanels, PixelPairs
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import plan_of
from asmdnn.primitives.core.widening import fast_pairs
from asmdnn.primitives.reduction.bias import with_bias
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.records import dataclass, replace
from asmdnn.types import HALF_FLOATS, f32

NAME = "pixel_pairs"
ROWS = "rows of places"  # scratch
BLOCK_CHANNELS = 64  # of diff_dst beside each other, at most, if a panel has fewer
BLOCK_BYTES = 8 << 20  # of an image's diff_dst: larger ones come from memory for each panel, which reads whole lines


def plans(desc: BackwardWeights, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plan for bf16 and few input channels; nothing for other types."""
    p, names = convolution_of(desc)
    if p.src.dtype != p.dst.dtype or p.src.dtype not in HALF_FLOATS:
        return
    try:
        check(desc, attr, halves=True)
        types = fast_pairs((p.src.dtype,), engine)
        if types is None:
            raise Refused(f"the level does not multiply pairs of {p.src.dtype}, or slowly")
        if desc.diff_bias and names["dst"] == "diff_dst" and p.dst.is_any:  # whose sums take long over pairs
            p = p.with_formats({"dst": MemoryDesc(p.dst.dims, p.dst.dtype, f"aBx{lanes_of(engine.isa)}b")})
        yield with_bias(renamed(planned(p, types, engine), names), desc.diff_bias, engine)
    except Refused as reason:
        yield Refusal(f"{NAME}:{f32_level(engine.isa)}", str(reason))


def planned(p: ConvolutionDesc, types: Types, engine: Engine) -> Plan:
    """Tiles after the copy of src, between reorders of what they do not read or write.  Raises Refused."""
    if p.groups > 1 or p.src.dims[1] > FEW_CHANNELS:
        raise Refused(f"{p.src.dims[1]} input channels in {p.groups} groups, it takes up to {FEW_CHANNELS} in one")
    if not p.src.nelems() or not p.dst.nelems() or not p.weights.nelems():
        raise Refused("there are no elements")
    isa = dot_level(types, engine.isa)
    lanes, most = lanes_of(isa), blocks_of(types, isa)
    wide = p.with_formats({name: in_f32(tensor) for name, tensor in p.tensors().items()})
    panels = GradientPanels(vectors_of(wide, lanes, most), weights_rows(p.src.dims[1], 1), lanes)
    weights, dst = panels_desc(wide, panels.vectors * lanes), pairs_desc(p.dst, panels.vectors * lanes)
    src = p.src if not (p.src.is_any or p.src.inner_blocks) else MemoryDesc(p.src.dims, p.src.dtype, "abx")
    rows = rows_of(p, src)
    job = job_of(geometry(p, rows, dst, types), panels, isa, most[panels.vectors])
    if not is_near(job.g.src):
        raise Refused("rows of src are too long for displacements in code")
    assembly = Assembly(engine.tuning, engine.isa)
    rows.add_copies(assembly, engine)
    pairs = PixelPairs(rows.along(), p.dst.dims[-1] % types.group)
    add_tiles(assembly, replace(job, pairs=pairs), (ROWS, "dst"), engine)
    plan = assembly.plan(f"{NAME}:{isa}", {"src": src, "weights": weights, "dst": dst}, ("weights",))
    passed = {name: tensor for name, tensor in p.tensors().items() if not tensor.is_any}
    passed.setdefault("weights", of_type(weights, p.weights.dtype))
    return between_reorders(plan, passed, engine.tuning, isa=engine.isa)


def in_f32(tensor: MemoryDesc) -> MemoryDesc:
    return MemoryDesc(tensor.dims, f32, "any") if tensor.is_any else of_type(tensor, f32)


def pairs_desc(dst: MemoryDesc, panel: int) -> MemoryDesc:
    """diff_dst as tiles read it: of each row blocks of channels, a pair of pixels each; panel: channels of one.

    A block has several panels, if they are small, as a copy of channels that are last should read each line once:
    64 channels, 112x112, 4 images in a network took 0.75 ms in one block, 1.4 in two, and 2.1 with blocks outside of
    rows.  But 572x572 took 78 ms in one block, and 19 in two.
    """
    count = -(-dst.dims[1] // panel)
    most = BLOCK_CHANNELS if dst.dtype.size_bytes * prod(dst.dims[1:]) <= BLOCK_BYTES else 0
    together = max(n for n in range(1, count + 1) if n == 1 or (count % n == 0 and n * panel <= most))
    letters = LETTERS[: dst.ndims]
    tag = f"{letters[0]}{letters[2:-1]}B{letters[-1].upper()}{together * panel}b2{letters[-1]}"
    return MemoryDesc(dst.dims, dst.dtype, tag)


@dataclass(frozen=True, slots=True)
class PlaceRows:
    """The copy of src: row after row of an image, of each channel the elements at each of `places` of the last axis.

    before: zeros in front of them, as far as the padding reaches.  size: of all elements of a place.
    """

    src: MemoryDesc
    last: RasterAxis
    places: tuple[int, ...]
    before: int
    size: int

    @property
    def desc(self) -> MemoryDesc:
        """The elements of the first place; those of the others follow at a distance of `size`."""
        images, channels, *lines, _ = self.src.dims
        channel = len(self.places) * self.size
        steps = [channels * channel * prod(lines[axis + 1 :]) for axis in range(len(lines))]
        strides = (channels * channel * prod(lines), channel, *steps, 1)
        return MemoryDesc((images, channels, *lines, self.size), self.src.dtype, strides=strides)

    def along(self) -> tuple[int, ...]:
        """Of each position of the last axis, the bytes from where a row begins to what its first pair reads."""
        starts = {place: self.size * number + self.before for number, place in enumerate(self.places)}
        return tuple(self.src.dtype.size_bytes * (starts[at.place] + at.cells) for at in self.last.shifts)

    def add_copies(self, assembly: Assembly, engine: Engine) -> None:
        """Into scratch, a copy for each place."""
        src, desc, element = self.src, self.desc, self.src.dtype.size_bytes
        others = tuple(RasterAxis(size, (size,), ()) for size in src.dims[2:-1])
        assembly.room(ROWS, src.dims[0] * desc.strides[0] * element)
        for number, place in enumerate(self.places):
            part = cell_of(src, (*[0] * len(others), place), (*others, self.last))
            copy = Pad(part, desc, (*[0] * (src.ndims - 1), self.before))
            views = {"src": View("src"), "dst": View(ROWS, number * self.size * element)}
            assembly.add_plan(plan_of((pad.plans,), copy, engine), views)


def rows_of(p: ConvolutionDesc, src: MemoryDesc) -> PlaceRows:
    """Raises Refused."""
    last = axis_of(p, len(p.kernel) - 1)
    places = tuple(dict.fromkeys(shift.place for shift in last.shifts))
    before = max(0, -min(shift.cells for shift in last.shifts))
    after = max(0, max(shift.cells for shift in last.shifts))
    size = before + max(max(last.inside), after + p.dst.dims[-1])
    return PlaceRows(src, last, places, before, size)


def geometry(p: ConvolutionDesc, rows: PlaceRows, dst: MemoryDesc, types: Types) -> ConvGeometry:
    """That of a last axis whose outputs are pairs, and whose positions are all inside."""
    *outer, last = axes_of(p)
    pairs = -(-last.o // types.group)
    return ConvGeometry(
        mb=p.src.dims[0],
        ic=p.src.dims[1],
        oc=p.dst.dims[1],
        oc_stored=dst.padded_dims[1],
        axes=(*outer, Axis(pairs + last.k - 1, pairs, last.k, 1, 1, 0)),
        src=layout_of(rows.desc, p.src.dims[1]),
        dst=layout_of(dst, dst.blocks[1]),
        types=types,
    )


def layout_of(desc: MemoryDesc, block: int) -> ImageLayout:
    """Of pairs: in blocks of so many channels, or of all these as rows."""
    image, channel, *axes, pair = (stride * desc.dtype.size_bytes for stride in desc.strides)
    has_pairs = bool(desc.inner_blocks)
    return ImageLayout(
        start_bytes=0,
        image_bytes=image,
        block=block,
        block_bytes=channel,
        channel_bytes=GROUP_BYTES if has_pairs else channel,
        axis_bytes=(*axes, pair if has_pairs else GROUP_BYTES),
        element_bytes=GROUP_BYTES,
    )
