"""Two ways to normalize: by statistics of src, which are computed first, and by given ones, which are read."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial, wraps
from typing import NamedTuple, Protocol, TypeVar

from asmdnn.isa.vectors import f32_level
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, implementations_of

GIVEN = "given_statistics"


class Normalized(Description, Protocol):
    """A description of a normalization or its gradient."""

    @property
    def use_global_stats(self) -> bool: ...


NormDesc = TypeVar("NormDesc", bound=Normalized)
Made = TypeVar("Made")


class NormRequest(NamedTuple):
    """What an implementation is asked for, together."""

    desc: Normalized
    attr: Attr
    engine: Engine


def ways_by_statistics(
    name: str, make: Callable[[NormDesc, Attr, Engine, str], Made]
) -> Mapping[str, Callable[[NormRequest], Made]]:
    """`make`, which is told the implementation's name, for statistics of src as `name`, and for given ones."""

    def way(request: NormRequest, taken: str) -> Made:
        if request.desc.use_global_stats != (taken == GIVEN):
            raise Refused(f"mean and variance are {'those of src' if taken == GIVEN else 'given'}")
        return make(request.desc, request.attr, request.engine, taken)  # type: ignore[arg-type]  # of its planner

    return {taken: partial(way, taken=taken) for taken in (name, GIVEN)}


def by_statistics(
    name: str,
) -> Callable[[Callable[[NormDesc, Attr, Engine, str], Plan]], Callable[[NormDesc, Attr, Engine], Iterator[Answer]]]:
    """A decorator: both as implementations of a planner, which is told the name."""

    def of(
        planner: Callable[[NormDesc, Attr, Engine, str], Plan],
    ) -> Callable[[NormDesc, Attr, Engine], Iterator[Answer]]:
        @wraps(planner)
        def request_of(desc: NormDesc, attr: Attr, engine: Engine) -> NormRequest:
            return NormRequest(desc, attr, engine)

        return implementations_of(request_of, ways_by_statistics(name, planner), f32_level)

    return of
