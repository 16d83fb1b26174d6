"""Matrix products by tiles, f32: formats that are `any` resolved, descriptors turned into strides."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace

from asmdnn.isa.dot import F32, dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.formats import row_major
from asmdnn.primitives.products.blocks import panel_columns
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.products.plan import Job, answers
from asmdnn.primitives.products.prepare import MAX_OFFSET, TILE_ROWS
from asmdnn.primitives.products.product import Matrix, Panels, Product, matrix_of, panels_of, panels_tag
from asmdnn.primitives.products.target import Ending, target_of
from asmdnn.types import f32


def plan(desc: MatMul, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """What every strategy says to a product."""
    return answers(lambda: job_of(desc, attr, engine), dot_level(F32, engine.isa))


def job_of(desc: MatMul, attr: Attr, engine: Engine) -> Job:
    """The product of strides.  Raises Refused."""
    lanes = lanes_of(dot_level(F32, engine.isa))
    passed = resolve(desc, lanes)
    check_tensors(passed.tensors(), ("dst",))
    desc = resolve(passed.with_formats(unreadable(passed, lanes)), lanes)
    chain = chain_of(attr, desc.tensors(), scaled_dims(desc.dst.ndims), desc.bias)
    others = chain.operands(passed.dst)
    check_tensors(others)
    read = {operand: plain(tensor) for operand, tensor in others.items()}
    p = product_of(replace(desc, bias=None) if chain.adds_bias else desc)
    p = replace(p, others=tuple(matrix_of(*other) for other in read.items()))
    tensors, as_passed = desc.tensors() | chain.arguments(read), passed.tensors() | chain.arguments(others)
    target = target_of(engine, Ending(chain))
    return Job(Assembly(engine.tuning, engine.isa), p, target, tensors, as_passed, reads=("dst",) * chain.reads_dst)


def scaled_dims(ndims: int) -> dict[str, dict[int, int]]:
    """The dims of src and weights that dst has too: of the batch, and rows or columns."""
    batch = {dim: dim for dim in range(ndims - 2)}
    return {"src": batch | {ndims - 2: ndims - 2}, "weights": batch | {ndims - 1: ndims - 1}}


def resolve(desc: MatMul, lanes: int) -> MatMul:
    """`any` becomes row-major, and for weights of several columns panels."""
    formats = {}
    for name, d in desc.tensors().items():
        if d.is_any:
            panels = name == "weights" and min(d.dims) > 0 and d.dims[-1] > 1
            tag = panels_tag(d.ndims, panel_columns(d.dims[-1], lanes)) if panels else LETTERS[: d.ndims]
            formats[name] = MemoryDesc(d.dims, d.dtype, tag)
    return desc.with_formats(formats)


def check_tensors(tensors: Mapping[str, MemoryDesc], outputs: Container[str] = ()) -> None:
    """Raise Refused unless these are tensors of a product."""
    for name, tensor in tensors.items():
        if tensor.dtype != f32:
            raise Refused(f"{name} is {tensor.dtype}, only f32 is implemented")
        if name in outputs and tensor.may_overlap:
            raise Refused(f"elements of {name} overlap")


def unreadable(desc: MatMul, lanes: int) -> dict[str, MemoryDesc]:
    """The tensors that tiles do not address, for which they get copies: in any format."""
    apart = {
        name: tensor
        for name, tensor in desc.tensors().items()
        if plain(tensor) != tensor and not (name == "weights" and is_panels(tensor, lanes))
    }
    return {name: MemoryDesc(tensor.dims, tensor.dtype, "any") for name, tensor in apart.items()}


def plain(desc: MemoryDesc) -> MemoryDesc:
    """`desc` if it has no blocks, and the rows of a tile are in reach of each other; else a dense tensor."""
    far = max(desc.strides[-2:], default=0) * desc.dtype.size_bytes * TILE_ROWS > MAX_OFFSET
    return row_major(desc.dims, desc) if desc.inner_blocks or far else desc


def is_panels(weights: MemoryDesc, lanes: int) -> bool:
    """Whether the format is one of panels that blocks of registers can be made of."""
    panels = panels_of("weights", weights)
    return panels is not None and panels.columns in (lanes, 2 * lanes) and panels.is_dense


def product_of(desc: MatMul) -> Product:
    *batch, m, n = desc.dst.dims
    weights: Matrix | Panels = panels_of("weights", desc.weights) or matrix_of("weights", desc.weights)
    bias = None if desc.bias is None else matrix_of("bias", desc.bias)
    src, dst = matrix_of("src", desc.src), matrix_of("dst", desc.dst)
    return Product(tuple(batch), m, n, desc.src.dims[-1], src, weights, dst, bias)
