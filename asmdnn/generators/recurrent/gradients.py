"""Gradients of the cells of recurrent layers, from what a training pass kept: programs of several results.

d is the gradient of h', the sum of `diff`, which comes from the output, and `later`, from the next step; of a sum
inside a gate's function it is that gate's part of `sums`.  `direct` and `earlier_c` go on to the step before, the first
beside what a product hands on.

| algorithm | reads | makes |
|---|---|---|
| vanilla       | diff, later, h            | sums: d f'(h), from the result |
| lstm          | diff, later, later_c, gates i f c~ o, c, c_before | sums; earlier_c = f dc |
| total         | diff, later               | total: d, of an LSTM's projected h |
| lstm_projected | of_hidden (the gradient of h in front of the projection), and as lstm | as lstm |
| gru           | diff, later, gates, before (h of the step before) | sums of u and c~; reset = r h |
| gru_reset | diff, later, gates, before, reset_diff (the gradient of r h) | sums of r; direct = u d + r reset_diff |
| lbr_gru | diff, later, gates and h R_c + b', before | sums of c~; iterated: of u, r, and of c~ times r; direct = u d |
| peepholes | sums of i, f, o, c_before, c | peepholes: what the gradients of the weights of peepholes are the sums of |

With peephole, an LSTM also reads these weights, of i, f, o.
Source: the derivatives of the cells of cells.py.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from asmdnn.exact import exact
from asmdnn.generators.checksum import checksum
from asmdnn.generators.functions.elementwise import SeveralResultsSpec, TypedResultsSpec
from asmdnn.generators.functions.elementwise_code import DST, SRC, Result
from asmdnn.generators.functions.eltwise import exponential, gradients
from asmdnn.generators.functions.expression import Builder, Term
from asmdnn.generators.functions.postops import ExpressionOp, Operand
from asmdnn.generators.functions.program import Program
from asmdnn.generators.recurrent.cells import Place
from asmdnn.records import dataclass

MOST_INPUTS = 16


@exact
@dataclass(frozen=True, slots=True, eq=False)
class CellGradient:
    """algorithm: see the module.  activation, alpha: of a vanilla RNN."""

    algorithm: str
    peephole: bool = False
    activation: str = ""
    alpha: float = 0.0


@dataclass(frozen=True, slots=True)
class GradientForm:
    """reads: the programs' inputs.  results: where each program's result goes."""

    reads: tuple[Place, ...]
    results: tuple[Place, ...]
    programs: tuple[Program, ...]

    @property
    def arguments(self) -> tuple[int, ...]:
        """What the arguments of a kernel are, as numbers of reads and results in a row: what is read first, the
        results, and what else is read."""
        reads = len(self.reads)
        return (0, *range(reads, reads + len(self.results)), *range(1, reads))


class GradientWriting:
    """A gradient as it is written down: its inputs are asked for by name."""

    def __init__(self, cell: CellGradient) -> None:
        self.cell, self.build = cell, Builder(MOST_INPUTS)
        self.reads: list[Place] = []
        self.results: dict[Place, Term] = {}

    def read(self, name: str, part: int = 0) -> Term:
        if (name, part) not in self.reads:
            self.reads.append((name, part))
        return self.build.inputs[self.reads.index((name, part))]

    def gates(self, count: int) -> Iterable[Term]:
        return (self.read("gates", part) for part in range(count))

    def total(self) -> Term:
        return self.read("diff") + self.read("later")

    def form(self) -> GradientForm:
        programs = tuple(self.build.finish(value) for value in self.results.values())
        return GradientForm(tuple(self.reads), tuple(self.results), programs)

    def through_logistic(self, d: Term, y: Term) -> Term:
        """d y (1 - y)"""
        return d * self.build.fnma(y, y, y)

    def through_tanh(self, d: Term, y: Term) -> Term:
        """d (1 - y^2)"""
        return d * self.build.fnma(y, y, 1.0)


def vanilla(w: GradientWriting) -> None:
    d, h = w.total(), w.read("h")
    functions = {
        "relu": lambda: gradients.relu(w.build, d, h, w.cell.alpha, 0.0),
        "tanh": lambda: w.through_tanh(d, h),
        "logistic": lambda: w.through_logistic(d, h),
    }
    w.results["sums", 0] = functions[w.cell.activation]()


def lstm(w: GradientWriting) -> None:
    lstm_of(w, w.total())


def lstm_projected(w: GradientWriting) -> None:
    lstm_of(w, w.read("of_hidden"))


def lstm_of(w: GradientWriting, d: Term) -> None:
    i, f, g, o = w.gates(4)
    squashed, before = exponential.tanh(w.build, w.read("c")), w.read("c_before")
    d_o = w.through_logistic(d * squashed, o)
    dc = w.read("later_c") + w.through_tanh(d * o, squashed)
    if w.cell.peephole:
        dc = w.build.fma(d_o, w.read("peephole", 2), dc)
    d_i, d_f, d_g = w.through_logistic(dc * g, i), w.through_logistic(dc * before, f), w.through_tanh(dc * i, g)
    earlier = dc * f
    if w.cell.peephole:
        earlier = w.build.fma(d_i, w.read("peephole", 0), w.build.fma(d_f, w.read("peephole", 1), earlier))
    w.results |= {("sums", part): x for part, x in enumerate((d_i, d_f, d_g, d_o))}
    w.results["earlier_c", 0] = earlier


def total(w: GradientWriting) -> None:
    w.results["total", 0] = w.total()


def peepholes(w: GradientWriting) -> None:
    before = w.read("c_before")
    w.results["peepholes", 0] = w.read("sums", 0) * before
    w.results["peepholes", 1] = w.read("sums", 1) * before
    w.results["peepholes", 2] = w.read("sums", 3) * w.read("c")


def gru_sums(w: GradientWriting) -> tuple[Term, Term]:
    """The gradients of the sums of u and c~."""
    d, u, c, before = w.total(), w.read("gates", 0), w.read("gates", 2), w.read("before")
    return w.through_logistic(d * (before - c), u), w.through_tanh(w.build.fnma(d, u, d), c)


def gru(w: GradientWriting) -> None:
    w.results["sums", 0], w.results["sums", 2] = gru_sums(w)
    w.results["reset", 0] = w.read("gates", 1) * w.read("before")


def gru_reset(w: GradientWriting) -> None:
    u, r = w.gates(2)
    of_reset = w.read("reset_diff")
    w.results["sums", 1] = w.through_logistic(of_reset * w.read("before"), r)
    w.results["direct", 0] = w.build.fma(u, w.total(), r * of_reset)


def lbr_gru(w: GradientWriting) -> None:
    d_u, d_c = gru_sums(w)
    u, r = w.gates(2)
    d_r = w.through_logistic(d_c * w.read("gates", 3), r)
    w.results["sums", 2] = d_c
    w.results |= {("iterated", part): x for part, x in enumerate((d_u, d_r, d_c * r))}
    w.results["direct", 0] = u * w.total()


GRADIENTS: dict[str, Callable[[GradientWriting], None]] = {
    written.__name__: written for written in (vanilla, lstm, lstm_projected, total, peepholes, gru, gru_reset, lbr_gru)
}


@lru_cache
def gradient_form(cell: CellGradient) -> GradientForm:
    """What the kernel of a cell's gradient is made from."""
    writing = GradientWriting(cell)
    GRADIENTS[cell.algorithm](writing)
    return writing.form()


def words_of(cell: CellGradient) -> str:
    """What its kernels are called."""
    words = [cell.algorithm, cell.activation, "peephole" * cell.peephole]
    return "_".join(word for word in words if word)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientSpec(SeveralResultsSpec):
    """The kernel of a cell's gradient: an element-wise one."""

    cell: CellGradient = CellGradient("total")

    @property
    def name(self) -> str:
        return f"gradient_f32_{words_of(self.cell)}_{self.rows}x{self.elements}_{checksum(self)}__{self.isa}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedGradientSpec(TypedResultsSpec):
    """The same of rows of which some are of other types: what it reads is widened, results are rounded once."""

    cell: CellGradient = CellGradient("total")

    @property
    def name(self) -> str:
        types = "_".join(dict.fromkeys(self.types))
        return f"gradient_{types}_{words_of(self.cell)}_{self.rows}x{self.elements}_{checksum(self)}__{self.isa}"


def gradient_spec(
    isa: str, cell: CellGradient, rows: int, elements: int, row_bytes: Sequence[int], types: Sequence[str] = ()
) -> GradientSpec | TypedGradientSpec:
    """The kernel for rows of so many elements.  row_bytes: the distance of rows of each of reads and results; types: of
    their elements, if not all are f32."""
    form = gradient_form(cell)
    steps = [row_bytes[place] if rows > 1 else 0 for place in form.arguments]
    results = len(form.results)
    operands = tuple(Operand(number, steps[number], 0, False) for number in range(DST + results, len(steps)))
    first, *others = ((ExpressionOp(program, operands),) for program in form.programs)
    more = tuple(Result(DST + i, steps[DST + i], chain) for i, chain in enumerate(others, 1))
    src = Operand(SRC, steps[SRC], 0, False)
    if {*types} - {"f32"}:
        return TypedGradientSpec(
            isa=isa, rows=rows, elements=elements, src=src, dst_row_bytes=steps[DST], chain=first, more=more, cell=cell,
            types=tuple(types[place] for place in form.arguments),
        )  # fmt: skip
    return GradientSpec(
        isa=isa, rows=rows, elements=elements, src=src, dst_row_bytes=steps[DST], chain=first, more=more, cell=cell
    )
