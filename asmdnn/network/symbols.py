"""What stands for a value while a graph is written."""

from typing import Any, NamedTuple

import numpy as np

from asmdnn.forking import importing
from asmdnn.network.arrays import Array


class Held(NamedTuple):
    """An operand that a graph takes without a copy: nobody writes to it before its network has run.

    name: of the constant, where it is one that users know; no other array has it.
    """

    array: Array
    name: str = ""


class Symbol:
    """A value of a graph; + - * / and @ apply Add, Sub, Mul, Div and MatMul."""

    __slots__ = ("graph", "name")
    __array_ufunc__ = None  # numpy's operators give way to those below

    def __init__(self, graph: Any, name: str) -> None:
        self.graph, self.name = graph, name

    def __repr__(self) -> str:
        return f"<Symbol {self.name!r}>"

    @property
    def shape(self) -> tuple[int | str | None, ...]:
        """Its dims; of an input as it was declared.  What depends on an input with open dims has none before the graph
        is compiled: InvalidArguments, as for nodes that do not fit their operands."""
        return self._type()[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its elements.  Raises as `shape`."""
        return self._type()[1]

    def _type(self) -> tuple[tuple[int | str | None, ...], np.dtype[Any]]:
        with importing():
            from asmdnn.network.symbol_dims import type_of  # which needs all operators

        return type_of(self)

    def __add__(self, other: Any) -> "Symbol":
        return self._single("Add", self, other)

    def __radd__(self, other: Any) -> "Symbol":
        return self._single("Add", other, self)

    def __sub__(self, other: Any) -> "Symbol":
        return self._single("Sub", self, other)

    def __rsub__(self, other: Any) -> "Symbol":
        return self._single("Sub", other, self)

    def __mul__(self, other: Any) -> "Symbol":
        return self._single("Mul", self, other)

    def __rmul__(self, other: Any) -> "Symbol":
        return self._single("Mul", other, self)

    def __truediv__(self, other: Any) -> "Symbol":
        return self._single("Div", self, other)

    def __rtruediv__(self, other: Any) -> "Symbol":
        return self._single("Div", other, self)

    def __matmul__(self, other: Any) -> "Symbol":
        return self._single("MatMul", self, other)

    def _single(self, op: str, *operands: Any) -> "Symbol":
        result: Symbol = self.graph.single(op, *operands)
        return result
