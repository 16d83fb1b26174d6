"""What is summed over all steps at once, behind the steps of a layer in one direction: gradients of weights and bias,
and that of the layer's input."""

import numpy as np

from asmdnn.generators.move.rows import RowsSpec
from asmdnn.planning.phase import NOTHING, Phase, View
from asmdnn.primitives.elementwise.schedule import ZERO_ISA
from asmdnn.primitives.products.partial import sum_of_rows
from asmdnn.primitives.products.plan import multiply
from asmdnn.primitives.products.product import Matrix, Product
from asmdnn.primitives.recurrent.backward_description import GRUBackward, LBRGRUBackward
from asmdnn.primitives.recurrent.backward_layer import BackwardLayer
from asmdnn.primitives.recurrent.backward_products import adding, panels_from
from asmdnn.primitives.recurrent.rows import Rows


def add_sums_over_steps(layer: BackwardLayer, of_source: Rows) -> None:
    """All of them; of_source: where the gradient of the input goes, which both directions add to."""
    SumsOverSteps(layer).add(of_source)


class SumsOverSteps:
    """Products whose depth is all rows, step behind step."""

    def __init__(self, layer: BackwardLayer) -> None:
        self.layer, self.planner, self.sizes = layer, layer.planner, layer.sizes
        self.assembly, self.target = layer.planner.assembly, layer.planner.target

    def add(self, of_source: Rows) -> None:
        s, layer, parts = self.sizes, self.layer, self.layer.parts
        source, rows = self.planner.sources(layer.number), s.rows
        channels = self.planner.tensors["weights_layer"].dims[2]
        columns = s.gates * s.hidden
        self.multiply(source, layer.sums, rows, self.gradient("diff_weights_layer", channels, columns))
        if isinstance(layer.desc, GRUBackward):
            self.of_iterated(2 * s.hidden)
            candidate = self.gradient("diff_weights_iter", s.hidden, s.hidden, 2 * s.hidden)
            self.multiply(parts["reset"], layer.sums.further(8 * s.hidden), rows, candidate)
        else:
            self.of_iterated(columns)
        if "total" in parts:
            hidden = self.planner.kept("unprojected", layer.number, layer.direction)
            self.multiply(hidden, parts["total"], rows, self.gradient("diff_weights_projection", s.hidden, s.out))
        if "peepholes" in parts:
            self.sum(parts["peepholes"], 3 * s.hidden, "diff_weights_peephole")
        if layer.has("diff_bias"):
            self.sum(layer.sums, columns, "diff_bias")
            if isinstance(layer.desc, LBRGRUBackward):
                self.sum(layer.iterated.further(8 * s.hidden), s.hidden, "diff_bias", 3 * s.hidden)
        self.of_source(of_source, channels, columns)

    def gradient(self, name: str, rows: int, columns: int, first: int = 0) -> tuple[Matrix, int, int]:
        """Columns of a tensor's matrix of this layer and direction, from the first one on; and its size."""
        row = 4 * self.planner.tensors[name].strides[2]
        return Matrix(name, self.layer.start_of(name) + 4 * first, (), row, 4), rows, columns

    def multiply(
        self, a: Rows, b: Rows, count: int, dst: tuple[Matrix, int, int], adds: bool = False, firsts: tuple[int, int] = (0, 0)
    ) -> None:
        """dst = a^T b over so many rows, from one step of each on."""
        place, m, n = dst
        left, right = (Matrix(x.buffer, x.view(step).offset_bytes, (), x.row_bytes, 4) for x, step in zip((a, b), firsts, strict=True))
        product = Product((), m, n, count, left.transposed, right, place)
        multiply(self.assembly, product, adding(self.target) if adds else self.target)

    def of_iterated(self, columns: int) -> None:
        """diff_weights_iter = sum over steps of (h before)^T iterated, of its first columns."""
        layer, s = self.layer, self.sizes
        dst = self.gradient("diff_weights_iter", s.out, columns)
        if s.steps > 1:
            firsts = (1, 0) if layer.reverse else (0, 1)
            self.multiply(layer.states, layer.iterated, s.rows - s.sequences, dst, firsts=firsts)
        if layer.has("src_iter"):
            firsts = (0, layer.order[0])
            self.multiply(layer.given("src_iter"), layer.iterated, s.sequences, dst, s.steps > 1, firsts)
        elif s.steps == 1:
            self.zeros(*dst)

    def zeros(self, place: Matrix, rows: int, columns: int) -> None:
        """Of weights that nothing was multiplied with."""
        spec = RowsSpec(ZERO_ISA, rows, 4 * columns, 0, place.row_bytes, zero=True)
        arguments = (NOTHING, View(place.buffer, place.start_bytes))
        cycles = np.full(1, rows * columns // 8, np.int32)
        self.assembly.add([Phase((spec,), arguments, np.zeros((1, 3), np.int64), cycles, alone=True)])

    def sum(self, rows: Rows, columns: int, name: str, first: int = 0) -> None:
        """The sum of all rows, into a tensor from an element on."""
        dst = Matrix(name, self.layer.start_of(name) + 4 * first, (), 0, 4)
        x = Matrix(rows.buffer, rows.starts[0], (), rows.row_bytes, 4)
        multiply(self.assembly, sum_of_rows(self.assembly, x, self.sizes.rows, columns, dst), self.target)

    def of_source(self, rows: Rows, channels: int, columns: int) -> None:
        """sums W^T; the second direction adds to the first one's."""
        layer = self.layer
        weights = panels_from("weights_layer", self.planner.tensors["weights_layer"], layer.start_of("weights_layer"))
        src, dst = (Matrix(x.buffer, x.starts[0], (), x.row_bytes, 4) for x in (layer.sums, rows))
        product = Product((), self.sizes.rows, channels, columns, src, weights, dst)
        multiply(self.assembly, product, adding(self.target) if layer.direction else self.target)
