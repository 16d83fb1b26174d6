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
from asmdnn.primitives.recurrent.backward_description import GRUBackward, LBRGRUBackward
from asmdnn.primitives.recurrent.backward_layer import BackwardLayer
from asmdnn.primitives.recurrent.backward_products import adding, panels_from
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
        self.assembly, self.target = layer.context.assembly, layer.context.target

    def add(self, of_source: BufferRows) -> None:
        s, layer, parts = self.sizes, self.layer, self.layer.parts
        source = self.context.sources(layer.number)
        channels = self.context.tensors["weights_layer"].dims[2]
        columns = s.gates * s.hidden
        if isinstance(layer.desc, LBRGRUBackward):  # the sums of u and r, which steps leave in one place alone
            self.copy(layer.iterated, 0, layer.sums, 0, (0, s.rows), 2 * s.hidden)
        self.multiply(source, layer.sums, self.gradient("diff_weights_layer", channels, columns))
        of_state = 2 * s.hidden if isinstance(layer.desc, GRUBackward) else columns
        self.multiply(self.before(), layer.iterated, self.gradient("diff_weights_iter", s.state, of_state))
        if of_state < columns:
            candidate = self.gradient("diff_weights_iter", s.state, s.hidden, of_state)
            self.multiply(parts["reset"], layer.sums.element(of_state), candidate)
        if "total" in parts:
            hidden = self.context.rooms.kept("unprojected", layer.number, layer.direction)
            self.multiply(hidden, parts["total"], self.gradient("diff_weights_projection", s.hidden, s.out))
        if "peepholes" in parts:
            self.sum(parts["peepholes"], 3 * s.hidden, "diff_weights_peephole")
        if layer.has("diff_bias"):
            self.sum(layer.sums, columns, "diff_bias")
            if isinstance(layer.desc, LBRGRUBackward):
                self.sum(layer.iterated.element(2 * s.hidden), s.hidden, "diff_bias", 3 * s.hidden)
        self.of_source(of_source, channels, columns)

    def gradient(self, name: str, rows: int, columns: int, first: int = 0) -> tuple[Matrix, int, int]:
        """Columns of a tensor's matrix of this layer and direction, from the first one on; and its size."""
        row_bytes = self.context.tensors[name].strides_bytes[2]
        return self.layer.rows_of(name, row_bytes).element(first).matrix(), rows, columns

    def multiply(self, a: BufferRows, b: BufferRows, dst: tuple[Matrix, int, int]) -> None:
        """dst = a^T b over all rows."""
        place, m, n = dst
        product = Product(
            batch=(), m=m, n=n, k=self.sizes.rows, src=a.matrix().transposed, weights=b.matrix(), dst=place
        )
        multiply(self.assembly, product, self.target)

    def before(self) -> BufferRows:
        """A copy of the states before every step: those after another one, and the first ones."""
        s, layer = self.sizes, self.layer
        rows = self.context.rooms.all_steps("states before steps", s.state)
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

    def sum(self, rows: BufferRows, columns: int, name: str, first: int = 0) -> None:
        """The sum of all rows, into a tensor from an element on."""
        dst = self.layer.rows_of(name, 0).element(first).matrix()
        product = sum_of_rows(self.assembly, rows.matrix(), self.sizes.rows, columns, dst)
        multiply(self.assembly, product, self.target)

    def of_source(self, rows: BufferRows, channels: int, columns: int) -> None:
        """sums W^T; the second direction adds to the first one's."""
        layer = self.layer
        weights = panels_from("weights_layer", self.context.tensors["weights_layer"], layer.start_of("weights_layer"))
        product = Product(
            batch=(),
            m=self.sizes.rows,
            n=channels,
            k=columns,
            src=layer.sums.matrix(),
            weights=weights,
            dst=rows.matrix(),
        )
        multiply(self.assembly, product, adding(self.target) if layer.direction else self.target)
