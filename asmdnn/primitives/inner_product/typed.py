"""Inner products of other types than f32 alone, as matmul plans them: the same memory as two dims.

src (n, c, [[d,] h,] w) is a matrix (n, k), weights (o, c, ..) are one (k, o), k being channels and positions in src's
order: channels last, or that of the dims.  What is no such view gets a copy in that order.
Bytes become integers where zero points of weights, or of images, or u8 weights ask for it, as in matmul.
"""

from collections.abc import Iterator, Mapping
from math import prod

from asmdnn.errors import InvalidArguments
from asmdnn.forking import importing
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.summed import SummedDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.plan import Plan, with_tensors
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.inner_product.inner_product import InnerProductForward
from asmdnn.primitives.products import matmul_tiles
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.products.plan import refusals
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.records import replace
from asmdnn.types import INTEGERS8, f32

OUTPUTS = 1  # the mask of weights' output channels, which are columns of the matrix
IMAGES = 1  # the mask of src's first dim, which are rows
COLUMNS = 2


def is_typed(desc: InnerProductForward, attr: Attr) -> bool:
    """Whether something is not f32."""
    return bool(attr.zero_points) or any(tensor.dtype != f32 for tensor in desc.tensors().values())


def plan(desc: InnerProductForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """What every strategy of matmul says."""
    order = order_of(desc.src)
    passed = desc.with_formats(chosen(desc, order))
    described = {name: tensor for name, tensor in passed.tensors().items() if not tensor.is_any}
    read = {name: tensor if is_view(tensor, order) else ordered(tensor, order) for name, tensor in described.items()}
    try:
        matrices_attr = of_matrices(attr)
    except Refused as reason:
        yield from refusals(f32_level(engine.isa), str(reason))
        return
    matrices = {name: as_matrix(name, tensor, order) for name, tensor in read.items()}
    if "weights" not in matrices:
        matrices["weights"] = free_weights(desc, order, engine, matrices, matrices_attr)
        read["weights"] = described["weights"] = of_matrix(matrices["weights"], desc.weights.dims, order)
    for answer in answers(MatMul(**matrices), matrices_attr, engine):
        if isinstance(answer, Refusal):
            yield answer
            continue
        inner = with_tensors(answer, {name: read.get(name, tensor) for name, tensor in answer.tensors.items()})
        as_passed = {**inner.tensors, **described}
        reads = ("dst",) * attr.reads_dst()
        yield between_reorders(inner, as_passed, engine.tuning, reads, isa=f32_level(engine.isa))


def answers(desc: MatMul, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """What strategies say that read bytes as they lie, and then those that make numbers of them."""
    yield from matmul_tiles.plan(desc, attr, engine)
    if desc.weights.dtype in INTEGERS8:
        with importing():
            from asmdnn.primitives.products.dequantized import plans

        yield from plans(desc, attr, engine)


def order_of(src: MemoryDesc) -> tuple[int, ...]:
    """Src's dims as k counts them: channels last, if they lie so or may, else in turn."""
    last = (0, *range(2, src.ndims), 1)
    if src.ndims == 2:
        return (0, 1)
    return last if src.is_any or is_view(src, last) else tuple(range(src.ndims))


def chosen(desc: InnerProductForward, order: tuple[int, ...]) -> dict[str, MemoryDesc]:
    """Formats of what is `any`, but for weights."""
    tensors = desc.tensors()
    free = {name for name, tensor in tensors.items() if tensor.is_any} - {"weights"}
    return {name: ordered(tensors[name], order) for name in free}


def ordered(tensor: MemoryDesc, order: tuple[int, ...]) -> MemoryDesc:
    """Dense in this order; of fewer dims row-major."""
    if tensor.ndims < len(order):
        return row_major(tensor.dims, tensor)
    return MemoryDesc(tensor.dims, tensor.dtype, "".join(LETTERS[dim] for dim in order))


def is_view(tensor: MemoryDesc, order: tuple[int, ...]) -> bool:
    """Whether all dims but the first are one dim in this order."""
    try:
        flat(tensor, order)
    except InvalidArguments:
        return False
    return True


def flat(tensor: MemoryDesc, order: tuple[int, ...]) -> MemoryDesc:
    """As a matrix; a vector as it is.  Raises InvalidArguments."""
    tensor = tensor.storage
    if tensor.ndims < len(order) or tensor.ndims == 2:
        return tensor
    return permuted(tensor, order).reshape((tensor.dims[0], prod(tensor.dims[1:])))


def permuted(tensor: MemoryDesc, order: tuple[int, ...]) -> MemoryDesc:
    """With dim order[i] as dim i."""
    return tensor.permute_axes([order.index(dim) for dim in range(tensor.ndims)])


def as_matrix(name: str, tensor: MemoryDesc, order: tuple[int, ...]) -> MemoryDesc:
    """A tensor of matmul: weights (k, o), a bias (1, o)."""
    matrix = flat(tensor, order)
    if name == "bias":
        return MemoryDesc((1, *tensor.dims), tensor.dtype, strides=(0, *tensor.strides), offset0=tensor.offset0)
    if name != "weights":
        return matrix
    matrix = matrix.permute_axes((1, 0))
    return SummedDesc(matrix) if isinstance(tensor, SummedDesc) else matrix


def of_matrix(weights: MemoryDesc, dims: tuple[int, ...], order: tuple[int, ...]) -> MemoryDesc:
    """Weights (k, o) as a tensor of these dims.  Raises InvalidArguments where blocks of k do not divide a dim."""
    plain = weights.storage.permute_axes((1, 0)).reshape(tuple(dims[dim] for dim in order))
    plain = plain.permute_axes(order)
    return SummedDesc(plain, OUTPUTS) if isinstance(weights, SummedDesc) else plain


def free_weights(
    desc: InnerProductForward,
    order: tuple[int, ...],
    engine: Engine,
    matrices: Mapping[str, MemoryDesc],
    attr: Attr,
) -> MemoryDesc:
    """The matrix that weights of format `any` are: in panels, where a tensor of their dims can lie so."""
    dims = prod(desc.weights.dims[1:]), desc.weights.dims[0]
    free = MatMul(**matrices, weights=MemoryDesc(dims, desc.weights.dtype, "any"))
    found = next((x for x in matmul_tiles.plan(free, attr, engine) if isinstance(x, Plan)), None)
    if found:
        try:
            of_matrix(found.tensors["weights"], desc.weights.dims, order)
            return found.tensors["weights"]
        except InvalidArguments:
            pass  # of 3 channels, for example: they are packed in every call
    return MemoryDesc(dims, desc.weights.dtype, "ba")


def of_matrices(attr: Attr) -> Attr:
    """Masks of matmul's dims.  Raises Refused for what has no such dim."""
    masks = {"scales": dict(attr.scales), "zero points": dict(attr.zero_points)}
    for kind, of in masks.items():
        if of.get("weights", 0) & ~OUTPUTS:
            raise Refused(f"{kind} of weights have the mask {of['weights']}: only dim 0 of weights can have {kind}")
        if of.get("src", 0) & ~IMAGES:
            raise Refused(f"{kind} of src have the mask {of['src']}: only dim 0 of src can have {kind}")
        if of.get("weights"):
            of["weights"] = COLUMNS
    scales, points = masks.values()
    return replace(attr, scales=scales, zero_points=points)  # type: ignore[arg-type]  # as __init__
