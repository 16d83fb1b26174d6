"""gemm as a primitive: c = alpha * a * b + beta * c, transposes being strides; and gemm on packed operands."""

from dataclasses import dataclass

from asmdnn.errors import InvalidArguments
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.implementation import Refusal
from asmdnn.primitives.products.blocks import panel_columns
from asmdnn.primitives.products.plan import ALIAS_BYTES, plan_product
from asmdnn.primitives.products.product import Product, matrix_of, panels_of, panels_tag
from asmdnn.primitives.products.schedule import Ending
from asmdnn.types import f32

BETAS = ("zero", "one", "any")


@dataclass(frozen=True, slots=True)
class Gemm:
    """c[m, n] = alpha * sum over k of a[m, k] * b[k, n] + beta * c[m, n]

    beta: "zero" (c is not read), "one", or "any".  Unless alpha is one (`unit_alpha`) and beta zero or one, a fourth
    argument `scale`, f32[2], holds alpha and beta, so that their values make no kernel.  b may be in panels.
    Raises InvalidArguments if sizes do not fit together.
    """

    a: MemoryDesc
    b: MemoryDesc
    c: MemoryDesc
    unit_alpha: bool = True
    beta: str = "zero"

    def __post_init__(self) -> None:
        for name in ("a", "b", "c"):
            if len(getattr(self, name).dims) != 2:
                raise InvalidArguments(f"{name} has {len(getattr(self, name).dims)} dims, a matrix has 2")
        (m, k), (kb, n) = self.a.dims, self.b.dims
        if k != kb:
            raise InvalidArguments(f"b has {kb} rows, a has {k} columns (after transposing): they must be equal")
        if self.c.dims != (m, n):
            raise InvalidArguments(f"c has dims {self.c.dims}, a and b make it {(m, n)}")
        if self.beta not in BETAS:
            raise InvalidArguments(f"beta must be one of {', '.join(BETAS)}, not {self.beta!r}")

    @property
    def scaled(self) -> bool:
        return not self.unit_alpha or self.beta == "any"

    def tensors(self) -> dict[str, MemoryDesc]:
        scale = {"scale": MemoryDesc((2,), f32, "a")} if self.scaled else {}
        return {"a": self.a, "b": self.b, "c": self.c, **scale}

    def __str__(self) -> str:
        alpha = "" if self.unit_alpha else "alpha * "
        return f"gemm of c {self.c} = {alpha}a {self.a} * b {self.b}, beta {self.beta}"


def plan(desc: Gemm, attr: Attr, engine: Engine) -> Plan | Refusal:
    """Plan a gemm, or say why not."""
    name = f"tiles:{f32_level(engine.isa)}"
    if attr.post_ops or attr.quantizes:
        return Refusal(name, "gemm has neither post-ops nor scales, use MatMul")
    if desc.c.may_overlap:
        return Refusal(name, "elements of c overlap")
    (m, n), k = desc.c.dims, desc.a.dims[1]
    a, c = (matrix_of(name, d) for name, d in (("a", desc.a), ("c", desc.c)))
    p = Product((), m, n, k, a, panels_of("b", desc.b) or matrix_of("b", desc.b), c)
    ending = Ending(scaled=desc.scaled, beta={"zero": "", "one": "one", "any": "any"}[desc.beta])
    return plan_product(p, ending, desc.tensors(), engine, ("c",))


def packed_desc(identifier: str, rows: int, columns: int, isa: str) -> MemoryDesc:
    """The format of a packed operand: b in panels, a row-major with rows that do not alias."""
    if identifier == "B" and rows and columns:
        return MemoryDesc((rows, columns), f32, panels_tag(2, panel_columns(columns, lanes_of(f32_level(isa)))))
    row = columns + 16 if columns and 4 * columns % ALIAS_BYTES == 0 else columns
    return MemoryDesc((rows, columns), f32, strides=(max(row, 1), 1))
