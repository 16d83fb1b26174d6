"""The plan of a recurrent layer, backward: for every layer and direction a phase or two for every step, from the last
to the first, then gradients of weights, bias and input as products over all steps at once.

A step's cell makes the gradients of the sums inside its gates (`sums`), and a product with weights_iter transposed
hands them on to the step before.  With X and H the inputs and the states before, a row a step and sequence,

    diff_weights_layer = X^T sums    diff_weights_iter = H^T sums    diff_bias = 1^T sums    diff_src = sums W^T

Of a linear-before-reset GRU, H^T and weights_iter take `iterated` for `sums`; a GRU's candidate has (r h) for h.
"""

from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import flushing
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.implementation import implementation
from asmdnn.primitives.products.blocks import panel_columns
from asmdnn.primitives.products.target import target_of
from asmdnn.primitives.recurrent.backward_description import DIFF, RecurrentBackward
from asmdnn.primitives.recurrent.backward_layer import BackwardLayer
from asmdnn.primitives.recurrent.backward_products import StepProducts
from asmdnn.primitives.recurrent.backward_sums import add_sums_over_steps
from asmdnn.primitives.recurrent.maps import Maps
from asmdnn.primitives.recurrent.planner import f32_dot_level
from asmdnn.primitives.recurrent.rows import Rows, Time
from asmdnn.primitives.recurrent.workspace import regions_of, workspace_desc
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.types import f32

PACKED = ("weights_layer", "weights_iter", "weights_projection")


@implementation("recurrent", f32_dot_level)
def plan(desc: RecurrentBackward, attr: Attr, engine: Engine) -> Plan:
    """Plan the backward pass.  Raises Refused."""
    if attr.post_ops or attr.quantizes:
        raise Refused("post-ops, scales and zero points are not implemented")
    formats = {name: kernel_format(name, tensor, engine) for name, tensor in desc.tensors().items()}
    passed = {name: formats[name] if tensor.is_any else tensor for name, tensor in desc.tensors().items()}
    for name, tensor in passed.items():
        if tensor.dtype != f32:
            raise Refused(f"{name} is {tensor.dtype}, only f32 is implemented")
        if tensor.may_overlap and (name.startswith((f"{DIFF}src", f"{DIFF}weights", f"{DIFF}bias"))):
            raise Refused(f"{name} has elements that share a place")
    return between_reorders(BackwardPlanner(desc, formats, engine).plan(), passed, engine.tuning)


def kernel_format(name: str, tensor: MemoryDesc, engine: Engine) -> MemoryDesc:
    """Weights in panels of what they are multiplied to: rows of all gates, or of a projection's outputs."""
    dims, tag = tensor.dims, LETTERS[: tensor.ndims]
    if name in PACKED:
        width = panel_columns(dims[2], lanes_of(f32_dot_level(engine.isa)))
        tag = f"abC{tag[3:]}{width}c"
    return MemoryDesc(dims, tensor.dtype, tag)


class BackwardPlanner:
    """A plan as it comes together.  tensors: as the kernels take them."""

    def __init__(self, desc: RecurrentBackward, tensors: dict[str, MemoryDesc], engine: Engine) -> None:
        self.desc, self.forward, self.target = desc, desc.forward, target_of(engine)
        self.sizes = s = self.forward.sizes
        self.time = Time(s, (s.steps,) * s.sequences)
        workspace = workspace_desc(self.forward)
        self.tensors = tensors if workspace is None else {**tensors, "workspace": workspace}
        self.regions = regions_of(self.forward)
        self.assembly, self.maps = Assembly(engine.tuning), Maps(self.target.isa, engine.tuning)
        self.products = StepProducts(self.assembly, self.tensors, s.sequences, self.target)

    def plan(self) -> Plan:
        s, output = self.sizes, self.time.layer("diff_dst_layer", self.tensors["diff_dst_layer"])
        for number in reversed(range(s.layers)):
            of_source = self.gradient_of_source(number)
            for direction in range(s.directions):
                is_concat = self.desc.direction == "bidirectional_concat"
                of_output = output.further(4 * direction * s.out) if is_concat else output
                layer = BackwardLayer(self, number, direction, of_output)
                layer.add_steps()
                add_sums_over_steps(layer, of_source)
            output = of_source
        outputs = tuple(name for name in self.tensors if name.startswith(DIFF) and not name.startswith(f"{DIFF}dst"))
        self.assembly.phases = list(flushing(self.assembly.phases))
        return self.assembly.plan(f"recurrent:{self.target.isa}", self.tensors, outputs)

    def gradient_of_source(self, number: int) -> Rows:
        """Where a layer leaves the gradient of what it has read."""
        if number == 0:
            return self.time.layer("diff_src_layer", self.tensors["diff_src_layer"])
        return self.scratch(f"gradient of layer {number % 2}", self.sizes.dst)

    def scratch(self, name: str, columns: int) -> Rows:
        """Rows of all steps."""
        self.assembly.scratch[name] = 4 * self.sizes.rows * columns
        return self.time.dense(name, 4 * columns)

    def scratch_state(self, name: str, columns: int) -> Rows:
        """Rows of one step."""
        self.assembly.scratch[name] = 4 * self.sizes.sequences * columns
        return Rows(name, (0,), 4 * columns)

    def kept(self, name: str, number: int, direction: int) -> Rows:
        """A region of the workspace."""
        region = self.regions[name]
        return self.time.dense("workspace", 4 * region.columns, region.at(number, direction))

    def states(self, number: int, direction: int) -> Rows:
        """h behind every step."""
        s = self.sizes
        if self.desc.direction == "bidirectional_sum":
            return self.kept("direction", number, direction)
        rows = self.outputs(number)
        return rows.further(4 * direction * s.out)

    def outputs(self, number: int) -> Rows:
        """What a layer gives to the next one."""
        if number == self.sizes.layers - 1:
            return self.time.layer("dst_layer", self.tensors["dst_layer"])
        return self.kept("layer", number, 0)

    def sources(self, number: int) -> Rows:
        """What a layer reads."""
        return self.outputs(number - 1) if number else self.time.layer("src_layer", self.tensors["src_layer"])
