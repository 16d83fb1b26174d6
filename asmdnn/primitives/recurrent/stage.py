"""A stage of a time step, and where its weights and the operands of its cell lie."""

from asmdnn.generators.recurrent.cells import Cell, form_of
from asmdnn.generators.recurrent.tile_shape import CellOperand
from asmdnn.isa.dot import F32, Types
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.phase import View
from asmdnn.primitives.recurrent.rows import BufferRows
from asmdnn.records import dataclass

UNIT_VECTORS = (1, 2, 4, 8)  # of units in a tile


@dataclass(frozen=True, slots=True)
class RecurrentPanels:
    """Weights of a layer and direction: vectors of units in panels; distances as in tile_shape.py."""

    buffer: str
    start_bytes: int
    row_bytes: int
    gate_bytes: int
    panel_bytes: int
    depth: int  # elements

    @property
    def view(self) -> View:
        return View(self.buffer, self.start_bytes)


@dataclass(frozen=True, slots=True)
class CellField:
    """An operand of a cell: rows, and where parts and vectors of units lie in them.

    pair_bytes: from a pair of vectors to the next; 0: vectors of all pairs are equally far from one another.
    """

    rows: BufferRows
    vector_bytes: int
    part_bytes: int = 0
    whole: bool = False
    pair_bytes: int = 0

    def operand(self, name: str) -> CellOperand:
        return CellOperand(name, self.rows.row_bytes, self.part_bytes, self.vector_bytes, self.whole, self.rows.dtype)

    @property
    def pair(self) -> int:
        return self.pair_bytes or 2 * self.vector_bytes


def vectors_of(rows: BufferRows, lanes: int, part: int = 0) -> CellField:
    """Rows whose vectors of units lie side by side, and whose parts begin every `part` elements."""
    size = rows.dtype.size_bytes
    return CellField(rows, lanes * size, part * size)


@dataclass(frozen=True, slots=True)
class Stage:
    """A product and the cell after it.  units: of a row; depth 0: there is no product.  pairs: of each operand, from a
    pair of vectors to the next.  amx_level: the one whose tiles may multiply."""

    isa: str
    cell: Cell
    units: int
    weights: RecurrentPanels
    src_row_bytes: int
    operands: tuple[CellOperand, ...]
    pairs: tuple[int, ...]
    types: Types = F32
    amx_level: str | None = None

    @property
    def groups(self) -> int:
        """Of k."""
        return -(-self.weights.depth // self.types.group)

    @property
    def weights_vector_bytes(self) -> int:
        return self.lanes * self.types.weights_bytes

    @property
    def lanes(self) -> int:
        return lanes_of(self.isa)

    @property
    def panels(self) -> int:
        return -(-self.units // self.lanes)

    @property
    def known_vectors(self) -> tuple[int, ...]:
        """How many vectors of units a tile may have: those of a pair, or more where all are equally far apart."""
        even = all(pair == 2 * x.vector_bytes for x, pair in zip(self.operands, self.pairs, strict=True))
        return UNIT_VECTORS if even else UNIT_VECTORS[:2]

    @property
    def weights_bytes(self) -> int:
        return self.groups * form_of(self.cell).gates * self.panels * self.weights_vector_bytes
