"""What plans of gradients of channels are made of: element-wise functions, one after the other, and what they share."""

from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from typing import Any

from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.postops import ExpressionOp
from asmdnn.generators.functions.program import Program
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Pairs, Plan, alike
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.reorder.copies import Reordering, add_reorder, between_reorders
from asmdnn.primitives.shapes.formats import row_major, with_padding
from asmdnn.primitives.shapes.tensors import check_tensors, refuse_overlap
from asmdnn.records import replace
from asmdnn.types import HALF_FLOATS, f32

FACTORS, SCALED, SLOPES = "factors", "scaled factors", "slopes"  # scratch, of channels
GRADIENTS, PRODUCTS = "sums of gradients", "sums of products"
PARAMETERS = ("scale", "diff_scale", "diff_shift")
Tensors = Mapping[str, MemoryDesc]
ChannelPlanner = Callable[[Any, Attr, Engine, str], Plan]


def of_f32_parameters(planner: ChannelPlanner) -> ChannelPlanner:
    """The planner, also for a scale and gradients of parameters of bf16 and f16: these are copied, before or after."""

    @wraps(planner)
    def planned(desc: Any, attr: Attr, engine: Engine, way: str) -> Plan:
        given = {name: tensor for name in PARAMETERS if (tensor := getattr(desc, name)) is not None}
        halves = {name: tensor for name, tensor in given.items() if tensor.dtype in HALF_FLOATS}
        if not halves:
            return planner(desc, attr, engine, way)
        refuse_overlap(**{name: tensor for name, tensor in halves.items() if name != "scale"})
        wide = {name: MemoryDesc(tensor.dims, f32, "a") for name, tensor in halves.items()}
        passed = {name: row_major(tensor.dims, tensor) if tensor.is_any else tensor for name, tensor in halves.items()}
        plan = planner(replace(desc, **wide), attr, engine, way)
        return between_reorders(plan, passed, engine.tuning, isa=engine.isa)

    return planned


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

    def padded(self, vectors: Tensors, block: int) -> Tensors:
        """Copies of rows of channels for tensors whose padding counts as channels: zeros up to whole blocks."""
        copies = dict[str, MemoryDesc]()
        for name, row in vectors.items():
            letters, buffer = LETTERS[: row.ndims], f"padded {name}"
            blocks = MemoryDesc(row.dims, f32, f"{letters[0]}B{letters[2:]}{block}b")
            add_reorder(self.assembly, Reordering(name, row, buffer, blocks))
            copies[buffer] = self.scratch(buffer, row_of_channels(with_padding(blocks)))
        return copies


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
