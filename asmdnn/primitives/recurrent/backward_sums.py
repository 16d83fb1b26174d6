"""What is summed over all steps at once, after the steps of a layer in one direction: gradients of weights and bias,
and that of the layer's input."""

import numpy as np

from asmdnn.generators.move.rows import RowsSpec
from asmdnn.isa.vectors import NARROWEST
from asmdnn.planning.phase import NOTHING, Phase, View
from asmdnn.primitives.products.matrices import Matrix
from asmdnn.primitives.products.partial import sum_of_rows
from asmdnn.primitives.products.plan import multiply
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import NO_EPILOGUE
from asmdnn.primitives.recurrent.backward_description import GRUBackward, LBRGRUBackward
from asmdnn.primitives.recurrent.backward_layer import BackwardLayer
from asmdnn.primitives.recurrent.backward_operands import Columns, PairsAsDepth, RowsAsDepth
from asmdnn.primitives.recurrent.backward_products import ADDS, panels_from
from asmdnn.primitives.recurrent.padding import add_zeros
from asmdnn.primitives.recurrent.rows import BufferRows, RowPiece
from asmdnn.primitives.reorder.copies import Reordering, add_reorder


def add_sums_over_steps(layer: BackwardLayer, of_source: BufferRows) -> None:
    """All of them; of_source: where the gradient of the input goes, which both directions add to."""
    SumsOverSteps(layer).add(of_source)


class SumsOverSteps:
    """Products whose depth is all rows, step after step."""

    def __init__(self, layer: BackwardLayer) -> None:
        self.layer, self.context, self.sizes = layer, layer.context, layer.sizes
        self.assembly, multiplier = layer.context.assembly, layer.context.multiplier
        by_rows = PairsAsDepth if multiplier.types.group > 1 else RowsAsDepth
        self.products = by_rows(self.assembly, multiplier, self.sizes.rows)

    def add(self, of_source: BufferRows) -> None:
        s, layer, parts = self.sizes, self.layer, self.layer.parts
        source = self.context.sources(layer.number)
        channels = self.context.tensors["weights_layer"].dims[2]
        columns = s.gates * s.hidden
        if isinstance(layer.desc, LBRGRUBackward):  # the sums of u and r, which steps leave in one place alone
            self.copy(layer.iterated, 0, layer.sums, 0, (0, s.rows), 2 * s.hidden)
        sums, iterated = Columns(layer.sums, columns, 0, columns), Columns(layer.iterated, columns, 0, columns)
        self.products.multiply(source, channels, sums, self.gradient("diff_weights_layer"))
        of_state = 2 * s.hidden if isinstance(layer.desc, GRUBackward) else columns
        of_iter = iterated._replace(taken=of_state)
        self.products.multiply(self.before(), s.state, of_iter, self.gradient("diff_weights_iter"))
        if of_state < columns:
            candidate = sums._replace(first=of_state, taken=s.hidden)
            place = self.gradient("diff_weights_iter", of_state)
            self.products.multiply(parts["reset"], s.state, candidate, place)
        if "total" in parts:
            hidden = self.context.rooms.kept("unprojected", layer.number, layer.direction)
            total = Columns(parts["total"], s.out, 0, s.out)
            self.products.multiply(hidden, s.hidden, total, self.gradient("diff_weights_projection"))
        if "peepholes" in parts:
            self.add_peepholes(parts["peepholes"])
        if layer.has("diff_bias"):
            self.products.sum(sums, self.vector("diff_bias"))
            if isinstance(layer.desc, LBRGRUBackward):
                last = iterated._replace(first=2 * s.hidden, taken=s.hidden)
                self.products.sum(last, self.vector("diff_bias", 3 * s.hidden))
        self.of_source(of_source, channels, columns)

    def gradient(self, name: str, first: int = 0) -> Matrix:
        """Columns of a tensor's matrix of this layer and direction, from the first one on."""
        row_bytes = self.context.tensors[name].strides_bytes[2]
        return self.layer.rows_of(name, row_bytes).element(first).matrix()

    def vector(self, name: str, first: int = 0) -> Matrix:
        """All numbers of a tensor of this layer and direction, from an element on."""
        return self.layer.rows_of(name, 0).element(first).matrix()

    def add_peepholes(self, terms: BufferRows) -> None:
        """The gradient of weights that f32 is multiplied by."""
        columns, target = 3 * self.sizes.hidden, self.context.target
        dst = self.vector("diff_weights_peephole")
        multiply(self.assembly, sum_of_rows(self.assembly, terms.matrix(), self.sizes.rows, columns, dst), target)

    def before(self) -> BufferRows:
        """A copy of the states before every step: those after another one, and the first ones."""
        s, layer = self.sizes, self.layer
        rows = self.context.rooms.all_steps("states before steps", s.state, self.context.factor)
        if not self.context.time.is_even:
            for piece in layer.pieces:
                self.before_piece(rows, piece)
            add_zeros(self.assembly, self.context.time, rows, s.state)
            return rows
        self.before_piece(rows, layer.pieces[0])
        if s.steps > 1:
            self.copy(layer.states, int(layer.reverse), rows, int(not layer.reverse), (0, s.rows - s.sequences))
        return rows

    def before_piece(self, rows: BufferRows, piece: RowPiece) -> None:
        """The states before some rows of a step."""
        taken = piece.first, piece.count
        if piece.before is not None:
            self.copy(self.layer.states, piece.before, rows, piece.step, taken)
        elif self.layer.has("src_iter"):
            self.copy(self.layer.given("src_iter"), 0, rows, piece.step, taken)
        else:
            self.zeros(rows.view(piece.step, piece.first), rows.row_bytes, piece.count)

    def copy(
        self,
        source: BufferRows,
        from_step: int,
        target: BufferRows,
        to_step: int,
        taken: tuple[int, int],
        columns: int = 0,
    ) -> None:
        """taken: first row and how many, from a step of each on; of their columns all states, or the first ones."""
        width = columns or self.sizes.state
        src, dst = source.desc(from_step, taken, width), target.desc(to_step, taken, width)
        add_reorder(self.assembly, Reordering(source.buffer, src, target.buffer, dst))

    def zeros(self, place: View, row_bytes: int, count: int) -> None:
        spec = RowsSpec(isa=NARROWEST, rows=count, row_bytes=row_bytes, src_step=0, dst_step=row_bytes, zero=True)
        cycles = np.full(1, self.assembly.tuning.phases.call_cycles + count * row_bytes // 32, np.int32)
        self.assembly.add([Phase((spec,), (NOTHING, place), np.zeros((1, 3), np.int64), cycles, alone=True)])

    def of_source(self, rows: BufferRows, channels: int, columns: int) -> None:
        """sums W^T; the second direction adds to the first one's."""
        layer, multiplier = self.layer, self.context.multiplier
        types, desc = multiplier.types, self.context.tensors["weights_layer"]
        product = Product(
            batch=(),
            m=self.sizes.rows,
            n=channels,
            k=columns // types.group,
            src=layer.sums.matrix().in_groups(types.group),
            weights=panels_from("weights_layer", desc, layer.start_of("weights_layer"), types.group),
            dst=rows.matrix(),
            types=types,
        )
        multiplier.add(self.assembly, product, ADDS if layer.direction else NO_EPILOGUE)
