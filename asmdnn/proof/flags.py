"""What the flags say, as far as the values that were compared are known."""

from typing import Protocol

from asmdnn.proof.values import NUMBER, AbstractValue, subtract

# The "difference" of two values, the "unsigned" difference of two of less than 64 bits, or a "result" (and nothing).
Compare = tuple[str, AbstractValue, AbstractValue]


class Flags(Protocol):
    """The part of a state that this is about."""

    compare: Compare | None


def tested_value(state: Flags) -> AbstractValue | None:
    """What the flags say is zero or not."""
    if state.compare is None:
        return None
    kind, a, b = state.compare
    return a if kind == "result" else subtract(a, b)


def decide(mnemonic: str, state: Flags) -> bool | None:
    """Whether a conditional jump is taken; None when that depends on data."""
    tested = tested_value(state)
    if tested is None or tested.base is not None or tested.offset is None:
        return None
    if mnemonic in ("je", "jne"):
        return (tested.offset == 0) == (mnemonic == "je")
    kind, a, b = state.compare or ("", NUMBER, NUMBER)
    if kind == "result" or a.base or b.base or a.offset is None or b.offset is None:
        return None
    unsigned, signed = a.offset % (1 << 64) - b.offset % (1 << 64), a.offset - b.offset
    known = {"jb": unsigned < 0, "jae": unsigned >= 0, "ja": unsigned > 0, "jbe": unsigned <= 0}
    if kind == "difference":
        known |= {"jl": signed < 0, "jge": signed >= 0, "jg": signed > 0, "jle": signed <= 0}
    return known.get(mnemonic)
