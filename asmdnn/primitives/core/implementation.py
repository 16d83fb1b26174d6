"""What a list of implementations answers: a plan, or a refusal with its reason."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
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
from asmdnn.runtime.caches import Cache

PLANS_LIMIT_BYTES = 64 << 20
OBJECTS_BYTES = 8_000  # what Python keeps of a plan and its request beside the schedule, about
ANY_MACHINE = ""  # in the place of a name: what is packed for a machine serves others, if there is nothing better
PLAN_PACKAGES = ("generators", "isa", "memory", "planning", "primitives")  # whose sources decide a plan

Desc = TypeVar("Desc", bound=Description)
Request = TypeVar("Request")
Answer = Plan | Refusal
Planner = Callable[[Desc, Attr, Engine], Answer | Iterator[Answer]]  # an implementation, or several, best first


def implementation(
    name: str, level: Callable[[str], str]
) -> Callable[[Callable[[Desc, Attr, Engine], Plan]], Callable[[Desc, Attr, Engine], Answer]]:
    """Makes an implementation of that name of a planner that raises Refused where it does not take a description.

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


def by_ways(
    request_of: Callable[[Desc, Attr, Engine], Request],
    ways: Mapping[str, Callable[[Request], Plan]],
    level: Callable[[str], str],
) -> Callable[[Desc, Attr, Engine], Iterator[Answer]]:
    """A planner that lists several implementations by name, best first: what each says to one request.

    request_of, and every way, raise Refused: what the request refuses, all ways do.  level: as for `implementation`.
    """

    @wraps(request_of)
    def answers(desc: Desc, attr: Attr, engine: Engine) -> Iterator[Answer]:
        isa = level(engine.isa)
        try:
            request = request_of(desc, attr, engine)
        except Refused as reason:
            yield from (Refusal(f"{name}:{isa}", str(reason)) for name in ways)
            return
        for name, way in ways.items():
            try:
                yield way(request)
            except Refused as reason:
                yield Refusal(f"{name}:{isa}", str(reason))

    return answers


class PlannedAnswer:
    """What the implementation list answered, or a measurement chose."""

    __slots__ = ("choice", "kept_bytes", "plan", "refusals", "used")

    def __init__(self, plan: Plan, refusals: tuple[Refusal, ...], choice: Choice | None = None) -> None:
        self.plan, self.refusals, self.choice, self.used = plan, refusals, choice, False
        self.kept_bytes: int = plan.nbytes + OBJECTS_BYTES


plans: Cache[tuple[tuple[Planner[Any], ...], Any, Attr, Engine], PlannedAnswer] = Cache(PLANS_LIMIT_BYTES, "plans")


def try_all(planners: Sequence[Planner[Desc]], desc: Desc, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """What each implementation says, best first, lazily."""
    engine = engine_for(attr, engine)
    for planner in planners:
        answer = planner(desc, attr, engine)
        for one in (answer,) if isinstance(answer, Plan | Refusal) else answer:
            yield one if isinstance(one, Refusal) else checked(one, desc, attr)


def plan_of(planners: Sequence[Planner[Desc]], desc: Desc, engine: Engine) -> Plan:
    """The first plan, for planners that put more around it.  Raises Refused with every reason if there is none."""
    answers = list[Answer]()
    for answer in try_all(planners, desc, NO_ATTR, engine):
        if isinstance(answer, Plan):
            return answer
        answers.append(answer)
    raise Refused("; ".join(map(str, answers)))


def checked(plan: Plan, desc: Description, attr: Attr) -> Plan:
    """A planner's plan as everyone gets it: one that uses all that it was asked for, with subnormal numbers flushed or
    kept, if the attributes say which.  Raises PlanError for one that leaves something out."""
    check_uses(plan, desc, attr)
    return plan if attr.denormals is None else replace(plan, phases=flushing(plan.phases, attr.denormals == "flush"))


def first_plan(planners: tuple[Planner[Desc], ...], desc: Desc, attr: Attr, engine: Engine) -> PlannedAnswer:
    """The plan that was stored for this request, else the first plan and the refusals before it; Unimplemented with
    every reason if there is none.

    All arguments are values, so that equal requests share one plan: a network repeats its layers.
    """
    key = planners, desc, attr, engine
    return plans.get(key) or plans.put(key, _find_plan(*key))


def has_stored_plans() -> bool:
    """Whether plans of packs, or of measurements, may come before what planners say."""
    return bool(packs.loaded()) or has_any()


@within_memory
def _find_plan(planners: tuple[Planner[Desc], ...], desc: Desc, attr: Attr, engine: Engine) -> PlannedAnswer:
    """As first_plan; a plan of a loaded pack comes before one that was tuned, and that before all planners."""
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
    """Every reason once, after all implementations that give it."""
    names: dict[str, list[str]] = {}
    for refusal in refusals:
        names.setdefault(refusal.reason, []).append(refusal.implementation)
    return "; ".join(f"{', '.join(given_by)}: {reason}" for reason, given_by in names.items())


def plan_keys(planners: Sequence[Planner[Desc]], desc: Desc, attr: Attr, engine: Engine) -> list[str]:
    """What a plan is looked for under: as it is packed for this engine, for any machine, and so for the levels below
    that have the same vectors, the best first."""
    wanted = isa_of(engine.isa)
    below = [isa for isa in LEVELS if isa.features < wanted.features and isa.vector_bytes == wanted.vector_bytes]
    isas = (wanted, *reversed(below))
    machines = (engine.machine, ANY_MACHINE)
    return [plan_key(planners, desc, attr, isa.name, machine) for machine in machines for isa in isas]


def plan_key(planners: Sequence[Planner[Desc]], desc: Desc, attr: Attr, isa: str, machine: str) -> str:
    """What a plan is packed under: a sha256 of the request, without threads and L2, and of the planners' sources."""
    names = ", ".join(f"{planner.__module__}.{planner.__qualname__}" for planner in planners)
    text = "\n".join((names, repr(desc), repr(attr), isa, machine, plan_digest()))
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def plan_digest() -> str:
    """sha256 of the Python sources that decide plans and their form, read once a process that uses packs."""
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
