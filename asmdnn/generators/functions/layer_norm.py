"""Normalization of dense rows by their own mean and variance:

    dst = after((src - mean) / sqrt(variance + epsilon))

| argument | dtype[shape] | what it is |
|---|---|---|
| src      | kind[rows, elements] | rows src_row_bytes apart, elements dense |
| dst      | kind[rows, elements] | rows dst_row_bytes apart, elements dense; may be src |
| mean     | f32[rows]           | statistics.mean_bytes apart; only with statistics |
| variance | f32[rows]           | statistics.variance_bytes apart; only with statistics |
| then ..  | f32[rows, elements] | operands of after, such as scale and shift, each laid out as its Operand says |

kind is f32, or what `types` says of src and dst; elements become f32 as they are loaded, and are rounded once.
The mean is 0, and the variance that of the squares, if not `centred`.  statistics are written, or read if `given`.

A row is read once for both sums, of d = src - k and of d^2, k being the mean of its first vector; the second walk finds
the row in a cache.  By Cauchy's inequality (k - mean)^2 <= variance elements / lanes, so that what cancels in
variance = sum d^2 / elements - (sum d / elements)^2 is at most 1 + elements / lanes roundings, whatever the mean is.
"""

from collections.abc import Sequence
from functools import lru_cache

from asmdnn.exact import exact
from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.chain import chain_words, compose, names_of_operands, operands_of
from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.row_code import DST, SRC, Rows, steps_of
from asmdnn.generators.functions.rows import (
    F32_TYPES,
    Vectors,
    Walk,
    operands_touched,
    rows_touched,
    words_of_types,
)
from asmdnn.generators.functions.typed_program import of_lanes
from asmdnn.generators.functions.values import Source
from asmdnn.generators.stores import Places, if_aligned
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.elements import size_of, storing_element
from asmdnn.isa.vector import Broadcast, Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

MEAN, VARIANCE = 2, 3
SHORT = 24  # vectors of rows that share their latencies two at a time
AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Statistics:
    """Where those of a row are kept; given: they are read.  mean_bytes None: there are no means."""

    mean_bytes: int | None
    variance_bytes: int
    given: bool

    @property
    def names(self) -> tuple[str, ...]:
        return ("variance",) if self.mean_bytes is None else ("mean", "variance")

    @property
    def steps(self) -> dict[int, int]:
        """Bytes from row to row of the arguments."""
        if self.mean_bytes is None:
            return {MEAN: self.variance_bytes}
        return {MEAN: self.mean_bytes, VARIANCE: self.variance_bytes}


@exact
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerNormSpec:
    """Everything that the bytes of such a kernel depend on.  streams: results go past the caches if dst is aligned, and
    src is asked for ahead; of f32.  types: of src, which converts alone, and dst."""

    isa: str
    rows: int
    elements: int
    src_row_bytes: int
    dst_row_bytes: int
    epsilon: float
    centred: bool = True
    statistics: Statistics | None = None
    after: tuple[PostOp, ...] = ()
    streams: bool = False
    types: tuple[str, str] = F32_TYPES

    @property
    def name(self) -> str:
        words = [*chain_words(self.after), *["streaming"] * self.streams, checksum(self)]
        kind = "layernorm" if self.centred else "rmsnorm"
        return f"{kind}_{words_of_types(self.types)}_{self.rows}x{self.elements}_{'_'.join(words)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ("src", "dst", *(self.statistics.names if self.statistics else ()), *names_of_operands(self.after))

    @property
    def steps(self) -> dict[int, int]:
        """Bytes from row to row of what is neither src nor dst."""
        return (self.statistics.steps if self.statistics else {}) | steps_of(operands_of(self.after))

    def footprint(self) -> Footprint:
        kept: list[Range] = []
        if self.statistics:
            for argument, step in self.statistics.steps.items():
                kept += rows_touched(argument, self.rows, step, 1)
        given = bool(self.statistics and self.statistics.given)
        of_src, of_dst = map(size_of, self.types)
        src = rows_touched(SRC, self.rows, self.src_row_bytes, self.elements, of_src)
        dst = rows_touched(DST, self.rows, self.dst_row_bytes, self.elements, of_dst)
        reads = dict.fromkeys((*src, *(kept if given else ()), *operands_touched(self.after, self.rows, self.elements)))
        return Footprint(tuple(reads), dst if given else (*dst, *kept))

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        code = LayerNormCode(self, v)
        if self.streams:
            with if_aligned(asm, code.dst, v.bytes, code.left):
                code.streams = True
                code.all_rows()
                asm.ret()
            code.streams = False
        code.all_rows()
        asm.ret()


@lru_cache
def normalized(centred: bool, after: tuple[PostOp, ...]) -> Program:
    """after((x - mean) * factor, operands); the inputs are x, factor, the mean if there is one, operands."""
    build = Builder(2 + centred + len(operands_of(after)))
    x, factor, *rest = build.inputs
    if centred:
        x = x - rest.pop(0)
    return build.finish(build.insert(compose(after), [x * factor, *rest]))


class LayerNormCode(Rows):
    """A row at a time, or two short ones: their sums, then their results."""

    def __init__(self, spec: LayerNormSpec, v: Vector) -> None:
        pair = 2 if spec.elements <= SHORT * v.lanes else 1
        together = min(spec.rows, pair)
        super().__init__(v, spec.rows, together, (spec.src_row_bytes, spec.dst_row_bytes), spec.steps)
        self.spec, self.walk, self.streams = spec, Walk(v, spec.elements, min(map(size_of, spec.types))), False
        self.src_kind, self.dst_kind = spec.types
        self.stored = storing_element(self.dst_kind, spec.isa)
        self.at_once = max(1, AT_ONCE // pair)  # also of a row without a partner, whose sums have the same order
        self.means, self.factors = ([v.asm.stack(4) for _ in range(together)] for _ in range(2))

    def some(self, rows: int) -> None:
        asm = self.v.asm
        if self.spec.statistics and self.spec.statistics.given:
            asm.role("statistics")
            for r in range(rows):
                self.read_statistics(r)
        else:
            asm.role("sums")
            self.compute_statistics(rows)
        asm.role("results")
        self.walk.each(max(1, AT_ONCE // rows), "results", lambda vectors: self.results(vectors, rows))

    def read_statistics(self, row: int) -> None:
        """What is given, of one row, to the stack."""
        v, asm, spec = self.v, self.v.asm, self.spec
        x = v.registers.take("statistics")
        if spec.centred:
            v.broadcast(x, self.kept("mean", row))
            asm.VMOVSS(self.means[row], x.xmm)
        v.broadcast(x, self.kept("variance", row))
        self.keep_factor(x, row)
        v.registers.free(x)

    def compute_statistics(self, rows: int) -> None:
        v, spec, at_once = self.v, self.spec, self.at_once
        shifts = v.registers.take("k", rows) if spec.centred else []
        sums = v.registers.take("sum d", rows, at_once) if spec.centred else []
        squares = v.registers.take("sum d^2", rows, at_once)
        spare = v.registers.take("d", 2)
        for r, shift in enumerate(shifts):
            self.first_mean(shift, r)
        v.zeros((sums, squares))

        def some(vectors: Vectors) -> None:
            for j, part in enumerate(vectors.parts):
                for r in range(rows):
                    d = spare[r % 2 if rows > 1 else j % 2]
                    vectors.load(d, self.src, j, r * spec.src_row_bytes, self.src_kind)
                    if spec.centred:
                        v.asm.VSUBPS(d, d, shifts[r])
                        part.clear_rest(d)
                        v.add(sums[r][j], sums[r][j], d)
                    v.fma(squares[r][j], d, d)
            if spec.streams:
                self.prefetch(vectors)

        self.walk.each(at_once, "sums", some)
        v.registers.free(*spare)
        for r in range(rows):
            self.combined(squares[r][0], squares[r], v.add)
            self.times(squares[r][0], 1 / spec.elements)
            if spec.centred:
                self.correct(shifts[r], sums[r], squares[r][0])
                self.keep_mean(shifts[r], r)
            self.write_statistic("variance", squares[r][0], r)
            self.keep_factor(squares[r][0], r)
        v.registers.free(shifts, sums, squares)

    def first_mean(self, shift: Register, row: int) -> None:
        """The mean of the row's first vector, in every lane."""
        first = Vectors(self.v, self.walk.parts[:1], 0, None)
        first.load(shift, self.src, 0, row * self.spec.src_row_bytes, self.src_kind)
        self.combined(shift, [shift], self.v.add)
        self.times(shift, 1 / min(self.v.lanes, self.spec.elements))

    def correct(self, shift: Register, sums: list[Register], variance: Register) -> None:
        """shift = the mean, variance = sum d^2 / elements less the square of the mean of d, but not below 0."""
        v, asm = self.v, self.v.asm
        self.combined(sums[0], sums, v.add)
        self.times(sums[0], 1 / self.spec.elements)
        v.add(shift, shift, sums[0])
        asm.VFNMADD231PS(variance, sums[0], sums[0])
        v.zero(sums[0])
        asm.VMAXPS(variance, sums[0], variance)

    def keep_mean(self, mean: Register, row: int) -> None:
        self.v.asm.VMOVSS(self.means[row], mean.xmm)
        self.write_statistic("mean", mean, row)

    def keep_factor(self, variance: Register, row: int) -> None:
        """1 / sqrt(variance + epsilon); the register is lost."""
        v, asm = self.v, self.v.asm
        epsilon = v.registers.take("epsilon")
        self.constant(epsilon, self.spec.epsilon)
        v.add(variance, variance, epsilon)
        v.registers.free(epsilon)
        asm.VSQRTPS(variance, variance)
        self.inverse(variance)
        asm.VMOVSS(self.factors[row], variance.xmm)

    def write_statistic(self, name: str, x: Register, row: int) -> None:
        if self.spec.statistics:
            self.v.asm.VMOVSS(self.kept(name, row), x.xmm)

    def kept(self, name: str, row: int) -> Pointer:
        """The place of a row's mean or variance."""
        assert self.spec.statistics is not None
        argument = MEAN + self.spec.statistics.names.index(name)
        return mem(self.operands.register(argument), row * self.spec.statistics.steps[argument], size=4)

    def results(self, vectors: Vectors, rows: int) -> None:
        spec = self.spec
        inputs = [self.src_of_rows(vectors, rows, self.src_kind), self.numbers(self.factors, vectors, rows)]
        if spec.centred:
            inputs.append(self.numbers(self.means, vectors, rows))
        operands = [self.of_rows(operand, vectors, rows) for operand in operands_of(spec.after)]
        program = of_lanes(normalized(spec.centred, spec.after), (self.src_kind,), (self.stored.stored_as,))
        values = self.apply(program, [*inputs, *operands])
        places = [x for r in range(rows) for x in vectors.places(self.dst, self.dst_kind, r * spec.dst_row_bytes)]
        if self.streams:
            self.stream(values, places)
        else:
            self.store(self.stored, values, places)

    def stream(self, values: Sequence[Register], places: Places) -> None:
        """Whole vectors past the caches."""
        for value, (at, part) in zip(values, places, strict=True):
            (self.v.stream if part is self.v else part.store_last)(at, value)
        self.v.registers.free(*values)

    def numbers(self, places: list[Pointer], vectors: Vectors, rows: int) -> list[Source]:
        """One number a row, on the stack."""
        if rows == 1:
            return self.scalar(places[0], vectors)
        every_lane = Broadcast(self.v)
        return [Source(lambda place=place: place, every_lane) for place in places for _ in range(vectors.count)]  # type: ignore[misc]
