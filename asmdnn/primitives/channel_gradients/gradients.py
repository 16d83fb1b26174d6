"""The plans of backward batch normalization and PReLU: element-wise functions, and reductions of what they leave.

Sums over images and pixels are there before diff_src is computed, so that every tensor is read twice; what is summed is
computed once, into scratch.
"""

from collections.abc import Mapping
from functools import lru_cache, partial
from math import prod

from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.postops import ExpressionOp
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.row_programs import factor_program, normalized_gradient, scaled_program
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
from asmdnn.primitives.core.implementation import implementation, plan_of
from asmdnn.primitives.elementwise.schedule import Request, check_tensors, schedule
from asmdnn.primitives.reduction import reduction
from asmdnn.primitives.reduction.description import ReductionForward
from asmdnn.primitives.row_gradients.schedule import check_attr
from asmdnn.primitives.shapes.formats import dense_like, like
from asmdnn.primitives.shapes.nests import as_row_of
from asmdnn.types import f32

PRODUCTS, FACTORS = "what is summed", "factors"  # scratch, and the sums that are no results
SUMS = {"diff_scale": "sums of products", "diff_shift": "sums of gradients"}
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

    def sum(self, source: str, src: MemoryDesc, target: str, dst: MemoryDesc) -> None:
        """The buffer `target` = sums of `source` over the dims that dst has as 1."""
        if src.dims == dst.dims:
            build = Builder(1)
            self.apply(build.finish(build.inputs[0] * 1.0), {source: src}, target, dst)
            return
        sums = plan_of((reduction.plans,), ReductionForward("sum", src, dst), self.engine)
        self.assembly.add_plan(sums, {"src": View(source), "dst": View(target)})


@lru_cache
def batch_norm_program(elements: int, scaled: bool) -> Program:
    """diff_src of x, dy, mean, factor, the scale if it is `scaled`, and the sums of dy * h and of dy."""
    build = Builder(6 + scaled)
    x, dy, mean, factor, *scale, of_products, of_gradients = build.inputs
    share = 1.0 / elements
    inner = dy - of_gradients * share - (x - mean) * factor * (of_products * share)
    return build.finish(inner * (factor * scale[0] if scale else factor))


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
    steps = GradientSteps(engine)
    wide[FACTORS] = steps.scratch(FACTORS, row_of_channels(src))
    steps.apply(factor_program(desc.epsilon), {"variance": wide["variance"]}, FACTORS, wide[FACTORS])
    summed = {} if desc.use_global_stats and len(results) == 1 else sums_of(images, wide, steps)
    scaled = "scale" in wide
    factors = {name: wide[name] for name in (FACTORS, *["scale"] * scaled)}
    if desc.use_global_stats:
        program = scaled_program(scaled)
        read: dict[str, MemoryDesc] = {"diff_dst": images["diff_dst"], **factors}
    else:
        program = batch_norm_program(src.nelems() // src.dims[1], scaled)
        read = {"src": src, "diff_dst": images["diff_dst"], "mean": wide["mean"]}
        read |= {**factors, **summed}
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


def sums_of(images: Tensors, wide: Tensors, steps: GradientSteps) -> dict[str, MemoryDesc]:
    """The sums of products with normalized src, and of gradients, by the names of their buffers."""
    src, diff_dst = images["src"], images["diff_dst"]
    products = steps.scratch(PRODUCTS, dense_like(src, MemoryDesc(src.dims, f32, "any")))
    read = {"src": src, "diff_dst": diff_dst, "mean": wide["mean"], FACTORS: wide[FACTORS]}
    steps.apply(normalized_gradient(True), read, PRODUCTS, products)
    row = row_of_channels(src)
    found = {}
    for name, (source, tensor) in {"diff_scale": (PRODUCTS, products), "diff_shift": ("diff_dst", diff_dst)}.items():
        buffer, dst = (name, wide[name]) if name in wide else (SUMS[name], steps.scratch(SUMS[name], row))
        steps.sum(source, tensor, buffer, MemoryDesc(row.dims, f32, strides=dst.strides, offset0=dst.offset0))
        found[buffer] = dst
    return found


@lru_cache
def prelu_programs() -> tuple[Program, Program]:
    """diff_src of x, dy, weights; and of x, dy what is summed for weights."""
    build = Builder(3)
    x, dy, weights = build.inputs
    through = build.finish(build.where(x > 0.0, dy, weights * dy))
    build = Builder(2)
    x, dy = build.inputs
    return through, build.finish(build.where(x > 0.0, 0.0, x * dy))


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
    steps, (through, summed) = GradientSteps(engine), prelu_programs()
    read = {"src": src, "diff_dst": images["diff_dst"]}
    if desc.weights.dims == src.dims:
        steps.apply(summed, read, "diff_weights", tensors["diff_weights"])
    else:
        products = steps.scratch(PRODUCTS, dense(MemoryDesc(src.dims, f32, "any")))
        steps.apply(summed, read, PRODUCTS, products)
        steps.sum(PRODUCTS, products, "diff_weights", tensors["diff_weights"])
    steps.apply(through, {**read, "weights": tensors["weights"]}, "diff_src", images["diff_src"])
    name = f"prelu:{f32_level(engine.isa)}"
    return steps.assembly.plan(name, tensors, ("diff_src", "diff_weights"), replaceable(images))
