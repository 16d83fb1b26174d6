"""A tile of a time step: a few rows by a few vectors of units, all gates of which are accumulated, then the cell.

    gate[r, g, u] = start[r, g, u] + sum over k of src[r, k] * weights[k, g, u]
    results[r, u] = cell(gate[r, :, u], operands[r, u])

| argument | dtype[shape] | what it is |
|---|---|---|
| src        | types.src[rows, depth] | the state before, dense, rows src_row_bytes apart |
| weights    | types.weights[depth, gates, vectors] | whole vectors, zero padded; group k at k * weights_row_bytes |
| operands   | [rows, parts, units]       | what the cell starts from, reads and writes, as each Operand says |
| prefetched | bytes                      | weights that will be needed soon; only prefetched |

Nothing is touched past the units, unless an operand is `whole`: then whole vectors are.  An operand that is read may be
one that is written, row by row: c of an LSTM is updated in place.  With depth 0 src and weights are not touched.
Weights have groups of k side by side as the dot product takes them (isa/dot_base.py); of src's last one `missing`
elements may not be there.  Gates start from operands of the sums' type, and cells compute in f32.
The register block holds all gates of a unit, so that no gate ever leaves the registers.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range, joined
from asmdnn.generators.dot.operands import BROADCASTS
from asmdnn.generators.recurrent.cell_code import CellCode, Where
from asmdnn.generators.recurrent.cells import Cell, CellForm, Place, form_of
from asmdnn.generators.recurrent.starts import GateStarts
from asmdnn.generators.recurrent.tile_shape import SRC, WEIGHTS, CellOperand
from asmdnn.isa.assembler import Assembler, Pointer, mem
from asmdnn.isa.dot import F32, GROUP_BYTES, Types, dot_of
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.records import dataclass

UNROLL = 8  # steps of depth in the loop's body


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentTileSpec:
    """Everything that the bytes of a tile's kernel depend on.

    rows, units: of the tile; depth: groups of the product.  weights_row_bytes, gate_bytes, panel_bytes: from a step of
    depth, a gate, a vector of units to the next in the weights.  operands: the cell's, in the order of `Form.names`.
    prefetch_lines: cache lines of each stream to prefetch for every UNROLL steps of depth.  sums: independent ones of
    each gate, over every so many steps of depth.  together: vectors of units whose cells are computed in turn.
    starts_last: what gates start from is asked for first and added last, so that multiplies do not wait for it.
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
    operands: tuple[CellOperand, ...]
    prefetch_lines: int = 0
    sums: int = 1
    together: int = 1
    types: Types = F32
    missing: int = 0
    starts_last: bool = False

    @property
    def form(self) -> CellForm:
        return form_of(self.cell)

    @property
    def vectors(self) -> int:
        """Of units."""
        return -(-self.units // lanes_of(self.isa))

    @property
    def row_bytes(self) -> int:
        """Of a vector of weights."""
        return lanes_of(self.isa) * self.types.weights_bytes

    @property
    def src_bytes(self) -> int:
        """Of a row that is multiplied."""
        return self.depth * GROUP_BYTES - self.missing * self.types.src.size_bytes

    @property
    def name(self) -> str:
        words = [self.cell.algorithm, f"{self.rows}x{self.units}x{self.form.gates}x{self.depth}"]
        words += [self.cell.activation] if self.cell.activation else []
        words += ["peephole"] if self.cell.peephole else []
        words += ["keeps"] if self.cell.keeps else []
        words += ["prefetch"] if self.prefetch_lines else []
        return f"recurrent_{self.types}_{'_'.join(words)}_{checksum(self)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ("src", "weights", *(operand.name for operand in self.operands), "prefetched")

    @property
    def streams(self) -> tuple[int, ...]:
        """Where the runs of bytes begin that a panel of weights consists of: one, or one for each gate."""
        side_by_side = self.gate_bytes == self.row_bytes
        return (0,) if side_by_side else tuple(g * self.gate_bytes for g in range(self.form.gates))

    def operand(self, name: str) -> tuple[int, CellOperand]:
        """The argument's number, and the operand."""
        return next((i, x) for i, x in enumerate(self.operands, WEIGHTS + 1) if x.name == name)

    def footprint(self) -> Footprint:
        reads, form = list[Range](), self.form
        if self.depth:
            rows = ((r * self.src_row_bytes, self.src_bytes) for r in range(self.rows))
            reads += ranges(SRC, rows)
            reads += ranges(WEIGHTS, self._weights())
        for place in sorted(form.read):
            reads += self._touched(place)
        writes = [x for place in form.results for x in self._touched(place)]
        return Footprint(joined(reads), joined(writes))

    def _weights(self) -> Iterator[tuple[int, int]]:
        """(begin, size) of rows; where they lie one after another, of all of them."""
        width, gates = self.row_bytes, self.form.gates
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
        return list(ranges(argument, ((at, x.dtype.size_bytes * (lanes if x.whole else n)) for at, n in spans)))

    def generate(self, asm: Assembler) -> None:
        code = StepCode(self, asm)
        code.start()
        if self.depth:
            code.multiply()
            code.dot.add_up(code.acc)
            code.add_starts()
        code.cells()
        asm.ret()


def ranges(argument: int, spans: Iterable[tuple[int, int]]) -> Iterator[Range]:
    """Of (begin, size)."""
    return (Range(argument, begin, begin + size) for begin, size in spans)


class StepCode:
    """The code of a tile: `acc[s][r][u * gates + g]` are the accumulators of sum s."""

    def __init__(self, spec: RecurrentTileSpec, asm: Assembler) -> None:
        self.spec, self.asm, self.v = spec, asm, vector_of(spec.isa, asm)
        self.dot = dot_of(spec.types, spec.isa, self.v)
        self.form, self.columns = spec.form, spec.form.gates * spec.vectors
        self.acc = self.v.registers.take("gates", spec.sums, spec.rows, self.columns)
        self.starts = GateStarts(self.v, self.form, self.place, (spec.rows, spec.vectors, spec.units), spec.types.sums)
        self.pointers: dict[int, Any] = {}
        used = [a for a in (SRC, WEIGHTS) if spec.depth] + [spec.operand(name)[0] for name in self.form.names]
        used += [len(spec.frame) - 1] if spec.prefetch_lines else []
        for argument in used:
            self.pointers[argument] = asm.gp.take(spec.frame[argument])
            asm.MOV(self.pointers[argument], mem(asm.frame, 8 * argument))

    def place(self, place: Place, where: Where) -> tuple[Pointer, CellOperand]:
        """Where a part of an operand lies for a vector of a row."""
        argument, x = self.spec.operand(place[0])
        at = where[0] * x.row_bytes + place[1] * x.part_bytes + where[1] * x.vector_bytes
        return mem(self.pointers[argument], at, size=self.v.lanes * x.dtype.size_bytes), x

    def start(self) -> None:
        """The first sum of each gate starts from an operand, if not last; the others from zero."""
        spec, v = self.spec, self.v
        self.asm.role("start")
        if spec.starts_last:
            self.starts.ask_ahead()
        else:
            self.starts.load(self.acc[0])
        v.zeros(self.acc[0 if spec.starts_last else 1 :])

    def multiply(self) -> None:
        """A loop over UNROLL steps of depth, then the rest."""
        spec, asm, dot = self.spec, self.asm, self.dot
        with dot.ready():
            weights, spare = self.factors()
            rounds = (spec.depth - (1 if spec.missing else 0)) // UNROLL
            looped = rounds if rounds > 1 else 0
            if looped:
                with asm.repeated(looped, "steps left", "steps"):
                    self.steps(UNROLL, weights, spare)
                    asm.ADD(self.pointers[SRC], UNROLL * GROUP_BYTES)
                    asm.ADD(self.pointers[WEIGHTS], UNROLL * spec.weights_row_bytes)
                    if spec.prefetch_lines:
                        asm.ADD(self.pointers[len(spec.frame) - 1], spec.prefetch_lines * LINE_BYTES)
            last = GROUP_BYTES - spec.missing * spec.types.src.size_bytes
            self.steps(spec.depth - looped * UNROLL, weights, spare, last)
            self.v.registers.free(*weights, *spare)

    def factors(self) -> tuple[list[Any], list[Any]]:
        """The registers of weights, and those of groups of src: a row of weights at once where there are enough."""
        spec, dot, registers = self.spec, self.dot, self.v.registers
        each = dot.row_registers
        by_row = spec.rows > 1 and registers.available >= each * self.columns + dot.spare_registers
        one = 0 if spec.rows == 1 and dot.reads_memory else each
        weights = registers.take("weights row", each * self.columns if by_row else one)
        turns = BROADCASTS if by_row or spec.rows == 1 else spec.rows
        return weights, registers.take("broadcast source", min(registers.available, max(turns, dot.spare_registers)))

    def steps(self, count: int, weights: Sequence[Any], spare: Sequence[Any], last_bytes: int = GROUP_BYTES) -> None:
        """So many steps of depth after the pointers, of which the last has `last_bytes` in src."""
        spec, v, dot = self.spec, self.v, self.dot
        each = dot.row_registers
        for k in range(count):
            self.asm.role(f"step {k}")
            for line in range(k, spec.prefetch_lines, count):
                for start in spec.streams:
                    self.asm.PREFETCHT1(mem(self.pointers[len(spec.frame) - 1], start + line * LINE_BYTES))
            row = [mem(self.pointers[WEIGHTS], at, size=spec.row_bytes) for at in self.row_of_weights(k)]
            places = (r * spec.src_row_bytes + k * GROUP_BYTES for r in range(spec.rows))
            column = [mem(self.pointers[SRC], at, size=GROUP_BYTES) for at in places]
            group_bytes = last_bytes if k == count - 1 else GROUP_BYTES
            acc = self.acc[k % spec.sums]
            if spec.rows == 1:  # each weight is used once: the multiply reads it from memory where it can
                turn = k % len(spare)
                pieces = [(v, at) for at in row]
                dot.one_row(acc[0], (column[0], group_bytes), pieces, weights, [*spare[turn:], *spare[:turn]])
            elif len(weights) == each * self.columns:
                for j, at in enumerate(row):
                    dot.load(weights[j * each : (j + 1) * each], v, at)
                dot.outer_product(acc, weights, column, spare, group_bytes)
            else:  # few registers: an element of each row stays in one, and weights take turns in the last
                for copy, element in zip(spare, column, strict=True):
                    dot.broadcast(copy, element, group_bytes)
                for c, at in enumerate(row):
                    dot.load(weights, v, at)
                    for r, copy in enumerate(spare):
                        dot.multiply(acc[r][c], copy, weights[0])

    def row_of_weights(self, k: int) -> list[int]:
        """Where the weights of each accumulator of a row lie."""
        spec = self.spec
        return [
            u * spec.panel_bytes + g * spec.gate_bytes + k * spec.weights_row_bytes
            for u in range(spec.vectors)
            for g in range(self.form.gates)
        ]

    def add_starts(self) -> None:
        if self.spec.starts_last:
            self.asm.role("add starts")
            self.starts.add(self.acc[0])

    def cells(self) -> None:
        """The cells of all vectors, some in turn."""
        spec, v = self.spec, self.v
        self.asm.role("cell")
        if not spec.depth:
            v.registers.free(self.acc[1:])
        every = [(r, u) for r in range(spec.rows) for u in range(spec.vectors)]
        with v.parts(spec.vectors, spec.units) as parts:
            code = CellCode(v, spec.isa, self.form, spec.types.sums, self.place, parts)
            for first in range(0, len(every), spec.together):
                some = every[first : first + spec.together]
                gates = [[self.acc[0][r][u * self.form.gates + g] for r, u in some] for g in range(self.form.gates)]
                code.emit(some, gates)
