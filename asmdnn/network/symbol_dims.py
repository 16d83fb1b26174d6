"""The dims of a value while its graph is being written."""

from asmdnn.network.gradients.words import KnownGraph
from asmdnn.network.graph import Body
from asmdnn.network.static import needed
from asmdnn.network.symbols import Symbol


def symbol_dims(symbol: Symbol) -> tuple[int, ...]:
    """Raises InvalidArguments where inputs have open dims, or nodes do not fit their operands."""
    graph, name = symbol.graph, symbol.name
    nodes = needed(tuple(graph._nodes), (name,))
    known = KnownGraph(Body(graph.name, graph._inputs, (), nodes, graph._constants), nobody, nobody)
    return known.values[name].shape


def nobody(*made: object) -> None:
    """Nothing is made."""
