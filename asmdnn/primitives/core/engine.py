"""Engine: the machine, the ISA level, the threads and the cache that plans are made for; Stream: in-order execution."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from asmdnn.errors import InvalidArguments, resembling, shown
from asmdnn.isa.levels import isa_of
from asmdnn.planning.host import best_isa, host, setting
from asmdnn.planning.machine import machine_of
from asmdnn.planning.own_row import tuning_here
from asmdnn.records import dataclass, field, replace
from asmdnn.runtime.threads import check_thread_count, max_threads
from asmdnn.types import IsaName

if TYPE_CHECKING:
    from asmdnn.planning.tuning import Tuning

BATCH: Final = "batch"
NEVER: Final = 1 << 60  # elements, rows or cycles, more than a product has
MOST_ENGINES: Final = 64  # whose other levels are known
_OF_THE_MACHINE = cast("Tuning", object())  # in the place of one that is not given


@dataclass(frozen=True, slots=True)
class Engine:
    """What plans are made for; a frozen value.

    kind: "cpu".  isa: the name of a level, default the best that the machine has and ASMDNN_MAX_CPU_ISA allows.
    threads: default the OpenMP runtime's count.  l2_bytes: the cache that a thread's working set should stay in,
    default the machine's.  machine: a CPU class, such as "sapphire_rapids", whose level, L2 and tuning are the
    defaults; the default is the machine at hand, or that of ASMDNN_MACHINE.  tuning: the numbers that planners choose
    by, all of them; default the machine's, with those that `asmdnn tune --machine` has found on the one at hand.
    deterministic: True asks for equal bits in every run and for any number of threads, which all plans have.  "batch"
    asks besides that the bits of a row or image depend on neither its neighbours nor their number, of every primitive
    and network that is planned for this engine: docs/attributes.md.
    Plans can be made for machines and levels that are not at hand; only execution asks for the real one.
    Raises InvalidArguments for an unknown kind, ISA, machine or count, Unimplemented without AVX2 or an OpenMP runtime.
    """

    kind: str = "cpu"
    isa: IsaName | Literal[""] = ""
    threads: int = 0
    l2_bytes: int = field(default=0, repr=False)
    machine: str = field(default="", repr=False)
    tuning: "Tuning" = field(default=_OF_THE_MACHINE, hash=False, repr=False)
    deterministic: Literal[False, True, "batch"] = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind != "cpu":
            raise InvalidArguments(f"kind must be 'cpu', not {shown(self.kind)}{resembling(self.kind, ['cpu'])}")
        machine = host() if isinstance(self.machine, str) and not self.machine else machine_of(self.machine)
        isa = best_isa(machine) if isinstance(self.isa, str) and not self.isa else isa_of(self.isa)
        object.__setattr__(self, "machine", machine.name)
        object.__setattr__(self, "isa", isa.name)
        default = type(self.threads) is int and self.threads == 0
        object.__setattr__(self, "threads", max_threads() if default else check_thread_count(self.threads))
        if isinstance(self.l2_bytes, bool) or not isinstance(self.l2_bytes, int) or self.l2_bytes < 0:
            raise InvalidArguments(f"l2_bytes must be a number of bytes, not {shown(self.l2_bytes)}")
        object.__setattr__(self, "l2_bytes", self.l2_bytes or machine.caches.l2_bytes)
        own = tuning_here(machine, isa.name)
        if self.tuning is _OF_THE_MACHINE:
            object.__setattr__(self, "tuning", own)
        elif not isinstance(self.tuning, type(own)):
            raise InvalidArguments(f"tuning must be that of a machine, a Tuning, not {shown(self.tuning)}")
        check_deterministic(self.deterministic)
        if self.any_batch:
            object.__setattr__(self, "tuning", in_one_order(self.tuning))

    @property
    def any_batch(self) -> bool:
        """Whether bits of a row or image are to be those that it has alone."""
        return self.deterministic == BATCH


def check_deterministic(word: object) -> None:
    """Raise InvalidArguments for anything else than True, False and "batch"."""
    if not isinstance(word, bool) and not (isinstance(word, str) and word == BATCH):
        near = resembling(word, [BATCH])
        raise InvalidArguments(f"deterministic must be True or False, or 'batch', not {shown(word)}{near}")


def in_one_order(tuning: "Tuning") -> "Tuning":
    """The tuning by which no product is summed in rows, lanes, groups, parts or turns of k: these depend on the number
    of rows."""
    by_tiles = replace(tuning.products, dot_rows=NEVER, dot_elements_least=NEVER)
    products = replace(by_tiles, vector_rows=NEVER, split_cycles=NEVER, scaled_rows=1, latency_sums=1)
    return replace(tuning, products=products, recurrent=replace(tuning.recurrent, latency_sums=1))


EngineKey = tuple[object, ...]
_defaults: dict[EngineKey, Engine] = {}  # few: one for each machine, cap and thread count that was used


def engine_key(engine: Engine | None) -> EngineKey:
    """What a call with this engine, or the default one, depends on: machine, caps, threads; cheap to hash.

    Raises InvalidArguments for anything else than an engine.
    """
    if engine is None:
        return setting(), max_threads()
    return setting(), engine_or_default(engine)


def engine_or_default(engine: Engine | None) -> Engine:
    """`engine`, or the default one: Engine(), without asking the machine again.  Raises InvalidArguments."""
    if engine is None:
        key = engine_key(None)
        return _defaults.get(key) or _defaults.setdefault(key, Engine())
    if not isinstance(engine, Engine):
        raise InvalidArguments(f"engine must be an Engine, not {type(engine).__name__}")
    return engine


def engine_asking(engine: Engine | None, deterministic: Literal[False, True, "batch"]) -> Engine:
    """`engine`, or the default one, or that which also asks for this.  Raises InvalidArguments."""
    engine = engine_or_default(engine)
    check_deterministic(deterministic)
    return replace(engine, deterministic=deterministic) if deterministic and not engine.any_batch else engine


def forget_engines() -> None:
    """Forget the default engines, whose tuning may have changed; they are made again when needed."""
    _defaults.clear()


class Stream:
    """Executes primitives in order; on a CPU each is complete when `execute` returns."""

    def __init__(self, engine: Engine) -> None:
        if not isinstance(engine, Engine):
            raise InvalidArguments(f"engine must be an Engine, not {type(engine).__name__}")
        self.engine = engine

    def wait(self) -> None:
        """Return when everything submitted is complete: at once."""

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *exc: Any) -> None:
        self.wait()


def at_level(engine: Engine, isa: IsaName) -> Engine:
    """The same with another ISA level."""
    return engine if isa == engine.isa else _at_other_level(engine, isa)


@lru_cache(MOST_ENGINES)
def _at_other_level(engine: Engine, isa: IsaName) -> Engine:
    """Made once: planners ask for each convolution, several times."""
    return replace(engine, isa=isa)
