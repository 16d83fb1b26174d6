"""The plan of a reduction: one tree, or two for the logarithm of a sum of exponentials; post-ops behind it."""

from dataclasses import dataclass, fields
from functools import lru_cache
from math import prod

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.functions.eltwise.exponential import MOST_F32, flushed_exp
from asmdnn.generators.functions.eltwise.logarithm import log, power
from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.postops import EltwiseOp, ExpressionOp, Operand, PostOp
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.reduce import ReduceSpec, TypedReduceSpec
from asmdnn.isa.elements import size_of
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.planning.tuning import ReductionTuning
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.elementwise.schedule import Request, check_tensors, schedule
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.formats import dense_like, like, of_type, row_major
from asmdnn.primitives.implementation import implementation
from asmdnn.primitives.reduction.description import NORM, ReductionForward
from asmdnn.primitives.reduction.source import Chunk, ReductionSource, TreeKernels, source_of
from asmdnn.primitives.reduction.tree import Tree
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.types import DATA_TYPES, f32

NAME = "reduction"
MAXIMA, RESULT = "maxima", "result"


@dataclass(frozen=True, slots=True)
class Reductions(TreeKernels):
    """One operation; `before` and `after` may read what is beside."""

    isa: str
    op: str
    before: Program | None
    after: Program | None
    results: tuple[str, ...] = ("dst",)
    beside: tuple[str, ...] = ()
    kind: str = "f32"

    @property
    def src_bytes(self) -> int:
        return size_of(self.kind)

    def first(self, chunk: Chunk, is_last: bool) -> KernelSpec:
        beside = Operand(2, chunk.dst_row_bytes, 0, chunk.along == "rows")
        spec = self.spec(chunk, self.chain(self.before, beside), self.chain(self.after if is_last else None, beside))
        return spec if self.kind == "f32" else typed(spec, self.kind)

    def merge(self, chunk: Chunk, counts: tuple[int, int], is_last: bool) -> KernelSpec:
        return self.spec(chunk, (), self.chain(self.after if is_last else None, Operand(2, 0, 0, False)))

    def spec(self, chunk: Chunk, before: tuple[PostOp, ...], after: tuple[PostOp, ...]) -> ReduceSpec:
        rows = (chunk.rows, chunk.elements, chunk.src_row_bytes, chunk.dst_row_bytes)
        return ReduceSpec(self.isa, chunk.along, self.op, *rows, before, after)

    def chain(self, program: Program | None, beside: Operand) -> tuple[PostOp, ...]:
        return () if program is None else (ExpressionOp(program, (beside,) if program.inputs > 1 else ()),)

    def cost(self, spec: KernelSpec, tuning: ReductionTuning) -> int:
        """Expected cycles of a call."""
        assert isinstance(spec, ReduceSpec)
        vectors = -(-spec.elements // lanes_of(spec.isa))
        steps = len(spec.program.steps) // 2
        return tuning.call_cycles + spec.rows * (tuning.row_cycles + vectors * (2 + steps))


def typed(spec: ReduceSpec, kind: str) -> TypedReduceSpec:
    """The same of elements of another type."""
    return TypedReduceSpec(**{each.name: getattr(spec, each.name) for each in fields(spec)}, kind=kind)


@implementation(NAME, f32_level)
def plan(desc: ReductionForward, attr: Attr, engine: Engine) -> Plan:
    """Plan a reduction.  Raises Refused, and InvalidArguments for post-ops that do not fit dst."""
    isa = f32_level(engine.isa)
    if attr.quantizes:
        raise Refused("scales and zero points are not implemented")
    src = row_major(desc.src.dims, desc.src) if desc.src.is_any else desc.src
    dst = like(src, dense_like(src, desc.dst) if desc.dst.is_any else desc.dst)
    passed = {"src": src, "dst": dst}
    check_tensors(passed, "dst", tuple(DATA_TYPES))
    dst = of_type(dst, f32)
    inner, source, own = src, None, dense_like(src, dst)
    for inner in (src, row_major(src.dims, src)):
        own = dense_like(inner, dst)
        source = source_of(inner, own, desc.reduced)
        if source is not None:
            break
    assert source is not None, "a plain tensor is read"
    if attr.post_ops:
        return with_post_ops(desc, attr, engine, passed)
    assembly = Assembly(engine.tuning, engine.isa)
    add_reduction(assembly, desc, isa, source, prod(own.dims))
    tensors = {"src": inner, "dst": own}
    return between_reorders(assembly.plan(f"{NAME}:{isa}", tensors, ("dst",)), passed, engine.tuning, isa=engine.isa)


def with_post_ops(desc: ReductionForward, attr: Attr, engine: Engine, passed: dict[str, MemoryDesc]) -> Plan:
    """The reduction into scratch, and the chain on its result."""
    own = of_type(dense_like(passed["src"], passed["dst"]), f32)
    plain = ReductionForward(desc.alg, passed["src"], own, desc.p, desc.eps)
    reduction = plan(plain, Attr(denormals=attr.denormals), engine)
    assert isinstance(reduction, Plan), "the reduction alone is taken"
    same = EltwiseOp("linear", 1.0, 0.0, 1.0)
    chain = schedule(Request(NAME, ("src", own), ("dst", passed["dst"]), {}, lambda _: same), attr, engine)
    assembly = Assembly(engine.tuning, engine.isa)
    assembly.scratch[RESULT] = own.size_bytes
    assembly.add_plan(reduction, {"dst": View(RESULT)})
    assembly.add_plan(chain, {"src": View(RESULT)})
    operands = {name: tensor for name, tensor in chain.tensors.items() if name not in passed}
    return assembly.plan(reduction.implementation, {**passed, **operands}, ("dst",))


def add_reduction(assembly: Assembly, desc: ReductionForward, isa: str, source: ReductionSource, elements: int) -> None:
    """Its phases."""
    kind = desc.src.dtype.name
    if desc.alg == "logsumexp":
        assembly.scratch[MAXIMA] = f32.size_bytes * elements
        Tree(assembly, Reductions(isa, "max", None, None, (MAXIMA,), kind=kind), elements).grow(source)
        sums = Reductions(isa, "sum", power_of_difference(), log_and_most(), beside=(MAXIMA,), kind=kind)
        Tree(assembly, sums, elements).grow(source)
        return
    op = desc.alg if desc.alg in ("max", "min", "mul") else "sum"
    count = prod(desc.src.dims) // elements
    own = Reductions(isa, op, before(desc.alg, desc.p), after(desc, count), kind=kind)
    Tree(assembly, own, elements).grow(source)


def before(alg: str, p: float) -> Program | None:
    """|x|^p for norms."""
    if not alg.startswith(NORM):
        return None
    build = Builder(1)
    (x,) = build.inputs
    return build.finish(x * x if p == 2 else abs(x) if p == 1 else power(build, abs(x), p))


def after(desc: ReductionForward, count: int) -> Program | None:
    """Of the sum: 1 / count, or eps and the root of a norm."""
    build = Builder(1)
    (x,) = build.inputs
    if desc.alg == "mean":
        return build.finish(x / float(count))
    if not desc.alg.startswith(NORM):
        return None
    total = build.op("max", desc.eps, x) if desc.alg.endswith("max") else x + desc.eps
    if "power" in desc.alg or desc.p == 1:
        return build.finish(total)
    return build.finish(build.op("sqrt", total) if desc.p == 2 else power(build, total, 1 / desc.p))


@lru_cache
def power_of_difference() -> Program:
    """e^(x - most); 0 for -infinity, also where that is the maximum."""
    build = Builder(2)
    x, most = build.inputs
    return build.finish(flushed_exp(build, x - build.op("max", -MOST_F32, most)))


@lru_cache
def log_and_most() -> Program:
    """log x + most."""
    build = Builder(2)
    x, most = build.inputs
    return build.finish(log(build, x) + most)
