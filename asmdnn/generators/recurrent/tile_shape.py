"""What a tile of a time step is: the fields that its code depends on, its name, and the bytes that it touches.

The arguments and the formula are in tile.py, which has the code.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from zlib import crc32

from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.recurrent.cells import Cell, Form, Place, form_of
from asmdnn.isa.vectors import lanes_of

SRC, WEIGHTS = range(2)
# The most rows for each number of vectors of a row, which are gates times vectors of units: accumulators, and beside
# them a row of weights and an element of src, or an element of each row and a vector of weights.
BLOCKS = {"avx2": {1: 12, 2: 6, 3: 4, 4: 3}, "avx512_core": {1: 24, 2: 14, 3: 8, 4: 6}}


@dataclass(frozen=True, slots=True)
class Operand:
    """What a cell reads or writes.  Row r, part p, vector u of units lies at r * row_bytes + p * part_bytes +
    u * vector_bytes.  whole: there are whole vectors of units, with padding behind the last."""

    name: str
    row_bytes: int
    part_bytes: int
    vector_bytes: int
    whole: bool = False


@dataclass(frozen=True, slots=True)
class RecurrentTile:
    """Everything that the bytes of a tile's kernel depend on.

    rows, units: of the tile; depth: of the product.  weights_row_bytes, gate_bytes, panel_bytes: from a step of depth,
    a gate, a vector of units to the next in the weights.  operands: the cell's, in the order of `Form.names`.
    ahead_lines: cache lines of each stream to prefetch for every UNROLL steps of depth.  sums: independent ones of each
    gate, over every so many steps of depth.  together: vectors of units whose cells are computed in turn.
    """

    isa: str
    cell: Cell
    rows: int
    units: int
    depth: int
    src_row_bytes: int
    weights_row_bytes: int
    gate_bytes: int
    panel_bytes: int
    operands: tuple[Operand, ...]
    ahead_lines: int = 0
    sums: int = 1
    together: int = 1

    @property
    def form(self) -> Form:
        return form_of(self.cell)

    @property
    def vectors(self) -> int:
        """Of units."""
        return -(-self.units // lanes_of(self.isa))

    @property
    def name(self) -> str:
        words = [self.cell.algorithm, f"{self.rows}x{self.units}x{self.form.gates}x{self.depth}"]
        words += [self.cell.activation] if self.cell.activation else []
        words += ["peephole"] if self.cell.peephole else []
        words += ["keeps"] if self.cell.keeps else []
        words += ["ahead"] if self.ahead_lines else []
        return f"recurrent_f32_{'_'.join(words)}_{crc32(repr(self).encode()):08x}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return ("src", "weights", *(operand.name for operand in self.operands), "ahead")

    @property
    def streams(self) -> tuple[int, ...]:
        """Where the runs of bytes begin that a panel of weights consists of: one, or one for each gate."""
        side_by_side = self.gate_bytes == 4 * lanes_of(self.isa)
        return (0,) if side_by_side else tuple(g * self.gate_bytes for g in range(self.form.gates))

    def operand(self, name: str) -> tuple[int, Operand]:
        """The argument's number, and the operand."""
        return next((i, x) for i, x in enumerate(self.operands, WEIGHTS + 1) if x.name == name)

    def footprint(self) -> Footprint:
        reads, form = list[Range](), self.form
        if self.depth:
            rows = ((r * self.src_row_bytes, 4 * self.depth) for r in range(self.rows))
            reads += ranges(SRC, rows)
            reads += ranges(WEIGHTS, self._weights())
        for place in sorted(form.read):
            reads += self._touched(place)
        writes = [x for place in form.results for x in self._touched(place)]
        return Footprint(joined(reads), joined(writes))

    def _weights(self) -> Iterator[tuple[int, int]]:
        """(begin, size) of rows; where they lie behind one another, of all of them."""
        width, gates = 4 * lanes_of(self.isa), self.form.gates
        if len(self.streams) == 1 and gates * width == self.weights_row_bytes:
            yield from ((u * self.panel_bytes, self.depth * self.weights_row_bytes) for u in range(self.vectors))
            return
        for u in range(self.vectors):
            for g in range(gates):
                start = u * self.panel_bytes + g * self.gate_bytes
                yield from ((start + k * self.weights_row_bytes, width) for k in range(self.depth))

    def _touched(self, place: Place) -> list[Range]:
        """The bytes of a part of an operand."""
        lanes = lanes_of(self.isa)
        argument, x = self.operand(place[0])
        spans = (
            (r * x.row_bytes + place[1] * x.part_bytes + u * x.vector_bytes, min(lanes, self.units - u * lanes))
            for r in range(self.rows)
            for u in range(self.vectors)
        )
        return list(ranges(argument, ((at, 4 * (lanes if x.whole else units)) for at, units in spans)))


def ranges(argument: int, spans: Iterable[tuple[int, int]]) -> Iterator[Range]:
    """Of (begin, size)."""
    return (Range(argument, begin, begin + size) for begin, size in spans)


def joined(touched: Iterable[Range]) -> tuple[Range, ...]:
    """The same bytes in the fewest ranges."""
    found: list[Range] = []
    for x in sorted(touched, key=lambda x: (x.argument, x.begin_bytes, x.end_bytes)):
        last = found[-1] if found else None
        if last and last.argument == x.argument and x.begin_bytes <= last.end_bytes:
            found[-1] = Range(x.argument, last.begin_bytes, max(last.end_bytes, x.end_bytes))
        else:
            found.append(x)
    return tuple(found)
