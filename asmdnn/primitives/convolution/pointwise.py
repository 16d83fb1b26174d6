"""A 1x1 convolution as a matrix product, where tensors are plain: pixels are rows, channels are columns.

    dst[n, pixel, o] = bias[o] + sum over c of src[n, pixel, c] * weights[c, o]

Weights are read in place, or packed if that pays.  Strided channels are a transpose, which products support.
"""

from collections.abc import Mapping
from math import prod

from asmdnn.isa.dot import f32_dot_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import format_of
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.convolution.direct import channels_of_dst, scaled_dims
from asmdnn.primitives.convolution.multiplied import check_f32, level_of_rows, types_of
from asmdnn.primitives.convolution.operands import broadcast_layout
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.products.matrices import Matrix, has_gaps, row_of
from asmdnn.primitives.products.plan import Job, best
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import Epilogue, target_of
from asmdnn.primitives.shapes.tensors import refuse_overlap
from asmdnn.records import replace

PLAIN = {"src": "axb", "weights": "abx", "bias": "a", "dst": "axb"}  # what `any` becomes


def plan(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan | Refusal:
    """Plan `desc` by the best strategy, or say why it is no product of matrices."""
    try:
        level_of_rows(types_of(desc), engine)  # what nothing multiplies is refused for that
        product = best(job_of(desc, attr, engine))
    except Refused as reason:
        return Refusal(f"product:{f32_dot_level(engine.isa)}", str(reason))
    return replace(product, implementation=f"product+{product.implementation}")


def job_of(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Job:
    """The product of pixels and channels.  Raises Refused."""
    formats = {n: MemoryDesc(d.dims, d.dtype, PLAIN[n]) for n, d in desc.tensors().items() if d.is_any}
    desc = desc.with_formats(formats)
    check_pointwise(desc)
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
    if any(k != 1 for k in desc.kernel):
        raise Refused(f"the kernel has {'x'.join(map(str, desc.kernel))} positions, a product has one")
    if any(s != 1 for s in desc.strides) or any(desc.padding_l) or desc.src.dims[2:] != desc.dst.dims[2:]:
        raise Refused("strides or padding: pixels of dst are not those of src")
    refuse_overlap(dst=desc.dst)


def product_of(desc: ConvolutionForward, others: Mapping[str, MemoryDesc]) -> Product:
    """Raises Refused where pixels, or channels, do not lie at one distance."""
    sizes = desc.dst.dims[2:]
    src, dst, *operands = (
        matrix_of_pixels(n, d, sizes) for n, d in {"src": desc.src, "dst": desc.dst, **others}.items()
    )
    weights, bias = desc.weights, desc.bias
    if weights.inner_blocks:
        letters = desc.letters("weights", weights)
        raise Refused(f"weights {format_of(weights, letters)} is blocked, it must be plain")
    size = weights.dtype.size_bytes
    sides = [size * s if n > 1 else 0 for s, n in zip(weights.strides, weights.dims, strict=True)][desc.has_groups :]
    return Product(
        batch=desc.dst.dims[:1],
        m=prod(sizes),
        n=desc.dst.dims[1],
        k=desc.src.dims[1],
        src=src,
        weights=Matrix("weights", size * weights.offset0, (0,), sides[1], sides[0], weights.dtype),
        dst=dst,
        bias=replace(row_of("bias", bias), batch_bytes=(0,)) if bias else None,
        post_op_operands=tuple(operands),
    )


def matrix_of_pixels(name: str, desc: MemoryDesc, sizes: tuple[int, ...]) -> Matrix:
    """An activation, or what broadcasts to one, as a matrix for each image: pixels by channels."""
    layout = broadcast_layout(desc, sizes)
    if layout is None or desc.inner_blocks:
        raise Refused(f"{name} {format_of(desc)} is blocked, it must be plain")
    if not layout.rows_touch(sizes):
        raise Refused(f"{name} {desc} has pixels at distances that vary")
    channel = layout.channel_bytes if desc.dims[1] > 1 else 0
    steps = (layout.image_bytes,), layout.pixel_bytes, channel
    return Matrix(name, layout.start_bytes, *steps, desc.dtype, has_gaps=has_gaps(desc))
