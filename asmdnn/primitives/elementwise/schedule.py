"""The plan of an element-wise primitive: kernels for the rows of every box, zeros for the padding of dst."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from asmdnn.generators.functions.chain import compose, operands_of
from asmdnn.generators.functions.elementwise import (
    ElementwiseSpec,
    SeveralResultsSpec,
    TypedElementwiseSpec,
    TypedResultsSpec,
)
from asmdnn.generators.functions.elementwise_code import DST, Result
from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.postops import OLD_DST, ExpressionOp, Operand, PostOp
from asmdnn.generators.functions.program import Program
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.isa.elements import narrowing_level
from asmdnn.isa.vectors import NARROWEST, f32_level, lanes_of, narrowed, vector_bytes
from asmdnn.memory import MemoryDesc
from asmdnn.planning.loops import Box, Loop
from asmdnn.planning.move_tuning import ElementwiseTuning
from asmdnn.planning.phase import Phase, views
from asmdnn.planning.plan import Plan, alike
from asmdnn.planning.refusal import Refused
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.attributes.attr import Attr, refuse_scales
from asmdnn.primitives.attributes.chain import Chain, further_of, post_ops_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise.pieces import along_dst, cut, read_along, with_zeros
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.shapes.formats import dense_like
from asmdnn.primitives.shapes.row_calls import Calls, operands_along, phases_of
from asmdnn.primitives.shapes.tensors import check_tensors
from asmdnn.records import dataclass, replace
from asmdnn.types import DATA_TYPES, f32, s16

MASK = FIRST_MORE = 2  # the number of its argument
STORED = (*DATA_TYPES, s16.name)  # words are stored in scratch

Spec = ElementwiseSpec | RowsSpec
MainOp = Callable[[Mapping[str, Operand]], PostOp]
Ops = Callable[[Mapping[str, Operand]], tuple[PostOp, ...]]


@dataclass(frozen=True, slots=True)
class Request:
    """dst = post-ops(main(src, others)), tensors by argument name.

    `main` makes the primitive's own operation from where its other tensors lie.  mask: a tensor of bytes in dst's
    format, which become 1 where main is above 0, else 0.  more: further results in dst's format, and the operations of
    each on src, where all tensors are f32; what they have in common is computed once.
    """

    name: str
    src: tuple[str, MemoryDesc]
    dst: tuple[str, MemoryDesc]
    others: Mapping[str, MemoryDesc]
    main: MainOp
    mask: tuple[str, MemoryDesc] | None = None
    more: tuple[tuple[str, MemoryDesc, Ops], ...] = ()

    @property
    def results(self) -> tuple[tuple[str, MemoryDesc], ...]:
        """What is written."""
        return (self.dst, *([self.mask] if self.mask else []), *(each[:2] for each in self.more))


def schedule(request: Request, attr: Attr, engine: Engine) -> Plan:
    """Plan an element-wise primitive.  Raises Refused, and InvalidArguments for post-ops that do not fit dst."""
    isa, tuning = f32_level(engine.isa), engine.tuning.elementwise
    name, stored_at = f"{request.name}:{isa}", narrowing_level(request.dst[1].dtype.name, engine.isa)
    chain = post_ops_of(attr, stores=True)
    request = with_further(request, attr, chain)
    operands = chain.operands(request.dst[1], DATA_TYPES.values())
    passed = dict([request.src, *request.results, *request.others.items(), *operands.items()])
    refuse_scales(attr)
    check_tensors(passed, request.dst[0], (f32.name,) if request.more else STORED)
    tensors, nests = addressable(passed, request.dst[0])
    costs: dict[Spec, int] = {}
    calls: Calls[Spec] = []
    filled = list(with_zeros(nests, stored_at))
    for box, zeroed in filled:
        for piece, row, rows in cut(box, along_dst(box), tuning):
            spec = spec_of(tensors, (piece, row, rows), request, chain, stored_at, zeroed)
            if isinstance(spec, ElementwiseSpec) and may_stream(tensors, request.dst[0], tuning):
                aligned = rows.extent == 1 or all(x.row_bytes % vector_bytes(spec.isa) == 0 for x in spec.streamed)
                spec = replace(spec, streaming=aligned and OLD_DST not in operands_of(spec.together))
            if isinstance(spec, ElementwiseSpec):
                spec = replace(spec, interleaved=vectors_in_turn(spec, tuning), ahead_bytes=tuning.ahead_bytes)
            costs.setdefault(spec, cost(spec, tuning))
            calls.append((spec, piece, tuple(x for x in piece.loops if x is not row and x is not rows)))
    results = tuple(name for name, _ in request.results)
    inputs = [name for name in tensors if name not in results]
    sizes = [desc.dtype.size_bytes for desc in tensors.values()]
    phases = phases_of(calls, costs, views(tuple(tensors)), engine.tuning.phases, sizes)
    if request.mask:
        phases = (*phases, *padding_of_mask(request.mask[0], [box for box, _ in filled], engine.tuning))
    plan = Plan(
        implementation=name,
        phases=phases,
        tensors=tensors,
        constants={},
        scratch_bytes={},
        outputs=results,
        in_place=tuple(pair for result in results for pair in alike(tensors, inputs, result)),
    )
    return between_reorders(plan, passed, engine.tuning, isa=engine.isa)


def with_further(request: Request, attr: Attr, chain: Chain) -> Request:
    """The request with what a post-op stores beside dst.  Raises Refused."""

    def made(number: int, operands: Mapping[str, Operand]) -> tuple[PostOp, ...]:
        return (request.main(operands), *chain.further_on_registers(number, operands))

    name, dst = request.dst
    more = tuple((argument, dst, partial(made, number)) for number, argument in enumerate(further_of(attr, name)))
    if more and (request.mask or request.more):
        raise Refused("a post-op stores further values beside one result")
    return replace(request, more=more) if more else request


def padding_of_mask(mask: str, nests: Sequence[Box], tuning: Tuning) -> tuple[Phase, ...]:
    """Zeros in the padding of a mask, which lies as that of dst does."""
    calls: Calls[RowsSpec] = []
    for box in nests:
        for piece, row, rows in cut(box, along_dst(box), tuning.elementwise) if box.padding else ():
            outer = tuple(Loop(x.extent, (0, x.dst)) for x in piece.loops if x is not row and x is not rows)
            spec = RowsSpec(
                isa=NARROWEST, rows=rows.extent, row_bytes=row.extent, src_step=0, dst_step=rows.dst, zero=True
            )
            calls.append((spec, Box((0, piece.dst), ()), outer))
    costs = {spec: cost(spec, tuning.elementwise) for spec, *_ in calls}
    return phases_of(calls, costs, views(("", mask)), tuning.phases, [1, 1]) if calls else ()


def may_stream(tensors: Mapping[str, MemoryDesc], dst: str, tuning: ElementwiseTuning) -> bool:
    """Whether dst will not be read from cache, as all tensors together exceed it, and is of elements that are stored as
    whole vectors."""
    total = sum(tensor.size_bytes for tensor in tensors.values())
    return total >= tuning.streaming_bytes and tensors[dst].dtype.size_bytes == f32.size_bytes


def addressable(passed: Mapping[str, MemoryDesc], dst: str) -> tuple[Mapping[str, MemoryDesc], list[Box]]:
    """The tensors in formats that kernels read beside dst: as they are passed, or dense ones in dst's order; and the
    boxes of them all."""
    nests = read_along(passed.values())
    if nests is not None:
        return passed, nests
    found = {dst: passed[dst]}
    for name, desc in passed.items():
        if name != dst:
            is_read = read_along((desc, *found.values())) is not None
            found[name] = desc if is_read else dense_like(passed[dst], desc)
    tensors = {name: found[name] for name in passed}
    nests = read_along(tensors.values())
    assert nests is not None, "what is dense in dst's order is read along"
    return tensors, nests


def spec_of(
    tensors: Mapping[str, MemoryDesc],
    cut: tuple[Box, Loop, Loop],
    request: Request,
    after: Chain,
    isa: str,
    zeroed: int,
) -> Spec:
    """The kernel of the rows of a box: the box, its loop along a row, and that over the rows.  zeroed: elements of dst
    behind each row."""
    box, row, rows = cut
    types = tuple(desc.dtype.name for desc in tensors.values())
    sizes = [desc.dtype.size_bytes for desc in tensors.values()]
    dst_step = sizes[DST] * rows.strides[DST]
    if box.padding:
        return RowsSpec(
            isa=NARROWEST, rows=rows.extent, row_bytes=sizes[DST] * row.extent, src_step=0, dst_step=dst_step, zero=True
        )
    operands = operands_along(tensors, row, rows)
    main = request.main(operands)
    chain = (main, *after.on_registers(operands))
    src = next(iter(operands.values()))
    fields: dict[str, Any] = {
        "isa": narrowed(isa, row.extent + zeroed), "rows": rows.extent, "elements": row.extent, "src": src,
        "dst_row_bytes": dst_step, "chain": chain, "zeroed": zeroed,
    }  # fmt: skip
    if request.more:
        more = (
            Result(a, sizes[a] * rows.strides[a], ops(operands)) for a, (*_, ops) in enumerate(request.more, FIRST_MORE)
        )
        return SeveralResultsSpec(**fields, more=tuple(more))
    if set(types) == {f32.name}:
        return ElementwiseSpec(**fields)
    if request.mask:
        mask = Result(MASK, rows.strides[MASK], (main, ExpressionOp(is_positive(), ())))
        return TypedResultsSpec(**fields, types=types, more=(mask,))
    return TypedElementwiseSpec(**fields, types=types)


@lru_cache
def is_positive() -> Program:
    """1 where x is above 0, else 0."""
    build = Builder(1)
    (x,) = build.inputs
    return build.finish(build.where(x > 0.0, 1.0, 0.0))


def vectors_in_turn(spec: ElementwiseSpec, tuning: ElementwiseTuning) -> int:
    """Which hide one another's latency; of short functions past the caches, how many lines are written in turn."""
    if vector_bytes(spec.isa) == vector_bytes(NARROWEST):
        return tuning.interleaved
    return tuning.wide_streamed if spec.streaming and not spec.prefetches else tuning.wide_interleaved


def cost(spec: Spec, tuning: ElementwiseTuning) -> int:
    """Expected cycles: those of the steps of the function, and what a vector in L2 takes."""
    if isinstance(spec, RowsSpec):
        return tuning.call_cycles + spec.rows * (tuning.row_cycles + spec.row_bytes // 32)
    vectors = -(-spec.elements // lanes_of(spec.isa))
    steps = len(compose(spec.chain).steps)
    vector_cycles = vector_bytes(spec.isa) // tuning.bytes_per_cycle + steps // tuning.steps_per_cycle
    return tuning.call_cycles + spec.rows * (tuning.row_cycles + vectors * vector_cycles)
