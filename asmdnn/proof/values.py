"""What is known of an integer register: a base (a pointer's origin, or none for a number) and an offset from it.

    Value(None, 5)            the number 5            Value(None, None)   some number
    Value(Base("frame"), 8)   rdi at the call + 8     Value(Base("argument", 2), None)   somewhere behind frame[2]

Adding a number to a pointer keeps its base; whatever mixes two pointers has the base JUNK, which no access may have.
"""

from typing import Final, NamedTuple

from asmdnn.proof.decoder import RSP

WORD_BITS: Final = 64


class Base(NamedTuple):
    """kind: frame, stack, code, argument (number), entry (number of the register), junk; and, of tap lists:

    list (group; position), count (group), tap (number: the word of the tuple, group), moved (argument, group, word).
    """

    kind: str
    number: int = 0
    group: int = -1
    word: int = -1


class Value(NamedTuple):
    base: Base | None
    offset: int | None


FRAME: Final = Base("frame")
STACK: Final = Base("stack")  # counts from rsp at the call, where the return address is
CODE: Final = Base("code")
JUNK: Final = Value(Base("junk"), None)
NUMBER: Final = Value(None, None)
ANY_POINTER: Final = -1  # the number of a pointer from an unknown word of the frame


def number(value: int) -> Value:
    return Value(None, signed(value))


def signed(value: int, bits: int = WORD_BITS) -> int:
    """The two's complement number in the low `bits`."""
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


def at_entry(register: int) -> Value:
    """What a register holds when a kernel is called."""
    if register == RSP:
        return Value(STACK, 0)
    return Value(FRAME, 0) if register == 7 else Value(Base("entry", register), 0)


def join(a: Value, b: Value) -> Value:
    """What holds for both."""
    if a == b:
        return a
    if a.base == b.base:
        return Value(a.base, None)
    if a.base and b.base and a.base.kind == b.base.kind == "argument":
        return Value(Base("argument", ANY_POINTER), None)
    return JUNK


def add(a: Value, b: Value) -> Value:
    if a.base is not None and b.base is not None:
        return moved_by_tap(a, b)
    offset = None if a.offset is None or b.offset is None else signed(a.offset + b.offset)
    return Value(a.base or b.base, offset)


def moved_by_tap(a: Value, b: Value) -> Value:
    """An argument plus an offset from a tap list (Base "tap"), in either order; JUNK for all other sums."""
    if b.base is not None and b.base.kind == "argument":
        a, b = b, a
    assert a.base is not None and b.base is not None
    if a.base.kind != "argument" or b.base.kind != "tap" or a.offset is None or b.offset is None:
        return JUNK
    return Value(Base("moved", a.base.number, b.base.group, b.base.number), a.offset + b.offset)


def subtract(a: Value, b: Value) -> Value:
    if b.base is None:
        offset = None if a.offset is None or b.offset is None else signed(a.offset - b.offset)
        return Value(a.base, offset)
    if a.base == b.base and a.base is not None and a.base.kind != "junk":
        return NUMBER if a.offset is None or b.offset is None else number(a.offset - b.offset)
    return JUNK


def multiply(a: Value, b: Value) -> Value:
    for one, other in ((a, b), (b, a)):
        if one == Value(None, 1):
            return other
    if a.base is not None or b.base is not None:
        return JUNK
    return NUMBER if a.offset is None or b.offset is None else number(a.offset * b.offset)
