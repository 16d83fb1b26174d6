"""Inner products as matrix products, f32: the channels and positions of an input are one dim in the order of memory.

Tensors need not be row-major, but of one order: weights that are `any` get src's, "Acdb16a" for nhwc, "ABcd8b16a" for
nChw8c.  Where the orders differ, or elements do not lie at one distance, there is a copy in row-major order.
"""

from collections.abc import Iterator
from math import prod
from typing import TypeVar

from asmdnn.isa.dot import F32, f32_dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.planning.unhindered import without_needless_barriers
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.inner_product import typed, typed_gradients
from asmdnn.primitives.inner_product.flat import aligned, copy_back, weights_like
from asmdnn.primitives.inner_product.inner_product import (
    InnerProductBackwardData,
    InnerProductBackwardWeights,
    InnerProductForward,
)
from asmdnn.primitives.products.blocks import panel_vectors
from asmdnn.primitives.products.dots import are_few
from asmdnn.primitives.products.matmul_tiles import check_elements, check_tensors, plain
from asmdnn.primitives.products.matrices import WeightsPanels, matrix_of, panel_columns, panels_of, row_of
from asmdnn.primitives.products.partial import sum_of_rows
from asmdnn.primitives.products.plan import Job, answers, multiply, refusals
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import Epilogue, target_of
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.types import FLOATS

SCALED = {"src": {0: 0}, "weights": {0: 1}}  # the dims that dst has too: images and output channels

Kind = TypeVar("Kind", InnerProductForward, InnerProductBackwardData, InnerProductBackwardWeights)


def plan_forward(desc: InnerProductForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """dst = src * weights^T, by every strategy."""
    try:
        check_elements(desc.weights)
    except Refused as reason:
        return refusals(f32_dot_level(engine.isa), str(reason))
    if typed.is_typed(desc, attr):
        return typed.plan(desc, attr, engine)
    return answers(lambda: forward(desc, attr, engine), f32_dot_level(engine.isa))


def forward(desc: InnerProductForward, attr: Attr, engine: Engine) -> Job:
    desc = with_plain_formats(desc, but="weights")
    if desc.weights.is_any:
        (mb, oc), isa = desc.dst.dims, f32_dot_level(engine.isa)
        sizes, tuning = (mb, oc, prod(desc.src.dims[1:])), engine.tuning.products
        vectors = panel_vectors(*sizes, F32, isa, tuning)
        width = 0 if are_few(sizes, F32, isa, tuning) else panel_columns(oc, lanes_of(isa), vectors)
        desc = desc.with_formats({"weights": weights_like(desc.src, desc.weights, width)})
    passed, desc = desc, with_plain_tensors(desc, "dst", "bias")
    chain = chain_of(attr, desc.tensors(), SCALED, desc.bias and row_of_dst(desc.bias))
    check_tensors(passed.tensors(), ("dst",))
    others = chain.operands(passed.dst)
    check_tensors(others)
    assembly, target = Assembly(engine.tuning, engine.isa), target_of(engine, Epilogue(chain))
    src, weights = aligned(assembly, {"src": desc.src, "weights": desc.weights}, target.lanes, panels="weights")
    bias = None
    if desc.bias is not None and not chain.adds_bias:
        bias = row_of("bias", desc.bias)
    mb, oc = desc.dst.dims
    factors = src.rows(), weights.panels() or weights.rows().transposed
    read = {operand: plain(tensor) for operand, tensor in others.items()}
    operands = tuple(matrix_of(*other) for other in read.items())
    dst = matrix_of("dst", desc.dst)
    p = Product((), mb, oc, src.size, *factors, dst=dst, bias=bias, post_op_operands=operands)
    tensors, as_passed = desc.tensors() | chain.arguments(read), passed.tensors() | chain.arguments(others)
    return Job(assembly, p, target, tensors, as_passed, reads=("dst",) * chain.reads_dst)


def plan_backward_data(desc: InnerProductBackwardData, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """diff_src = diff_dst * weights, by every strategy."""
    if typed_gradients.is_typed(desc):
        return typed_gradients.plan(desc, attr, engine)
    return answers(lambda: backward_data(desc, attr, engine), f32_dot_level(engine.isa))


def backward_data(desc: InnerProductBackwardData, attr: Attr, engine: Engine) -> Job:
    typed_gradients.check_attr(attr)
    desc = with_plain_formats(desc, but="weights")
    if desc.weights.is_any:
        (mb, oc), ic, isa = desc.diff_dst.dims, desc.weights.dims[1], f32_dot_level(engine.isa)
        width = panel_columns(ic, lanes_of(isa), panel_vectors(mb, ic, oc, F32, isa, engine.tuning.products))
        weights = weights_like(desc.diff_src, desc.weights, 0)
        if desc.weights.ndims == 2 and width:
            weights = MemoryDesc(desc.weights.dims, desc.weights.dtype, f"Ba{width}b")
        desc = desc.with_formats({"weights": weights})
    passed, desc = desc, with_plain_tensors(desc, "diff_dst")
    check_tensors(passed.tensors(), ("diff_src",), FLOATS)
    assembly, target = Assembly(engine.tuning, engine.isa), target_of(engine)
    mb, oc = desc.diff_dst.dims
    is_read = desc.weights.ndims == 2 and WeightsPanels(F32, target.lanes).takes(desc.weights)
    panels = panels_of("weights", desc.weights) if is_read else None
    tensors = {"diff_src": desc.diff_src} | ({} if panels else {"weights": desc.weights})
    diff_src, *others = aligned(assembly, tensors, target.lanes, output="diff_src")
    factors = matrix_of("diff_dst", desc.diff_dst), panels or others[0].rows()
    p = Product((), mb, diff_src.size, oc, *factors, diff_src.rows())

    def add_after(assembly: Assembly) -> None:
        copy_back(assembly, diff_src, desc.diff_src, "diff_src")

    return Job(assembly, p, target, desc.tensors(), passed.tensors(), ("diff_src",), add_after=add_after)


def plan_backward_weights(desc: InnerProductBackwardWeights, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """diff_weights = diff_dst^T * src by every strategy, diff_bias = the sum of diff_dst's rows by the best."""
    if typed_gradients.is_typed(desc):
        return typed_gradients.plan(desc, attr, engine)
    found = answers(lambda: backward_weights(desc, attr, engine), f32_dot_level(engine.isa))
    return (without_needless_barriers(x) if isinstance(x, Plan) else x for x in found)


def backward_weights(desc: InnerProductBackwardWeights, attr: Attr, engine: Engine) -> Job:
    typed_gradients.check_attr(attr)
    desc = with_plain_formats(desc, but="diff_weights")
    if desc.diff_weights.is_any:
        desc = desc.with_formats({"diff_weights": weights_like(desc.src, desc.diff_weights, 0)})
    passed, desc = desc, with_plain_tensors(desc, "diff_dst", "diff_bias")
    outputs = ("diff_weights",) + ("diff_bias",) * (desc.diff_bias is not None)
    check_tensors(passed.tensors(), outputs, FLOATS)
    assembly, target = Assembly(engine.tuning, engine.isa), target_of(engine)
    tensors = {"src": desc.src, "diff_weights": desc.diff_weights}
    src, diff_weights = aligned(assembly, tensors, target.lanes, output="diff_weights")
    mb, oc = desc.diff_dst.dims
    diff_dst = matrix_of("diff_dst", desc.diff_dst)
    p = Product(batch=(), m=oc, n=src.size, k=mb, src=diff_dst.transposed, weights=src.rows(), dst=diff_weights.rows())

    def add_after(assembly: Assembly) -> None:
        copy_back(assembly, diff_weights, desc.diff_weights, "diff_weights")
        if desc.diff_bias is not None:
            bias = row_of("diff_bias", desc.diff_bias)
            multiply(assembly, sum_of_rows(assembly, diff_dst, mb, oc, bias), target)

    return Job(assembly, p, target, desc.tensors(), passed.tensors(), outputs, add_after=add_after)


def row_of_dst(bias: MemoryDesc) -> MemoryDesc:
    """A bias as a tensor that broadcasts to dst."""
    return MemoryDesc((1, *bias.dims), bias.dtype, strides=(0, *bias.strides), offset0=bias.offset0)


def with_plain_tensors(desc: Kind, *names: str) -> Kind:
    """Tensors of these names that are blocked, or far apart, become row-major: the plan has copies of them."""
    return desc.with_formats({name: plain(d) for name, d in desc.tensors().items() if name in names})


def with_plain_formats(desc: Kind, but: str) -> Kind:
    """`any` becomes row-major, except for one tensor."""
    formats = {n: row_major(d.dims, d) for n, d in desc.tensors().items() if d.is_any and n != but}
    return desc.with_formats(formats)
