"""The networks of torch graphs, planned or from the cache on disk."""

from collections.abc import Mapping
from typing import Any

from asmdnn.aten.options import CompileOptions
from asmdnn.errors import InvalidArguments
from asmdnn.forking import importing
from asmdnn.network.building import Graph
from asmdnn.network.narrow.storage import Precision, is_fallback, precision_of
from asmdnn.network.network import Network
from asmdnn.network.packs.kept import find, keep
from asmdnn.network.packs.kept_graph import key_of_model
from asmdnn.network.packs.kept_stages import CutModel


def network_of(
    graph: Graph, outputs: Mapping[str, Any], options: CompileOptions, *, holds: bool, keeps: bool
) -> Network:
    """The network that computes these outputs.

    holds: nobody writes to the graph's constants before the network has run, so that they need not be copied.  keeps:
    one with the same weights that any process has run is taken from the cache on disk, and this one is kept there.
    """
    key = key_of(graph, outputs, options) if keeps else None

    def check() -> None:
        if key_of(graph, outputs, options) != key:
            raise InvalidArguments("the module's weights have changed since it was translated: translate it again")

    def stages(precision: Precision) -> CutModel:
        with importing():
            from asmdnn.network.of_model import stages_of

        check()
        return stages_of(graph._model(outputs), None, options.engine, options.fallback, precision)

    found = find(key, options.engine.threads, options.fallback, stages=stages) if key else None
    if found is None:
        if not holds:
            graph._own_constants()
        net = options.compiled(graph, outputs)
        if key:
            keep(key, net.planned())
        return net

    def again() -> Network:
        check()
        return options.compiled(graph, outputs)

    return Network(lambda: options.engine, found, again)


def key_of(graph: Graph, outputs: Mapping[str, Any], options: CompileOptions) -> str | None:
    """What the network is kept under."""
    if not is_fallback(options.fallback):
        return None
    return key_of_model(graph._model(outputs), options.engine, precision_of(options.precision, ()))
