"""What `asmdnn bench` needs to know of a kind of primitive: its driver, and of a case the work.

A driver is a module of asmdnn.bench.drivers, named as its option, with a `DRIVER`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

import numpy.typing as npt

from asmdnn.bench.common import COMMON
from asmdnn.bench.judge import Answer
from asmdnn.bench.words import Option, Settings
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.description import Description
from asmdnn.records import dataclass, field, replace

Array = npt.NDArray[Any]


class Problem(Protocol):
    """A parsed problem string.  str() is the canonical string; count says how often a network has it."""

    @property
    def name(self) -> str: ...
    @property
    def count(self) -> int: ...


class Data(Protocol):
    """Arguments by name, in logical order and the storage type; dst as it is before the call.

    exact: arithmetic on them does not round.
    """

    @property
    def exact(self) -> bool: ...
    @property
    def arrays(self) -> Mapping[str, Array]: ...


@dataclass(frozen=True, slots=True)
class TensorData:
    """Data that is just its arrays."""

    arrays: Mapping[str, Array]
    exact: bool


class Side(Protocol):
    """A primitive with its memory, ours or a peer's: `write` fills the arguments, `compute` does that and returns the
    result in logical order, `run()` is the bare call that is timed."""

    @property
    def implementation(self) -> str: ...
    @property
    def run(self) -> Callable[[], object]: ...
    def write(self, data: Data) -> None: ...
    def compute(self, data: Data) -> Array: ...


class PeerSide(Side, Protocol):
    """A Side that has to be closed."""

    def close(self) -> None: ...


S = TypeVar("S", bound=Settings)
P = TypeVar("P", bound=Problem)
D = TypeVar("D", bound=Data)


class Work(ABC, Generic[D]):
    """A case made concrete.

    argument_bytes: of all tensors, to see whether they fit into memory.  flops: 0 where bytes are what counts.
    exactness: the kinds of data that are checked, in order.  in_place: a result that replaces an input, by name.
    internal: arguments of the library's own layout that nobody fills or compares, such as a workspace.
    peer_slack: how many times the tolerance the peer may be off, without being called wrong.
    """

    flops: int = 0
    in_place: Mapping[str, str] = MappingProxyType({})
    internal: tuple[str, ...] = ()
    peer_slack: float = 1.0
    exactness: tuple[bool, ...] = (True, False)

    @property
    @abstractmethod
    def argument_bytes(self) -> int: ...

    @abstractmethod
    def describe(self) -> tuple[Description, Attr]:
        """The description of the primitive, and its attributes.  Raises AsmdnnError."""

    @abstractmethod
    def data(self, exact: bool) -> D:
        """Arguments filled with data.  What is only written starts as a value that no result has."""

    @abstractmethod
    def answer(self, data: D) -> Answer:
        """The result by numpy, from the definition."""

    def tolerance(self, data: D) -> Array | float:
        """How far rounding can move each element of a result; asked only where the answer comes from the peer."""
        return 0.0

    def peer(self, isa: str, threads: int) -> PeerSide:
        """The same primitive of the peer; only asked for where the driver has peers."""
        raise NotImplementedError


def completed(settings: Any, problem: Any) -> tuple[Any, Any]:
    """Settings and problem, which has as many images as --mb says, if it says any."""
    images = getattr(settings, "mb", 0)
    return (replace(settings, mb=0), problem.with_images(images)) if images else (settings, problem)


@dataclass(frozen=True, slots=True)
class Driver(Generic[S, P]):
    """One kind of primitive.

    settings: the options' defaults.  parse: of a problem string.  work: of a case, or the reason to skip it; it raises
    Unimplemented for what is not built yet, InvalidArguments for what is none of the primitive's problems.
    completed: settings and problem of a case, where options change the problem.  title: what a table calls a case.
    notation: of a problem, "" for that of the example.
    bandwidth_bound: reports say bytes and the share of a copy's speed, not operations and the share of a peak.
    peers: the libraries that it can be compared with.  is_foreign: it is benchdnn's alone, and takes any option.
    options: by name, its own and the common ones, in the order of the help; describing: those in a case's words, with
    their defaults.
    """

    name: str
    settings: S
    own_options: Mapping[str, Option]
    parse: Callable[[str], P]
    work: Callable[["Case[S, P]"], Work[Any] | str]
    example: str
    notation: str = ""
    bandwidth_bound: bool = True
    title: Callable[["Case[S, P]"], str] = lambda case: case.problem.name or str(case.problem)
    synonyms: Mapping[str, str] = field(default_factory=dict)
    peers: tuple[str, ...] = ("onednn",)
    completed: Callable[[S, P], tuple[S, P]] = completed
    is_foreign: bool = False

    options: Mapping[str, Option] = field(init=False)
    describing: tuple[tuple[str, Option, Any], ...] = field(init=False)

    def __post_init__(self) -> None:
        fields = {name: o.field or name.removeprefix("attr-").replace("-", "_") for name, o in self.own_options.items()}
        own = {name: replace(o, field=fields[name]) for name, o in self.own_options.items()}
        options = {"mode": COMMON["mode"], **own, **COMMON}
        describing = ((name, o, getattr(self.settings, o.field)) for name, o in options.items() if o.describes)
        object.__setattr__(self, "options", options)
        object.__setattr__(self, "notation", self.notation or self.example.rpartition(" ")[2])
        object.__setattr__(self, "describing", tuple(describing))


@dataclass(frozen=True, slots=True)
class Case(Generic[S, P]):
    """One run: a problem under its settings."""

    driver: Driver[S, P]
    settings: S
    problem: P

    def __str__(self) -> str:
        """The words that repeat it: options that differ from their default, without those that only choose cases."""
        words = [f"--{self.driver.name}"]
        for name, option, default in self.driver.describing:
            value = getattr(self.settings, option.field)
            if value != default:
                words.append(f"--{name}={option.show(value)}")
        words += [unbuilt.option for unbuilt in self.settings.unbuilt]
        return " ".join([*words, str(self.problem)])


def by_direction(forward: Callable[[Any], Work[Any]], gradient: Callable[[Any], Work[Any]]) -> Callable[[Any], Any]:
    """The work of a case by what its --dir says."""
    return lambda case: (gradient if case.settings.dir.startswith("BWD") else forward)(case)


AnyCase = Case[Any, Any]
AnyDriver = Driver[Any, Any]
