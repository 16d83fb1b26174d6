"""A 1x1 convolution as a matrix product, where tensors are plain: pixels are rows, channels are columns.

    dst[n, pixel, o] = bias[o] + sum over c of src[n, pixel, c] * weights[c, o]

Weights are read in place, or packed if that pays.  Strided channels are a transpose, which products support: where
channels are planes on both sides, a plane is a row of dst, and nothing is copied.  Groups are a batch of products where
pixels are contiguous: vectors are of pixels then.
"""

from collections.abc import Iterator, Mapping
from math import prod

from asmdnn.isa.dot import F32, f32_dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import format_of
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.convolution.description import ConvolutionForward, channels_of_group
from asmdnn.primitives.convolution.direct import channels_of_dst, scaled_dims
from asmdnn.primitives.convolution.geometry import image_layout
from asmdnn.primitives.convolution.multiplied import check_f32, level_of_rows, types_of
from asmdnn.primitives.convolution.operands import broadcast_layout
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.products.matrices import Matrix, has_gaps, row_of
from asmdnn.primitives.products.plan import Job, best
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import Epilogue, target_of
from asmdnn.primitives.shapes.tensors import refuse_overlap
from asmdnn.records import replace
from asmdnn.types import f32

PLAIN = {"src": "axb", "weights": "abx", "bias": "a", "dst": "axb"}  # what `any` becomes
PLANAR = {**PLAIN, "src": "abx", "dst": "abx"}  # of groups


def plan_planes(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The product where it is faster than convolutions with dense channels between copies; else nothing."""
    if saves_copies(desc, engine):
        yield plan(desc, attr, engine)


def plan_others(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The product where it comes after these."""
    if not saves_copies(desc, engine):
        yield plan(desc, attr, engine)


def saves_copies(desc: ConvolutionForward, engine: Engine) -> bool:
    """Whether src and dst are planes of channels, and copying them takes longer than what is lost in vectors of pixels
    that a plane does not fill: that is much for 7x7."""
    if desc.groups > 1 or prod(desc.kernel) != 1 or not (is_planar(desc.src) and is_planar(desc.dst)):
        return False
    tuning, lanes, pixels = engine.tuning.convolution, lanes_of(f32_dot_level(engine.isa)), prod(desc.dst.dims[2:])
    src, dst = (prod(x.dims) for x in (desc.src, desc.dst))
    copied = dst + (src if desc.src.dims[1] > tuning.planar_channels else 0)
    empty = -pixels % lanes / max(pixels, 1)
    multiplied = dst * desc.src.dims[1] / (2 * lanes)
    return tuning.plane_copy_cycles * copied > multiplied * (empty + tuning.plane_product_share)


def is_planar(desc: MemoryDesc) -> bool:
    """Whether an activation has its pixels dense, and not its channels."""
    is_plain = not (desc.is_any or desc.inner_blocks) and desc.strides[-1] == 1
    return is_plain and desc.dtype == f32 and (desc.dims[1] == 1 or desc.strides[1] > 1)


def plan(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan | Refusal:
    """Plan `desc` by the best strategy, or say why it is no product of matrices."""
    try:
        level_of_rows(types_of(desc), engine)  # what nothing multiplies is refused for that
        check_pointwise(desc)
        product = best(job_of(desc, attr, engine))
    except Refused as reason:
        return Refusal(f"product:{f32_dot_level(engine.isa)}", str(reason))
    return replace(product, implementation=f"product+{product.implementation}")


def plans_of_groups(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plan of a product for each group, or why there is none; nothing for others than 1x1 ones of f32 in groups."""
    if desc.groups == 1 or {*desc.kernel} != {1} or types_of(desc) != F32:
        return
    try:
        check_planar(desc, lanes_of(f32_dot_level(engine.isa)))
        product = best(job_of(desc, attr, engine, PLANAR))
        yield replace(product, implementation=f"groups+{product.implementation}")
    except Refused as reason:
        yield Refusal(f"groups+product:{f32_dot_level(engine.isa)}", str(reason))


def check_planar(desc: ConvolutionForward, lanes: int = 1) -> None:
    """Raise Refused unless pixels of src and dst are contiguous, or may be: those of groups with one channel in or out,
    or fewer than lanes, which do not fill the vectors of other formats.

    On Zen 5 groups of 3, 5 and 12 channels run 1.1 to 4.7 times as fast so, of 4 and 8 1.0 to 1.3 times; with ymm
    registers 2.0 to 3.5 times, but of 8 channels, which fill them, 0.8.
    """
    into, out = (channels_of_group(desc, name) for name in ("src", "dst"))
    for name, tensor in (("src", desc.src), ("dst", desc.dst)):
        layout = None if tensor.is_any else image_layout(tensor)
        if tensor.is_any and max(into, out) >= lanes and (into == out or min(into, out) > 1):
            raise Refused(f"{name} may have its channels side by side, for groups of {into} channels in and {out} out")
        if layout and layout.pixel_bytes != layout.element_bytes:
            raise Refused(f"{name} {format_of(tensor)} has its pixels apart")


def job_of(desc: ConvolutionForward, attr: Attr, engine: Engine, plain: Mapping[str, str] = PLAIN) -> Job:
    """The product of pixels and channels; plain: what `any` becomes.  Raises Refused."""
    formats = {n: MemoryDesc(d.dims, d.dtype, plain[n]) for n, d in desc.tensors().items() if d.is_any}
    desc = desc.with_formats(formats)
    check_pixels(desc)
    check_f32(desc.tensors())
    chain = chain_of(attr, desc.tensors(), scaled_dims(desc), channels_of_dst(desc))
    others = chain.operands(desc.dst)
    p = product_of(desc, others)
    if chain.adds_bias:
        p = replace(p, bias=None)
    tensors = {**desc.tensors(), **chain.arguments(others)}
    return Job(Assembly(engine.tuning, engine.isa), p, target_of(engine, Epilogue(chain)), tensors, tensors)


def check_pointwise(desc: ConvolutionForward) -> None:
    """Raise Refused where a convolution is no product, whatever its formats."""
    if desc.groups > 1:
        raise Refused(f"weights have {desc.groups} groups, only 1 is implemented")
    check_pixels(desc)


def check_pixels(desc: ConvolutionForward) -> None:
    """Raise Refused unless every pixel of dst is a product with that pixel of src."""
    if any(k != 1 for k in desc.kernel):
        raise Refused(f"the kernel has {'x'.join(map(str, desc.kernel))} positions, a product has one")
    if any(s != 1 for s in desc.strides) or any(desc.padding_l) or desc.src.dims[2:] != desc.dst.dims[2:]:
        raise Refused("strides or padding: pixels of dst are not those of src")
    refuse_overlap(dst=desc.dst)


def product_of(desc: ConvolutionForward, others: Mapping[str, MemoryDesc]) -> Product:
    """Raises Refused where pixels, or channels, do not lie at one distance."""
    sizes, into, out = desc.dst.dims[2:], channels_of_group(desc, "src"), channels_of_group(desc, "dst")
    src, dst, *operands = (
        matrix_of_pixels(n, d, sizes, into if n == "src" else out)
        for n, d in {"src": desc.src, "dst": desc.dst, **others}.items()
    )
    weights, bias = desc.weights, desc.bias
    if weights.inner_blocks:
        letters = desc.letters("weights", weights)
        raise Refused(f"weights {format_of(weights, letters)} is blocked, it must be plain")
    size = weights.dtype.size_bytes
    sides = [size * s if n > 1 else 0 for s, n in zip(weights.strides, weights.dims, strict=True)]
    group, column, row = [0] * (not desc.has_groups) + sides[: 2 + desc.has_groups]
    row_of_bias = row_of("bias", bias) if bias else None
    matrix = Matrix("weights", size * weights.offset0, (0, group), row, column, weights.dtype)
    product = Product(
        batch=(desc.dst.dims[0], desc.groups),
        m=prod(sizes),
        n=out,
        k=into,
        src=src,
        weights=matrix,
        dst=dst,
        bias=replace(row_of_bias, batch_bytes=(0, out * row_of_bias.column_bytes)) if row_of_bias else None,
        post_op_operands=tuple(operands),
    )
    return product.transposed(matrix) if desc.groups > 1 else product


def matrix_of_pixels(name: str, desc: MemoryDesc, sizes: tuple[int, ...], group: int) -> Matrix:
    """An activation, or what broadcasts to one, as a matrix for each image and group of so many channels: pixels by
    channels."""
    layout = broadcast_layout(desc, sizes)
    if layout is None or desc.inner_blocks:
        raise Refused(f"{name} {format_of(desc)} is blocked, it must be plain")
    if not layout.rows_touch(sizes):
        raise Refused(f"{name} {desc} has pixels at distances that vary")
    channel = layout.channel_bytes if desc.dims[1] > 1 else 0
    steps = (layout.image_bytes, group * channel), layout.pixel_bytes, channel
    return Matrix(name, layout.start_bytes, *steps, desc.dtype, has_gaps=has_gaps(desc))
