"""What a translation knows of the values of a torch graph, and the words in which rules are written."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from asmdnn.errors import Unimplemented
from asmdnn.network.building import Graph
from asmdnn.network.symbols import Held
from asmdnn.records import dataclass

Shape = tuple[int, ...]
Rule = Callable[..., Any]
RULES: Final[dict[str, Rule]] = {}  # by the operator's name with its overload, such as "conv2d.default"


@dataclass(frozen=True)
class Traced:
    """A tensor: what computes it, and what torch says of it.  data: its elements if they are known now.  name: of a
    parameter or buffer."""

    symbol: Any  # Symbol, or an array of constants
    shape: Shape
    dtype: np.dtype[Any]
    name: str = ""

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def data(self) -> "np.ndarray[Any, Any] | None":
        return self.symbol if isinstance(self.symbol, np.ndarray) else None

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"


class Rewriter:
    """Writes the nodes of one torch node.  `shape` and `dtype` are what torch says of its result.

    layer: the module that makes it, by its name in `state_dict()`, such as "layer1.0.conv1"; nodes have it as theirs.
    """

    def __init__(
        self, graph: Graph, name: str, results: Sequence[tuple[Shape, "np.dtype[Any]"]], layer: str = ""
    ) -> None:
        self.graph, self.name, self.results, self.layer = graph, name, results, layer

    @property
    def shape(self) -> Shape:
        return self.results[0][0]

    @property
    def dtype(self) -> "np.dtype[Any]":
        return self.results[0][1]

    def apply(self, op: str, *operands: Any, results: int = 1, **attributes: Any) -> Any:
        """An operator of ONNX: symbols."""
        return self.graph.apply(op, *map(self.operand, operands), results=results, name=self.layer, **attributes)

    def operand(self, x: Any) -> Any:
        """What Graph.apply takes: numbers become constants of the result's kind."""
        if isinstance(x, Traced):
            return x.symbol if x.data is None else Held(x.data, x.name)
        return x

    def like(self, x: Any, other: Traced) -> Any:
        """A number as a constant of another operand's type; tensors as they are.  Raises Unimplemented."""
        if isinstance(x, Traced):
            return x.symbol
        return self.number(x, np.dtype(np.float32) if other.is_float else other.dtype)

    def number(self, x: Any, dtype: "np.dtype[Any]") -> "np.ndarray[Any, Any]":
        """A constant of a type.  Raises Unimplemented for a number that it does not have."""
        found = np.asarray(x)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            if np.any(found != np.trunc(found)) or np.any(found < limits.min) or np.any(found > limits.max):
                raise self.refuse(f"{x} is no {dtype.name}")
        return found.astype(dtype)

    def cast(self, x: Traced, dtype: "np.dtype[Any]") -> Any:
        """The value in another type."""
        return x.symbol if x.dtype == dtype else self.apply("Cast", x, to=ONNX_TYPES[dtype.name])

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        return self.apply("Reshape", x, np.array(shape, np.int64))

    def refuse(self, reason: str) -> Unimplemented:
        """The exception for what has no translation."""
        return Unimplemented(f"{self.name}: {reason}")


ONNX_TYPES: Final = {
    "float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11,
}  # fmt: skip


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers the translation of ATen operators: `def f(c, *args, **kwargs)`, args being Traced, numbers, lists."""

    def register(function: Rule) -> Rule:
        for name in names:
            assert name not in RULES, name
            RULES[name] = function
        return function

    return register


def axis_of(dim: int, rank: int) -> int:
    """Counted from the front.  Raises Unimplemented for those that torch says a number without axes has."""
    if not rank:
        raise Unimplemented(f"axis {dim} of a number without axes")
    return dim + rank if dim < 0 else dim


def axes_of(dims: Any, rank: int) -> list[int]:
    """All axes for None or an empty list; none of a number without axes, of which torch takes 0 and -1."""
    if not rank or dims is None or (isinstance(dims, Sequence) and not dims):
        return list(range(rank))
    return sorted(axis_of(dim, rank) for dim in ([dims] if isinstance(dims, int) else dims))


def repeated(value: Any, count: int) -> list[int]:
    """An int or a list of one for each of `count` axes."""
    if isinstance(value, int):
        return [value] * count
    values = list(value)
    return values * count if len(values) == 1 else values
