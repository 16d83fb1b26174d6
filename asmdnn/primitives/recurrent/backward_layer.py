"""A layer in one direction, backward: the phases of its steps, from the last one to the first."""

from dataclasses import replace

import numpy as np

from asmdnn.generators.recurrent.cells import Place
from asmdnn.generators.recurrent.gradients import CellGradient, gradient_form
from asmdnn.primitives.recurrent.backward_context import BackwardContext
from asmdnn.primitives.recurrent.backward_description import (
    GRUBackward,
    LBRGRUBackward,
    LSTMBackward,
    VanillaRNNBackward,
)
from asmdnn.primitives.recurrent.backward_products import BESIDE, RESULT, ROWS
from asmdnn.primitives.recurrent.maps import Part
from asmdnn.primitives.recurrent.rows import Rows

NOWHERE = Rows("", (0,), 0)
ZEROS = "zeros"  # a constant: a row of what is not there
ALIAS_BYTES = 2048  # rows so far apart, or a multiple, share few sets of L1
PADDING = 16  # elements


class BackwardLayer:
    """of_output: gradients of what the layer gives.  sums, iterated: of all steps, the same but of an LBR GRU."""

    def __init__(self, context: BackwardContext, number: int, direction: int, of_output: Rows) -> None:
        self.context, self.desc, self.sizes = context, context.desc, context.sizes
        self.number, self.direction, self.of_output = number, direction, of_output
        self.reverse = direction == 1 or self.desc.direction == "unidirectional_right2left"
        self.order = [turn.step for turn in context.time.turns(self.reverse)]
        s, is_lbr = self.sizes, isinstance(self.desc, LBRGRUBackward)
        self.sums = self.rows_of_gates("gradients of sums")
        self.iterated = self.rows_of_gates("gradients of iterated sums") if is_lbr else self.sums
        self.states = context.states(number, direction)
        self.parts: dict[str, Rows] = {}  # what all steps share, or has a row for each
        if not isinstance(self.desc, VanillaRNNBackward):
            self.parts["gates"] = context.kept("gates", number, direction)
        if isinstance(self.desc, LSTMBackward):
            self.parts["c"] = context.kept("c", number, direction)
        if isinstance(self.desc, GRUBackward | LBRGRUBackward):
            self.parts["direct"] = context.scratch_state("gradient beside products", s.out)
        if isinstance(self.desc, GRUBackward):
            self.parts["reset"] = context.scratch("reset states", s.hidden)
            self.parts["reset_diff"] = context.scratch_state("gradient of reset states", s.hidden)
        if self.has("weights_projection"):
            self.parts["total"] = context.scratch("gradients of projections", s.out)
            self.parts["of_hidden"] = context.scratch_state("gradient of what is projected", s.hidden)
        if self.has("weights_peephole"):
            self.parts["peephole"] = Rows("weights_peephole", (self.start_of("weights_peephole"),), 0)
            self.parts["peepholes"] = context.scratch("terms of peepholes", 3 * s.hidden)

    def has(self, name: str) -> bool:
        return name in self.context.tensors

    def rows_of_gates(self, name: str) -> Rows:
        """Scratch with a row of all gates for every step and sequence; rows do not share sets of L1."""
        columns = self.sizes.gates * self.sizes.hidden
        columns += PADDING * (4 * columns % ALIAS_BYTES == 0)
        return self.context.scratch(name, columns)

    def start_of(self, name: str) -> int:
        """Where this layer and direction begin in a tensor, in bytes."""
        desc = self.context.tensors[name]
        return 4 * (self.number * desc.strides[0] + self.direction * desc.strides[1])

    def given(self, name: str) -> Rows:
        """This layer's rows of a state that the caller passes; zeros if there is none."""
        if not self.has(name):
            size = max(self.sizes.out, self.sizes.hidden)
            self.context.assembly.constants[ZEROS] = np.zeros(-(-size // 2), np.int64)
            return Rows(ZEROS, (0,), 0)
        return Rows(name, (self.start_of(name),), 4 * self.context.tensors[name].dims[3])

    def add_steps(self) -> None:
        """All steps, from the last to the first.  The gradients of a state go to and fro between two places."""
        later, later_c = self.given("diff_dst_iter"), self.given("diff_dst_iter_c")
        for i in reversed(range(len(self.order))):
            earlier, earlier_c = NOWHERE, NOWHERE
            if i or self.has("diff_src_iter"):
                earlier = self.goes_to("iter", i, self.sizes.out)
            if isinstance(self.desc, LSTMBackward):
                earlier_c = self.goes_to("iter_c", i, self.sizes.hidden)
            Step(self, i, {"later": later, "later_c": later_c, "earlier": earlier, "earlier_c": earlier_c}).add()
            later, later_c = earlier, earlier_c

    def goes_to(self, state: str, i: int, columns: int) -> Rows:
        """Where the gradient of the state before step i of the order goes."""
        if i == 0 and self.has(f"diff_src_{state}"):
            return self.given(f"diff_src_{state}")
        return self.context.scratch_state(f"gradient of src_{state} {i % 2}", columns)


class Step:
    """One step: number i of the order of the forward pass.  carried: the gradients of states, from and to steps."""

    def __init__(self, layer: BackwardLayer, i: int, carried: dict[str, Rows]) -> None:
        self.layer, self.i, self.carried = layer, i, carried
        self.step = layer.order[i]
        self.before = layer.order[i - 1] if i else None

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
        if self.carried["earlier"] != NOWHERE:
            beside = ("direct", 0) if "direct" in self.layer.parts else None
            gates = 2 if isinstance(desc, GRUBackward) else self.layer.sizes.gates
            self.multiply(("iterated", 0), "weights_iter", 0, ("earlier", 0), gates, beside)

    def map(self, cell: CellGradient, units: int = 0) -> None:
        """The phase of a gradient."""
        s, form = self.layer.sizes, gradient_form(cell)
        places = {place: self.place(place) for place in (*form.reads, *form.results)}
        phase = self.layer.context.maps.phase(cell, (s.sequences, units or s.hidden), places)
        self.layer.context.assembly.add([phase])

    def place(self, place: Place) -> tuple[Part, int]:
        """Where a part of what a gradient reads or makes lies, and of which step."""
        name, part = place
        layer = self.layer
        offset = 4 * part * layer.sizes.hidden
        match name:
            case "diff":
                return Part(layer.of_output), self.step
            case "h":
                return Part(layer.states), self.step
            case "before" | "c_before":
                rows = layer.states if name == "before" else layer.parts["c"]
                if self.before is None:
                    return Part(layer.given("src_iter" if name == "before" else "src_iter_c")), 0
                return Part(rows), self.before
            case "sums" | "iterated":
                return Part(layer.sums if name == "sums" else layer.iterated, offset), self.step
        if name in self.carried:
            return Part(self.carried[name]), 0
        return Part(layer.parts[name], offset), self.step

    def multiply(
        self, src: Place, weights: str, gate: int, dst: Place, gates: int = 0, beside: Place | None = None
    ) -> None:
        """The product of rows of this step with weights of a layer, transposed, from a gate on; and what is added."""
        layer, context = self.layer, self.layer.context
        s, desc = layer.sizes, context.tensors[weights]
        depth = gates * s.hidden if gates else s.out
        start = layer.start_of(weights) + 4 * gate * desc.strides[3]
        (a, at), (b, to) = self.place(src), self.place(dst)
        places = {ROWS: a.view(at), RESULT: b.view(to)}
        added = None
        if beside:
            part, step = self.place(beside)
            places[BESIDE], added = part.view(step), part.rows.row_bytes
        phases = context.products.phases(weights, start, depth, (a.rows.row_bytes, b.rows.row_bytes), added)
        turned = self.i % 2 == 1  # the panels that the step behind has read last are still in L2
        context.assembly.add([replace(phase.on(places), backwards=turned) for phase in phases])
