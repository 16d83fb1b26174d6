"""Engine: the ISA level, the threads and the cache that plans are made for; Stream: in-order execution."""

from dataclasses import dataclass, field
from typing import Any, Literal

from asmdnn.errors import InvalidArguments, shown
from asmdnn.isa.cpu import cache_sizes, caps, effective_isa
from asmdnn.isa.levels import Isa, isa_of
from asmdnn.runtime.threads import check_thread_count, max_threads
from asmdnn.types import IsaName

USUAL_L2_BYTES = 1 << 19  # where the CPU does not tell


@dataclass(frozen=True, slots=True)
class Engine:
    """What plans are made for; a frozen value.

    kind: "cpu".  isa: the name of a level, default the best that this machine has and ASMDNN_MAX_CPU_ISA allows.
    threads: default the OpenMP runtime's count.  l2_bytes: the cache that a thread's working set should stay in,
    default this machine's.  Plans can be made for levels that this machine lacks; only execution asks for the real one.
    Raises InvalidArguments for an unknown kind, ISA or count, Unimplemented without AVX2 or an OpenMP runtime.
    """

    kind: str = "cpu"
    isa: IsaName | Literal[""] = ""
    threads: int = 0
    l2_bytes: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind != "cpu":
            raise InvalidArguments(f"kind must be 'cpu', not {shown(self.kind)}")
        isa = effective_isa() if isinstance(self.isa, str) and not self.isa else isa_of(self.isa)
        object.__setattr__(self, "isa", isa.name)
        default = type(self.threads) is int and self.threads == 0
        object.__setattr__(self, "threads", max_threads() if default else check_thread_count(self.threads))
        if isinstance(self.l2_bytes, bool) or not isinstance(self.l2_bytes, int) or self.l2_bytes < 0:
            raise InvalidArguments(f"l2_bytes must be a number of bytes, not {shown(self.l2_bytes)}")
        object.__setattr__(self, "l2_bytes", self.l2_bytes or cache_sizes().l2_bytes or USUAL_L2_BYTES)


EngineKey = tuple[object, ...]
_defaults: dict[tuple[Isa, int], Engine] = {}  # a few: one for each level and thread count that the process came across


def engine_key(engine: Engine | None) -> EngineKey:
    """What a call with this engine, or the default one, depends on: caps, threads and levels; cheap to hash.

    Raises InvalidArguments for anything else than an engine.
    """
    if engine is None:
        return (*caps(), max_threads())
    if not isinstance(engine, Engine):
        raise InvalidArguments(f"engine must be an Engine, not {type(engine).__name__}")
    return (*caps(), engine)


def engine_or_default(engine: Engine | None) -> Engine:
    """`engine`, or the default one: Engine(), without asking the machine again.  Raises InvalidArguments."""
    if engine is None:
        key = effective_isa(), max_threads()
        return _defaults.get(key) or _defaults.setdefault(key, Engine())
    if not isinstance(engine, Engine):
        raise InvalidArguments(f"engine must be an Engine, not {type(engine).__name__}")
    return engine


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
