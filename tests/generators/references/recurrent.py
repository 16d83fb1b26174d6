"""What a tile of a time step computes, written from the tables in its docstrings, and a bound of its errors.

The bound goes through the cell with the values: sums as Higham bounds them, functions by their slopes, and SLACK units
in the last place of 1 for what the kernel rounds.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from asmdnn.generators.recurrent.amx_step import AmxStepSpec
from asmdnn.generators.recurrent.cells import Place, form_of
from asmdnn.generators.recurrent.dynamic_rows import DynamicRowsSpec
from asmdnn.generators.recurrent.tile import RecurrentTileSpec
from asmdnn.isa.vectors import lanes_of
from asmdnn.types import bf16, f32, s32, u8
from tests.generators.case import UNIT_ROUNDOFF, Case, Reference
from tests.generators.reference import Memory
from tests.support.arena import Doubles, Elements, buffer_of, elements

SLACK = 16 * UNIT_ROUNDOFF
SMALL, MOST_BYTE, HALF = 2.0**-18, 255, 0.5 + 2.0**-12  # what rounding to a byte moves
UNITS = {bf16: 2.0**-8}  # the unit roundoff of results


@dataclass(frozen=True, eq=False)
class Near:
    """Numbers and how far from them the kernel's may be."""

    value: Doubles
    error: Doubles

    def __add__(self, other: "Near") -> "Near":
        total = self.value + other.value
        return Near(total, self.error + other.error + SLACK * (np.abs(self.value) + np.abs(other.value)))

    def __mul__(self, other: "Near") -> "Near":
        x, y = np.abs(self.value), np.abs(other.value)
        return Near(self.value * other.value, (x + self.error) * other.error + y * self.error + SLACK * x * y)

    def __neg__(self) -> "Near":
        return Near(-self.value, self.error)


def logistic(x: Near) -> Near:
    return Near(1 / (1 + np.exp(-np.clip(x.value, -700, 700))), np.minimum(1, x.error / 4) + SLACK)


def tanh(x: Near) -> Near:
    return Near(np.tanh(x.value), np.minimum(2, x.error) + SLACK)


Cells = Callable[["Tile", list[Near]], None]


class Tile:
    """A vector of units of a row, or all its lanes, of a call."""

    def __init__(self, spec: RecurrentTileSpec, memory: Memory, bounds: Memory, where: tuple[int, int]) -> None:
        self.spec, self.memory, self.bounds, self.where = spec, memory, bounds, where
        self.lanes = lanes_of(spec.isa)
        self.units = min(self.lanes, spec.units - where[1] * self.lanes)

    def place(self, place: Place) -> tuple[str, int, int]:
        """Name, where, and how many elements."""
        _, x = self.spec.operand(place[0])
        at = self.where[0] * x.row_bytes + place[1] * x.part_bytes + self.where[1] * x.vector_bytes
        return x.name, at, self.lanes if x.whole else self.units

    def read(self, name: str, part: int = 0) -> Near:
        """An operand; zeros after the units of one that is not whole."""
        _, at, count = self.place((name, part))
        found = np.zeros((2, self.lanes))
        found[:, :count] = self.memory[name].load(at, count), self.bounds[name].load(at, count)
        return Near(found[0], np.zeros(self.lanes))

    def handed(self, name: str) -> Near:
        """As `read`, of what may be a byte."""
        x, data = self.read(name), self.spec.cell.data
        return Near((x.value - data[1]) / data[0], SLACK * np.abs(x.value)) if data else x

    def hand(self, x: Near, name: str) -> None:
        """As `write`, of what may become a byte."""
        if not self.spec.cell.data:
            self.write(x, name)
            return
        scale, shift = self.spec.cell.data
        self.write(Near(np.clip(x.value * scale + shift, 0, MOST_BYTE), x.error * scale + HALF), name)

    def write(self, x: Near, name: str, part: int = 0) -> None:
        _, at, count = self.place((name, part))
        self.memory[name].store(at, x.value[:count])
        unit = UNITS.get(self.spec.operand(name)[1].dtype, 0.0)
        self.bounds[name].store(at, (x.error + unit * (np.abs(x.value) + x.error))[:count])

    def products(self) -> list[Near]:
        """start + src @ weights of every gate."""
        spec, (r, u), found = self.spec, self.where, []
        for g, begin in enumerate(form_of(spec.cell).starts):
            total = self.read(*begin) if begin else Near(np.zeros(self.lanes), np.zeros(self.lanes))
            value, size = total.value.copy(), np.abs(total.value)
            for k in range(spec.depth * spec.types.group - spec.missing):
                group, i = divmod(k, spec.types.group)
                x = self.load("src", r * spec.src_row_bytes + k * spec.types.src.size_bytes, 1)
                at = u * spec.panel_bytes + g * spec.gate_bytes + group * spec.weights_row_bytes
                w = self.load("weights", at, self.lanes * spec.types.group)[i :: spec.types.group]
                value, size = value + x * w, size + np.abs(x * w)
            roundings = spec.depth * spec.types.group + spec.sums
            if not spec.cell.of_bytes:
                found.append(Near(value, roundings * UNIT_ROUNDOFF * size))
                continue
            part = begin[1] if begin else 0
            if spec.cell.algorithm == "lstm" and part == 1 and not spec.cell.has_state:
                found.append(Near(value, value))  # nobody needs f
                continue
            gate = Near(value, np.zeros(self.lanes)) * self.read("scales", part)
            if spec.cell.dynamic:
                gate = gate + self.read("gates", part) * self.read("layer_scales", part)
            found.append(gate + self.read("offsets", part) if spec.cell.has_bias else gate)
        return found

    def load(self, name: str, at: int, count: int) -> Doubles:
        self.bounds[name].load(at, count)
        return self.memory[name].load(at, count)


ONE = Near(np.ones(1), np.zeros(1))


def vanilla(t: Tile, gates: list[Near]) -> None:
    x, alpha = gates[0], t.spec.cell.alpha
    relu = Near(np.where(x.value > 0, x.value, alpha * x.value), x.error * max(1.0, alpha) + SLACK * np.abs(x.value))
    functions = {"relu": relu, "tanh": tanh(x), "logistic": logistic(x)}
    t.write(functions[t.spec.cell.activation], "dst")


def lstm(t: Tile, gates: list[Near]) -> None:
    cell, (i, f, g, o) = t.spec.cell, gates
    c = t.read("state") if cell.has_state else None
    if cell.peephole and c is not None:
        i, f = i + t.read("peephole", 0) * c, f + t.read("peephole", 1) * c
    i, f, g = logistic(i), logistic(f), tanh(g)
    new = i * g if c is None else f * c + i * g
    if cell.peephole:
        o = o + t.read("peephole", 2) * new
    o = logistic(o)
    t.write(new, "new_state")
    t.hand(o * tanh(new), "dst")
    if cell.keeps:
        for part, x in enumerate((i, f, g, o)):
            t.write(x, "workspace", part)


def gru_gates(t: Tile, gates: list[Near]) -> None:
    u, r = map(logistic, gates)
    t.hand(r * t.handed("state"), "reset")
    t.write(u, "update")
    if t.spec.cell.keeps:
        t.write(u, "workspace", 0)
        t.write(r, "workspace", 1)


def gru_candidate(t: Tile, gates: list[Near]) -> None:
    c, h = tanh(gates[0]), t.handed("state")
    u = t.read("update")
    t.hand(c + u * (h + -c), "dst")
    if t.spec.cell.keeps:
        t.write(c, "workspace", 2)


def gru_first(t: Tile, gates: list[Near]) -> None:
    u, c = logistic(gates[0]), tanh(gates[-1])
    t.write((ONE + -u) * c, "dst")
    if t.spec.cell.keeps:
        for part, x in enumerate((u, logistic(gates[1]), c)):
            t.write(x, "workspace", part)


def lbr_gru(t: Tile, gates: list[Near]) -> None:
    u, r, sums = logistic(gates[0]), logistic(gates[1]), gates[2]
    c = tanh(t.read("gates", 2) + r * sums)
    t.write(u * t.read("state") + (ONE + -u) * c if t.spec.cell.has_state else (ONE + -u) * c, "dst")
    if t.spec.cell.keeps:
        for part, x in enumerate((u, r, c, sums)):
            t.write(x, "workspace", part)


def projection(t: Tile, gates: list[Near]) -> None:
    t.write(gates[0], "dst")


CELLS: dict[str, Cells] = {
    cell.__name__: cell for cell in (vanilla, lstm, gru_gates, gru_candidate, gru_first, lbr_gru, projection)
}


def tiles_case(spec: AmxStepSpec, random: np.random.Generator, integers: bool) -> Case:
    """Of the same tile, whose sums have another order."""
    case = step_case(spec.tile, random, integers)
    return Case(spec, case.buffers, case.tolerances)


def step_case(spec: RecurrentTileSpec, random: np.random.Generator, integers: bool) -> Case:
    types = {"src": spec.types.src, "weights": spec.types.weights} | {x.name: x.dtype for x in spec.operands}
    memory = {name: elements(random, integers, types.get(name, f32)) for name in spec.frame}
    if "scales" in memory:  # of which sums of bytes become gates
        memory["scales"] = Elements(memory["scales"].initial * SMALL)
    bounds = {name: Elements(np.zeros_like(x.initial), x.kind) for name, x in memory.items()}
    for r in range(spec.rows):
        for u in range(spec.vectors):
            tile = Tile(spec, memory, bounds, (r, u))
            CELLS[spec.cell.algorithm](tile, tile.products())
    tolerances = {}
    for name, x in bounds.items():
        bound = buffer_of(x)
        if bound is not None and x.written.any():
            tolerances[name] = bound.wanted
    return Case(spec, {name: buffer_of(x) for name, x in memory.items()}, tolerances)


def dynamic_rows_case(spec: DynamicRowsSpec, random: np.random.Generator, integers: bool) -> Case:
    """Bit for bit, as f32 rounds."""
    kinds = {"dst": u8, "sums": s32, "starts": s32}
    memory = {name: elements(random, integers, kinds.get(name, f32)) for name in spec.frame}
    rows = [memory["src"].load(r * spec.src_row_bytes, spec.elements) for r in range(spec.rows)]
    src = np.array(rows, np.float32)
    low, high = min(src.min(), np.float32(0)), max(src.max(), np.float32(0))
    scale = max((high - low) / np.float32(255), np.float32(2**-126))
    zero_point = np.clip(np.rint(-low / scale), 0, 255)
    memory["dst"].store(0, np.clip(np.rint(src / scale) + zero_point, 0, 255).ravel().astype(np.float64))
    sums, scales = (memory[name].load(0, spec.columns) for name in ("sums", "scales"))
    memory["starts"].store(0, sums * zero_point)
    memory["factors"].store(0, (scales.astype(np.float32) * scale).astype(np.float64))
    return Case(spec, {name: buffer_of(x) for name, x in memory.items()}, {})


REFERENCES = {
    AmxStepSpec: Reference(tiles_case, rounds=True),
    RecurrentTileSpec: Reference(step_case, rounds=True),
    DynamicRowsSpec: Reference(dynamic_rows_case, rounds=True),
}
