"""A convolution, or a part of a deconvolution, as products of rows of output pixels: its tensors as matrices.

Matrices are of a batch of groups, images and all axes but the last; rows are pixels, columns channels.
"""

from itertools import accumulate
from math import prod
from operator import mul

from asmdnn.generators.dot.matmul_shape import PieceLoop
from asmdnn.isa.dot import GROUP_BYTES
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.memory import MemoryDesc
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.description import ConvolutionDesc
from asmdnn.primitives.convolution.multiplied import types_of
from asmdnn.primitives.convolution.raster import Raster
from asmdnn.primitives.products.matrices import Matrix, Panels, has_gaps, matrix_of
from asmdnn.primitives.products.product import Product
from asmdnn.records import replace

Axes = tuple[Axis, ...]


def channels_last(tensor: MemoryDesc) -> MemoryDesc:
    """The tensor, or a copy of it where its elements are in blocks, or channels lie apart."""
    if not tensor.inner_blocks and (tensor.strides[1] == 1 or tensor.dims[1] == 1):
        return tensor
    return MemoryDesc(tensor.dims, tensor.dtype, "axb")


def pixels(name: str, tensor: MemoryDesc, desc: ConvolutionDesc, axes: Axes) -> Matrix:
    """dst, or a tensor that broadcasts to it; channels last, of the pixels of a part."""
    order = (0, *range(2, tensor.ndims), 1)
    x = matrix_of(name, tensor.permute_axes([order.index(dim) for dim in range(tensor.ndims)]))
    group = tensor.dims[1] // desc.groups * x.column_bytes
    image, *rows = x.batch_bytes
    every = list(zip([*rows, x.row_bytes], (axis.all_pixels for axis in axes), strict=True))
    *steps, row = (step * of.step for step, of in every)
    return replace(
        x,
        start_bytes=x.start_bytes + sum(step * of.first for step, of in every),
        batch_bytes=(*[group] * desc.has_groups, image, *steps),
        row_bytes=row,
    )


def product_of(desc: ConvolutionDesc, raster: Raster, axes: Axes) -> Product:
    """Without a bias.  Raises Refused for pixels that no kernel position reaches, and for rows of an image that
    displacements do not reach."""
    types, size = types_of(desc), desc.src.dtype.size_bytes
    group_channels, dst = raster.channels // desc.groups, pixels("dst", desc.dst, desc, axes)
    if not all(axis.k for axis in axes):
        raise Refused("there are pixels of dst that no position of the kernel reaches")
    if max(raster.image_bytes, *dst.batch_bytes) > MAX_OFFSET:
        raise Refused(f"images are larger than {MAX_OFFSET} bytes")
    *outer, row = (axis.s * step for axis, step in zip(axes, raster.axis_bytes, strict=True))
    src = Matrix(
        buffer=raster.buffer,
        start_bytes=raster.window(axes),
        batch_bytes=(*[group_channels * size] * desc.has_groups, raster.image_bytes, *outer),
        row_bytes=row,
        column_bytes=GROUP_BYTES,
        dtype=types.src,
        group=types.group,
        has_gaps=raster.copy is None and has_gaps(desc.src),
    )
    *rows, m = (axis.o for axis in axes)
    return Product(
        batch=(*[desc.groups] * desc.has_groups, desc.src.dims[0], *rows),
        m=m,
        n=desc.dst.dims[1] // desc.groups,
        k=prod(axis.k for axis in axes) * group_channels // types.group,
        src=src,
        weights=panels(desc, raster, axes),
        dst=dst,
        types=types,
        pieces=pieces_of(desc, raster, axes),
    )


def panels(desc: ConvolutionDesc, raster: Raster, axes: Axes) -> Panels:
    """Weights, from the first position on that a part reads."""
    types, weights = types_of(desc), desc.weights
    (_, columns), *_ = weights.inner_blocks
    firsts = zip(axes, position_bytes(desc, raster), strict=True)
    size = types.weights.size_bytes
    return Panels(
        buffer="weights",
        start_bytes=size * weights.offset0 + sum(axis.all_positions.first * step for axis, step in firsts),
        batch_bytes=(*[size * weights.strides[0]] * desc.has_groups, *[0] * len(axes)),
        row_bytes=columns * GROUP_BYTES,
        panel_bytes=size * weights.strides[desc.has_groups],
        columns=columns,
        dtype=types.weights,
        group=types.group,
    )


def position_bytes(desc: ConvolutionDesc, raster: Raster) -> list[int]:
    """From a kernel position to the next one along each axis, in a panel of weights: a row for each group of k."""
    (_, columns), *_ = desc.weights.inner_blocks
    of_one = raster.channels // desc.groups // types_of(desc).group * columns * GROUP_BYTES
    return [of_one * inner for inner in accumulate([1, *desc.kernel[:0:-1]], mul)][::-1]


def pieces_of(desc: ConvolutionDesc, raster: Raster, axes: Axes) -> tuple[PieceLoop, ...]:
    """The loops over kernel positions, but over those of a row that lie side by side."""
    every = zip(axes, raster.axis_bytes, position_bytes(desc, raster), strict=True)
    loops = [PieceLoop(axis.k, axis.d * step, axis.all_positions.step * own) for axis, step, own in every]
    pixel = raster.channels * desc.src.dtype.size_bytes
    touch = desc.groups == 1 and loops[-1].src_bytes == pixel and axes[-1].positions is None
    return tuple(loop for loop in (loops[:-1] if touch else loops) if loop.count > 1)
