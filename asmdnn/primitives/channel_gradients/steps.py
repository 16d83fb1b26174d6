"""What plans of gradients of channels are made of: element-wise functions, one after the other, and what they share."""

from collections.abc import Mapping
from functools import lru_cache

from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.postops import ExpressionOp
from asmdnn.generators.functions.program import Program
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Pairs, alike
from asmdnn.primitives.attributes.attr import NO_ATTR
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.shapes.tensors import check_tensors
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
def product_program() -> Program:
    build = Builder(2)
    x, factor = build.inputs
    return build.finish(x * factor)


def check_vectors(vectors: Tensors) -> None:
    """Raise Refused for vectors that are not f32, or results among them whose elements overlap."""
    for name, tensor in vectors.items():
        check_tensors({name: tensor}, name)


def replaceable(images: Tensors) -> Pairs:
    """What diff_src may take the memory of: it is written last, each element where it is read."""
    return alike(images, ("src", "diff_dst"), "diff_src")


def row_of_channels(src: MemoryDesc, images: int = 1) -> MemoryDesc:
    """A number for each channel, of all images or of each, that broadcasts to src."""
    return MemoryDesc((images, src.dims[1], *[1] * (src.ndims - 2)), f32, LETTERS[: src.ndims])
