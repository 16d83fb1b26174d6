"""The fields that all row kernels of a convolution share: the kind of kernel, and distances in memory."""

from collections.abc import Callable, Mapping
from functools import partial

from asmdnn.generators.dot.depthwise import LONGEST_KERNEL as LONGEST_OF_LANES
from asmdnn.generators.dot.depthwise import MOST_ROWS, DepthwiseRowsSpec
from asmdnn.generators.dot.grouped import GroupedRowsSpec
from asmdnn.generators.dot.grouped_dots import GroupedDotsSpec
from asmdnn.generators.dot.grouped_shape import AnyRows, GroupedRows
from asmdnn.isa.dot import Types, dot_class, levels_of
from asmdnn.isa.rows_in_lanes import rows_in_lanes
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.multiplied import summed
from asmdnn.primitives.convolution.starts import ZERO_POINTS
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import multiplies_pairs_slowly
from asmdnn.types import HALF_FLOATS


def base_spec(
    g: ConvGeometry, tensors: Mapping[str, MemoryDesc], group: int, isa: str, dots: bool = False
) -> GroupedRows:
    """The fields that all kernels share, without bands, segments and channels.  dots: see `takes_dots`."""
    types = summed(tensors["src"].dtype, tensors["weights"].dtype)
    if group == 1 and takes_rows(types, (g.axes[1].k, g.axes[2].k), isa):
        by_rows = partial(DepthwiseRowsSpec, has_zero_point=ZERO_POINTS in tensors)
        return spec_of(by_rows, g, tensors, group, isa)
    return spec_of(GroupedDotsSpec if dots else GroupedRowsSpec, g, tensors, group, isa)


def spec_of(
    form: Callable[..., AnyRows], g: ConvGeometry, tensors: Mapping[str, MemoryDesc], group: int, isa: str
) -> AnyRows:
    """The same of kernels of one form."""
    weights, (plane, row, position) = tensors["weights"], position_steps(tensors)
    spatial = tensors["dst"].ndims - 2
    (deep, down, across), src, dst = g.axes, g.src, g.dst
    positions = [axis.all_positions.step for axis in g.axes]
    return form(
        isa=isa,
        vectors=1,
        abreast=1,
        channels=lanes_of(isa),
        group=group,
        kernel=across.k,
        stride=across.s,
        dilation=across.d,
        padding=across.p,
        bands=(),
        segments=(),
        src_pixel_bytes=src.pixel_bytes,
        src_row_bytes=down.s * src.axis_bytes[1],
        src_tap_bytes=down.d * src.axis_bytes[1],
        dst_pixel_bytes=dst.pixel_bytes,
        dst_row_bytes=dst.axis_bytes[1],
        weights_row_bytes=row * positions[1],
        src_type=tensors["src"].dtype,
        weights_type=weights.dtype,
        weights_input_bytes=weights.dtype.size_bytes * weights.strides[-1 - spatial],
        weights_vector_bytes=weights.dtype.size_bytes * weights.strides[0],
        src_whole=tensors["src"].padded_dims[1] % lanes_of(isa) == 0,
        dst_whole=tensors["dst"].padded_dims[1] % lanes_of(isa) == 0,
        src_plane_bytes=deep.d * src.axis_bytes[0] * (deep.k > 1),
        weights_plane_bytes=plane * positions[0] * (deep.k > 1),
        weights_position_bytes=position * positions[2] if positions[2] != 1 else 0,
    )


def takes_dots(types: Types, group: int, attr: Attr, engine: Engine) -> bool:
    """Whether lanes of grouped convolutions multiply several channels of their group at once: where the engine's level
    has an instruction for these types that is quick, and nothing is added to src, whose padding would have it, too."""
    is_whole = types.group > 1 and group % types.group == 0
    if not is_whole or not levels_of(types, engine.isa) or "src" in dict(attr.zero_points):
        return False
    dot = dot_class(types, engine.isa)
    is_slow = types.src in HALF_FLOATS and multiplies_pairs_slowly(engine)
    return dot.is_native and not dot.shift and not is_slow


def takes_rows(types: Types, kernel: tuple[int, int], isa: str) -> bool:
    """Whether lanes of depthwise convolutions take several kernel rows at a time: in types that a level multiplies
    together, of kernels whose code is not too long."""
    is_short = kernel[0] <= MOST_ROWS and kernel[1] <= LONGEST_OF_LANES
    return is_short and rows_in_lanes(types, isa) is not None


def position_steps(tensors: Mapping[str, MemoryDesc]) -> list[int]:
    """Bytes from a kernel position's weights to those of the next plane, row and position."""
    spatial = tensors["dst"].ndims - 2
    weights = tensors["weights"]
    return [0] * (3 - spatial) + [weights.dtype.size_bytes * stride for stride in weights.strides[-spatial:]]
