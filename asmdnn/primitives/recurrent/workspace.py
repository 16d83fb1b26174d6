"""What forward training leaves for the backward pass: matrices of all rows, one after another in one f32 vector.

| region | of | rows of | what it is |
|---|---|---|---|
| gates       | every layer and direction | parts x DHC | the gates as the cell has used them, see below |
| c           | every layer and direction | DHC | an LSTM's c after every step |
| unprojected | every layer and direction | DHC | h in front of weights_projection |
| direction   | every layer and direction | DIC | h, where dst_layer is the sum of both directions |
| layer       | every layer but the last  | DLC | what is the input of the next layer |

Rows are those of src_layer, step by step.  The format is the same for all ISA levels.
Gates are i, f, tanh(c~), o of an LSTM; u, r, c~ of a GRU, and of a LBR GRU also h R_c + b'; a vanilla RNN has none.
"""

from collections.abc import Iterator

from asmdnn.memory import MemoryDesc
from asmdnn.primitives.recurrent.description import GRUForward, LSTMForward, RecurrentForward, VanillaRNNForward
from asmdnn.records import dataclass
from asmdnn.types import f32


@dataclass(frozen=True, slots=True)
class Region:
    """Row-major f32 matrices of `rows` rows of `columns`, one for every layer and one of `directions`."""

    start_bytes: int
    layers: int
    directions: int
    rows: int
    columns: int

    @property
    def matrix_bytes(self) -> int:
        return self.rows * self.columns * f32.size_bytes

    @property
    def size_bytes(self) -> int:
        return self.layers * self.directions * self.matrix_bytes

    def at(self, layer: int, direction: int = 0) -> int:
        """Where the matrix of a layer and direction starts, in bytes."""
        return self.start_bytes + (layer * self.directions + direction) * self.matrix_bytes


def parts_of(desc: RecurrentForward) -> int:
    """How many numbers of each hidden channel the region `gates` has."""
    if isinstance(desc, VanillaRNNForward):
        return 0
    return 3 if isinstance(desc, GRUForward) else 4


def regions_of(desc: RecurrentForward) -> dict[str, Region]:
    """By name, those that a description has."""
    s, found, at = desc.sizes, dict[str, Region](), 0
    for name, layers, directions, columns in _matrices(desc):
        found[name] = Region(at, layers, directions, s.rows, columns)
        at += found[name].size_bytes
    return found


def _matrices(desc: RecurrentForward) -> Iterator[tuple[str, int, int, int]]:
    s = desc.sizes
    if parts_of(desc):
        yield "gates", s.layers, s.directions, parts_of(desc) * s.hidden
    if isinstance(desc, LSTMForward):
        yield "c", s.layers, s.directions, s.hidden
        if desc.weights_projection is not None:
            yield "unprojected", s.layers, s.directions, s.hidden
    if desc.direction == "bidirectional_sum":
        yield "direction", s.layers, s.directions, s.out
    if s.layers > 1:
        yield "layer", s.layers - 1, 1, s.dst


def workspace_desc(desc: RecurrentForward) -> MemoryDesc | None:
    """The workspace of a description; None where a vanilla RNN's dst_layer says it all."""
    size = sum(region.size_bytes for region in regions_of(desc).values())
    return MemoryDesc((size // f32.size_bytes,), f32, "a") if size else None
