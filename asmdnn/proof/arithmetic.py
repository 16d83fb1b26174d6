"""Integer instructions as functions from the values of their operands to the value of the first one afterwards."""

from collections.abc import Callable, Sequence
from operator import and_, or_, xor
from typing import Final

from asmdnn.proof.values import JUNK, NUMBER, AbstractValue, add, join, multiply, number, rounded_down, subtract

SMALLEST_PAGE: Final = 4096

Function = Callable[[Sequence[AbstractValue]], AbstractValue]


def _bitwise(operation: Callable[[int, int], int]) -> Function:
    def compute(values: Sequence[AbstractValue]) -> AbstractValue:
        a, b = (NUMBER if v.base is not None and v.base.kind == "below" else v for v in values[:2])
        if a.base is None and b.base is None:
            return NUMBER if a.offset is None or b.offset is None else number(operation(a.offset, b.offset))
        if operation is and_:
            if a == b:
                return a  # TEST of a register with itself
            if (place := rounded_down(a, b)) is not None:
                return place
            limits = [v.offset for v in (a, b) if v.base is None and v.offset is not None]
            if any(0 <= limit < SMALLEST_PAGE for limit in limits):
                return NUMBER  # a pointer's low bits
        return JUNK

    return compute


def _shift(operation: Callable[[int, int], int]) -> Function:
    def compute(values: Sequence[AbstractValue]) -> AbstractValue:
        a, b = values[:2] if len(values) > 1 else (values[0], number(1))
        if a.base is not None or b.base is not None:
            return JUNK
        return NUMBER if a.offset is None or b.offset is None else number(operation(a.offset, b.offset & 63))

    return compute


def _bzhi(values: Sequence[AbstractValue]) -> AbstractValue:
    """The lowest bits, as many as the low byte of the last operand says."""
    _, a, count = values[:3]
    if a.base is not None or count.base is not None:
        return JUNK
    return NUMBER if a.offset is None or count.offset is None else number(a.offset & (1 << (count.offset & 0xFF)) - 1)


def _imul(values: Sequence[AbstractValue]) -> AbstractValue:
    return multiply(*values[-2:]) if len(values) > 1 else NUMBER


SHIFTS: Final = ("shl", "sal", "sar", "shr")  # of 64 bits
ARITHMETIC: Final[dict[str, Function]] = {
    "mov": lambda values: values[1],
    "movzx": lambda values: values[1] if values[1].base is None else JUNK,
    "lea": lambda values: JUNK,  # the machine knows the address
    "add": lambda values: add(values[0], values[1]),
    "sub": lambda values: subtract(values[0], values[1]),
    "cmp": lambda values: NUMBER,  # which goes nowhere
    "test": _bitwise(and_), "and": _bitwise(and_), "or": _bitwise(or_), "xor": _bitwise(xor),
    "inc": lambda values: add(values[0], number(1)),
    "dec": lambda values: subtract(values[0], number(1)),
    "imul": _imul, "bzhi": _bzhi,
    "shl": _shift(lambda a, b: a << b), "sal": _shift(lambda a, b: a << b), "sar": _shift(lambda a, b: a >> b),
    "shr": _shift(lambda a, b: (a & (1 << 64) - 1) >> b),
    **{f"cmov{condition}": lambda values: join(values[0], values[1])
       for condition in ("a", "ae", "b", "be", "e", "ne", "g", "ge", "l", "le", "s", "ns", "o", "no", "p", "np")},
}  # fmt: skip
