"""f32 multiplied in fewer bits, where attributes allow it: `fpmath_mode`.

    mode             src and weights become
    bf16, any        bf16 both, where a level multiplies them (VDPBF16PS)
    bf16, f16, any   f32 and bf16 or f16, for few rows of a product, which wait for the weights
    bf16x3           sums of two bf16 (products/thrice.py)
    tf32             f32: it promises no less, and nothing here is faster

Weights that are `any` are packed in the smaller type, once; others are packed in every call, and so is src.  Sums,
bias, post-ops and dst stay f32.
"""

from collections.abc import Iterator, Mapping
from math import prod
from types import MappingProxyType
from typing import Any, Final

from asmdnn.errors import Unimplemented
from asmdnn.forking import importing
from asmdnn.isa.dot import multiplied
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, try_all
from asmdnn.primitives.core.ways import AsksBelow, Planners
from asmdnn.primitives.core.widening import cycles_of_fma
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.records import dataclass, replace
from asmdnn.types import FLOATS8, UPPER_FLOATS, DataType, bf16, f16, f32


@dataclass(frozen=True, slots=True)
class RoundedFactors:
    """What f32 of src and of weights becomes."""

    src: DataType
    weights: DataType

    @property
    def word(self) -> str:
        """In the names of implementations."""
        return f"{self.weights}" if self.src == self.weights else f"{self.weights}_weights"


BOTH_BF16: Final = RoundedFactors(bf16, bf16)
ROUNDINGS: Final[Mapping[str, tuple[RoundedFactors, ...]]] = MappingProxyType(
    {
        "bf16": (BOTH_BF16, RoundedFactors(f32, bf16)),
        "f16": (RoundedFactors(f32, f16),),
        "any": (BOTH_BF16, RoundedFactors(f32, f16)),
    }
)


def rounded(weights_alone: bool = False) -> AsksBelow:
    """The planners below with f32 that is rounded, where attributes allow that.

    weights_alone: whether it may pay to round nothing else, as in products of few rows.
    """

    @AsksBelow
    def roundings(below: Planners, desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
        allowed = ROUNDINGS.get(attr.fpmath_mode)
        if allowed is None or desc.src.dtype != f32 or desc.weights.dtype not in UPPER_FLOATS:
            return
        exact = next((x for x in try_all(below, desc, attr.strict, engine) if isinstance(x, Plan)), None)
        for rounding in allowed:
            if rounding.src != f32 or weights_alone:
                yield from answers(rounding, below, (desc, attr, engine), exact)

    return roundings


@AsksBelow
def float8(below: Planners, desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """The planners below with wider tensors, where some are floats of 8 bits."""
    if not any(tensor.dtype in FLOATS8 for tensor in desc.tensors().values()):
        return
    with importing():
        from asmdnn.primitives.reorder.float8 import answers  # most processes have no such tensors

    yield from answers(below, desc, attr, engine)


def answers(
    rounding: RoundedFactors,
    planners: Planners,
    request: tuple[Any, Attr, Engine],
    exact: Plan | None,
) -> Iterator[Answer]:
    """What planners make of tensors that are rounded so; exact: the plan that is there without."""
    desc, attr, engine = request
    try:
        check(rounding, desc, engine)
    except Refused as reason:
        yield Refusal(f"{rounding.word}:{f32_level(engine.isa)}", str(reason))
        return
    wanted = {"src": MemoryDesc(desc.src.dims, rounding.src, "any")} if rounding.src != f32 else {}
    wanted["weights"] = MemoryDesc(desc.weights.dims, rounding.weights, "any")
    if desc.weights.dtype == rounding.weights:
        wanted["weights"] = desc.weights
    for answer in try_all(planners, desc.with_formats(wanted), attr.strict, engine):
        name = f"{rounding.word}+{answer.implementation}"
        if isinstance(answer, Refusal):
            yield Refusal(name, answer.reason)
            continue
        plan = replace(as_passed(answer, desc, engine), implementation=name)
        cycles = cycles_of_fma(plan, engine)
        if exact and rounding.src != f32 and cycles >= exact.cycles:
            yield Refusal(name, f"{cycles} cycles are expected, {exact.cycles} of f32")
        else:
            yield plan


def check(rounding: RoundedFactors, desc: Any, engine: Engine) -> None:
    """Raise Refused where the level does not multiply such tensors, or has nothing to gain."""
    try:
        types = multiplied(rounding.src, rounding.weights, engine.isa)
    except Unimplemented as reason:
        raise Refused(str(reason)) from None
    if types.src != rounding.src:
        raise Refused(f"isa {engine.isa} multiplies {rounding.src} as f32")
    if rounding.src == f32:
        check_few_rows(desc, engine)


def check_few_rows(desc: Any, engine: Engine) -> None:
    """Raise Refused unless few rows meet weights that are packed once and lie beyond L2."""
    if not desc.weights.is_any:
        raise Refused("weights are rounded where their format is any, else every call would read all of them")
    rows, most = prod(desc.dst.dims[:-1]), engine.tuning.products.half_weights_rows
    if rows > most:
        raise Refused(f"more than {most} rows wait for multiplies, not for weights")
    if (size := desc.weights.nelems() * f32.size_bytes) <= engine.l2_bytes:
        raise Refused(f"weights of {size} bytes are in L2")


def as_passed(plan: Plan, desc: Any, engine: Engine) -> Plan:
    """The plan after what rounds tensors that are passed as f32: src, and weights whose format is not left open."""
    passed: dict[str, MemoryDesc] = {}
    for name in ("src", "weights"):
        given, own = desc.tensors()[name], plan.tensors[name]
        if given.is_any and name == "src":
            passed[name] = of_type(own, given.dtype)
        elif not given.is_any:
            passed[name] = given
    return between_reorders(plan, passed, engine.tuning, isa=engine.isa)
