"""A bare 4 says neither what it counts nor of which type: sizes of elements are types', distances those of layouts.

Counted are the lines of planners and generators that multiply or divide by an integer 4, or compare with one.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.test_imports import PACKAGE

ROOMS = ("generators", "primitives")
SCALING = ast.Mult | ast.Div | ast.FloorDiv | ast.Mod

# How many such lines a file still has.  A number only falls: name what it is, then lower it here.
FOURS: dict[str, int] = {}


def is_four(node: ast.expr) -> bool:
    """Also -4, and one of several that something is compared with."""
    if isinstance(node, ast.UnaryOp):
        return is_four(node.operand)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(is_four, node.elts))
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 4


def factors(node: ast.AST) -> Iterator[ast.expr]:
    """What is multiplied, divided or compared."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, SCALING):
        yield from (node.left, node.right)
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, SCALING):
        yield node.value
    elif isinstance(node, ast.Compare):
        yield from (node.left, *node.comparators)


def lines_with_fours(source: str) -> set[int]:
    return {four.lineno for node in ast.walk(ast.parse(source)) for four in factors(node) if is_four(four)}


def test_bare_fours_become_fewer() -> None:
    files = [path for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py"))]
    found = {path.relative_to(PACKAGE).as_posix(): len(lines_with_fours(path.read_text())) for path in files}
    found = {path: count for path, count in found.items() if count}
    more = {path: count for path, count in found.items() if count > FOURS.get(path, 0)}
    assert not more, "say what the 4 is: an element's size is its type's, a group's is GROUP_BYTES"
    assert found == FOURS, "there are fewer: lower the bound"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("x = 4 * y", {1}),
        ("x = y // 4\nz = y % 4", {1, 2}),
        ("x = -4 * y", {1}),
        ("x *= 4", {1}),
        ("x = y == 4", {1}),
        ("x = y in (0, 4)", {1}),
        ("x = y + 4", set()),
        ("x = 4.0 * y", set()),
        ("x = SIZE * y", set()),
    ],
)
def test_fours_are_found(source: str, lines: set[int]) -> None:
    assert lines_with_fours(source) == lines
