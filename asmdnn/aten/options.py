"""How the networks of a module are compiled: what `from_torch` and the options of the backend ask for."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from asmdnn.errors import InvalidArguments, resembling, shown
from asmdnn.network.building import Graph
from asmdnn.network.narrow.storage import precision_of
from asmdnn.network.network import Network
from asmdnn.primitives.core.engine import Engine, engine_asking
from asmdnn.records import dataclass

OPTIONS: Final = ("engine", "precision", "deterministic")  # of the backend


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Arguments of `Graph.compile`, which checks those that the engine does not hold."""

    engine: Engine
    fallback: str | None = None
    precision: str = "f32"

    @classmethod
    def of(
        cls,
        engine: Engine | None = None,
        fallback: str | None = None,
        precision: str = "f32",
        deterministic: Literal[False, True, "batch"] = False,
    ) -> "CompileOptions":
        """Raises InvalidArguments for a wrong engine and a wrong word."""
        precision_of(precision, ())
        return cls(engine_asking(engine, deterministic), fallback, precision)

    def compiled(self, graph: Graph, outputs: Mapping[str, Any]) -> Network:
        """The network of a graph."""
        found: Network = graph.compile(engine=self.engine, fallback=self.fallback, precision=self.precision, **outputs)
        return found


def of_options(options: Any) -> CompileOptions:
    """What torch.compile(options=...) says.  Raises InvalidArguments for names that the backend does not know."""
    if options is None:
        return CompileOptions.of()
    if not isinstance(options, Mapping):
        raise InvalidArguments(f"options must map names to values, not {shown(options)}")
    for name in options:
        if name not in OPTIONS:
            near = resembling(name, OPTIONS)
            raise InvalidArguments(f"options has {shown(name)}, of asmdnn it may have {', '.join(OPTIONS)}{near}")
    return CompileOptions.of(**options)
