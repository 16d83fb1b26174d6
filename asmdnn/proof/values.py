"""What is known of an integer register: a base (a pointer's origin, or none for a number) and an offset from it.

    Value(None, 5)            the number 5            Value(None, None)   some number
    Value(Base("frame"), 8)   rdi at the call + 8     Value(Base("argument", 2), None)   somewhere after frame[2]

Adding a number to a pointer keeps its base; whatever mixes two pointers has the base JUNK, which no access may have.
"""

from typing import Final, NamedTuple

from asmdnn.proof.facts import RSP

WORD_BITS: Final = 64


class Base(NamedTuple):
    """kind: frame, stack, code, argument (number), entry (number of the register), junk; and, of tap lists:

    list (group; position), count (group), tap (number: the word of the tuple, group), moved (argument, group, word).
    Of bounded numbers: below (number: the bound n, word: a factor f), which is f times a number from 0 to n - 1; and,
    that many bytes further, indexed (argument, group: n, word: f) and constants (group: n, word: f), in the code.
    A place of the stack that is rounded down has the kind aligned, the multiple as number and the place as group.
    """

    kind: str
    number: int = 0
    group: int = -1
    word: int = -1


class AbstractValue(NamedTuple):
    base: Base | None
    offset: int | None


FRAME: Final = Base("frame")
STACK: Final = Base("stack")  # counts from rsp at the call, where the return address is
CODE: Final = Base("code")
JUNK: Final = AbstractValue(Base("junk"), None)
NUMBER: Final = AbstractValue(None, None)
ANY_POINTER: Final = -1  # the number of a pointer from an unknown word of the frame


class Entry(NamedTuple):
    """What a function of C finds: registers by number, and words of the stack after the return address.

    vectors: numbers of those that hold an argument.  result: the parts of registers in which it returns one.
    """

    registers: tuple[tuple[int, AbstractValue], ...]
    stack: tuple[AbstractValue, ...]
    vectors: tuple[int, ...] = ()
    result: int = 0


def rounded_down(place: AbstractValue, mask: AbstractValue) -> AbstractValue | None:
    """A place of the stack with its low bits cleared; None if that is not what the mask does."""
    if place.base != STACK or place.offset is None or mask.base is not None or mask.offset is None:
        return None
    multiple = -mask.offset
    is_power = multiple > 0 and not multiple & (multiple - 1)
    return AbstractValue(Base("aligned", multiple, place.offset), place.offset) if is_power else None


def on_stack(value: AbstractValue) -> int:
    """0 for what is not on the stack; 1 for a place that is known as it was computed, n for one that may lie up to
    n - 1 bytes lower."""
    if value.base is None or value.base.kind not in ("stack", "aligned"):
        return 0
    return value.base.number or 1


def number(value: int) -> AbstractValue:
    return AbstractValue(None, signed(value))


def signed(value: int, bits: int = WORD_BITS) -> int:
    """The two's complement number in the low `bits`."""
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


def at_entry(register: int) -> AbstractValue:
    """What a register holds when a kernel is called."""
    if register == RSP:
        return AbstractValue(STACK, 0)
    return AbstractValue(FRAME, 0) if register == 7 else AbstractValue(Base("entry", register), 0)


def join(a: AbstractValue, b: AbstractValue) -> AbstractValue:
    """What holds for both."""
    if a == b:
        return a
    if a.base == b.base:
        return AbstractValue(a.base, None)
    if all(value.base is None or value.base.kind == "below" for value in (a, b)):
        return NUMBER
    if a.base and b.base and a.base.kind == b.base.kind == "argument":
        return AbstractValue(Base("argument", ANY_POINTER), None)
    return JUNK


def add(a: AbstractValue, b: AbstractValue) -> AbstractValue:
    if a.base is not None and b.base is not None:
        return moved(a, b)
    offset = None if a.offset is None or b.offset is None else signed(a.offset + b.offset)
    return AbstractValue(a.base or b.base, offset)


def moved(a: AbstractValue, b: AbstractValue) -> AbstractValue:
    """An argument plus an offset from a tap list (Base "tap") or a bounded number ("below"), in either order; JUNK for
    all other sums."""
    if b.base is not None and b.base.kind == "argument":
        a, b = b, a
    assert a.base is not None and b.base is not None
    if a.base.kind == "code" or b.base.kind == "code":
        return row_of_constants(*((a, b) if a.base.kind == "code" else (b, a)))
    if a.base.kind != "argument" or a.offset is None or b.offset is None:
        return JUNK
    if b.base.kind == "below":
        return AbstractValue(Base("indexed", a.base.number, b.base.number, b.base.word), a.offset + b.offset)
    if b.base.kind == "tap":
        return AbstractValue(Base("moved", a.base.number, b.base.group, b.base.number), a.offset + b.offset)
    return JUNK


def row_of_constants(code: AbstractValue, row: AbstractValue) -> AbstractValue:
    """A place in the constants plus a bounded number."""
    assert code.base is not None and row.base is not None
    if row.base.kind != "below" or code.offset is None or row.offset is None:
        return JUNK
    return AbstractValue(Base("constants", group=row.base.number, word=row.base.word), code.offset + row.offset)


def below(bound: int) -> AbstractValue:
    """A number from 0 to bound - 1."""
    return AbstractValue(Base("below", bound, word=1), 0)


def subtract(a: AbstractValue, b: AbstractValue) -> AbstractValue:
    if b.base is None:
        offset = None if a.offset is None or b.offset is None else signed(a.offset - b.offset)
        return AbstractValue(a.base, offset)
    if a.base == b.base and a.base is not None and a.base.kind != "junk":
        return NUMBER if a.offset is None or b.offset is None else number(a.offset - b.offset)
    return JUNK


def multiply(a: AbstractValue, b: AbstractValue) -> AbstractValue:
    for one, other in ((a, b), (b, a)):
        if one == AbstractValue(None, 1):
            return other
        if one.base is not None and one.base.kind == "below" and other.base is None and (other.offset or 0) > 0:
            assert one.offset is not None and other.offset is not None
            return AbstractValue(one.base._replace(word=one.base.word * other.offset), one.offset * other.offset)
    if a.base is not None or b.base is not None:
        return JUNK
    return NUMBER if a.offset is None or b.offset is None else number(a.offset * b.offset)
