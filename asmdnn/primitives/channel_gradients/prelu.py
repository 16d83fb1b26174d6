"""The plans of backward PReLU: both gradients in one pass, or each by itself."""

from collections.abc import Mapping
from math import prod
from typing import NamedTuple

from asmdnn.generators.functions.postops import ExpressionOp
from asmdnn.generators.functions.row_programs import prelu_program, same_program
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr, refuse_attr
from asmdnn.primitives.channel_gradients.description import PReLUBackward
from asmdnn.primitives.channel_gradients.steps import PRODUCTS, GradientSteps, replaceable
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementations_of
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.reduction.gradient_sums import Summed, add_sums
from asmdnn.primitives.shapes.formats import dense_like, like, of_type, row_major
from asmdnn.primitives.shapes.tensors import check_tensors
from asmdnn.records import replace
from asmdnn.types import FLOAT_NAMES, f32

ONE_PASS, TWO_PASSES, ELEMENTS = "one_pass", "two_passes", "elements"  # the implementations


class PReLURequest(NamedTuple):
    """images: src and both gradients of its dims; weights: these and their gradient."""

    images: Mapping[str, MemoryDesc]
    weights: Mapping[str, MemoryDesc]
    engine: Engine

    @property
    def read(self) -> dict[str, MemoryDesc]:
        return {name: self.images[name] for name in ("src", "diff_dst")}

    @property
    def factors(self) -> dict[str, MemoryDesc]:
        return {"weights": self.weights["weights"]}

    @property
    def result(self) -> MemoryDesc:
        return self.weights["diff_weights"]

    @property
    def is_of_f32(self) -> bool:
        return {tensor.dtype for tensor in (*self.images.values(), *self.weights.values())} == {f32}

    def check_sums(self, are_wanted: bool) -> None:
        """Raises Refused unless diff_weights are sums, or are not."""
        if (self.result.dims != self.images["src"].dims) != are_wanted:
            raise Refused(f"weights have {'the dims' if are_wanted else 'other dims than those'} of src")

    def plan(self, way: str, steps: GradientSteps) -> Plan:
        tensors = {**self.images, **self.weights}
        name = f"{way}:{f32_level(self.engine.isa)}"
        return steps.assembly.plan(name, tensors, ("diff_src", "diff_weights"), replaceable(self.images))


def request_of(desc: PReLUBackward, attr: Attr, engine: Engine) -> PReLURequest:
    """What is asked of a backward PReLU.  Raises Refused."""
    refuse_attr(attr, "a gradient")
    src = like(desc.diff_dst, desc.src)
    images = {"src": src, "diff_dst": like(src, desc.diff_dst), "diff_src": like(src, desc.diff_src)}
    named = {"weights": desc.weights, "diff_weights": desc.diff_weights}
    weights = {name: dense_like(src, tensor) if tensor.is_any else tensor for name, tensor in named.items()}
    for name in ("diff_src", "diff_weights"):
        check_tensors({**images, **weights}, name, FLOAT_NAMES)
    if not prod(src.dims):
        raise Refused("src has no elements, of which there are no sums for diff_weights")
    return PReLURequest(images, weights, engine)


def in_one_pass(request: PReLURequest) -> Plan:
    """Sums of what is read for diff_src.  Raises Refused."""
    request.check_sums(True)
    images, dtype = request.images, MemoryDesc(request.result.dims, f32, "any")
    steps, own = GradientSteps(request.engine), dense_like(images["src"], dtype)
    both = Summed("preluback", prelu_program((0, 1)), request.read, request.factors, dst=own, results=(PRODUCTS,),
                  stored=("diff_src", images["diff_src"]))  # fmt: skip
    if both.source(request.read) is None:
        raise Refused("src, its gradients and weights are not laid out alike")
    add_weights(steps, both, request.result)
    return request.plan(ONE_PASS, steps)


def in_two_passes(request: PReLURequest) -> Plan:
    """Sums, of copies where they do not lie alike, and then diff_src.  Raises Refused."""
    request.check_sums(True)
    steps, result = GradientSteps(request.engine), request.result
    plain = of_type(row_major(result.dims, result), f32)
    program = prelu_program((1,))
    add_weights(steps, Summed("preluback", program, request.read, {}, dst=plain, results=(PRODUCTS,)), result)
    add_diff_src(request, steps)
    return request.plan(TWO_PASSES, steps)


def element_by_element(request: PReLURequest) -> Plan:
    """Where each element has a weight of its own.  Raises Refused."""
    request.check_sums(False)
    steps = GradientSteps(request.engine)
    if request.images["diff_src"] == request.result and request.is_of_f32:
        add_both(request, steps)
        return request.plan(ELEMENTS, steps)
    steps.apply(prelu_program((1,)), request.read, "diff_weights", request.result)
    add_diff_src(request, steps)
    return request.plan(ELEMENTS, steps)


def add_both(request: PReLURequest, steps: GradientSteps) -> None:
    """Both gradients of every element, whose inputs are read once."""
    images, result = request.images, request.result
    both = Request(
        "steps",
        ("src", images["src"]),
        ("diff_src", images["diff_src"]),
        {"diff_dst": images["diff_dst"], **request.factors},
        lambda operands: ExpressionOp(prelu_program((0,)), (operands["diff_dst"], operands["weights"])),
        more=(
            ("diff_weights", result, lambda operands: (ExpressionOp(prelu_program((1,)), (operands["diff_dst"],)),)),
        ),
    )
    steps.assembly.add_plan(schedule(both, NO_ATTR, request.engine), {})


def add_diff_src(request: PReLURequest, steps: GradientSteps) -> None:
    steps.apply(prelu_program((0,)), {**request.read, **request.factors}, "diff_src", request.images["diff_src"])


def add_weights(steps: GradientSteps, summed: Summed, result: MemoryDesc) -> None:
    """The sums, into diff_weights."""
    if summed.dst == result:
        add_sums(steps.assembly, replace(summed, results=("diff_weights",)))
        return
    add_sums(steps.assembly, summed)
    steps.apply(same_program(1), {PRODUCTS: steps.scratch(PRODUCTS, summed.dst)}, "diff_weights", result)


WAYS = {ONE_PASS: in_one_pass, TWO_PASSES: in_two_passes, ELEMENTS: element_by_element}
plan_prelu = implementations_of(request_of, WAYS, f32_level)
