"""What a function reads and writes, as expressions of its integer arguments: "4*n", "8*(rows - 1)*stride + 8*n"."""

import ast
from collections.abc import Callable, Mapping
from typing import Final

from asmdnn.asm.prototype import Prototype
from asmdnn.errors import InvalidArguments
from asmdnn.records import dataclass, field

_FUNCTIONS: Final = {"max": max, "min": min}
_NODES: Final = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Name, ast.Load, ast.Constant, ast.Call,
    ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.USub,
)  # fmt: skip


@dataclass(frozen=True)
class Reach:
    """How many bytes after a pointer are touched.  size: from all integer arguments, in their order.

    expression: that of Python, where v0, v1, ... are the integer arguments.
    """

    text: str
    expression: str = field(compare=False, repr=False)
    size: Callable[..., int] = field(compare=False, repr=False)


Reaches = tuple[Mapping[str, Reach], Mapping[str, Reach]]  # read and written, by argument


def extents_of(prototype: Prototype, stated: Mapping[str, object], title: str) -> dict[str, Reach]:
    """What `reads=` or `writes=` says, checked against the prototype.  Raises InvalidArguments."""
    types = {argument.name: argument.type for argument in prototype.arguments}
    found = {}
    for name, value in stated.items():
        if name not in types or not types[name].is_pointer:
            raise InvalidArguments(f"{title}[{name!r}] of {prototype.name!r} names no pointer argument: {prototype}.")
        if title == "writes" and types[name].is_const:
            raise InvalidArguments(f"writes[{name!r}] of {prototype.name!r} is a pointer to const: {prototype}.")
        found[name] = _extent(str(value), f"{title}[{name!r}] of {prototype.name!r}", prototype)
    return found


def _extent(text: str, where: str, prototype: Prototype) -> Reach:
    integers = [a.name for a in prototype.arguments if a.type.is_integer]
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        raise InvalidArguments(f"{where} is {text!r}, which is no expression.") from None
    for node in ast.walk(tree):
        known = node.id in {*integers, *_FUNCTIONS} if isinstance(node, ast.Name) else isinstance(node, _NODES)
        if isinstance(node, ast.Constant):
            known = type(node.value) is int
        if not known:
            what = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
            raise InvalidArguments(
                f"{where} is {text!r}, in which {what!r} is neither an integer argument nor + - * // % max min."
            )
    places = {name: f"v{i}" for i, name in enumerate(integers)}  # a C name may be a word of Python
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = places.get(node.id, node.id)
    expression = ast.unparse(tree)
    size = eval(f"lambda {', '.join(places.values())}: {expression}", {"__builtins__": {}, **_FUNCTIONS})
    return Reach(text, f"({expression})", size)
