"""Cells of recurrent layers: what happens to a vector of units after the products, as programs of several results.

An accumulator for each gate starts from x W + b, h R is added, then the program makes the new state of gates, the old
state, and what else the cell reads.  Where gates are sigmoids and tanh, they share divisions: with s(x) = 1 / d(x),
d(x) = 1 + e^-x, and tanh(x) = 2 s(2 x) - 1, an LSTM's new state is a quotient of two numbers, and so is its output.
That is accurate to some 2^-23 of 1, not of the result, and arguments of e^ are bounded, so that no product overflows.
A vanilla RNN has one function a unit, and takes the element-wise one.

| algorithm | gates | reads | makes |
|---|---|---|---|
| vanilla       | x W + h R        | | dst |
| lstm          | i, f, c~, o      | state c, peephole weights of i, f, o | new_state c', dst h' |
| gru_gates     | u, r             | state h        | update s(u), reset s(r) h |
| gru_candidate | c~               | state h, update | dst h' |
| gru_first     | u, r, c~         |                | dst h', where h is zero |
| lbr_gru       | u, r, h R_c + b' | gates' third part x W_c + b_c, state h | dst h' |
| projection    | h W              | | dst |

If it `keeps`, the cell leaves in the workspace what the backward pass needs: an LSTM i, f, tanh(c~), o; a GRU u, r, c~
as they are used; a LBR GRU also h R_c + b'.

Where bytes are multiplied, LSTMs and GRUs read for each gate `scales`, what a sum of 1 stands for, and `offsets`, the
bias; h of the step before and what they hand on to products are bytes then.  Sums of an LSTM whose bytes are `dynamic`
start from `starts`, what the zero point of h adds; it reads x W as `gates`, of which 1 stands for `layer_scales`, and
its h is f32.
"""

from functools import lru_cache
from math import log

from asmdnn.exact import exact
from asmdnn.generators.functions.eltwise import exponential, simple
from asmdnn.generators.functions.expression import Builder, Term
from asmdnn.generators.functions.program import Program
from asmdnn.records import dataclass

MOST_SIGMOID = 28.0  # beyond, s(x) stays: within 2^-40 of 0 or 1; and d of three gates have a product below 2^128
MOST_TANH = 10.0

Place = tuple[str, int]  # an operand's name, and which part of it


@exact
@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """algorithm: see the module.  has_state: else the state is zero, and not read.  has_bias: b' of a LBR GRU, or the
    bias where products are of bytes.  peephole, keeps, dynamic: see the module.  activation: of a vanilla RNN, whose
    relu has a slope alpha below zero.  data: scale and shift of bytes, for (byte - shift) / scale; (): none."""

    algorithm: str
    has_state: bool = True
    has_bias: bool = False
    peephole: bool = False
    keeps: bool = False
    activation: str = ""
    alpha: float = 0.0
    data: tuple[float, ...] = ()
    dynamic: bool = False

    @property
    def of_bytes(self) -> bool:
        """Whether sums are of products of bytes."""
        return self.dynamic or bool(self.data)


@dataclass(frozen=True, slots=True)
class CellForm:
    """What a cell's code is made from.

    starts: what the accumulator of each gate starts from, None: zero.  inputs: the program's, after the gates.
    results: where each result of the program goes.
    """

    starts: tuple[Place | None, ...]
    inputs: tuple[Place, ...]
    results: tuple[Place, ...]
    program: Program

    @property
    def gates(self) -> int:
        return len(self.starts)

    @property
    def names(self) -> tuple[str, ...]:
        """The operands, each once."""
        places = [place for place in (*self.starts, *self.inputs, *self.results) if place]
        return tuple(dict.fromkeys(name for name, _ in places))

    @property
    def read(self) -> frozenset[Place]:
        return frozenset(place for place in (*self.starts, *self.inputs) if place)


class CellWriting:
    """A cell as it is written down: its inputs are asked for by name."""

    def __init__(self, starts: tuple[Place | None, ...], cell: Cell) -> None:
        self.starts, self.cell = starts, cell
        self.build = Builder(len(starts) + (MOST_BYTE_INPUTS if cell.of_bytes else MOST_INPUTS))
        self.inputs: list[Place] = []
        self.results: dict[Place, Term] = {}

    @property
    def gates(self) -> tuple[Term, ...]:
        return tuple(map(self.gate, range(len(self.starts))))

    def gate(self, number: int) -> Term:
        """A sum, of bytes what it stands for."""
        sums, start = self.build.inputs[number], self.starts[number]
        if not self.cell.of_bytes or start is None:
            return sums
        part = start[1]
        scales = self.read("scales", part)
        if self.cell.dynamic:
            x, own = self.read("gates", part), self.read("layer_scales", part)
            of_layer = self.build.fma(x, own, self.read("offsets", part)) if self.cell.has_bias else x * own
            return self.build.fma(sums, scales, of_layer)
        return self.build.fma(sums, scales, self.read("offsets", part)) if self.cell.has_bias else sums * scales

    def handed(self, name: str) -> Term:
        """What a step before has handed on to products, as a number."""
        if not self.cell.data:
            return self.read(name)
        scale, shift = self.cell.data
        return self.build.fma(self.read(name), 1 / scale, -shift / scale)

    def hand(self, name: str, x: Term) -> None:
        """A result that products multiply."""
        self.results[name, 0] = self.build.fma(x, *self.cell.data) if self.cell.data else x

    def read(self, name: str, part: int = 0) -> Term:
        self.inputs.append((name, part))
        return self.build.inputs[len(self.starts) + len(self.inputs) - 1]

    def form(self) -> CellForm:
        program = self.build.finish(*self.results.values())
        return CellForm(self.starts, tuple(self.inputs), tuple(self.results), program)

    def of_sigmoid(self, x: Term) -> Term:
        """1 / s(x)."""
        return denominator(self.build, x, 1.0, MOST_SIGMOID)

    def of_tanh(self, x: Term) -> Term:
        """d with tanh(x) = (2 - d) / d."""
        return denominator(self.build, x, 2.0, MOST_TANH)

    def tanh(self, x: Term) -> Term:
        d = self.of_tanh(x)
        return (2.0 - d) / d


MOST_INPUTS = 4
MOST_BYTE_INPUTS = MOST_INPUTS + 16  # x W, two scales and an offset for each of 4 gates


def denominator(build: Builder, x: Term, scale: float, most: float) -> Term:
    """1 + e^(-scale x) for |x| up to `most`, and beyond as there; NaN stays.  See exponential.py for e^."""
    x = build.op("min", most, build.op("max", -most, x))
    integer = build.fma(x, -exponential.LOG2_E * scale, exponential.INTEGERS)
    rest = build.fma(integer - exponential.INTEGERS, log(2) / scale, x)  # -scale times it is left of the exponent
    power = build.horner(rest, [c * (-scale) ** k for k, c in enumerate((1.0, 1.0, *exponential.Q))])
    return build.op("iadd", power, build.op("shl", integer, immediate=23)) + 1.0


def vanilla(cell: Cell) -> CellForm:
    w = CellWriting((("gates", 0),), cell)
    (x,) = w.gates
    functions = {
        "relu": lambda: simple.relu(w.build, x, cell.alpha),
        "tanh": lambda: exponential.tanh(w.build, x),
        "logistic": lambda: exponential.logistic(w.build, x),
    }
    w.results["dst", 0] = functions[cell.activation]()
    return w.form()


def lstm(cell: Cell) -> CellForm:
    w = CellWriting(tuple(("starts" if cell.dynamic else "gates", part) for part in range(4)), cell)
    i, g, o = (w.gate(number) for number in (0, 2, 3))
    f = w.gate(1) if cell.has_state or not cell.of_bytes else i  # which nobody needs
    c = w.read("state") if cell.has_state else None
    if cell.peephole and c is not None:
        i = w.build.fma(w.read("peephole", 0), c, i)
        f = w.build.fma(w.read("peephole", 1), c, f)
    di, df, dg = w.of_sigmoid(i), w.of_sigmoid(f), w.of_tanh(g)
    if cell.keeps:
        kept = [1.0 / di, 1.0 / df, (2.0 - dg) / dg]
        new = kept[0] * kept[2] if c is None else w.build.fma(kept[1], c, kept[0] * kept[2])
    elif c is None:
        new = (2.0 - dg) / (di * dg)
    else:
        both = di * dg
        new = w.build.fma(c, both, (2.0 - dg) * df) / (df * both)
    if cell.peephole:
        o = w.build.fma(w.read("peephole", 2), new, o)
    do, dt = w.of_sigmoid(o), w.of_tanh(new)
    w.results["new_state", 0] = new
    w.hand("dst", (2.0 - dt) / (do * dt))
    if cell.keeps:
        w.results |= {("workspace", part): x for part, x in enumerate((*kept, 1.0 / do))}
    return w.form()


def gru_gates(cell: Cell) -> CellForm:
    w = CellWriting((("gates", 0), ("gates", 1)), cell)
    du, dr = (w.of_sigmoid(x) for x in w.gates)
    h = w.handed("state")
    u = 1.0 / du
    if cell.keeps:
        r = 1.0 / dr
        w.results |= {("workspace", 0): u, ("workspace", 1): r, ("update", 0): u, ("reset", 0): r * h}
    else:
        w.results["update", 0] = u
        w.hand("reset", h / dr)
    return w.form()


def gru_candidate(cell: Cell) -> CellForm:
    w = CellWriting((("gates", 2),), cell)
    h, u = w.handed("state"), w.read("update")
    c = w.tanh(w.gates[0])
    w.hand("dst", w.build.fma(u, h - c, c))
    if cell.keeps:
        w.results["workspace", 2] = c
    return w.form()


def gru_first(cell: Cell) -> CellForm:
    w = CellWriting(tuple(("gates", part) for part in ((0, 1, 2) if cell.keeps else (0, 2))), cell)
    du, c = w.of_sigmoid(w.gates[0]), w.tanh(w.gates[-1])
    w.results["dst", 0] = c - c / du
    if cell.keeps:
        u, r = 1.0 / du, 1.0 / w.of_sigmoid(w.gates[1])
        w.results |= {("workspace", part): x for part, x in enumerate((u, r, c))}
    return w.form()


def lbr_gru(cell: Cell) -> CellForm:
    w = CellWriting((("gates", 0), ("gates", 1), ("bias", 0) if cell.has_bias else None), cell)
    du, dr = w.of_sigmoid(w.gates[0]), w.of_sigmoid(w.gates[1])
    x = w.read("gates", 2)
    if cell.keeps:
        r = 1.0 / dr
        c = w.tanh(w.build.fma(r, w.gates[2], x))
        w.results |= {("workspace", part): y for part, y in enumerate((1.0 / du, r, c, w.gates[2]))}
    else:
        c = w.tanh(x + w.gates[2] / dr)
    w.results["dst", 0] = c + (w.read("state") - c) / du if cell.has_state else c - c / du
    return w.form()


def projection(cell: Cell) -> CellForm:
    w = CellWriting((None,), cell)
    w.results["dst", 0] = w.gates[0]
    return w.form()


FORMS = {form.__name__: form for form in (vanilla, lstm, gru_gates, gru_candidate, gru_first, lbr_gru, projection)}


@lru_cache
def form_of(cell: Cell) -> CellForm:
    """What the code of a cell is made from."""
    return FORMS[cell.algorithm](cell)
