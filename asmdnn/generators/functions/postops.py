"""Post-ops on registers: what every kernel family applies to a vector of results before it is stored.

Each is a function of the result and of its operands, in the steps of program.py; chains of them are in chain.py.
"""

from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

from asmdnn.exact import exact
from asmdnn.generators.functions.eltwise import remainder, simple
from asmdnn.generators.functions.eltwise.algorithms import ALGORITHMS, scaled
from asmdnn.generators.functions.eltwise.gradients import GRADIENTS
from asmdnn.generators.functions.expression import Builder, Term
from asmdnn.generators.functions.program import Program
from asmdnn.records import dataclass

MAX_POST_OPS = 32  # in a chain, as in oneDNN


def word(number: float) -> str:
    """A number in a kernel's name: no sign or plus, since names are file names and symbols."""
    return f"{number:g}".replace("-", "m").replace("+", "")


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a post-op reads beside the result, as argument number `argument` of the kernel.

    Vector j of row r (a pixel, say) starts row_bytes * r + vector_bytes * j after its pointer; with `element`, one
    element there counts for all lanes.
    """

    argument: int
    row_bytes: int
    vector_bytes: int
    element: bool


OLD_DST = None  # in a list of operands: what the destination held


@exact
@dataclass(frozen=True, slots=True, eq=False)
class SumOp:
    """x + scale * dst, dst being what the destination held before the call."""

    scale: float

    @property
    def name(self) -> str:
        return "sum" if self.scale == 1.0 else "sum" + word(self.scale)

    @property
    def operands(self) -> tuple[Operand | None, ...]:
        return (OLD_DST,)

    def build(self, build: Builder, x: Term, old: Term) -> Term:
        return x + old if self.scale == 1.0 else build.fma(old, self.scale, x)


@dataclass(frozen=True, slots=True)
class IntegerOp:
    """x + operand or x - operand, with OLD_DST what the destination held: of integers modulo 2^32, in lanes of s32."""

    alg: str
    operand: Operand | None

    @property
    def name(self) -> str:
        return f"{'sum' if self.operand is OLD_DST else self.alg}s32"

    @property
    def operands(self) -> tuple[Operand | None, ...]:
        return (self.operand,)

    def build(self, build: Builder, x: Term, y: Term) -> Term:
        return build.op(f"i{self.alg}", x, y)


@exact
@dataclass(frozen=True, slots=True, eq=False)
class ReluOp:
    """x if x > 0, else alpha * x; NaN stays NaN (MAXPS and MINPS return their second source then)."""

    alpha: float

    @property
    def name(self) -> str:
        return "relu" if self.alpha == 0.0 else "relu" + word(self.alpha)

    @property
    def operands(self) -> tuple[Operand | None, ...]:
        return ()

    def build(self, build: Builder, x: Term) -> Term:
        return simple.relu(build, x, self.alpha)


@exact
@dataclass(frozen=True, slots=True, eq=False)
class OffsetSumOp:
    """x + scale * (dst - zero_point)."""

    scale: float
    zero_point: float

    @property
    def name(self) -> str:
        return f"sum{word(self.scale)}z{word(self.zero_point)}"

    @property
    def operands(self) -> tuple[Operand | None, ...]:
        return (OLD_DST,)

    def build(self, build: Builder, x: Term, old: Term) -> Term:
        return build.fma(old - self.zero_point, self.scale, x)


@exact
@dataclass(frozen=True, slots=True, eq=False)
class EltwiseOp:
    """scale * f(x)."""

    alg: str
    alpha: float
    beta: float
    scale: float

    @property
    def name(self) -> str:
        return self.alg.replace("_", "")

    @property
    def operands(self) -> tuple[Operand | None, ...]:
        return ()

    def build(self, build: Builder, x: Term) -> Term:
        return scaled(ALGORITHMS[self.alg].forward(build, x, self.alpha, self.beta), self.scale)


@exact
@dataclass(frozen=True, slots=True, eq=False)
class GradientOp:
    """x * f'(data), data being the source of f or, with from_dst, its result."""

    alg: str
    alpha: float
    beta: float
    from_dst: bool
    data: Operand

    @property
    def name(self) -> str:
        return f"{self.alg.replace('_', '')}{'dst' if self.from_dst else 'src'}bwd"

    @property
    def operands(self) -> tuple[Operand | None, ...]:
        return (self.data,)

    def build(self, build: Builder, x: Term, data: Term) -> Term:
        gradient = GRADIENTS[self.alg].of_dst if self.from_dst else GRADIENTS[self.alg].of_src
        assert gradient is not None
        return gradient(build, x, data, self.alpha, self.beta)


def indicator(compare: Callable[[Term, Term], Any]) -> Callable[[Builder, Term, Term], Term]:
    """1 where the comparison holds, else 0."""
    return lambda build, x, y: build.where(compare(x, y), 1.0, 0.0)


BINARY: dict[str, Callable[[Builder, Term, Term], Term]] = {
    "add": lambda _, x, y: x + y,
    "sub": lambda _, x, y: x - y,
    "mul": lambda _, x, y: x * y,
    "div": lambda _, x, y: x / y,
    "max": lambda build, x, y: build.op("max", x, y),
    "min": lambda build, x, y: build.op("min", x, y),
    "ge": indicator(lambda x, y: x >= y),
    "gt": indicator(lambda x, y: x > y),
    "le": indicator(lambda x, y: x <= y),
    "lt": indicator(lambda x, y: x < y),
    "eq": indicator(lambda x, y: x == y),
    "ne": indicator(lambda x, y: x != y),
    "and": indicator(lambda x, y: (x != 0.0) & (y != 0.0)),
    "or": indicator(lambda x, y: (x != 0.0) | (y != 0.0)),
    "xor": lambda build, x, y: build.where(x != 0.0, simple.not_(build, y), build.where(y != 0.0, 1.0, 0.0)),
    "fmod": remainder.fmod,
    "mod": remainder.mod,
}


@dataclass(frozen=True, slots=True)
class BinaryOp:
    """alg(x, operand)."""

    alg: str
    operand: Operand

    @property
    def name(self) -> str:
        return self.alg

    @property
    def operands(self) -> tuple[Operand | None, ...]:
        return (self.operand,)

    def build(self, build: Builder, x: Term, y: Term) -> Term:
        return BINARY[self.alg](build, x, y)


@dataclass(frozen=True, slots=True)
class SelectOp:
    """x where the condition is not 0, else the other operand."""

    other: Operand
    condition: Operand

    @property
    def name(self) -> str:
        return "select"

    @property
    def operands(self) -> tuple[Operand | None, ...]:
        return (self.other, self.condition)

    def build(self, build: Builder, x: Term, other: Term, condition: Term) -> Term:
        return build.where(condition != 0.0, x, other)


@dataclass(frozen=True, slots=True)
class PReluOp:
    """x if x > 0, else weights * x."""

    weights: Operand

    @property
    def name(self) -> str:
        return "prelu"

    @property
    def operands(self) -> tuple[Operand | None, ...]:
        return (self.weights,)

    def build(self, build: Builder, x: Term, weights: Term) -> Term:
        return build.where(x > 0.0, x, x * weights)


@dataclass(frozen=True, slots=True)
class ExpressionOp:
    """A function that the user wrote: program(x, operands)."""

    program: Program
    operands: tuple[Operand | None, ...]

    @property
    def name(self) -> str:
        return f"user{crc32(repr(self.program).encode()):08x}"

    def build(self, build: Builder, x: Term, *operands: Term) -> Term:
        return build.insert(self.program, (x, *operands))


PostOp = (
    SumOp | IntegerOp | ReluOp | OffsetSumOp | EltwiseOp | GradientOp | BinaryOp | SelectOp | PReluOp | ExpressionOp
)


def is_of_integers(chain: Sequence[PostOp]) -> bool:
    """Whether lanes stay s32: such a chain has nothing else."""
    return any(isinstance(op, IntegerOp) for op in chain)


def has_floats(chain: Sequence[PostOp]) -> bool:
    """Whether something takes f32."""
    return bool(chain) and not is_of_integers(chain)
