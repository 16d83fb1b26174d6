"""A network's operators as frozen values: what an ONNX file says, or what was built in Python."""

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from types import MappingProxyType
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.network.arrays import Array as Array
from asmdnn.network.states import NetworkState
from asmdnn.network.words import Border
from asmdnn.records import dataclass, field

Attribute = Any  # int, float, str, Array, Body, or a tuple of one of these
LARGEST_DIM = 2**63 - 1
NOTHING = ""  # in the place of an input that is left out
ML = "ai.onnx.ml"  # the domain of classical models


@dataclass(frozen=True, slots=True)
class TensorType:
    """What is declared of a value: dims that are no numbers are names or None; shape None: not even how many."""

    dtype: np.dtype[Any]
    shape: tuple[int | str | None, ...] | None

    def __str__(self) -> str:
        dims = "?" if self.shape is None else "x".join("?" if n is None else str(n) for n in self.shape)
        return f"{self.dtype.name} {dims}"


@dataclass(frozen=True, eq=False)
class Node:
    """One operator: ONNX's names, and the version of the operator set that gives `op` its meaning."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    name: str = ""
    domain: str = ""
    opset: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))

    def __reduce__(self) -> Any:
        own = (self.op, self.inputs, self.outputs, dict(self.attributes), self.name, self.domain, self.opset)
        return Node, own

    @property
    def key(self) -> str:
        """The operator's name, after its domain if that is not ONNX's."""
        return f"{self.domain}.{self.op}" if self.domain else self.op

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute."""
        return self.attributes.get(name, default)

    def __str__(self) -> str:
        """For example "Conv 'stem/conv'"; a node without a name goes by its first result."""
        label = self.name or next((output for output in self.outputs if output), "")
        op = self.op if self.op.isidentifier() else shown(self.op)  # a file may have any text there
        return f"{op} {shown(label)}"


@dataclass(frozen=True, eq=False)
class Body:
    """Nodes in an order in which they can be computed, what they read from outside, and what they have to give.

    inputs: what a caller passes; constants: data, read-only.  A branch of an If has no inputs, and may read the values
    around it.
    """

    name: str
    inputs: Mapping[str, TensorType]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]

    def __post_init__(self) -> None:
        for name in ("inputs", "constants"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __reduce__(self) -> Any:
        return Body, (self.name, dict(self.inputs), self.outputs, self.nodes, dict(self.constants))


@dataclass(frozen=True, eq=False)
class Model:
    """A network as it was given; `opsets` by domain, "" being ONNX's own; `metadata` is what its author attached;
    `states` are inputs and outputs that no caller passes or gets; `borders`: what callers get of outputs."""

    body: Body
    opsets: Mapping[str, int]
    producer: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    states: tuple[NetworkState, ...] = ()
    borders: Mapping[str, Border] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("opsets", "metadata", "borders"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __reduce__(self) -> Any:
        own = (self.body, dict(self.opsets), self.producer, dict(self.metadata), self.states, dict(self.borders))
        return Model, own

    def __repr__(self) -> str:
        body = self.body
        return f"<Model {body.name!r}: {len(body.nodes)} nodes, {len(body.constants)} constants>"


def captured(node: Node) -> set[str]:
    """What the bodies among a node's attributes read from outside them."""
    found: set[str] = set()
    for value in node.attributes.values():
        for body in value if isinstance(value, tuple) else (value,):
            if isinstance(body, Body):
                found |= reads_of(body)
    return found


def bodies_of(node: Node) -> list[Body]:
    """Those among its attributes."""
    return [value for value in node.attributes.values() if isinstance(value, Body)]


def names_in(body: Body) -> Iterator[str]:
    """Of all values, bodies inside included."""
    yield from (*body.inputs, *body.constants, *body.outputs)
    for node in body.nodes:
        yield from node.outputs
        for inner in bodies_of(node):
            yield from names_in(inner)


def reads_of(body: Body) -> set[str]:
    """What a body reads from outside."""
    own = {*body.inputs, *body.constants, *(output for node in body.nodes for output in node.outputs)}
    read = {name for node in body.nodes for name in (*node.inputs, *captured(node))}
    return (read | set(body.outputs)) - own - {NOTHING}


def in_order(nodes: Sequence[Node], known: set[str], around: bool) -> tuple[Node, ...]:
    """The nodes, each after those whose values it reads; their own order where that is one.

    known: inputs and constants.  around: other names are values of a graph around this one.  Raises InvalidArguments
    for values that two nodes make, that nobody makes, or that depend on themselves.
    """
    maker: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for output in node.outputs:
            if output != NOTHING and (output in known or maker.setdefault(output, i) != i):
                raise InvalidArguments(f"{node} makes the value {shown(output)}, which has been made before")
    needs = []
    for node in nodes:
        reads = ({*node.inputs} - {NOTHING}) | captured(node)
        for name in reads - known - maker.keys():
            if not around:
                raise InvalidArguments(f"{node} reads {shown(name)}, which no node, input or constant is")
        needs.append({maker[name] for name in reads if name in maker})
    return tuple(nodes[i] for i in topological(needs, nodes))


def topological(needs: Sequence[set[int]], nodes: Sequence[Node]) -> list[int]:
    """0, 1, ... where nothing needs what comes later, else each number after those that it needs (Kahn)."""
    missing, users = [len(need) for need in needs], [list[int]() for _ in needs]
    for i, need in enumerate(needs):
        for j in need:
            users[j].append(i)
    ready = [i for i, count in enumerate(missing) if not count]
    order = list[int]()
    while ready:
        order.append(heappop(ready))
        for i in users[order[-1]]:
            missing[i] -= 1
            if not missing[i]:
                heappush(ready, i)
    if len(order) < len(needs):
        stuck = next(i for i, count in enumerate(missing) if count)
        raise InvalidArguments(f"{nodes[stuck]} depends on itself: the graph has a cycle")
    return order
