"""The plans of a product, one for each strategy that takes it.

The words of an implementation's name say what the plan does, in order: `swap` (dst^T = weights^T src^T), what is copied
(`pack_src`, `pack_weights`, `pack_blocks`, `packing_tiles`, `copying_tiles`), what multiplies (`tiles`, `rows`, `dots`,
`outer`, `amx`; `one_by_one` for small matrices of a batch), `split_k`, `unpack_dst`.  docs/matmul.md says when.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from asmdnn.forking import importing
from asmdnn.generators.dot.matmul_shape import ARGUMENTS
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly, nothing
from asmdnn.planning.phase import flushing
from asmdnn.planning.phases import may_be_overwritten
from asmdnn.planning.plan import Pairs, Plan, alike
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, Planner
from asmdnn.primitives.core.kind import Candidates
from asmdnn.primitives.core.ways import AsksBelow, Planners
from asmdnn.primitives.products.prepare import prepare
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.strategies import STRATEGIES, TILE_STRATEGIES, Strategy, first_strategy
from asmdnn.primitives.products.target import Target
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.records import dataclass
from asmdnn.types import f32

THRICE: Final = "bf16x3"  # the mode of attributes


def candidates_of(planner: Planner[Any]) -> Candidates:
    """The plans of a planner of products that other numbers choose, for the few processes that measure them."""

    def candidates(desc: Any, attr: Attr, engine: Engine) -> Iterator[tuple[str, Plan]]:
        with importing():
            from asmdnn.primitives.products.candidates import by_other_numbers

        return by_other_numbers(planner, desc, attr, engine)

    return candidates


def thrice(depths: tuple[int, int] = (1, 1)) -> AsksBelow:
    """Three products of fewer bits by the planners below, where attributes ask for that.

    depths: the dims of src and of weights that are summed over."""

    @AsksBelow
    def three(below: Planners, desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
        is_split = not desc.weights.holds_elements
        if attr.fpmath_mode == THRICE and desc.src.dtype == f32 and (is_split or desc.weights.dtype == f32):
            with importing():
                from asmdnn.primitives.products.thrice import answers  # which few processes ask for

            yield from answers(below, depths, desc, attr, engine)

    return three


def nothing_after(assembly: Assembly) -> None:
    """Nothing follows."""


@dataclass(frozen=True, eq=False)
class Job:
    """A product, with what comes before and after it.

    assembly: with the phases before.  add_after: adds those that follow the product.  tensors, outputs: of the plan.
    passed: the same tensors as a caller passes them; reads: the outputs whose former values count.
    """

    assembly: Assembly
    product: Product
    target: Target
    tensors: Mapping[str, MemoryDesc]
    passed: Mapping[str, MemoryDesc]
    outputs: tuple[str, ...] = ("dst",)
    reads: tuple[str, ...] = ()
    add_after: Callable[[Assembly], None] = nothing_after


def refusals(isa: str, reason: str, strategies: Sequence[Strategy] = STRATEGIES) -> Iterator[Refusal]:
    """One for every strategy."""
    return (Refusal(f"{strategy.name}:{isa}", reason) for strategy in strategies)


def answers(
    job_of: Callable[[], Job], isa: str, strategies: Sequence[Strategy] = STRATEGIES
) -> Iterator[Plan | Refusal]:
    """The plan or refusal of every strategy, best first; a single plan for a product without elements."""
    try:
        job = job_of()
        before = job.assembly.branch()
        prepared = prepare(before, job.product, job.target)
    except Refused as reason:
        yield from refusals(isa, str(reason), strategies)
        return
    p = prepared.product
    for strategy in strategies if p else ():
        assert p
        try:
            strategy.check(p, job.target)
        except Refused as reason:
            yield Refusal(f"{strategy.name}:{isa}", str(reason))
            continue
        assembly = before.branch()
        strategy.add(assembly, p, job.target)
        prepared.finish(assembly)
        yield finished(job, assembly)
    if p is None:
        yield finished(job, before)


def best(job: Job) -> Plan:
    """The plan of the first strategy that takes the product.  Raises Refused if none does."""
    assembly = job.assembly.branch()
    multiply(assembly, job.product, job.target)
    return finished(job, assembly)


def finished(job: Job, assembly: Assembly) -> Plan:
    """The plan, with what follows the product."""
    job.add_after(assembly)
    if not assembly.phases:
        assembly.add([nothing(len(ARGUMENTS))])
    assembly.phases = list(flushing(assembly.phases))
    plan = assembly.plan(f"{assembly.name}:{job.target.isa}", job.tensors, job.outputs, overwritten(job, assembly))
    return between_reorders(plan, job.passed, job.target.tuning, job.reads, isa=job.target.isa)


def overwritten(job: Job, assembly: Assembly) -> Pairs:
    """The operands of post-ops that may share dst's memory: none where dst holds partial sums before they are read."""
    (dst, *others), names = job.outputs, job.target.epilogue.chain.names
    if others:
        return ()
    pairs = alike(job.tensors, (name for name in names if name in job.tensors), dst)
    return tuple(pair for pair in pairs if may_be_overwritten(assembly.phases, *pair))


def multiply(assembly: Assembly, p: Product, target: Target, amx: Target | None = None) -> None:
    """Add a product by the first strategy that takes it.  amx: the target of its tiles, which are asked first."""
    prepared = prepare(assembly, p, target)
    if prepared.product is None:
        return
    if amx:
        try:
            strategy = first_strategy(prepared.product, amx, TILE_STRATEGIES)
        except Refused:
            amx = None
    if not amx:
        strategy = first_strategy(prepared.product, target, STRATEGIES)
    strategy.add(assembly, prepared.product, amx or target)
    prepared.finish(assembly)
