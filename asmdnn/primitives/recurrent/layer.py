"""One layer and direction of a recurrent layer: where everything lies that its steps read and write."""

from collections.abc import Mapping

from asmdnn.generators.recurrent.cells import Cell, form_of
from asmdnn.isa.dot import U8S8, Types
from asmdnn.isa.vectors import vector_bytes
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import View
from asmdnn.primitives.products.matrices import Matrix, Panels
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import Target
from asmdnn.primitives.recurrent.bytes import SCALES, STARTS
from asmdnn.primitives.recurrent.description import LSTMForward, RecurrentForward
from asmdnn.primitives.recurrent.dynamic import RoundedRows
from asmdnn.primitives.recurrent.formats import PANEL_VECTORS
from asmdnn.primitives.recurrent.rows import BufferRows, Time, Turn, start_of, state_rows
from asmdnn.primitives.recurrent.stage import CellField, RecurrentPanels, Stage, vectors_of
from asmdnn.primitives.recurrent.stages import Multiplied, stages_of
from asmdnn.records import dataclass, replace

BIAS = "packed bias"


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer and direction; `number` and `direction` are its indices in states and weights.

    tensors: as the kernels take them.  types: what is multiplied.  backwards: from right to left.  x: its input, of
    `channels`.  h: its output, of which a step reads what the step before has written.  c: an LSTM's c after every
    step, in one place for all steps where it is updated in place.  fields: what else cells write, by name.  x_rounded,
    h_rounded: x and h where they become bytes.  amx_level: the one whose tiles may multiply.
    """

    desc: RecurrentForward
    tensors: Mapping[str, MemoryDesc]
    time: Time
    target: Target
    types: Types
    number: int
    direction: int
    backwards: bool
    x: BufferRows
    channels: int
    h: BufferRows
    c: BufferRows
    fields: Mapping[str, CellField]
    x_rounded: RoundedRows | None = None
    h_rounded: RoundedRows | None = None
    amx_level: str | None = None

    def scratch(self, name: str) -> str:
        """Scratch of this direction: both may be computed at the same time."""
        return f"{name} {self.direction}"

    @property
    def padded(self) -> int:
        """Hidden channels with those that the panels of weights_layer have as padding."""
        width = self.target.lanes * (1 + self.time.sizes.gates % 2)
        return -(-self.time.sizes.hidden // width) * width

    @property
    def columns(self) -> int:
        """Of the gates, with padding."""
        return self.time.sizes.gates * self.padded

    @property
    def gates(self) -> CellField:
        """x W + b of all steps, in scratch: for a vector of units all gates, or where these are odd for two vectors, as
        in packed weights."""
        gates, width = self.time.sizes.gates, vector_bytes(self.target.isa)
        rows = self.time.dense(self.scratch("gates"), self.columns, dtype=self.types.sums)
        if gates % 2:
            return CellField(rows, width, 2 * width, whole=True, pair_bytes=2 * gates * width)
        return CellField(rows, gates * width, width, whole=True)

    def product(self) -> Product:
        """gates = x W + b, for all steps."""
        s, x, gates = self.time.sizes, self.x, self.gates.rows
        weights, columns, group = self.tensors["weights_layer"], PANEL_VECTORS * self.target.lanes, self.types.group
        row, k = columns * self.types.weights_bytes, -(-self.channels // group)  # of a panel; groups
        batch, count = (1, s.rows) if s.concatenated else (s.steps, s.sequences)
        step = x.starts[1] - x.starts[0] if batch > 1 else 0
        return Product(
            batch=(batch,),
            m=count,
            n=self.columns,
            k=k,
            src=x.matrix((step,)).in_groups(group),
            weights=Panels(
                buffer="weights_layer",
                start_bytes=self.start_of(weights),
                batch_bytes=(0,),
                row_bytes=row,
                panel_bytes=k * row,
                columns=columns,
                dtype=weights.dtype,
                group=group,
            ),
            dst=gates.matrix((count * gates.row_bytes,)),
            bias=self.bias,
            types=self.types,
            missing=k * group - self.channels,
        )

    @property
    def bias(self) -> Matrix | None:
        """The bias in the order of a product's columns; of bytes what sums start from, and the bias is the cell's."""
        of_bytes = self.types == U8S8
        if "bias" not in self.tensors and not of_bytes:
            return None
        if self.x_rounded:
            return self.x_rounded.starts(self.direction * self.columns).matrix((0,))
        at = self.number * self.time.sizes.directions + self.direction
        buffer = STARTS if of_bytes else BIAS
        return BufferRows(buffer, (at * self.gates.rows.row_bytes,), 0, self.types.sums).matrix((0,))

    def start_of(self, desc: MemoryDesc) -> int:
        """Where this layer and direction begin in a tensor, in bytes."""
        return start_of(desc, self.number, self.direction)

    def state(self, name: str) -> BufferRows:
        """The rows of an initial or final state."""
        return state_rows(name, self.tensors[name], self.number, self.direction)

    def vector(self, name: str, row: int = 0) -> CellField:
        """Rows of `bias` or `weights_peephole` from one on, the same for all sequences."""
        desc = self.tensors[name]
        rows = BufferRows(name, (self.start_of(desc) + row * desc.strides_bytes[2],), 0, desc.dtype)
        return vectors_of(rows, self.target.lanes, desc.strides[2])

    def before(self, starts: bool) -> BufferRows:
        """h before a step, a sequence's first or a later one."""
        return self.state("src_iter") if starts else self.h

    def field(self, name: str, cell: Cell, starts: bool) -> CellField:
        """An operand of a cell; the "state" is that of the step before."""
        lanes = self.target.lanes
        match name:
            case "gates":
                return self.gates
            case "bias":
                return self.vector("bias", self.time.sizes.gates)
            case "offsets":
                return self.vector("bias")
            case "starts" if self.h_rounded:
                return replace(self.gates, rows=self.h_rounded.starts())
            case "scales" if self.h_rounded:
                return replace(self.gates, rows=self.h_rounded.factors())
            case "layer_scales" if self.x_rounded:
                return replace(self.gates, rows=self.x_rounded.factors(self.direction * self.columns))
            case "scales":
                return vectors_of(BufferRows(SCALES, (0,), 0), lanes, self.time.sizes.hidden)
            case "peephole":
                return self.vector("weights_peephole")
            case "state" if isinstance(self.desc, LSTMForward):
                return vectors_of(self.state("src_iter_c") if starts else self.c, lanes)
            case "state":
                return vectors_of(self.before(starts), lanes)
            case "new_state":
                return vectors_of(self.c, lanes)
            case "dst" if "unprojected" not in self.fields or cell.algorithm == "projection":
                return vectors_of(self.h, lanes)
            case "dst":
                return self.fields["unprojected"]
        return self.fields[name]

    def stages(self, starts: bool) -> list["PlacedStage"]:
        """The stages of a step, a sequence's first or a later one."""
        return [self.placed(multiplied, starts) for multiplied in stages_of(self.desc, starts)]

    def placed(self, multiplied: Multiplied, starts: bool) -> "PlacedStage":
        """A stage, and where its src and its operands lie."""
        cell, weights, src = multiplied.cell, multiplied.weights, multiplied.src
        found = {name: self.field(name, cell, starts) for name in form_of(cell).names}
        operands = tuple(field.operand(name) for name, field in found.items())
        pairs = tuple(field.pair for field in found.values())
        units = self.time.sizes.out if cell.algorithm == "projection" else self.time.sizes.hidden
        rows = {name: field.rows for name, field in found.items()}
        panels, row = RecurrentPanels(weights, 0, 0, 0, 0, 0), 0
        if src:
            if src != "h":
                rows["src"] = self.fields[src].rows
            else:
                rows["src"] = self.h_rounded.rows if self.h_rounded else self.before(starts)
            panels, row = self.panels(weights, multiplied.gate), rows["src"].row_bytes
        stage = Stage(
            isa=self.target.isa,
            cell=cell,
            units=units,
            weights=panels,
            src_row_bytes=row,
            operands=operands,
            pairs=pairs,
            types=self.types,
            amx_level=self.amx_level,
        )
        return PlacedStage(stage, rows, frozenset({"state", "src"} if src == "h" else {"state"}))

    def panels(self, name: str, gate: int) -> RecurrentPanels:
        """weights_iter or weights_projection, from a gate on."""
        desc = self.tensors[name]
        start, s = self.start_of(desc), desc.strides_bytes
        if name == "weights_projection":
            return RecurrentPanels(name, start, s[2], 0, s[3], desc.dims[2])
        return RecurrentPanels(name, start + gate * s[3], s[2], s[3], s[4], desc.dims[2])


@dataclass(frozen=True, eq=False)
class PlacedStage:
    """A stage, and the rows of its arguments by name; those in `old` are read of the step before."""

    stage: Stage
    rows: Mapping[str, BufferRows]
    old: frozenset[str]

    def views(self, turn: Turn) -> dict[str, View]:
        """Where the arguments lie in a step."""
        before = turn.before or 0
        return {name: rows.view(before if name in self.old else turn.step) for name, rows in self.rows.items()}
