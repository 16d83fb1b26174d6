"""The plan of backward batch normalization: element-wise functions, and reductions of what they leave.

Sums over images and pixels are there before diff_src is computed, so that every tensor is read twice.
"""

from functools import lru_cache

from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.row_programs import centred_sums, factor_program, same_program
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.channel_gradients.description import BatchNormBackward
from asmdnn.primitives.channel_gradients.steps import (
    FACTORS,
    GRADIENTS,
    PRODUCTS,
    SCALED,
    SLOPES,
    GradientSteps,
    Tensors,
    product_program,
    replaceable,
    row_of_channels,
)
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.elementwise.schedule import check_tensors
from asmdnn.primitives.reduction.gradient_sums import Summed, add_sums
from asmdnn.primitives.row_gradients.schedule import check_attr
from asmdnn.primitives.shapes.formats import like
from asmdnn.primitives.shapes.nests import as_row_of


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


def vector_of(name: str, tensor: MemoryDesc) -> MemoryDesc:
    """Of the channels, plain.  Raises Refused."""
    if tensor.inner_blocks:
        raise Refused(f"{name} is blocked, it must be a vector")
    return MemoryDesc(tensor.dims, tensor.dtype, "a") if tensor.is_any else tensor


def as_channels(tensor: MemoryDesc, ndims: int) -> MemoryDesc:
    wide = as_row_of(tensor, ndims, 1)
    assert wide is not None, "vectors are plain"
    return wide


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
