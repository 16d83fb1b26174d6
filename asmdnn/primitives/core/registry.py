"""All kinds of primitives: a new one is its folder, with a kind.py that has its KINDS, found by being there.

The planners of a folder are imported when the first of its primitives is asked for: importing all of them would make
`import asmdnn` take half as long again.
"""

import os
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from asmdnn import primitives
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.forking import importing
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.implementation import Planner
from asmdnn.primitives.core.kind import Kind

ROUNDING = "stochastic_rounding"
KEPT_CLASSES = 256  # of what users pass, which may be of any class


@cache
def folders() -> tuple[str, ...]:
    """Those that have kinds: all with a kind.py but this one, which has the class."""
    found = (entry for entry in os.scandir(primitives.__path__[0]) if os.path.exists(f"{entry.path}/kind.py"))
    return tuple(sorted(entry.name for entry in found if entry.name != "core"))


@cache
def kinds_in(folder: str) -> dict[type, Kind]:
    """Those of a folder, which is imported, by description."""
    with importing():
        found: tuple[Kind, ...] = import_module(f"asmdnn.primitives.{folder}.kind").KINDS
    return {kind.description: kind for kind in found}


@cache
def kinds() -> dict[type, Kind]:
    """All of them, by description: every folder is imported, and so is every class of specs."""
    return {description: kind for folder in folders() for description, kind in kinds_in(folder).items()}


@lru_cache(KEPT_CLASSES)
def kind_described_by(description: type) -> Kind | None:
    """The kind of a class; None if it describes no primitive.  It is looked for in its own folder first."""
    own = description.__module__.split(".")
    for folder in sorted(folders(), key=lambda folder: folder not in own):
        if description in kinds_in(folder):
            return kinds_in(folder)[description]
    return None


def planners_of(kind: Kind, attr: Attr) -> tuple[Planner[Any], ...]:
    """Those that answer requests with these attributes.  Raises Unimplemented."""
    if not attr.rounding_mode:
        return kind.planners
    if not kind.rounds:
        raise Unimplemented(f"{kind.description.__name__} has no rounding_mode: use the primitive StochasticRounding")
    with importing():
        results = import_module(f"asmdnn.primitives.{ROUNDING}.results")
    found: tuple[Planner[Any], ...] = results.rounding(kind.planners)
    return found


def kind_of(desc: object) -> Kind:
    """The kind of primitive that `desc` describes.  Raises InvalidArguments if there is none."""
    kind = kind_described_by(type(desc))  # type: ignore[arg-type]  # mypy asks how `desc` is hashed, not its class
    if kind is None:
        names = ", ".join(sorted(description.__name__ for description in kinds()))
        raise InvalidArguments(f"desc must be one of {names}, not {type(desc).__name__}")
    return kind
