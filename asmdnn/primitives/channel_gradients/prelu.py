"""The plan of backward PReLU: both gradients in one pass, or each by itself."""

from functools import partial
from math import prod

from asmdnn.generators.functions.row_programs import prelu_program, same_program
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.channel_gradients.description import PReLUBackward
from asmdnn.primitives.channel_gradients.steps import PRODUCTS, GradientSteps, replaceable
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.elementwise.schedule import check_tensors
from asmdnn.primitives.reduction.gradient_sums import Summed, add_sums
from asmdnn.primitives.shapes.formats import dense_like, like, of_type, row_major
from asmdnn.records import replace
from asmdnn.types import FLOAT_NAMES, f32


@implementation("prelu", f32_level)
def plan_prelu(desc: PReLUBackward, attr: Attr, engine: Engine) -> Plan:
    """Plan a backward PReLU.  Raises Refused."""
    refuse_attr(attr, "a gradient")
    src = like(desc.diff_dst, desc.src)
    images = {"src": src, "diff_dst": like(src, desc.diff_dst), "diff_src": like(src, desc.diff_src)}
    dense = partial(dense_like, src)
    weights = {n: dense(t) if t.is_any else t for n in ("weights", "diff_weights") if (t := getattr(desc, n))}
    tensors = {**images, **weights}
    for name in ("diff_src", "diff_weights"):
        check_tensors(tensors, name, FLOAT_NAMES)
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
        plain = of_type(row_major(result.dims, result), f32)
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
