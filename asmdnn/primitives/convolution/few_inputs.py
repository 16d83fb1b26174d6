"""Convolution with few input channels: the first layer of a network, whose sums are so short that calls cost much."""

from collections.abc import Iterator
from dataclasses import fields

from asmdnn.generators.dot.conv_shape import blocks_of
from asmdnn.generators.dot.few_inputs import MOST_HELD, FewInputsSpec
from asmdnn.generators.dot.grouped_shape import ARGUMENTS, GroupedRows
from asmdnn.isa.dot import Types
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import format_of
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.cuts import runs_of
from asmdnn.planning.phase import flushing
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.planning.tuning import ConvolutionTuning
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.convolution import direct
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.convolution.ends import ends_of
from asmdnn.primitives.convolution.geometry import ConvGeometry, image_layout
from asmdnn.primitives.convolution.grouped import make_geometry, reach_bytes
from asmdnn.primitives.convolution.grouped_kernels import base_spec
from asmdnn.primitives.convolution.grouped_schedule import RowKernels, schedule_rows
from asmdnn.primitives.convolution.level import of_rows
from asmdnn.primitives.convolution.multiplied import is_widened, level_of_rows, types_of
from asmdnn.primitives.convolution.refusals import check_weights
from asmdnn.primitives.convolution.reordered import plans_between_reorders
from asmdnn.primitives.convolution.row_refusals import check_types, layout_of
from asmdnn.primitives.convolution.taps import TAP_CHANNELS
from asmdnn.primitives.convolution.tiling import ImageModel, choose_tiling
from asmdnn.primitives.core.engine import Engine
from asmdnn.types import f32

NAME = "few_inputs"
AROUND = (("pack", ("weights",)),)  # the tensors that are copied into formats of the kernels


def plans(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plans of a convolution with few input channels, best first; nothing for one with more."""
    if desc.groups == 1 and desc.src.dims[1] < TAP_CHANNELS:
        yield from plans_between_reorders(NAME, desc, attr, engine, planned, AROUND)


def planned(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Plan `desc` for tensors as they are.  Raises Refused."""
    types = types_of(desc)
    engine = of_rows(desc, level_of_rows(types, engine))
    check_single(types, engine)
    lanes = lanes_of(engine.isa)
    weights = weights_desc(desc.weights, desc.has_groups, lanes)
    check_weights(desc, weights)
    desc = direct.resolve_activations(desc.with_formats({"weights": weights}), lanes)
    if 0 in desc.dst.dims:
        return direct.nothing(desc, attr, engine)
    check_types(desc)
    g = geometry_of(desc, lanes)
    rows = rows_of(g, desc, engine)
    check_worth(g, rows.spec, engine)
    chain = chain_of(attr, desc.tensors(), direct.scaled_dims(desc), direct.channels_of_dst(desc))
    ends = ends_of(chain, desc.dst, ARGUMENTS, lanes, g.oc)
    tensors = {**desc.tensors(), **ends.arguments}
    phases, constants = schedule_rows(tensors, [(g, rows)], ends, engine)
    plan = Plan(f"{NAME}:{engine.isa}", flushing(phases), tensors, constants, {}, ("dst",))
    return ends.around(plan, engine)


def check_single(types: Types, engine: Engine) -> None:
    """Raises Refused where a multiply takes several input channels at once, as tiles do."""
    if types.group > 1 and not (types.sums == f32 and is_widened(types, engine)):
        raise Refused(f"{types.group} channels of {types.src} are multiplied at once, rows take one")


def weights_desc(weights: MemoryDesc, has_groups: bool, lanes: int) -> MemoryDesc:
    """Vectors of output channels, in each the kernel positions of one input after the other: Oihw8o and the like."""
    letters = LETTERS[: weights.ndims]
    out = letters[has_groups]
    return MemoryDesc(weights.dims, weights.dtype, f"{letters.replace(out, out.upper())}{lanes}{out}")


def geometry_of(desc: ConvolutionForward, lanes: int) -> ConvGeometry:
    """Raises Refused unless kernels can address the tensors, whose formats are resolved."""
    if desc.kernel[-1] > MOST_HELD:
        raise Refused(f"the kernel is {desc.kernel[-1]} wide, weights of {MOST_HELD} positions are held in registers")
    src, dst = image_layout(desc.src), layout_of("dst", desc.dst, lanes)
    if src is None:
        raise Refused("src must be plain, or blocked once and by channels")
    if not desc.dst.inner_blocks and desc.dst.dims[1] > lanes:
        raise Refused(
            f"dst {format_of(desc.dst)} has vectors of channels side by side, whose lines would be written in turns"
        )
    g = make_geometry(desc, src, dst)
    if reach_bytes(g) + max(map(src.channel, range(g.ic))) > MAX_OFFSET:
        raise Refused("pixels or channels lie too far apart for a kernel that walks over rows")
    return g


def rows_of(g: ConvGeometry, desc: ConvolutionForward, engine: Engine) -> RowKernels:
    """The fields that all kernels share."""
    spec = base_spec(g, desc.tensors(), g.ic, engine.isa)
    common = {field.name: getattr(spec, field.name) for field in fields(GroupedRows)}
    common["weights_vector_bytes"] = desc.weights.dtype.size_bytes * desc.weights.strides[desc.has_groups]
    places = tuple(g.src.channel(i) for i in range(g.ic))
    vectors = -(-g.oc // lanes_of(engine.isa))
    return RowKernels(FewInputsSpec(**common, input_bytes=places), 1, (0,) * vectors, in_turn=True)


def check_worth(g: ConvGeometry, spec: GroupedRows, engine: Engine) -> None:
    """Raises Refused where a direct convolution is expected to be faster."""
    tuning = engine.tuning
    own = expected_cycles(g, spec, tuning.convolution)
    tiling = choose_tiling(g, engine.isa, blocks_of(g.types, engine.isa), tuning)
    other = ImageModel(g, engine.isa, tuning.convolution, tuning.phases).cycles(tiling)
    if own >= other:
        raise Refused(f"{own:.0f} cycles are expected of an image, {other:.0f} of direct convolution")


def expected_cycles(g: ConvGeometry, spec: GroupedRows, tuning: ConvolutionTuning) -> float:
    """Of an image, edges counted as if they were inside: multiplies on two ports, or what is issued with them."""
    kernel_rows = g.ic * g.positions // spec.kernel if spec.kernel else 0
    total = 0.0
    for pixels, times in runs_of(g.width, spec.most_pixels(spec.channels, g.width)):
        columns = {p * spec.stride + k * spec.dilation for p in range(pixels) for k in range(spec.kernel)}
        multiplies = pixels * spec.kernel
        issued = multiplies + len(columns) + spec.kernel
        row = max(multiplies / 2, tuning.rows_issue_cycles * issued)
        total += times * (kernel_rows * row + tuning.rows_segment_cycles)
    return total * g.rows * -(-g.oc_stored // lanes_of(spec.isa))
