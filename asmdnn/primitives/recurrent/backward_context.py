"""What the layers of a backward pass share: the plan as it comes together, and where everything lies."""

from asmdnn.isa.dot import Types
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.products.multiplier import Multiplier
from asmdnn.primitives.products.target import target_of
from asmdnn.primitives.recurrent.backward_description import RecurrentBackward
from asmdnn.primitives.recurrent.backward_products import StepProducts
from asmdnn.primitives.recurrent.maps import Maps
from asmdnn.primitives.recurrent.padding import add_copy, add_zeros
from asmdnn.primitives.recurrent.rooms import Rooms
from asmdnn.primitives.recurrent.rows import BufferRows, Time
from asmdnn.primitives.recurrent.workspace import regions_of, workspace_desc

SOURCE = "src_layer and zeros"


class BackwardContext:
    """tensors: as the kernels take them.  types: of what products multiply; `factor` is that of rows of sources, states
    and sums, whose products are f32."""

    def __init__(self, desc: RecurrentBackward, tensors: dict[str, MemoryDesc], engine: Engine, types: Types) -> None:
        self.desc, self.forward, self.target = desc, desc.forward, target_of(engine)
        self.multiplier, self.factor = Multiplier(engine, types), types.src
        self.sizes = s = self.forward.sizes
        self.time = Time(s, desc.lengths or (s.steps,) * s.sequences)
        workspace = workspace_desc(self.forward)
        self.tensors = tensors if workspace is None else {**tensors, "workspace": workspace}
        self.assembly, self.maps = Assembly(engine.tuning, engine.isa), Maps(engine)
        self.rooms = Rooms(self.assembly, self.time, regions_of(self.forward))
        self.products = StepProducts(self.assembly, self.tensors, self.multiplier)

    def gradient_of_source(self, number: int) -> BufferRows:
        """Where a layer leaves the gradient of what it has read."""
        if number == 0:
            return self.time.layer("diff_src_layer", self.tensors["diff_src_layer"])
        return self.rooms.all_steps(f"gradient of layer {number % 2}", self.sizes.dst)

    def states(self, number: int, direction: int) -> BufferRows:
        """h after every step."""
        s = self.sizes
        if self.desc.direction == "bidirectional_sum":
            return self.rooms.kept("direction", number, direction)
        rows = self.outputs(number)
        return rows.element(direction * s.out)

    def outputs(self, number: int) -> BufferRows:
        """What a layer gives to the next one."""
        if number == self.sizes.layers - 1:
            return self.time.layer("dst_layer", self.tensors["dst_layer"])
        return self.rooms.kept("layer", number, 0)

    def sources(self, number: int) -> BufferRows:
        """What a layer reads; after the end of a sequence there are zeros, whatever src_layer has there."""
        if number:
            return self.outputs(number - 1)
        source = self.time.layer("src_layer", self.tensors["src_layer"])
        if not self.time.is_padded:
            return source
        known, rows = SOURCE in self.assembly.scratch, self.rooms.all_steps(SOURCE, self.sizes.src, source.dtype)
        if not known:
            add_copy(self.assembly, self.time, source, rows, self.sizes.src)
            add_zeros(self.assembly, self.time, rows, self.sizes.src)
        return rows
