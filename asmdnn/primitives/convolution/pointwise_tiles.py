"""A 1x1 convolution of bf16 or bytes by tiles of AMX: the matmul that it is, of the same memory as two dims.

    dst[pixel, o] = bias[o] + sum over c of src[pixel, c] * weights[c, o]

Channels come last, so that pixels of all images are rows.  Weights (o, c, 1, 1) are the matmul's (c, o): in panels if
they are `any`.  What is no such view, or is expected to be faster by vectors, is left to other implementations.
"""

from collections.abc import Iterator
from math import prod

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan, with_tensors
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.post_ops import Binary, PReLU
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.convolution.multiplied import types_of
from asmdnn.primitives.convolution.pointwise import PLAIN, check_pointwise
from asmdnn.primitives.convolution.winograd.checks import is_demanded
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import level_of_tiles
from asmdnn.primitives.inner_product.typed import as_matrix, of_matrices, of_matrix
from asmdnn.primitives.products import matmul_tiles
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.records import replace

OF_CHANNELS = 2  # the mask of dst's channels, which are columns of the matrix


def plans(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """Says nothing where no tiles multiply these types, or Winograd's algorithm is demanded."""
    level = level_of_tiles(types_of(desc), engine)
    if level is None or is_demanded(desc):
        return
    try:
        yield from answers(desc, attr, engine)
    except (Refused, InvalidArguments) as reason:
        yield Refusal(f"product+amx:{level}", str(reason))


def answers(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """Raises Refused, and InvalidArguments for tensors that are no matrices."""
    free = {n for n, d in desc.tensors().items() if d.is_any and n != "weights"}
    desc = desc.with_formats({n: MemoryDesc(d.dims, d.dtype, PLAIN[n]) for n, d in desc.tensors().items() if n in free})
    check_pointwise(desc)
    matmul_tiles.check_elements(desc.weights)
    order = (0, *range(2, desc.src.ndims), 1)
    tensors = desc.tensors()
    matrices = {name: pixels(tensors[name], order) for name in ("src", "dst")}
    if desc.bias is not None:
        matrices["bias"] = as_matrix("bias", desc.bias, order)
    if desc.weights.is_any:
        dims = desc.weights.dims[1], desc.weights.dims[0]
        matrices["weights"] = MemoryDesc(dims, desc.weights.dtype, "any")
    else:
        matrices["weights"] = as_matrix("weights", desc.weights, order)
    for answer in matmul_tiles.plan(MatMul(**matrices), matrix_attr(attr, desc, order), engine, only_amx=True):
        name = f"product+{answer.implementation}"
        if isinstance(answer, Refusal):
            yield Refusal(name, answer.reason)
            continue
        own = {**answer.tensors} | {name: tensor for name, tensor in tensors.items() if not tensor.is_any}
        if desc.weights.is_any:
            own["weights"] = of_matrix(answer.tensors["weights"], desc.weights.dims, order)
        yield replace(with_tensors(answer, {**own, **attr.tensors()}), implementation=name)


def pixels(tensor: MemoryDesc, order: tuple[int, ...]) -> MemoryDesc:
    """A row for each pixel of each image.  Raises Refused, InvalidArguments where these do not lie at one distance."""
    if tensor.inner_blocks:
        raise Refused(f"{tensor} is blocked, it must be plain")
    last = tensor.permute_axes([order.index(dim) for dim in range(tensor.ndims)])
    return last.reshape((prod(last.dims[:-1]), last.dims[-1]))


def matrix_attr(attr: Attr, desc: ConvolutionForward, order: tuple[int, ...]) -> Attr:
    """The attributes in the matmul's dims.  Raises Refused for what has none."""
    masks, points = dict(attr.scales), dict(attr.zero_points)
    if masks.get("src") or masks.get("dst", 0) & ~OF_CHANNELS or any(points.values()):
        raise Refused("images, or channels of src, have scales or zero points of their own")
    chain = tuple(post_op_of(op, desc.dst, order) for op in attr.post_ops)
    scales, zero_points, groups = (dict(getattr(attr, name)) for name in ("scales", "zero_points", "groups"))
    moved = replace(attr, post_ops=chain, scales=scales, zero_points=zero_points, groups=groups)  # type: ignore[arg-type]
    return of_matrices(moved)


def post_op_of(op: object, dst: MemoryDesc, order: tuple[int, ...]) -> object:
    """Raises Refused for tensors that are neither of dst's dims nor the same for all pixels."""
    tensors = getattr(op, "tensors", None)
    if tensors is None or (tensors and not isinstance(op, Binary | PReLU)):
        raise Refused(f"a post-op {type(op).__name__} is left to other implementations")
    if isinstance(op, Binary):
        return replace(op, src1=operand(op.src1, dst, order))
    return replace(op, weights=operand(op.weights, dst, order)) if isinstance(op, PReLU) else op


def operand(tensor: MemoryDesc, dst: MemoryDesc, order: tuple[int, ...]) -> MemoryDesc:
    """What a post-op reads, as a matrix."""
    others = {size for dim, size in enumerate(tensor.dims) if dim != 1}
    if others != {1} and tensor.dims[:1] + tensor.dims[2:] != dst.dims[:1] + dst.dims[2:]:
        raise Refused(f"a post-op's tensor of {tensor.dims} has values for some dims of pixels")
    return pixels(tensor, order)
