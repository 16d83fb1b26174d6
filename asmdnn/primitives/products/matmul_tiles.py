"""Matrix products by tiles, f32: formats that are `any` resolved, descriptors turned into strides."""

from collections.abc import Mapping
from dataclasses import replace

from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.implementation import Refusal
from asmdnn.primitives.products.blocks import panel_columns
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.products.plan import plan_product
from asmdnn.primitives.products.product import Matrix, Panels, Product, matrix_of, panels_of, panels_tag
from asmdnn.primitives.products.schedule import Ending
from asmdnn.types import f32


def plan(desc: MatMul, attr: Attr, engine: Engine) -> Plan | Refusal:
    """Plan a product, or say why not."""
    name, lanes = f"tiles:{f32_level(engine.isa)}", lanes_of(f32_level(engine.isa))
    desc = resolve(desc, lanes)
    reason = why_not(desc, lanes)
    if reason:
        return Refusal(name, reason)
    chain = chain_of(attr, desc.tensors(), scaled_dims(desc.dst.ndims), desc.bias)
    if isinstance(chain, str):
        return Refusal(name, chain)
    others = chain.operands(desc.dst)
    reason = why_not_read(others)
    if reason:
        return Refusal(name, reason)
    p = product_of(replace(desc, bias=None) if chain.adds_bias else desc)
    p = replace(p, others=tuple(matrix_of(*other) for other in others.items()))
    return plan_product(p, Ending(chain), desc.tensors() | chain.arguments(others), engine)


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


def why_not(desc: MatMul, lanes: int) -> str | None:
    """The reason why no tile kernel can address these tensors, None if one can."""
    for name, tensor in desc.tensors().items():
        if tensor.dtype != f32:
            return f"{name} is {tensor.dtype}, only f32 is implemented"
        if tensor.inner_blocks and (name != "weights" or not is_panels(tensor, lanes)):
            return f"{name} {tensor.tag} is blocked, only weights may be, by {lanes} or {2 * lanes} columns"
    if desc.dst.may_overlap:
        return "elements of dst overlap"
    return None


def why_not_read(operands: Mapping[str, MemoryDesc]) -> str | None:
    """The reason why a chain's operands cannot be read, None if they can."""
    for name, tensor in operands.items():
        if tensor.inner_blocks:
            return f"{name} {tensor.tag} is blocked, it must be plain"
    return None


def is_panels(weights: MemoryDesc, lanes: int) -> bool:
    """Whether the format is one of panels that blocks of registers can be made of."""
    panels = panels_of("weights", weights)
    return panels is not None and panels.columns in (lanes, 2 * lanes)


def product_of(desc: MatMul) -> Product:
    *batch, m, n = desc.dst.dims
    weights: Matrix | Panels = panels_of("weights", desc.weights) or matrix_of("weights", desc.weights)
    bias = None if desc.bias is None else matrix_of("bias", desc.bias)
    src, dst = matrix_of("src", desc.src), matrix_of("dst", desc.dst)
    return Product(tuple(batch), m, n, desc.src.dims[-1], src, weights, dst, bias)
