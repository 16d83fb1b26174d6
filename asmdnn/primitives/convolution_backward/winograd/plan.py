"""Gradients of the weights of 3x3 convolutions of stride 1 by Winograd's algorithm, as implementations.

    diff_weights = G^T [ sum over tiles of (B^T x B) * (A dy A^T) ] G

with x a tile of src and dy the tile of diff_dst that it makes: the adjoint of the forward pass, with its matrices.
"""

from collections.abc import Iterator

from asmdnn.generators.dot.conv_shape import blocks_of
from asmdnn.generators.winograd.forms import FORMS
from asmdnn.isa.dot import F32, f32_dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.winograd import TAPS
from asmdnn.planning.phase import flushing
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.direct import make_geometry, panels_desc
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout, image_layout
from asmdnn.primitives.convolution.taps import NEAR_BYTES, weights_rows
from asmdnn.primitives.convolution_backward.data import AdjointConvolution
from asmdnn.primitives.convolution_backward.description import ConvolutionBackwardWeights
from asmdnn.primitives.convolution_backward.weights import check, convolution_of, renamed, vectors_of
from asmdnn.primitives.convolution_backward.weights_units import GradientPanels
from asmdnn.primitives.convolution_backward.winograd.choice import choose
from asmdnn.primitives.convolution_backward.winograd.cut import GradientCut, sizes_of
from asmdnn.primitives.convolution_backward.winograd.schedule import RESULT, SOURCE, SUMS, GradientJob, phases_of
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.reduction.bias import with_bias
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.records import replace
from asmdnn.types import Algorithm, f32

NAME = "winograd"


def plans(desc: ConvolutionBackwardWeights, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plan, unless the direct algorithm is asked for."""
    if desc.algorithm == Algorithm.convolution_direct:
        return
    engine = at_level(engine, f32_dot_level(engine.isa))
    try:
        check_window(desc)  # before all else: every other convolution of a network asks, too
        check(desc, attr)
        p, names = convolution_of(desc)
        plan = renamed(of_formats(p, Algorithm(desc.algorithm), engine), names)
        yield with_bias(plan, desc.diff_bias, engine)
    except Refused as reason:
        yield Refusal(f"{NAME}:{engine.isa}", str(reason))


def is_demanded(desc: ConvolutionBackwardWeights) -> bool:
    """Whether no other algorithm will do."""
    return desc.algorithm == Algorithm.convolution_winograd


def check_window(desc: ConvolutionBackwardWeights) -> None:
    """Raise Refused unless this is of a 3x3 convolution of images with stride 1."""
    p = desc.forward()
    if len(p.kernel) != len(("height", "width")):
        raise Refused(f"src has {len(p.kernel)} spatial axes, only 2 are implemented")
    if p.kernel != (TAPS, TAPS) or {*p.strides} != {1} or any(p.dilations):
        raise Refused(
            f"diff_weights are {p.kernel[0]}x{p.kernel[1]}, strides {p.strides}, dilations {p.dilations}: it is for "
            "dense 3x3"
        )
    if 0 in p.dst.dims or 0 in p.src.dims:
        raise Refused("src or diff_dst has no elements")


def of_formats(p: AdjointConvolution, algorithm: Algorithm, engine: Engine) -> Plan:
    """The plan between reorders of what transforms cannot read or write.  Raises Refused."""
    lanes = lanes_of(engine.isa)
    if p.groups > 1 and p.dst.dims[1] // p.groups % lanes:
        raise Refused(f"groups have {p.dst.dims[1] // p.groups} output channels, which are no whole vectors of {lanes}")
    given = {name: tensor for name, tensor in p.tensors().items() if not tensor.is_any}
    own = {name: own_format(tensor, lanes) for name, tensor in (("src", p.src), ("dst", p.dst))}
    p = p.with_formats(own)
    g, panels = geometry_of(p, engine)
    inner = with_cut(p, engine, choose(g, panels, algorithm, engine))
    return between_reorders(inner, given, engine.tuning, isa=engine.isa)


def own_format(tensor: MemoryDesc, lanes: int) -> MemoryDesc:
    """As transforms read it, vectors of dense channels at one distance: as it is, or blocked by the vector."""
    layout = None if tensor.is_any else image_layout(tensor)
    if layout is not None and is_read(tensor, layout, lanes):
        return tensor
    return MemoryDesc(tensor.dims, f32, f"aBx{lanes}b")


def is_read(tensor: MemoryDesc, layout: ImageLayout, lanes: int) -> bool:
    """Whether code reaches the pixels of a tile, and its vectors of channels."""
    near = sum(layout.axis_bytes) * (TAPS + max(FORMS)) <= NEAR_BYTES and layout.channel(lanes) <= NEAR_BYTES
    return near and layout.is_dense and (not tensor.inner_blocks or layout.block == lanes)


def geometry_of(p: AdjointConvolution, engine: Engine) -> tuple[ConvGeometry, GradientPanels]:
    """Of tensors that transforms read; panels are filled, so those of the format that is asked for may be others."""
    src, dst = image_layout(p.src), image_layout(p.dst)
    assert src is not None and dst is not None
    g = replace(make_geometry(p, src, dst), src=src)
    lanes = lanes_of(engine.isa)
    vectors = vectors_of(p, lanes, blocks_of(F32, engine.isa))
    if -(-g.oc // lanes) % vectors:
        plain = MemoryDesc(p.weights.dims, f32, "any")
        vectors = vectors_of(p.with_formats({"weights": plain}), lanes, blocks_of(F32, engine.isa))
    return g, GradientPanels(vectors, weights_rows(g.ic, 1), lanes)


def with_cut(p: AdjointConvolution, engine: Engine, cut: GradientCut) -> Plan:
    """The plan for tensors that transforms read.  Raises Refused."""
    lanes = lanes_of(engine.isa)
    g, panels = geometry_of(p, engine)
    sizes = sizes_of(g, cut, panels)
    if max(sizes.source_bytes, sizes.result_bytes) > NEAR_BYTES:
        raise Refused(f"a row of tiles of {g.groups * max(g.ic, g.oc)} channels is too long")
    readable = tuple(
        min(tensor.padded_dims[1], lanes * vectors)
        for tensor, vectors in ((p.src, sizes.source_vectors), (p.dst, sizes.result_vectors))
    )
    job = GradientJob(
        isa=engine.isa,
        tuning=engine.tuning,
        g=g,
        cut=cut,
        panels=panels,
        sizes=sizes,
        readable=(readable[0], readable[1]),
    )
    made = phases_of(job)
    kernels = tuple(job.specs)
    scratch = {
        SOURCE: sizes.source_bytes,
        RESULT: sizes.result_bytes,
        SUMS: min(cut.panels, sizes.panel_count) * sizes.sums_panel_bytes,
    }
    tensors = {"src": p.src, "weights": panels_desc(p, panels.vectors * lanes), "dst": p.dst}
    phases = flushing(replace(phase, kernels=kernels) for phase in made)
    return Plan(f"{NAME}:{engine.isa}", phases, tensors, {}, scratch, ("weights",), per_part=(SUMS,))
