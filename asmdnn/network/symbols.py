"""What stands for a value while a graph is written."""

from typing import Any, NamedTuple

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
