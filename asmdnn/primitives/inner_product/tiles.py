"""Inner products as matrix products, f32: the channels and positions of an input are one dim in the order of memory.

Tensors need not be row-major, but of one order: weights that are `any` get src's, "Acdb16a" for nhwc, "ABcd8b16a" for
nChw8c.  Where the orders differ, or elements do not lie at one distance, there is a copy in row-major order.
"""

from collections.abc import Iterator, Mapping
from math import prod
from typing import TypeVar

import numpy as np

from asmdnn.isa.dot import F32, dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Int64
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.inner_product import typed
from asmdnn.primitives.inner_product.inner_product import (
    InnerProductBackwardData,
    InnerProductBackwardWeights,
    InnerProductForward,
)
from asmdnn.primitives.products.blocks import panel_columns
from asmdnn.primitives.products.matmul_tiles import WeightsPanels, check_tensors, is_panels, plain
from asmdnn.primitives.products.matrices import Matrix, Panels, matrix_of, panels_of, row_of
from asmdnn.primitives.products.partial import sum_of_rows
from asmdnn.primitives.products.plan import Job, answers, multiply
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import Epilogue, target_of
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.records import dataclass

SCALED = {"src": {0: 0}, "weights": {0: 1}}  # the dims that dst has too: images and output channels

Kind = TypeVar("Kind", InnerProductForward, InnerProductBackwardData, InnerProductBackwardWeights)


def plan_forward(desc: InnerProductForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """dst = src * weights^T, by every strategy."""
    if typed.is_typed(desc, attr):
        return typed.plan(desc, attr, engine)
    return answers(lambda: forward(desc, attr, engine), dot_level(F32, engine.isa))


def forward(desc: InnerProductForward, attr: Attr, engine: Engine) -> Job:
    desc = with_plain_formats(desc, but="weights")
    if desc.weights.is_any:
        width = panel_columns(desc.weights.dims[0], lanes_of(dot_level(F32, engine.isa)))
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
    p = Product((), mb, oc, src.size, *factors, matrix_of("dst", desc.dst), bias, None, operands)
    tensors, as_passed = desc.tensors() | chain.arguments(read), passed.tensors() | chain.arguments(others)
    return Job(assembly, p, target, tensors, as_passed, reads=("dst",) * chain.reads_dst)


def plan_backward_data(desc: InnerProductBackwardData, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """diff_src = diff_dst * weights, by every strategy."""
    return answers(lambda: backward_data(desc, attr, engine), dot_level(F32, engine.isa))


def backward_data(desc: InnerProductBackwardData, attr: Attr, engine: Engine) -> Job:
    check_backward(attr)
    desc = with_plain_formats(desc, but="weights")
    if desc.weights.is_any:
        width = panel_columns(desc.weights.dims[1], lanes_of(dot_level(F32, engine.isa)))
        weights = weights_like(desc.diff_src, desc.weights, 0)
        if desc.weights.ndims == 2 and width:
            weights = MemoryDesc(desc.weights.dims, desc.weights.dtype, f"Ba{width}b")
        desc = desc.with_formats({"weights": weights})
    passed, desc = desc, with_plain_tensors(desc, "diff_dst")
    check_tensors(passed.tensors(), ("diff_src",))
    assembly, target = Assembly(engine.tuning, engine.isa), target_of(engine)
    mb, oc = desc.diff_dst.dims
    is_read = desc.weights.ndims == 2 and is_panels(desc.weights, WeightsPanels(F32, target.lanes))
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
    return answers(lambda: backward_weights(desc, attr, engine), dot_level(F32, engine.isa))


def backward_weights(desc: InnerProductBackwardWeights, attr: Attr, engine: Engine) -> Job:
    check_backward(attr)
    desc = with_plain_formats(desc, but="diff_weights")
    if desc.diff_weights.is_any:
        desc = desc.with_formats({"diff_weights": weights_like(desc.src, desc.diff_weights, 0)})
    passed, desc = desc, with_plain_tensors(desc, "diff_dst", "diff_bias")
    outputs = ("diff_weights",) + ("diff_bias",) * (desc.diff_bias is not None)
    check_tensors(passed.tensors(), outputs)
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


def check_backward(attr: Attr) -> None:
    """Raise Refused for attributes that change anything."""
    if attr.post_ops or attr.quantizes:
        raise Refused("post-ops and scales of a backward pass are not implemented")


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


def weights_like(src: MemoryDesc, weights: MemoryDesc, panel: int) -> MemoryDesc:
    """Weights in the order of src's channels and positions; in panels of so many output channels, 0 for none."""
    tag = src.tag or LETTERS[: src.ndims]
    order, blocks = tag[: src.ndims].lower(), tag[src.ndims :]
    if "a" in blocks or src.tag is None or not all(src.dims):
        order, blocks = LETTERS[: src.ndims], ""
    blocked = {LETTERS[dim] for dim, _ in src.inner_blocks} if blocks else set()
    letters = "".join(x.upper() if x in blocked else x for x in order if x != "a")
    return MemoryDesc(weights.dims, weights.dtype, f"A{letters}{blocks}{panel}a" if panel else f"a{letters}{blocks}")


@dataclass(frozen=True, slots=True)
class Flat:
    """A tensor whose dims after the first are one of `size` elements, `step` elements apart."""

    buffer: str
    desc: MemoryDesc
    size: int
    step: int

    def rows(self) -> Matrix:
        size = self.desc.dtype.size_bytes
        row, column = (size * self.desc.strides[0], size * self.step)
        row, column = row if self.desc.dims[0] > 1 else 0, column if self.size > 1 else 0
        return Matrix(self.buffer, size * self.desc.offset0, (), row, column, self.desc.dtype)

    def panels(self) -> Panels | None:
        """Of the first dim, if that is blocked."""
        if all(dim for dim, _ in self.desc.inner_blocks):
            return None
        columns = self.desc.inner_blocks[-1][1]
        size, dtype = self.desc.dtype.size_bytes, self.desc.dtype
        row = self.step if self.size > 1 else columns  # a single row has no distance from the next
        panel = self.desc.strides[0]
        return Panels(
            buffer=self.buffer,
            start_bytes=size * self.desc.offset0,
            batch_bytes=(),
            row_bytes=size * row,
            panel_bytes=size * panel,
            columns=columns,
            dtype=dtype,
        )


def aligned(
    assembly: Assembly, tensors: Mapping[str, MemoryDesc], lanes: int, output: str = "", panels: str = ""
) -> list[Flat]:
    """The tensors in one order of channels and positions: as they are if they have one, else copied to row-major.

    `output` names the one that is written, `panels` the one whose first dim may be in panels.
    """

    def flattened(name: str, desc: MemoryDesc, order: Int64) -> Flat | None:
        if has_panels(desc) and not (name == panels and usable_panels(desc, lanes)):
            return None
        if name == output and desc.has_padding:
            return None  # it must become zero, whatever the other operands hold
        found = flat(name, desc, order)
        gaps = has_panels(desc) and found is not None and found.size > 1 and found.step != desc.inner_blocks[-1][1]
        return None if gaps else found

    order = np.argsort(inner_offsets(next(iter(tensors.values()))), kind="stable")
    flats = [flattened(name, desc, order) for name, desc in tensors.items()]
    same = len({desc.padded_dims[1:] for desc in tensors.values()}) == 1
    if same and all(flats):
        return [x for x in flats if x]
    copies = []
    for name, desc in tensors.items():
        in_order = np.arange(len(inner_offsets(desc)))
        found = None if desc.padded_dims[1:] != desc.dims[1:] else flattened(name, desc, in_order)
        if found is None:
            target = row_major(desc.dims, desc)
            buffer = assembly.room(f"row-major {name}", target.size_bytes)
            if name != output:
                add_reorder(assembly, Reordering(name, desc, buffer, target), f"pack_{name}")
            found = Flat(buffer, target, prod(desc.dims[1:]), 1)
        copies.append(found)
    return copies


def flat(name: str, desc: MemoryDesc, order: Int64) -> Flat | None:
    """The tensor with its channels and positions in `order`; None if they do not lie at one distance."""
    offsets = inner_offsets(desc)
    if len(offsets) != len(order):
        return None
    steps = np.diff(offsets[order])
    step = int(steps[0]) if len(steps) else 1
    return Flat(name, desc, len(order), step) if step > 0 and (steps == step).all() else None


def has_panels(desc: MemoryDesc) -> bool:
    return any(dim == 0 for dim, _ in desc.inner_blocks)


def usable_panels(desc: MemoryDesc, lanes: int) -> bool:
    """Whether the first dim is blocked once, innermost, by a width that register blocks can be made of."""
    *others, (dim, size) = desc.inner_blocks
    return dim == 0 and all(other for other, _ in others) and size in (lanes, 2 * lanes)


def inner_offsets(desc: MemoryDesc) -> Int64:
    """Where the elements of dims 1.. lie, padding included, in the order of their indices."""
    total = np.zeros(1, np.int64)
    for dim in range(1, desc.ndims):
        total = np.add.outer(total, desc.dim_offsets(dim)).ravel()
    return total


def copy_back(assembly: Assembly, flat: Flat, desc: MemoryDesc, name: str) -> None:
    """Bring an output that was computed in scratch into its format."""
    if flat.buffer != name:
        add_reorder(assembly, Reordering(flat.buffer, flat.desc, name, desc), f"unpack_{name}")
