"""Gradients of weights of 1x1 convolutions in groups whose pixels are contiguous: a product for each group,

    diff_weights[o, c] = sum over images and pixels of diff_dst[n, o, pixel] * src[n, c, pixel]

whose sums run along the rows of both.  No channel is copied, as vectors are of pixels.  Images have sums of their own,
which are added up.
"""

from collections.abc import Iterator
from math import prod

from asmdnn.isa.dot import f32_dot_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.description import ConvolutionForward, channels_of_group
from asmdnn.primitives.convolution.pointwise import PLANAR, check_pixels, check_planar, matrix_of_pixels
from asmdnn.primitives.convolution_backward.description import BackwardWeights
from asmdnn.primitives.convolution_backward.weights import check, convolution_of, renamed
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.products.matrices import dense_matrix
from asmdnn.primitives.products.partial import PARTIAL, sum_of_rows
from asmdnn.primitives.products.plan import multiply
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import target_of
from asmdnn.primitives.reduction.bias import with_bias
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.types import f32

NAME = "groups"


def plans(desc: BackwardWeights, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plan, or why there is none; nothing for others than 1x1 ones in groups."""
    p, names = convolution_of(desc)
    if p.groups == 1 or {*p.kernel} != {1}:
        return
    engine = at_level(engine, f32_dot_level(engine.isa))
    try:
        check(desc, attr)
        check_planar(p)
        yield with_bias(renamed(planned(p, engine), names), desc.diff_bias, engine)
    except Refused as reason:
        yield Refusal(f"{NAME}:{engine.isa}", str(reason))


def planned(p: ConvolutionForward, engine: Engine) -> Plan:
    """The products and what adds them up.  Raises Refused."""
    p = p.with_formats({n: MemoryDesc(d.dims, d.dtype, PLANAR[n]) for n, d in p.tensors().items() if d.is_any})
    check_pixels(p)
    if not p.src.nelems() or not p.dst.nelems():
        raise Refused("there are no elements")
    assembly, target, images = Assembly(engine.tuning, engine.isa), target_of(engine), p.src.dims[0]
    weights = MemoryDesc(p.weights.dims, f32, LETTERS[: p.weights.ndims])
    size = prod(weights.dims)
    sums = assembly.room(PARTIAL, images * weights.size_bytes) if images > 1 else "weights"
    multiply(assembly, product_of(p, sums), target)
    if images > 1:
        total = sum_of_rows(assembly, dense_matrix(sums, size), images, size, dense_matrix("weights", size))
        multiply(assembly, total, target)
    tensors = {"src": p.src, "weights": weights, "dst": p.dst}
    plan = assembly.plan(f"{NAME}+{assembly.name}:{target.isa}", tensors, ("weights",))
    return between_reorders(plan, p.tensors(), engine.tuning, isa=engine.isa)


def product_of(p: ConvolutionForward, sums: str) -> Product:
    """Of every image and group.  Raises Refused where pixels do not lie at one distance."""
    pixels, into, out = p.dst.dims[2:], channels_of_group(p, "src"), channels_of_group(p, "dst")
    each = f32.size_bytes * into * out
    return Product(
        batch=(p.src.dims[0], p.groups),
        m=out,
        n=into,
        k=prod(pixels),
        src=matrix_of_pixels("dst", p.dst, pixels, out).transposed,
        weights=matrix_of_pixels("src", p.src, pixels, into),
        dst=dense_matrix(sums, into, batch_bytes=(p.groups * each, each)),
    )
