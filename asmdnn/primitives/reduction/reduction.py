"""The plan of a reduction: one tree, or two for the logarithm of a sum of exponentials; post-ops after it."""

from collections.abc import Mapping
from functools import lru_cache, partial
from math import prod

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.functions.eltwise.exponential import MOST_F32, flushed_exp
from asmdnn.generators.functions.eltwise.logarithm import log, power
from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.postops import EltwiseOp, ExpressionOp, Operand, PostOp
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.reduce import ReduceSpec, TypedReduceSpec
from asmdnn.generators.functions.rows import F32_TYPES
from asmdnn.isa.elements import narrowing_level, size_of
from asmdnn.isa.vectors import NARROWEST, f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.move_tuning import ReductionTuning
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_scales
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementations_of
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.reduction.description import NORM, ReductionForward
from asmdnn.primitives.reduction.source import Chunk, ReductionSource, TreeKernels, source_of
from asmdnn.primitives.reduction.tree import Tree
from asmdnn.primitives.reorder.copies import WORD, between_reorders
from asmdnn.primitives.shapes.formats import dense_like, like, of_type, row_major
from asmdnn.primitives.shapes.tensors import check_tensors
from asmdnn.records import dataclass, fields, replace
from asmdnn.types import DATA_TYPES, F32_BYTES, HALF_FLOATS, INTEGERS8, DataType, f32, s32

NAME = "reduction"
MAXIMA, RESULT = "maxima", "result"
ROWS, LANES, PLAIN = "rows", "lanes", "plain"  # the implementations
ROUNDED = (*HALF_FLOATS, s32, *INTEGERS8)  # results that kernels round as they store them
NOT_READ = "neither what is reduced nor what stays is dense in loops that kernels read"


@dataclass(frozen=True, slots=True)
class Reductions(TreeKernels):
    """One operation; `before` and `after` may read what is beside.  kind, made: the types of src and of the results."""

    isa: str
    op: str
    before: Program | None
    after: Program | None
    results: tuple[str, ...] = ("dst",)
    beside: tuple[str, ...] = ()
    kind: str = "f32"
    made: str = "f32"
    narrow_elements: int = 0  # of dense rows so short, of which nothing is computed before, take the lowest level
    prefetches: bool = False  # rows of src

    @property
    def src_bytes(self) -> int:
        return size_of(self.kind)

    @property
    def result_bytes(self) -> int:
        return size_of(self.made)

    def first(self, chunk: Chunk, is_last: bool) -> KernelSpec:
        beside = Operand(2, chunk.dst_row_bytes, 0, chunk.along == "rows")
        after = self.chain(self.after if is_last else None, beside)
        types = self.kind, self.made if is_last else "f32"
        spec = self.spec(chunk, self.chain(self.before, beside), after, types)
        return replace(spec, prefetches=True) if self.prefetches and chunk.along == "rows" else spec

    def merge(self, chunk: Chunk, counts: tuple[int, int], is_last: bool) -> KernelSpec:
        after = self.chain(self.after if is_last else None, Operand(2, 0, 0, False))
        return self.spec(chunk, (), after, ("f32", self.made if is_last else "f32"))

    def spec(
        self, chunk: Chunk, before: tuple[PostOp, ...], after: tuple[PostOp, ...], types: tuple[str, str]
    ) -> ReduceSpec:
        is_short = chunk.along == "rows" and chunk.elements <= self.narrow_elements
        isa = NARROWEST if is_short and not before else f32_level(self.isa) if types[1] == "f32" else self.isa
        spec = ReduceSpec(
            isa=isa, along=chunk.along, op=self.op, rows=chunk.rows, elements=chunk.elements,
            src_row_bytes=chunk.src_row_bytes, dst_row_bytes=chunk.dst_row_bytes * size_of(types[1]) // F32_BYTES,
            before=before, after=after,
        )  # fmt: skip
        return spec if types == F32_TYPES else typed(spec, *types)

    def chain(self, program: Program | None, beside: Operand) -> tuple[PostOp, ...]:
        return () if program is None else (ExpressionOp(program, (beside,) if program.inputs > 1 else ()),)

    def cost(self, spec: KernelSpec, tuning: ReductionTuning) -> int:
        """Expected cycles of a call."""
        assert isinstance(spec, ReduceSpec)
        vectors = -(-spec.elements // lanes_of(spec.isa))
        steps = len(spec.program.steps) // 2
        return tuning.call_cycles + spec.rows * (tuning.row_cycles + vectors * (2 + steps))


def typed(spec: ReduceSpec, kind: str, made: str) -> TypedReduceSpec:
    """The same of elements of another type, and to such elements."""
    return TypedReduceSpec(**{each.name: getattr(spec, each.name) for each in fields(spec)}, kind=kind, made=made)


@dataclass(frozen=True, slots=True, eq=False)
class ReductionRequest:
    """What is asked of a reduction.  passed: src and dst as a caller passes them; separate_attr: the post-ops, if
    any."""

    desc: ReductionForward
    passed: Mapping[str, MemoryDesc]
    separate_attr: Attr | None
    engine: Engine

    @property
    def isa(self) -> str:
        return f32_level(self.engine.isa)

    @property
    def dst(self) -> MemoryDesc:
        """As f32."""
        return of_type(self.passed["dst"], f32)

    def source(self, src: MemoryDesc) -> ReductionSource | None:
        """How a tree reads src in this format."""
        return source_of(src, dense_like(src, self.dst), self.desc.reduced)

    def planned(self, way: str, src: MemoryDesc) -> Plan:
        """The plan of src in a format that is read, between reorders of tensors that are passed otherwise."""
        is_rounded = self.separate_attr is None and self.passed["dst"].dtype in ROUNDED
        own, source = dense_like(src, self.passed["dst"] if is_rounded else self.dst), self.source(src)
        if source is None:
            raise Refused(f"neighbours in src, {src}, are more than 2 GiB of f32 apart: reduce parts of it")
        engine, assembly = self.engine, Assembly(self.engine.tuning, self.engine.isa)
        add_reduction(assembly, self.desc, own.dtype, source, prod(own.dims))
        inner = assembly.plan(f"{way}:{self.isa}", {"src": src, "dst": own}, ("dst",))
        if self.separate_attr is None:
            return between_reorders(inner, self.passed, engine.tuning, isa=engine.isa)
        made = dense_like(self.passed["src"], self.dst)
        first = between_reorders(inner, {**self.passed, "dst": made}, engine.tuning, isa=engine.isa)
        return self.with_post_ops(first, made, self.separate_attr)

    def with_post_ops(self, reduction: Plan, made: MemoryDesc, separate_attr: Attr) -> Plan:
        """The reduction into scratch, and the chain on its result."""
        same, dst = EltwiseOp("linear", 1.0, 0.0, 1.0), self.passed["dst"]
        chain = schedule(Request(NAME, ("src", made), ("dst", dst), {}, lambda _: same), separate_attr, self.engine)
        assembly = Assembly(self.engine.tuning, self.engine.isa)
        assembly.scratch[RESULT] = made.size_bytes
        assembly.add_plan(reduction, {"dst": View(RESULT)})
        assembly.add_plan(chain, {"src": View(RESULT)})
        operands = {name: tensor for name, tensor in chain.tensors.items() if name not in self.passed}
        return assembly.plan(reduction.implementation, {**self.passed, **operands}, ("dst",))


def request_of(desc: ReductionForward, attr: Attr, engine: Engine) -> ReductionRequest:
    """Raises Refused."""
    refuse_scales(attr)
    src = row_major(desc.src.dims, desc.src) if desc.src.is_any else desc.src
    dst = like(src, dense_like(src, desc.dst) if desc.dst.is_any else desc.dst)
    passed = {"src": src, "dst": dst}
    check_tensors(passed, "dst", tuple(DATA_TYPES))
    return ReductionRequest(desc, passed, attr if attr.post_ops else None, engine)


def along_rows(request: ReductionRequest) -> Plan:
    source = request.source(request.passed["src"])
    if source is None:
        raise Refused(NOT_READ)
    if source.row is None:
        raise Refused("elements that are reduced do not lie side by side")
    return request.planned(ROWS, request.passed["src"])


def across_lanes(request: ReductionRequest) -> Plan:
    source = request.source(request.passed["src"])
    if source is None:
        raise Refused(NOT_READ)
    if source.row is not None:
        raise Refused("elements that are reduced lie side by side")
    return request.planned(LANES, request.passed["src"])


def of_plain_copy(request: ReductionRequest) -> Plan:
    src = request.passed["src"]
    if request.source(src) is not None:
        raise Refused("kernels take the format as it is")
    return request.planned(PLAIN, row_major(src.dims, src))


def add_reduction(
    assembly: Assembly, desc: ReductionForward, made: DataType, source: ReductionSource, elements: int
) -> None:
    """Its phases; made: the type of the results."""
    tuning, src = assembly.tuning.reduction, desc.src.dtype
    is_far = src.size_bytes * prod(desc.src.dims) >= tuning.prefetched_bytes
    common = partial(Reductions, narrowing_level(made.name, assembly.isa), kind=src.name, prefetches=is_far)
    narrow = tuning.narrow_elements
    if desc.alg == "logsumexp":
        assembly.scratch[MAXIMA] = f32.size_bytes * elements
        largest = common("max", None, None, (MAXIMA,), narrow_elements=narrow)
        Tree(assembly, largest, elements).grow(source)
        sums = common("sum", power_of_difference(), log_and_most(), beside=(MAXIMA,), made=made.name)
        Tree(assembly, sums, elements).grow(source)
        return
    op = desc.alg if desc.alg in ("max", "min", "mul") else "sum"
    count = prod(desc.src.dims) // elements
    own = common(op, before(desc.alg, desc.p), after(desc, count), made=made.name, narrow_elements=narrow)
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


plans = implementations_of(
    request_of, {ROWS: along_rows, LANES: across_lanes, f"{WORD}+{PLAIN}": of_plain_copy}, f32_level
)
