"""gemm as a primitive: c = alpha * a * b + beta * c, transposes being strides; and gemm on packed operands."""

from collections.abc import Iterator

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.isa.dot import F32, f32_dot_level
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.description import WithFormats
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.products.matmul_tiles import check_tensors, plain
from asmdnn.primitives.products.matrices import WeightsPanels, matrix_of, panel_columns, panels_of, panels_tag
from asmdnn.primitives.products.plan import Job, answers
from asmdnn.primitives.products.prepare import ALIAS_BYTES
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import Epilogue, target_of
from asmdnn.primitives.shapes.tensors import check_tensor
from asmdnn.records import dataclass, replace
from asmdnn.types import DataType, f32

BETAS = ("zero", "one", "any")


@dataclass(frozen=True, slots=True)
class Gemm(WithFormats):
    """c[m, n] = alpha * sum over k of a[m, k] * b[k, n] + beta * c[m, n]

    beta: "zero" (c is not read), "one", or "any".  Unless alpha is one (`unit_alpha`) and beta zero or one, a fourth
    argument `scale`, f32[2], holds alpha and beta, so that their values make no kernel.  Any formats, `any` too.
    Raises InvalidArguments if sizes do not fit together.
    """

    a: MemoryDesc
    b: MemoryDesc
    c: MemoryDesc
    unit_alpha: bool = True
    beta: str = "zero"

    def __post_init__(self) -> None:
        for name in ("a", "b", "c"):
            check_tensor(name, getattr(self, name))
            if len(getattr(self, name).dims) != 2:
                raise InvalidArguments(f"{name} has {counted(len(getattr(self, name).dims), 'dim')}, a matrix has 2")
        (m, k), (kb, n) = self.a.dims, self.b.dims
        if k != kb:
            raise InvalidArguments(
                f"b has {counted(kb, 'row')}, a has {counted(k, 'column')} (after transposing): they must be equal"
            )
        if self.c.dims != (m, n):
            raise InvalidArguments(f"c has dims {self.c.dims}, a and b make it {(m, n)}")
        if self.beta not in BETAS:
            raise InvalidArguments(f"beta must be one of {', '.join(BETAS)}, not {shown(self.beta)}")

    @property
    def scaled(self) -> bool:
        return not self.unit_alpha or self.beta == "any"

    def tensors(self) -> dict[str, MemoryDesc]:
        scale = {"scale": MemoryDesc((2,), f32, "a")} if self.scaled else {}
        return {"a": self.a, "b": self.b, "c": self.c, **scale}

    def __str__(self) -> str:
        alpha = "" if self.unit_alpha else "alpha * "
        return f"gemm of c {self.c} = {alpha}a {self.a} * b {self.b}, beta {self.beta}"


def plan(desc: Gemm, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """What every strategy says to a gemm."""
    return answers(lambda: job_of(desc, attr, engine), f32_dot_level(engine.isa))


def job_of(desc: Gemm, attr: Attr, engine: Engine) -> Job:
    """The product of strides.  Raises Refused."""
    if attr.post_ops or attr.quantizes:
        raise Refused("gemm has neither post-ops nor scales, use MatMul")
    isa = f32_dot_level(engine.isa)
    free = ((tensor, d.dims) for tensor, d in desc.tensors().items() if d.is_any)
    passed = desc.with_formats({tensor: packed_desc(tensor.upper(), m, n, isa) for tensor, (m, n) in free})
    check_tensors(passed.tensors(), ("c",))
    b = passed.b if WeightsPanels(F32, lanes_of(isa)).takes(passed.b) else plain(passed.b)
    desc = replace(passed, a=plain(passed.a), b=b, c=plain(passed.c))
    (m, n), k = desc.c.dims, desc.a.dims[1]
    a, c = (matrix_of(tensor, d) for tensor, d in (("a", desc.a), ("c", desc.c)))
    p = Product(batch=(), m=m, n=n, k=k, src=a, weights=panels_of("b", desc.b) or matrix_of("b", desc.b), dst=c)
    epilogue = Epilogue(scaled=desc.scaled, beta=desc.beta)
    reads = ("c",) * epilogue.reads_dst
    return Job(
        assembly=Assembly(engine.tuning, engine.isa),
        product=p,
        target=target_of(engine, epilogue),
        tensors=desc.tensors(),
        passed=passed.tensors(),
        outputs=("c",),
        reads=reads,
    )


def packed_desc(identifier: str, rows: int, columns: int, isa: str) -> MemoryDesc:
    """The format of a packed operand: b in panels, a row-major with rows that do not alias."""
    if identifier == "B" and rows and columns:
        return MemoryDesc((rows, columns), f32, panels_tag(2, panel_columns(columns, lanes_of(f32_dot_level(isa)))))
    return MemoryDesc((rows, columns), f32, strides=(row_distance(columns, f32), 1))


def row_distance(columns: int, dtype: DataType) -> int:
    """In elements, between rows that do not alias: a line more where they would."""
    aliases = columns > 0 and dtype.size_bytes * columns % ALIAS_BYTES == 0
    return max(columns + LINE_BYTES // dtype.size_bytes * aliases, 1)
