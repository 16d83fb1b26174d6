"""Maps of a group as one expression, traced once for all groups that compute the same."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from asmdnn.generators.functions.expression import Builder, Condition
from asmdnn.generators.functions.program import Program
from asmdnn.network.fusion.expressions import EXPRESSIONS
from asmdnn.network.graph import NOTHING, Node
from asmdnn.primitives.attributes.functions import where
from asmdnn.primitives.attributes.user_post_op import trace

MOST_PROGRAMS = 1024
COMMUTATIVE = ("Add", "Mul")  # of two values, bit by bit


class MapForm(NamedTuple):
    """A map without names.  attributes: each with its text, which tells 0.0 from -0.0 and 1 from 1.0; operands: values
    by number, constants as float.hex() has them, None for one that is left out."""

    op: str
    opset: int
    attributes: tuple[tuple[str, str, Any], ...]
    operands: tuple[int | str | None, ...]


MapForms = tuple[MapForm, ...]


def forms_of(maps: Sequence[Node], values: Sequence[str], number: Callable[[str], float | None]) -> MapForms:
    """The maps of values, the first of which they follow; number: of a constant."""
    known, found = {name: i for i, name in enumerate(values)}, list[MapForm]()

    def operand(name: str) -> int | str | None:
        if name == NOTHING:
            return None
        constant = None if name in known else number(name)
        return known[name] if constant is None else constant.hex()

    for i, node in enumerate(maps, len(values)):
        attributes = tuple((name, repr(value), value) for name, value in node.attributes.items())
        operands = [operand(name) for name in node.inputs]
        if node.op in COMMUTATIVE and all(isinstance(each, int) for each in operands):
            operands.sort()  # integers: layers that add in another order are equal
        found.append(MapForm(node.op, node.opset, attributes, tuple(operands)))
        known[node.outputs[0]] = i
    return tuple(found)


def computed(forms: MapForms, values: Sequence[Any]) -> Any:
    """The last map, of traced values or arrays; truths are stored as 1 and 0."""
    result = all_of(forms, values)[-1]
    return where(result, 1.0, 0.0) if isinstance(result, Condition) else result


def all_of(forms: MapForms, values: Sequence[Any]) -> list[Any]:
    """The values, and after them those of all maps."""
    known = list(values)
    for form in forms:
        attributes = {name: value for name, _, value in form.attributes}
        node = Node(form.op, (), (), attributes=attributes, opset=form.opset)
        known.append(EXPRESSIONS[form.op](node, *(taken(known, operand) for operand in form.operands)))
    return known


def several(forms: MapForms, tensors: tuple[str, ...], further: tuple[int, ...]) -> Program:
    """The last map, and values of these numbers.  Raises InvalidArguments for what cannot be traced."""
    build = Builder(1 + len(tensors))
    known = all_of(forms, build.inputs)
    return build.finish(known[-1], *(known[number] for number in further))


def function_of(forms: MapForms) -> Callable[..., Any]:
    """The maps as a function of x and named tensors in order."""
    return lambda x, **tensors: computed(forms, [x, *tensors.values()])


def taken(known: Sequence[Any], operand: int | str | None) -> Any:
    return float.fromhex(operand) if isinstance(operand, str) else None if operand is None else known[operand]


def program_of(forms: MapForms, tensors: tuple[str, ...]) -> Program:
    """Raises InvalidArguments for what cannot be traced."""
    try:
        return known_program(forms, tensors)
    except TypeError:  # attributes without a hash, such as arrays
        return known_program.__wrapped__(forms, tensors)


@lru_cache(MOST_PROGRAMS)
def known_program(forms: MapForms, tensors: tuple[str, ...]) -> Program:
    return trace(lambda *values: computed(forms, values), tensors)
