"""Implementation lists: each implementation answers a request with a plan, or a refusal with its reason.

In their modules `plan` is such an implementation, and `plans` yields several answers.  `planned` returns a Plan, or
raises Refused.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.forking import importing
from asmdnn.isa.levels import LEVELS, isa_of
from asmdnn.jit import packs
from asmdnn.jit.digests import digest_of
from asmdnn.jit.tuned_folder import has_any
from asmdnn.memory.allocation import within_memory
from asmdnn.planning.phase import flushing
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.core import tuned
from asmdnn.primitives.core.any_batch import engine_for
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.tuned import Choice
from asmdnn.primitives.core.uses import check_uses
from asmdnn.records import replace
from asmdnn.runtime.caches import Cache

PLANS_LIMIT_BYTES = 64 << 20
REQUEST_BYTES = 3_000  # Python objects of a request and of the refusals before its plan, about
ANY_MACHINE = ""  # instead of a name: a plan that is packed for one machine serves others that have none of their own
PLAN_PACKAGES = ("generators", "isa", "memory", "planning", "primitives")  # whose sources decide a plan

Desc = TypeVar("Desc", bound=Description)
Request = TypeVar("Request")
Answer = Plan | Refusal
ANSWERS = Plan, Refusal
Planner = Callable[[Desc, Attr, Engine], Answer | Iterator[Answer]]  # an implementation, or several, best first


def implementation(
    name: str, level: Callable[[str], str]
) -> Callable[[Callable[[Desc, Attr, Engine], Plan]], Callable[[Desc, Attr, Engine], Answer]]:
    """A decorator: turns a planner, which raises Refused for a description that it does not take, into an
    implementation.

    level: the ISA level of its kernels, from the engine's.
    """

    def of(planner: Callable[[Desc, Attr, Engine], Plan]) -> Callable[[Desc, Attr, Engine], Answer]:
        @wraps(planner)
        def answer(desc: Desc, attr: Attr, engine: Engine) -> Answer:
            try:
                return planner(desc, attr, engine)
            except Refused as reason:
                return Refusal(f"{name}:{level(engine.isa)}", str(reason))

        return answer

    return of


def as_made(request: Any, plan: Plan) -> Plan:
    """Nothing comes around it."""
    return plan


def implementations_of(
    request_of: Callable[[Desc, Attr, Engine], Request],
    implementations: Mapping[str, Callable[[Request], Plan]],
    level: Callable[[str], str],
    finish: Callable[[Request, Plan], Plan] = as_made,
) -> Callable[[Desc, Attr, Engine], Iterator[Answer]]:
    """A planner with several implementations by name, best first, which all answer the same request.

    request_of and the implementations raise Refused; if request_of does, all of them refuse.  level: as for
    `implementation`.  finish: what comes around the plan of any of them.
    """

    @wraps(request_of)
    def answers(desc: Desc, attr: Attr, engine: Engine) -> Iterator[Answer]:
        isa = level(engine.isa)
        try:
            request = request_of(desc, attr, engine)
        except Refused as reason:
            yield from (Refusal(f"{name}:{isa}", str(reason)) for name in implementations)
            return
        for name, plan in implementations.items():
            try:
                yield finish(request, plan(request))
            except Refused as reason:
                yield Refusal(f"{name}:{isa}", str(reason))

    return answers


class PlannedAnswer:
    """The plan that the implementation list gave, or that a measurement chose."""

    __slots__ = ("choice", "kept_bytes", "plan", "refusals", "used")

    def __init__(self, plan: Plan, refusals: tuple[Refusal, ...], choice: Choice | None = None) -> None:
        self.plan, self.refusals, self.choice, self.used = plan, refusals, choice, False
        self.kept_bytes: int = plan.kept_bytes + REQUEST_BYTES


class PlanKey:
    """A request for a plan as a key, whose hash is computed once: that of a description is long."""

    __slots__ = ("_hash", "request")

    def __init__(self, planners: tuple[Planner[Any], ...], desc: Any, attr: Attr, engine: Engine) -> None:
        self.request = planners, desc, attr, engine
        self._hash = hash(self.request)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlanKey) and self.request == other.request


plans: Cache[PlanKey, PlannedAnswer] = Cache(PLANS_LIMIT_BYTES, "plans")


def try_all(planners: Sequence[Planner[Desc]], desc: Desc, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """The answer of each implementation, best first, computed when asked for."""
    engine = engine_for(attr, engine)
    for one in answers_of(planners, desc, attr, engine):
        yield one if isinstance(one, Refusal) else checked(one, desc, attr)


def answers_of(planners: Sequence[Planner[Desc]], desc: Desc, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """The same as they are, unchecked, for planners that are made of others."""
    for planner in planners:
        answer = planner(desc, attr, engine)
        if isinstance(answer, ANSWERS):
            yield answer
        else:
            yield from answer


def plan_of(planners: Sequence[Planner[Desc]], desc: Desc, engine: Engine, attr: Attr = NO_ATTR) -> Plan:
    """The first plan, for planners that use it as a part.  Raises Refused with every reason if there is none."""
    refusals = list[Refusal]()
    for answer in try_all(planners, desc, attr, engine):
        if isinstance(answer, Plan):
            return answer
        refusals.append(answer)
    raise Refused(reasons_of(refusals))


def checked(plan: Plan, desc: Description, attr: Attr) -> Plan:
    """A planner's plan, checked to use everything requested, with subnormal numbers flushed or kept as the attributes
    say.  Raises PlanError if it leaves something out."""
    check_uses(plan, desc, attr)
    return plan if attr.denormals is None else replace(plan, phases=flushing(plan.phases, attr.denormals == "flush"))


def first_plan(planners: tuple[Planner[Desc], ...], desc: Desc, attr: Attr, engine: Engine) -> PlannedAnswer:
    """The plan that was stored for this request, else the first plan and the refusals before it; Unimplemented with
    every reason if there is none.

    All arguments are values, so that equal requests share one plan: a network repeats its layers.
    """
    key = PlanKey(planners, desc, attr, engine)
    return plans.get(key) or found_plan(key)


def found_plan(key: PlanKey) -> PlannedAnswer:
    """The same of a request that was not among those that are kept."""
    return plans.put(key, _find_plan(*key.request))


def has_stored_plans() -> bool:
    """Whether stored plans, of packs or measurements, may take precedence over those of planners."""
    return bool(packs.loaded()) or has_any()


@within_memory
def _find_plan(planners: tuple[Planner[Desc], ...], desc: Desc, attr: Attr, engine: Engine) -> PlannedAnswer:
    """As first_plan: a plan of a loaded pack takes precedence over a tuned one, and that over the planners."""
    if packs.loaded() and (stored := packs.find_plan(plan_keys(planners, desc, attr, engine))):
        return PlannedAnswer(*_unpacked(*stored))
    if has_any() and (found := tuned.find(plan_key(planners, desc, attr, engine.isa, engine.machine), engine)):
        plan, choice = found
        return PlannedAnswer(plan, (), choice)
    refusals: list[Refusal] = []
    for answer in try_all(planners, desc, attr, engine):
        if isinstance(answer, Plan):
            return PlannedAnswer(answer, tuple(refusals))
        refusals.append(answer)
    raise Unimplemented(f"no implementation takes {desc}: {reasons_of(refusals)}")


def reasons_of(refusals: Sequence[Refusal]) -> str:
    """Every implementation once, also where several planners make it, with its reasons; and after the names of all
    implementations of a level that give the same ones."""
    reasons: dict[str, dict[str, None]] = {}
    for refusal in refusals:
        reasons.setdefault(refusal.implementation, {})[refusal.reason] = None
    names: dict[tuple[str, str], list[str]] = {}
    for implementation, own in reasons.items():
        way, _, level = implementation.rpartition(":")
        names.setdefault((", and ".join(own), level), []).append(way)
    return "; ".join(f"{', '.join(ways)}:{level}: {reason}" for (reason, level), ways in names.items())


def plan_keys(planners: Sequence[Planner[Desc]], desc: Desc, attr: Attr, engine: Engine) -> list[str]:
    """The keys under which a plan is looked for, best first: those of this engine, then of any machine; each also for
    lower levels with vectors of the same width."""
    wanted = isa_of(engine.isa)
    below = [isa for isa in LEVELS if isa.features < wanted.features and isa.vector_bytes == wanted.vector_bytes]
    isas = (wanted, *reversed(below))
    machines = (engine.machine, ANY_MACHINE)
    return [plan_key(planners, desc, attr, isa.name, machine) for machine in machines for isa in isas]


def plan_key(planners: Sequence[Planner[Desc]], desc: Desc, attr: Attr, isa: str, machine: str) -> str:
    """The key under which a plan is packed: a sha256 of the request, without threads and L2, and of the planners'
    sources."""
    names = ", ".join(f"{planner.__module__}.{planner.__qualname__}" for planner in planners)
    text = "\n".join((names, repr(desc), repr(attr), isa, machine, plan_digest()))
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def plan_digest() -> str:
    """sha256 of the Python sources that decide plans and their form; read once, in processes that use packs."""
    package = Path(__file__).resolve().parents[2]
    return digest_of(path for name in PLAN_PACKAGES for path in (package / name).rglob("*.py"))


def _unpacked(path: str, stored: memoryview) -> tuple[Plan, tuple[Refusal, ...]]:
    with importing():
        from asmdnn.planning.codec import decode_plan  # most processes load no pack

    plan, refusals = decode_plan(stored, f"the pack {path!r}")
    try:
        return plan, tuple(Refusal(str(implementation), str(reason)) for implementation, reason in refusals)
    except (TypeError, ValueError):
        raise InvalidArguments(f"the pack {path!r} has refusals that make no sense: make it again") from None
