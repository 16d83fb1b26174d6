"""Plans for gradients of weights: tiles in panels, what is copied around them, groups of few channels, and the bias.

A deconvolution's gradient is that of a convolution whose source is diff_dst, whose diff_dst is src, and whose output
and input channels are exchanged.
"""

from collections.abc import Callable, Iterator, Mapping
from math import gcd, prod

import numpy as np

from asmdnn.generators.dot.conv_shape import blocks_of
from asmdnn.isa.dot import F32, f32_dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.description import ConvolutionDesc
from asmdnn.primitives.convolution.direct import make_geometry, panels_desc
from asmdnn.primitives.convolution.geometry import ImageLayout, image_layout
from asmdnn.primitives.convolution.taps import TAP_CHANNELS, weights_rows
from asmdnn.primitives.convolution_backward.data import AdjointConvolution, exchanged
from asmdnn.primitives.convolution_backward.description import BackwardWeights, ConvolutionBackwardWeights
from asmdnn.primitives.convolution_backward.weights_padded import are_far, fills_vectors, padded
from asmdnn.primitives.convolution_backward.weights_sets import products_of, share_sets
from asmdnn.primitives.convolution_backward.weights_tiles import TAPS, Tables, TilesJob, job_of, phases_of
from asmdnn.primitives.convolution_backward.weights_units import GradientPanels, units_of, with_sums
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.products.matrices import dense_matrix
from asmdnn.primitives.products.partial import PARTIAL, sum_of_rows
from asmdnn.primitives.products.plan import multiply
from asmdnn.primitives.products.target import target_of
from asmdnn.primitives.reduction.bias import with_bias
from asmdnn.primitives.reorder.copies import Reordering, add_reorder, between_reorders
from asmdnn.records import replace
from asmdnn.types import FLOAT_NAMES, FLOATS, f32

NAME = "direct"
ARGUMENTS: tuple[str, ...] = ("src", "diff_weights", "diff_dst", "diff_bias")
PARTIAL_BIAS = "partial sums of the bias"  # scratch
WIDE, BLOCKS = "gradients of wide groups", "wide groups in rows"  # scratch


@implementation(NAME, f32_dot_level)
def plan(desc: BackwardWeights, attr: Attr, engine: Engine) -> Plan:
    """Plan `desc`.  Raises Refused."""
    check(desc, attr)
    engine = at_level(engine, f32_dot_level(engine.isa))
    p, names = convolution_of(desc)
    if desc.diff_bias and names["dst"] == "diff_dst" and p.dst.nelems():
        p = replace(p, bias=MemoryDesc(desc.diff_bias.dims, f32, "a"))
    return with_bias(renamed(of_formats(p, engine), names), desc.diff_bias, engine)


def check(desc: BackwardWeights, attr: Attr, halves: bool = False) -> None:
    """Raise Refused for what changes anything, and for types; halves: whether bf16 and f16 are taken."""
    refuse_attr(attr, "a gradient")
    for name, tensor in desc.tensors().items():
        if tensor.dtype not in FLOATS:
            raise Refused(f"{name} is {tensor.dtype}, only {', '.join(FLOAT_NAMES)} is implemented")
        if tensor.dtype != f32 and not halves:
            raise Refused(f"{name} is {tensor.dtype}, kernels take f32")
        if name.startswith("diff_") and name != "diff_dst" and tensor.may_overlap:
            raise Refused(f"elements of {name} overlap")


def convolution_of(desc: BackwardWeights) -> tuple[AdjointConvolution, Mapping[str, str]]:
    """The convolution whose weights' gradient it is, and what its tensors are called here."""
    window = {name: getattr(desc, name) for name in ("strides", "dilations", "padding_l", "padding_r")}
    if isinstance(desc, ConvolutionBackwardWeights):
        names = {"src": "src", "weights": "diff_weights", "dst": "diff_dst", "bias": "diff_bias"}
        return AdjointConvolution(src=desc.src, weights=desc.diff_weights, dst=desc.diff_dst, **window), names
    names = {"src": "diff_dst", "weights": "diff_weights", "dst": "src"}  # diff_bias are sums of what tiles broadcast
    weights = exchanged(desc.diff_weights, desc.src.ndims)
    return AdjointConvolution(src=desc.diff_dst, weights=weights, dst=desc.src, **window), names


def renamed(plan: Plan, names: Mapping[str, str]) -> Plan:
    """With the names of the gradient's tensors."""
    tensors = {names[name]: tensor for name, tensor in plan.tensors.items()}
    if names["src"] == "diff_dst":
        tensors["diff_weights"] = exchanged(tensors["diff_weights"], tensors["src"].ndims)
    phases = tuple(phase.on({name: View(here) for name, here in names.items()}) for phase in plan.phases)
    ordered = {name: tensors[name] for name in ARGUMENTS if name in tensors}
    outputs = tuple(name for name in ("diff_weights", "diff_bias") if name in tensors)
    return replace(plan, phases=phases, tensors=ordered, outputs=outputs, in_place=())


def of_formats(p: AdjointConvolution, engine: Engine) -> Plan:
    """The plan between reorders of what tiles cannot read or write."""
    lanes = lanes_of(engine.isa)
    if picks_pixels(p):
        own = p.with_formats({"src": own_source(p, lanes)}) if p.src.is_any else p
        return of_picked_pixels(own, of_formats, engine)
    if fills_vectors(p, lanes):
        plain = p.dst if not (p.dst.is_any or p.dst.inner_blocks) else MemoryDesc(p.dst.dims, f32, "axb")
        p = replace(p, bias=None)
        src = MemoryDesc(p.src.dims, f32, "abx") if are_far(p) else own_source(p, lanes)
        inner = padded(p.with_formats({"src": src, "dst": plain}), tiles, engine)
        given = {name: tensor for name, tensor in p.tensors().items() if not tensor.is_any}
        return between_reorders(inner, given, engine.tuning, isa=engine.isa)
    whole = p.groups - p.groups % groups_together(p, lanes)
    p = p if whole in (0, p.groups) else replace(p, bias=None)
    own = p.with_formats({"src": own_source(p, lanes), "dst": own_result(p, lanes)})
    inner = of_groups(own, engine) if whole in (0, p.groups) else of_both(own, whole, engine)
    given = {name: tensor for name, tensor in p.tensors().items() if name != "bias" and not tensor.is_any}
    return between_reorders(inner, given, engine.tuning, isa=engine.isa)


def picks_pixels(p: AdjointConvolution) -> bool:
    """Whether of src only pixels apart from one another are read, each by one position of a kernel.

    They are a view by larger strides, which pixels in blocks have not.
    """
    inside = all((o - 1) * s < i for o, s, i in zip(p.dst.dims[2:], p.strides, p.src.dims[2:], strict=True))
    by_strides = all(dim < 2 for dim, _ in p.src.inner_blocks) and p.src.nelems() > 0
    return {*p.kernel} == {1} != {*p.strides} and not any(p.padding_l) and inside and by_strides


def of_picked_pixels(p: AdjointConvolution, plan: Callable[[AdjointConvolution, Engine], Plan], engine: Engine) -> Plan:
    """The plan between copies of these pixels, which every panel reads: half of each line would be others'.
    plan: of what has no strides."""
    src, zeros = p.src, (0,) * len(p.kernel)
    steps = (1, 1, *p.strides)
    picked = MemoryDesc(
        (*src.dims[:2], *p.dst.dims[2:]),
        src.dtype,
        strides=[stride * step for stride, step in zip(src.strides, steps, strict=True)],
        inner_blocks=src.inner_blocks,
        offset0=src.offset0,
    )
    dense = MemoryDesc(picked.dims, src.dtype, "any")
    ones = tuple(1 for _ in p.kernel)
    inner = plan(replace(p, src=dense, strides=ones, dilations=zeros, padding_l=zeros, padding_r=zeros), engine)
    made = between_reorders(inner, {"src": picked}, engine.tuning, isa=engine.isa)
    return replace(made, tensors={**made.tensors, "src": src})


def own_source(p: AdjointConvolution, lanes: int) -> MemoryDesc:
    """src as tiles read it, an element at a time: as it is, if one can say where a group's channels lie."""
    channels = p.src.dims[1] // p.groups
    block = p.src.blocks[1]
    layout = None if p.src.is_any else image_layout(p.src)
    whole = p.groups - p.groups % groups_together(p, lanes)
    fits = p.groups == 1 or not ((channels % block and block % channels) or whole * channels % block)
    if layout is not None and fits and is_near(layout) and not share_sets(p.src, products_of(p, p.dst), 128):
        return p.src
    if p.src.dims[1] < TAP_CHANNELS:
        return MemoryDesc(p.src.dims, f32, "abx")
    return MemoryDesc(p.src.dims, f32, f"aBx{lanes}b" if channels % lanes == 0 or p.groups == 1 else "axb")


def is_near(layout: ImageLayout) -> bool:
    """Whether displacements in code reach all rows of a tile, and the pixels of a tap."""
    return TAP_CHANNELS * max(layout.channel_bytes, layout.pixel_bytes) < 2**26


def own_result(p: AdjointConvolution, lanes: int) -> MemoryDesc:
    """diff_dst as tiles read it, whole vectors at one distance: as it is, or blocked by the vector."""
    layout = None if p.dst.is_any else image_layout(p.dst)
    whole = p.dst.padded_dims[1] % lanes == 0 and (p.dst.dims[1] // p.groups % lanes == 0 or p.groups == 1)
    fits = layout is not None and layout.is_dense and is_near(layout) and layout.block in (lanes, p.dst.dims[1])
    if whole and fits and not share_sets(p.dst, products_of(p, p.src), 256):
        return p.dst
    if p.groups > 1 and p.dst.dims[1] // p.groups % lanes:
        return MemoryDesc(p.dst.dims, f32, "axb" if p.dst.dims[1] % lanes == 0 else f"aBx{lanes}b")
    return MemoryDesc(p.dst.dims, f32, f"aBx{lanes}b")


def groups_together(p: AdjointConvolution, lanes: int) -> int:
    """So many groups have whole vectors of output channels."""
    return lanes // gcd(p.dst.dims[1] // p.groups, lanes)


def of_both(p: AdjointConvolution, whole: int, engine: Engine) -> Plan:
    """The plans for the first groups, of which some together have whole vectors, and for the few after them."""
    groups, *dims = p.weights.dims
    assembly = Assembly(engine.tuning, engine.isa)
    for first, count in ((0, whole), (whole, groups - whole)):
        some = p.with_formats(
            {
                "src": some_channels(p.src, groups, first, count),
                "weights": MemoryDesc((count, *dims), f32, "any"),
                "dst": some_channels(p.dst, groups, first, count),
            }
        )
        assembly.add_plan(of_groups(some, engine), {"weights": View("weights", first * prod(dims) * f32.size_bytes)})
    weights = MemoryDesc(p.weights.dims, f32, LETTERS[: p.weights.ndims])
    return assembly.plan(f"wide:{engine.isa}", {"src": p.src, "weights": weights, "dst": p.dst}, ("weights",))


def some_channels(tensor: MemoryDesc, groups: int, first: int, count: int) -> MemoryDesc:
    """Those of so many groups."""
    images, channels, *pixels = tensor.dims
    each = channels // groups
    return tensor.submemory((images, count * each, *pixels), (0, first * each, *[0] * len(pixels)))


def of_groups(p: AdjointConvolution, engine: Engine) -> Plan:
    """The plan for groups of whole vectors, or for some that are computed together."""
    wide, together = widened(p, lanes_of(engine.isa))
    return tiles(wide, engine) if together == 0 else diagonals(p, tiles(wide, engine), together, engine)


def widened(p: AdjointConvolution, lanes: int) -> tuple[AdjointConvolution, int]:
    """The same with so many groups together as one that its output channels are whole vectors, or all of fewer; 0 if
    those of one are, or there is but one."""
    together = min(groups_together(p, lanes), p.groups)
    if not p.has_groups or (together == 1 and p.dst.dims[1] // p.groups % lanes == 0):
        return p, 0
    groups, out, into, *kernel = p.weights.dims
    dims = (together * out, together * into, *kernel)
    if groups > together:
        dims = (groups // together, *dims)
    return p.with_formats({"weights": MemoryDesc(dims, f32, "any")}), together


def diagonals(p: AdjointConvolution, wide: Plan, together: int, engine: Engine) -> Plan:
    """The plan for groups, from that of wide ones: of each the blocks on the diagonal, for the rest is no gradient."""
    groups, out, into, *kernel = p.weights.dims
    sets, positions = groups // together, prod(kernel)
    across = together * into * positions  # from an output channel of a wide group to the next one
    plain = MemoryDesc((sets, together * out, together * into, positions), f32, "abcd")
    places = (sets and together * out * across, out * across + into * positions, across, positions, 1)
    blocks = MemoryDesc((sets, together, out, into, positions), f32, strides=places)
    own = MemoryDesc(p.weights.dims, f32, LETTERS[: p.weights.ndims])
    target = MemoryDesc(blocks.dims, f32, "abcde")
    assembly = Assembly(engine.tuning, engine.isa)
    assembly.add_plan(wide, {"weights": View(WIDE)})
    packed = wide.tensors["weights"]
    rows = MemoryDesc(packed.dims, f32, LETTERS[: packed.ndims])
    add_reorder(assembly, Reordering(WIDE, packed, BLOCKS, rows))
    add_reorder(assembly, Reordering(BLOCKS, blocks, "weights", target))
    assembly.scratch |= {WIDE: packed.size_bytes, BLOCKS: plain.size_bytes}
    return assembly.plan(f"wide:{engine.isa}", {**wide.tensors, "weights": own}, wide.outputs)


def tiles(p: ConvolutionDesc, engine: Engine, axes: tuple[Axis, ...] = ()) -> Plan:
    """The plan for tensors that tiles read, into panels.  axes: if they are others than those of p."""
    lanes = lanes_of(engine.isa)
    src, dst = image_layout(p.src), image_layout(p.dst)
    assert src is not None and dst is not None
    g = make_geometry(p, src, dst)
    g = replace(g, axes=axes or g.axes).flattened()
    vectors = vectors_of(p, lanes, blocks_of(F32, engine.isa))
    weights = panels_desc(p, vectors * lanes)
    panels = GradientPanels(vectors, weights_rows(g.ic, 1), lanes)
    most = blocks_of(F32, engine.isa)[vectors]
    job = job_of(g, panels, engine.isa, most)
    tensors, outputs = {"src": p.src, "weights": weights, "dst": p.dst}, ["weights"]
    if p.bias and any(unit.sums for unit in with_sums(g, units_of(g, panels, job.rows), most)):
        job = replace(job, most=most)
        tensors["bias"] = p.bias
        outputs.append("bias")
    assembly = Assembly(engine.tuning, engine.isa)
    add_tiles(assembly, job, ("src", "dst"), engine)
    return assembly.plan(f"{NAME}:{engine.isa}", tensors, tuple(outputs))


def add_tiles(assembly: Assembly, job: TilesJob, buffers: tuple[str, str], engine: Engine) -> None:
    """The phases, for buffers of src and diff_dst."""
    tables, parts = Tables(job.isa), len(job.ranges)
    sizes = {"weights": job.weights_bytes // f32.size_bytes}
    if job.most:
        sizes["bias"] = job.g.groups * job.g.oc
    sums = {name: name for name in sizes}
    if parts > 1:
        rooms = {"weights": PARTIAL, "bias": PARTIAL_BIAS}
        sums = {name: assembly.room(rooms[name], parts * f32.size_bytes * size) for name, size in sizes.items()}
    phases = phases_of(job, tables, (*buffers, sums["weights"]), sums.get("bias", ""))
    assembly.constants[TAPS] = np.concatenate(tables.words)
    assembly.add(phases)
    for name, size in sizes.items() if parts > 1 else ():
        total = sum_of_rows(assembly, dense_matrix(sums[name], size), parts, size, dense_matrix(name, size))
        multiply(assembly, total, target_of(engine))


def vectors_of(p: ConvolutionDesc, lanes: int, most: Mapping[int, int]) -> int:
    """Of a panel: those of the format that is asked for, else 3 or 2, which few loads keep busy, if they divide it."""
    asked = [n for n in most if panels_desc(p, n * lanes) == p.weights]
    count = -(-p.dst.dims[1] // p.groups // lanes)
    return (asked or [n for n in (3, 2, 1) if count % n == 0])[0]


def plans(desc: BackwardWeights, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """Every way to compute `desc`, best first."""
    yield plan(desc, attr, engine)
