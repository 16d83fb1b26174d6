"""The plans of backward batch normalization and PReLU: element-wise functions, and reductions of what they leave.

Sums over images and pixels are there before diff_src is computed, so that every tensor is read twice.
"""

from collections.abc import Mapping
from functools import lru_cache, partial
from math import prod

from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.postops import ExpressionOp
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.row_programs import (
    centred_sums,
    factor_program,
    prelu_program,
    same_program,
)
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.channel_gradients.description import BatchNormBackward, PReLUBackward
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.elementwise.schedule import Request, check_tensors, schedule
from asmdnn.primitives.reduction.gradient_sums import Summed, add_sums
from asmdnn.primitives.row_gradients.schedule import check_attr
from asmdnn.primitives.shapes.formats import dense_like, like, row_major
from asmdnn.primitives.shapes.nests import as_row_of
from asmdnn.records import replace
from asmdnn.types import f32

FACTORS, SCALED, SLOPES = "factors", "scaled factors", "slopes"  # scratch, of channels
GRADIENTS, PRODUCTS = "sums of gradients", "sums of products"
Tensors = Mapping[str, MemoryDesc]


class GradientSteps:
    """Element-wise functions and reductions, one after the other, of tensors by the names of their buffers."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.assembly = engine, Assembly(engine.tuning, engine.isa)

    def scratch(self, name: str, tensor: MemoryDesc) -> MemoryDesc:
        self.assembly.scratch[name] = tensor.size_bytes
        return tensor

    def apply(self, program: Program, tensors: Tensors, name: str, dst: MemoryDesc) -> None:
        """The buffer `name` = program(tensors), the first of which has dst's dims; others broadcast."""
        (first, src), *others = tensors.items()
        request = Request(
            "steps", (first, src), ("dst", dst), dict(others),
            lambda operands: ExpressionOp(program, tuple(operands[other] for other, _ in others)),
        )  # fmt: skip
        self.assembly.add_plan(schedule(request, NO_ATTR, self.engine), {"dst": View(name)})


@lru_cache
def slope_program(elements: int) -> Program:
    """By how much of x - mean dx is less, of the sum of dy * (x - mean) and the factor: its mean, normalized twice."""
    build = Builder(2)
    total, factor = build.inputs
    return build.finish(total * factor * (factor * (1.0 / elements)))


@lru_cache
def batch_norm_program(elements: int) -> Program:
    """diff_src of x, dy, mean, the factor with the scale, the slope, and the sum of dy."""
    build = Builder(6)
    x, dy, mean, factor, slope, total = build.inputs
    return build.finish((dy - total * (1.0 / elements) - (x - mean) * slope) * factor)


@lru_cache
def product_program() -> Program:
    build = Builder(2)
    x, factor = build.inputs
    return build.finish(x * factor)


@implementation("batch_norm", f32_level)
def plan_batch_norm(desc: BatchNormBackward, attr: Attr, engine: Engine) -> Plan:
    """Plan a backward batch normalization.  Raises Refused."""
    check_attr(attr)
    src = like(desc.diff_dst, desc.src)
    images = {"src": src, "diff_dst": like(src, desc.diff_dst), "diff_src": like(src, desc.diff_src)}
    names = ("mean", "variance", "scale", "diff_scale", "diff_shift")
    vectors = {name: vector_of(name, tensor) for name in names if (tensor := getattr(desc, name)) is not None}
    tensors = {**images, **vectors}
    check_tensors(tensors, "diff_src")
    name = f"batch_norm:{f32_level(engine.isa)}"
    results = ("diff_src", *(name for name in ("diff_scale", "diff_shift") if name in vectors))
    if 0 in src.dims:
        if len(results) > 1:
            raise Refused("src has no elements, of which there are no sums for diff_scale and diff_shift")
        return Assembly(engine.tuning, engine.isa).plan(name, tensors, results)
    wide = {name: as_channels(tensor, src.ndims) for name, tensor in vectors.items()}
    steps, row = GradientSteps(engine), row_of_channels(src)
    factors = steps.scratch(FACTORS, row)
    steps.apply(factor_program(desc.epsilon), {"variance": wide["variance"]}, FACTORS, row)
    if not desc.use_global_stats or len(results) > 1:
        add_sums_of(images, wide, steps)
    read: dict[str, MemoryDesc] = {"diff_dst": images["diff_dst"]}
    if not desc.use_global_stats:
        steps.apply(slope_program(src.nelems() // src.dims[1]), {PRODUCTS: row, FACTORS: factors}, SLOPES, row)
        steps.scratch(SLOPES, row)
        read = {"src": src, **read, "mean": wide["mean"]}
    if "scale" in wide:
        steps.apply(product_program(), {"scale": wide["scale"], FACTORS: factors}, SCALED, steps.scratch(SCALED, row))
    read[SCALED if "scale" in wide else FACTORS] = factors
    if desc.use_global_stats:
        program = product_program()
    else:
        program, read = batch_norm_program(src.nelems() // src.dims[1]), {**read, SLOPES: row, GRADIENTS: row}
    steps.apply(program, read, "diff_src", images["diff_src"])
    return steps.assembly.plan(name, tensors, results, replaceable(images))


def replaceable(images: Tensors) -> tuple[str, ...]:
    """What diff_src may take the memory of: it is written last, each element where it is read."""
    return tuple(name for name in ("src", "diff_dst") if images[name] == images["diff_src"])


def vector_of(name: str, tensor: MemoryDesc) -> MemoryDesc:
    """Of the channels, plain.  Raises Refused."""
    if tensor.inner_blocks:
        raise Refused(f"{name} is blocked, it must be a vector")
    return MemoryDesc(tensor.dims, tensor.dtype, "a") if tensor.is_any else tensor


def as_channels(tensor: MemoryDesc, ndims: int) -> MemoryDesc:
    wide = as_row_of(tensor, ndims, 1)
    assert wide is not None, "vectors are plain"
    return wide


def row_of_channels(src: MemoryDesc) -> MemoryDesc:
    """A number for each channel, that broadcasts to src."""
    return MemoryDesc((1, src.dims[1], *[1] * (src.ndims - 2)), f32, LETTERS[: src.ndims])


def add_sums_of(images: Tensors, wide: Tensors, steps: GradientSteps) -> None:
    """The sums of gradients and of products with centred src, into scratch; the results that are made of them."""
    src = images["src"]
    row = row_of_channels(src)
    for name in (GRADIENTS, PRODUCTS):
        steps.scratch(name, row)
    read = {name: images[name] for name in ("src", "diff_dst")}
    others, sums = {"mean": wide["mean"]}, (GRADIENTS, PRODUCTS)
    summed = Summed("batchnormback", centred_sums(), read, others, dst=row, results=sums)
    add_sums(steps.assembly, summed)
    if "diff_scale" in wide:
        steps.apply(product_program(), {PRODUCTS: row, FACTORS: row}, "diff_scale", wide["diff_scale"])
    if "diff_shift" in wide:
        steps.apply(same_program(1), {GRADIENTS: row}, "diff_shift", wide["diff_shift"])


@implementation("prelu", f32_level)
def plan_prelu(desc: PReLUBackward, attr: Attr, engine: Engine) -> Plan:
    """Plan a backward PReLU.  Raises Refused."""
    check_attr(attr)
    src = like(desc.diff_dst, desc.src)
    images = {"src": src, "diff_dst": like(src, desc.diff_dst), "diff_src": like(src, desc.diff_src)}
    dense = partial(dense_like, src)
    weights = {n: dense(t) if t.is_any else t for n in ("weights", "diff_weights") if (t := getattr(desc, n))}
    tensors = {**images, **weights}
    check_tensors(tensors, "diff_src")
    check_tensors(tensors, "diff_weights")
    if not prod(src.dims):
        raise Refused("src has no elements, of which there are no sums for diff_weights")
    steps, result = GradientSteps(engine), tensors["diff_weights"]
    read, weights = {name: images[name] for name in ("src", "diff_dst")}, {"weights": tensors["weights"]}
    stored, own = ("diff_src", images["diff_src"]), dense(MemoryDesc(result.dims, f32, "any"))
    both = Summed("preluback", prelu_program((0, 1)), read, weights, dst=own, results=(PRODUCTS,), stored=stored)
    is_one_pass = result.dims != src.dims and both.source(read) is not None
    if is_one_pass:
        add_weights(steps, both, result)
    elif result.dims != src.dims:
        plain = row_major(result.dims, result)
        add_weights(steps, replace(both, program=prelu_program((1,)), others={}, stored=None, dst=plain), result)
    else:
        steps.apply(prelu_program((1,)), read, "diff_weights", result)
    if not is_one_pass:
        steps.apply(prelu_program((0,)), {**read, **weights}, *stored)
    name = f"prelu:{f32_level(engine.isa)}"
    return steps.assembly.plan(name, tensors, ("diff_src", "diff_weights"), replaceable(images))


def add_weights(steps: GradientSteps, summed: Summed, result: MemoryDesc) -> None:
    """The sums, into diff_weights."""
    if summed.dst == result:
        add_sums(steps.assembly, replace(summed, results=("diff_weights",)))
        return
    add_sums(steps.assembly, summed)
    steps.apply(same_program(1), {PRODUCTS: steps.scratch(PRODUCTS, summed.dst)}, "diff_weights", result)
