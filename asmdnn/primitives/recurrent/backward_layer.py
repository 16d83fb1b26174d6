"""A layer in one direction, backward: the phases of its steps, from the last one to the first."""

import numpy as np

from asmdnn.generators.recurrent.cells import Place
from asmdnn.generators.recurrent.gradients import CellGradient, gradient_form
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.primitives.recurrent.backward_context import BackwardContext
from asmdnn.primitives.recurrent.backward_description import (
    GRUBackward,
    LBRGRUBackward,
    LSTMBackward,
    VanillaRNNBackward,
)
from asmdnn.primitives.recurrent.backward_products import BESIDE, RESULT, ROWS, Key
from asmdnn.primitives.recurrent.maps import PlacedRows
from asmdnn.primitives.recurrent.padding import add_zeros
from asmdnn.primitives.recurrent.rows import BufferRows, RowPiece, start_of, state_rows
from asmdnn.records import replace

ZEROS = "zeros"  # a constant: a row of what is not there
ALIAS_BYTES = 2048  # rows so far apart, or a multiple, share few sets of L1


class BackwardLayer:
    """of_output: gradients of what the layer gives.  sums, iterated: of all steps, the same but of an LBR GRU."""

    def __init__(self, context: BackwardContext, number: int, direction: int, of_output: BufferRows) -> None:
        self.context, self.desc, self.sizes = context, context.desc, context.sizes
        self.number, self.direction, self.of_output = number, direction, of_output
        self.reverse = direction == 1 or self.desc.direction == "unidirectional_right2left"
        self.pieces = context.time.pieces(self.reverse)
        self.numbers = {piece.step: piece.number for piece in self.pieces}
        s, is_lbr = self.sizes, isinstance(self.desc, LBRGRUBackward)
        self.sums = self.rows_of_gates("gradients of sums")
        self.iterated = self.rows_of_gates("gradients of iterated sums") if is_lbr else self.sums
        self.states = context.states(number, direction)
        self.parts: dict[str, BufferRows] = {}  # what all steps share, or has a row for each
        if not isinstance(self.desc, VanillaRNNBackward):
            self.parts["gates"] = context.rooms.kept("gates", number, direction)
        if isinstance(self.desc, LSTMBackward):
            self.parts["c"] = context.rooms.kept("c", number, direction)
        if isinstance(self.desc, GRUBackward | LBRGRUBackward):
            self.parts["direct"] = context.rooms.one_step("gradient beside products", s.out)
        if isinstance(self.desc, GRUBackward):
            self.parts["reset"] = context.rooms.all_steps("reset states", s.hidden, context.factor)
            self.parts["reset_diff"] = context.rooms.one_step("gradient of reset states", s.hidden)
        if self.has("weights_projection"):
            self.parts["total"] = context.rooms.all_steps("gradients of projections", s.out, context.factor)
            self.parts["of_hidden"] = context.rooms.one_step("gradient of what is projected", s.hidden)
        if self.has("weights_peephole"):
            self.parts["peephole"] = self.rows_of("weights_peephole", 0)
            self.parts["peepholes"] = context.rooms.all_steps("terms of peepholes", 3 * s.hidden)

    def has(self, name: str) -> bool:
        return name in self.context.tensors

    def rows_of_gates(self, name: str) -> BufferRows:
        """Scratch with a row of all gates for every step and sequence; rows do not share sets of L1."""
        columns, dtype = self.sizes.gates * self.sizes.hidden, self.context.factor
        if dtype.size_bytes * columns % ALIAS_BYTES == 0:
            columns += LINE_BYTES // dtype.size_bytes
        return self.context.rooms.all_steps(name, columns, dtype)

    def start_of(self, name: str) -> int:
        """Where this layer and direction begin in a tensor, in bytes."""
        return start_of(self.context.tensors[name], self.number, self.direction)

    def rows_of(self, name: str, row_bytes: int) -> BufferRows:
        """This layer and direction of a tensor, as rows so far apart."""
        return BufferRows(name, (self.start_of(name),), row_bytes, self.context.tensors[name].dtype)

    def given(self, name: str) -> BufferRows:
        """This layer's rows of a state that the caller passes; zeros if there is none."""
        if not self.has(name):
            size = max(self.sizes.state, self.sizes.out, self.sizes.hidden)
            self.context.assembly.constants[ZEROS] = np.zeros(-(-size // 2), np.int64)
            return BufferRows(ZEROS, (0,), 0)
        return state_rows(name, self.context.tensors[name], self.number, self.direction)

    def add_steps(self) -> None:
        """All steps, from the last to the first; zeros where a sequence has none, in what is summed over all rows."""
        s, time = self.sizes, self.context.time
        summed = {"reset": s.hidden, "total": s.out, "peepholes": 3 * s.hidden}
        over_all = [(self.parts[name], columns) for name, columns in summed.items() if name in self.parts]
        for rows in dict.fromkeys((self.sums, self.iterated)):
            over_all.append((rows, s.gates * s.hidden))
        for rows, columns in over_all:
            add_zeros(self.context.assembly, time, rows, columns)
        for piece in reversed(self.pieces):
            StepRows(self, piece).add()

    def gradient(self, state: str, step: int) -> BufferRows:
        """The gradient of the state before a step: between two places to and fro, or in one for each, of which those of
        first steps are not written, so that every layer and direction has its own."""
        columns = self.sizes.state if state == "iter" else self.sizes.hidden
        place = f"{self.numbers[step] % 2}" if self.context.time.is_even else f"of {self.number}, {self.direction}"
        return self.context.rooms.one_step(f"gradient of src_{state} {place}", columns)


class StepRows:
    """Rows of a step."""

    def __init__(self, layer: BackwardLayer, piece: RowPiece) -> None:
        self.layer, self.piece, self.step = layer, piece, piece.step

    def add(self) -> None:
        desc, out = self.layer.desc, self.layer.sizes.out
        match desc:
            case VanillaRNNBackward():
                self.map(CellGradient("vanilla", activation=desc.activation, alpha=float(desc.alpha)))
            case LSTMBackward() if desc.weights_projection is not None:
                self.map(CellGradient("total"), out)
                self.multiply(("total", 0), "weights_projection", 0, ("of_hidden", 0))
                self.map(CellGradient("lstm_projected", desc.weights_peephole is not None))
            case LSTMBackward():
                self.map(CellGradient("lstm", desc.weights_peephole is not None))
            case GRUBackward():
                self.map(CellGradient("gru"))
                self.multiply(("sums", 2), "weights_iter", 2, ("reset_diff", 0), gates=1)
                self.map(CellGradient("gru_reset"))
            case LBRGRUBackward():
                self.map(CellGradient("lbr_gru"))
        if "peepholes" in self.layer.parts:
            self.map(CellGradient("peepholes"))
        if self.piece.before is not None or self.layer.has("diff_src_iter"):
            beside = ("direct", 0) if "direct" in self.layer.parts else None
            gates = 2 if isinstance(desc, GRUBackward) else self.layer.sizes.gates
            self.multiply(("iterated", 0), "weights_iter", 0, ("earlier", 0), gates, beside)

    def map(self, cell: CellGradient, units: int = 0) -> None:
        """The phase of a gradient."""
        form, size = gradient_form(cell), (self.piece.count, units or self.layer.sizes.hidden)
        places = {place: self.place(place) for place in (*form.reads, *form.results)}
        self.layer.context.assembly.add([self.layer.context.maps.phase(cell, size, places)])

    def place(self, place: Place) -> PlacedRows:
        """Where a part of what a gradient reads or makes lies."""
        name, part = place
        rows, step = self.rows(name)
        at = rows.element(part * self.layer.sizes.hidden)
        return PlacedRows(at.view(step, self.piece.first), rows.row_bytes, rows.dtype)

    def rows(self, name: str) -> tuple[BufferRows, int]:
        """The rows of all parts, and of which step."""
        layer, step = self.layer, self.step
        before, after = self.piece.before, self.piece.after
        match name:
            case "diff":
                return layer.of_output, step
            case "h":
                return layer.states, step
            case "sums":
                return layer.sums, step
            case "iterated":
                return layer.iterated, step
            case "before":
                return (layer.given("src_iter"), 0) if before is None else (layer.states, before)
            case "c_before":
                return (layer.given("src_iter_c"), 0) if before is None else (layer.parts["c"], before)
            case "later" | "later_c":
                state = name.replace("later", "iter")
                return (layer.given(f"diff_dst_{state}"), 0) if after is None else (layer.gradient(state, after), after)
            case "earlier" | "earlier_c":
                state = name.replace("earlier", "iter")
                if before is None and layer.has(f"diff_src_{state}"):
                    return layer.given(f"diff_src_{state}"), 0
                return layer.gradient(state, step), step
        return layer.parts[name], step

    def multiply(
        self, src: Place, weights: str, gate: int, dst: Place, gates: int = 0, beside: Place | None = None
    ) -> None:
        """The product of rows of this step with weights of a layer, transposed, from a gate on; and what is added."""
        layer, context = self.layer, self.layer.context
        desc = context.tensors[weights]
        depth = gates * layer.sizes.hidden if gates else layer.sizes.out
        start = layer.start_of(weights) + gate * desc.strides_bytes[3]
        placed = {ROWS: self.place(src), RESULT: self.place(dst)}
        if beside:
            placed[BESIDE] = self.place(beside)
        ends = placed[ROWS].row_bytes, placed[RESULT].row_bytes
        added = placed[BESIDE].row_bytes if beside else None
        phases = context.products.phases(Key(self.piece.count, weights, start, depth, ends, added))
        places = {name: place.view for name, place in placed.items()}
        turned = self.piece.number % 2 == 1  # the panels that the step after has read last are still in L2
        context.assembly.add([replace(phase.on(places), backwards=turned) for phase in phases])
