"""A 1x1 convolution as a matrix product, where tensors are plain: pixels are rows, channels are columns.

    dst[n, pixel, o] = bias[o] + sum over c of src[n, pixel, c] * weights[c, o]

Weights are read as they lie, or packed if that pays; channels that lie apart are a transpose, which products know.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from asmdnn.isa.dot import F32, dot_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.convolution.direct import channels_of_dst, scaled_dims
from asmdnn.primitives.convolution.operands import broadcast_layout
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.implementation import Refusal
from asmdnn.primitives.products.plan import plan_product
from asmdnn.primitives.products.product import Matrix, Product
from asmdnn.primitives.products.schedule import Ending
from asmdnn.types import f32

PLAIN = {"src": "axb", "weights": "abx", "bias": "a", "dst": "axb"}  # what `any` becomes


class Apart(Exception):
    """Why a tensor is no matrix; caught by `plan`."""


def plan(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan | Refusal:
    """Plan `desc`, or say why it is no product of matrices."""
    name = f"product:{dot_level(F32, engine.isa)}"
    formats = {n: MemoryDesc(d.dims, d.dtype, PLAIN[n]) for n, d in desc.tensors().items() if d.is_any}
    desc = desc.with_formats(formats)
    reason = why_not(desc)
    if reason:
        return Refusal(name, reason)
    chain = chain_of(attr, desc.tensors(), scaled_dims(desc), channels_of_dst(desc))
    if isinstance(chain, str):
        return Refusal(name, chain)
    others = chain.operands(desc.dst)
    try:
        p = product_of(desc, others)
    except Apart as reason:
        return Refusal(name, str(reason))
    if chain.adds_bias:
        p = replace(p, bias=None)
    answer = plan_product(p, Ending(chain), {**desc.tensors(), **chain.arguments(others)}, engine)
    if isinstance(answer, Refusal):
        return Refusal(name, answer.reason)
    return replace(answer, implementation=f"product+{answer.implementation}")


def why_not(desc: ConvolutionForward) -> str | None:
    """The reason why a convolution is no product, whatever its formats; None if it is one."""
    if desc.groups > 1:
        return f"weights have {desc.groups} groups, only 1 is implemented"
    if any(k != 1 for k in desc.kernel):
        return f"the kernel has {'x'.join(map(str, desc.kernel))} positions, a product has one"
    if any(s != 1 for s in desc.strides) or any(desc.padding_l) or desc.src.dims[2:] != desc.dst.dims[2:]:
        return "strides or padding: pixels of dst are not those of src"
    for name, tensor in desc.tensors().items():
        if tensor.dtype != f32:
            return f"{name} is {tensor.dtype}, only f32 is implemented"
    if desc.dst.may_overlap:
        return "elements of dst overlap"
    return None


def product_of(desc: ConvolutionForward, others: Mapping[str, MemoryDesc]) -> Product:
    """Raises Apart where pixels, or channels, do not lie at one distance."""
    sizes = desc.dst.dims[2:]
    src, dst, *operands = (
        matrix_of_pixels(n, d, sizes) for n, d in {"src": desc.src, "dst": desc.dst, **others}.items()
    )
    weights, bias = desc.weights, desc.bias
    if weights.inner_blocks:
        raise Apart(f"weights {weights.tag} is blocked, it must be plain")
    sides = [4 * s if n > 1 else 0 for s, n in zip(weights.strides, weights.dims, strict=True)][desc.has_groups :]
    return Product(
        batch=desc.dst.dims[:1],
        m=prod(sizes),
        n=desc.dst.dims[1],
        k=desc.src.dims[1],
        src=src,
        weights=Matrix("weights", 4 * weights.offset0, (0,), sides[1], sides[0]),
        dst=dst,
        bias=Matrix("bias", 4 * bias.offset0, (0,), 0, 4 * bias.strides[0]) if bias else None,
        others=tuple(operands),
    )


def matrix_of_pixels(name: str, desc: MemoryDesc, sizes: tuple[int, ...]) -> Matrix:
    """An activation, or what broadcasts to one, as a matrix for each image: pixels by channels."""
    layout = broadcast_layout(desc, sizes)
    if layout is None or desc.inner_blocks:
        raise Apart(f"{name} {desc.tag} is blocked, it must be plain")
    if not layout.rows_touch(sizes):
        raise Apart(f"{name} {desc} has pixels at distances that vary")
    channel = layout.channel_bytes if desc.dims[1] > 1 else 0
    return Matrix(name, layout.start_bytes, (layout.image_bytes,), layout.pixel_bytes, channel)
