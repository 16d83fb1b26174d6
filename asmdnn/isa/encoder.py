"""Operands to bytes, through a cache of encoders keyed by what the choice of an instruction form depends on.

PeachPy decides by predicates on the operands which encoders a form has, which costs tens of microseconds; running the
chosen encoder costs one.  The predicates see a register's kind, whether its number is 0 or 1 (al, rax, cl, xmm0) or
above 15, and its masking; a memory operand's size, broadcast, index kind and masking; and in which range an immediate
lies.  `Register.signature`, `Pointer.signature` and `_IMMEDIATE_BOUNDS` state exactly that.  Encoders whose bytes would
not say what was asked are left out (`immediates.py`).  Where several remain, the shortest result is taken,
whose length depends on more than the form.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from operator import index as as_int
from typing import Any, Final, NamedTuple

from asmdnn.errors import InvalidArguments
from asmdnn.isa.extensions import Branch, extension_branch, extension_forms, extension_names, is_miscoded
from asmdnn.isa.immediates import says
from asmdnn.isa.memory_operand import SEGMENT_PREFIXES, Encode, Operand, Pointer
from asmdnn.isa.operands import VECTOR_KINDS, EmbeddedRounding, Register, register
from asmdnn.isa.peachpy_forms import branch_encoders, encoders_of, forms_of, is_known, known_names
from asmdnn.isa.shortest import VEX, shortest

_LOCK: Final = "LOCK_"
_LOCKABLE: Final = frozenset((
    "ADC", "ADD", "AND", "BTC", "BTR", "BTS", "CMPXCHG", "CMPXCHG8B", "CMPXCHG16B", "DEC", "INC", "NEG", "NOT", "OR",
    "SBB", "SUB", "XADD", "XCHG", "XOR",
))  # fmt: skip
_COMPLEX: Final = "VFC?(MADD|MUL)C[PS]H"
_REPEATED: Final = "^(repe|repne|rep)_"
_EVEX: Final = 0x62
_PREFIXED: Final = "_E?VEX$"
_LEGACY_PREFIXES: Final = b"\x64\x65\x66\xf0\xf2\xf3"
OPERAND_TYPES: Final = frozenset((Register, Pointer, EmbeddedRounding, int))
_SIZES: Final = (1, 2, 4, 8, 10, 16, 32, 64)

# Every comparison that PeachPy makes with an immediate: signed or unsigned 4, 8, 16, 32, 64 bits; the negative part of
# a narrower immediate written as an unsigned 16-, 32- or 64-bit number; the literal operand 1 of shifts.
_IMMEDIATE_BOUNDS: Final = sorted(
    {0, 1, 2, 3, 4, 16}
    | {sign_bit for bits in (8, 16, 32, 64) for sign_bit in (-1 << bits - 1, 1 << bits - 1, 1 << bits)}
    | {(1 << wide) - (1 << bits - 1) for wide in (16, 32, 64) for bits in (8, 16, 32) if bits < wide}
)


def _range_of(immediate: int) -> int:
    """In the place of a signature: between which bounds it lies."""
    return -1 - bisect_right(_IMMEDIATE_BOUNDS, immediate)


def _key_of(operands: Sequence[Any]) -> tuple[int, ...]:
    """Their signatures.  Two and three operands are nearly all, and the last may be an immediate."""
    count = len(operands)
    if count == 3:
        a, b, c = operands
        return a.signature, b.signature, c.signature if type(c) is not int else _range_of(c)
    if count == 2:
        a, b = operands
        return a.signature, b.signature if type(b) is not int else _range_of(b)
    return tuple([_range_of(each) if type(each) is int else each.signature for each in operands])


class EncoderChoice(NamedTuple):
    """The encoder for one signature.  `trailing` bytes follow a displacement from rip; -1 without one.

    is_kept: equal operands give equal bytes wherever they stand, and of them the last alone may be an int.
    """

    encode: Encode
    touches_upper: bool  # a ymm or zmm register is named, so VZEROUPPER is due before returning
    trailing: int
    is_kept: bool


class InstructionEncoder:
    """The encoder of one mnemonic, shared by all assemblers and threads (its cache only ever gains entries)."""

    __slots__ = ("_cache", "mnemonic")

    def __init__(self, mnemonic: str) -> None:
        self.mnemonic = mnemonic
        self._cache: dict[tuple[int, ...], EncoderChoice] = {}

    def choose(self, operands: Sequence[Any]) -> EncoderChoice:
        """The encoder of these operands.  Raises InvalidArguments when no form or more than one fits."""
        try:
            if len(operands) == 3 and type(operands[2]) is not int:
                a, b, c = operands
                key: tuple[int, ...] = a.signature, b.signature, c.signature
            else:
                key = _key_of(operands)
        except AttributeError:  # an immediate is not the last, or this is no operand
            key = tuple([_range_of(each) if type(each) is int else each.signature for each in operands])
        choice = self._cache.get(key)
        if choice is None:
            choice = self._cache[key] = _choose(self.mnemonic, operands)
        return choice


@cache
def encoder_of(mnemonic: str) -> InstructionEncoder | None:
    """The encoder of a mnemonic in the Intel manual's spelling, None when there is no such instruction."""
    name = mnemonic.removeprefix(_LOCK)
    if name != mnemonic and name not in _LOCKABLE:
        return None
    if not extension_forms(name) and name != (base := re.sub(_PREFIXED, "", name)):  # as in VADDPS_EVEX
        return InstructionEncoder(mnemonic) if encoder_of(base) and base.startswith(("V", "K")) else None
    known = extension_forms(name) or extension_branch(name) or is_known(name)
    return InstructionEncoder(mnemonic) if known else None


def branch_of(mnemonic: str) -> tuple[Branch, Branch] | None:
    """(short, near) encoders of a jump to a label, each taking the displacement; None when it takes no label."""
    return extension_branch(mnemonic) or branch_encoders(mnemonic)


def mnemonics() -> tuple[str, ...]:
    """Every mnemonic that has an encoder, but for LOCK_ ones."""
    return tuple(sorted({*extension_names(), *known_names()}))


def plain_operand(operand: object) -> Operand:
    """The operand itself, or the int that an integer-like one (numpy's) stands for.  Raises InvalidArguments."""
    if isinstance(operand, Register | Pointer | EmbeddedRounding):
        return operand
    try:
        return as_int(operand)  # type: ignore[arg-type]
    except TypeError:
        kind = type(operand).__name__
        message = f"operand {operand!r} is a {kind}, not a register, mem(...), an integer or a rounding mode"
        raise InvalidArguments(message) from None


def text_of(mnemonic: str, operands: Sequence[object]) -> str:
    """The instruction in Intel syntax, e.g. "vaddps zmm1{k1}, zmm2, [rax+rsi*4+64]{1to16}"."""
    name = mnemonic.lower().replace("lock_", "lock ").removesuffix("_vex").removesuffix("_evex")
    name = re.sub(_REPEATED, r"\1 ", name)
    return f"{name} {', '.join(map(str, operands))}".rstrip()


def _choose(mnemonic: str, operands: Sequence[Operand]) -> EncoderChoice:
    _check_constraints(mnemonic, operands)
    _check_size_is_known(mnemonic, operands)
    offered = _candidates(mnemonic, operands)
    if not offered:
        raise InvalidArguments(_no_form(mnemonic, operands))
    encoders = [encode for encode in offered if _says_what_is_asked(mnemonic, encode, operands)]
    if not encoders:
        text = text_of(mnemonic, operands)
        raise InvalidArguments(f"{text} has no form that holds the immediate: give a smaller one, or use a register")
    encode = encoders[0] if len(encoders) == 1 else shortest(encoders, operands)
    segment = next((op.form.segment for op in operands if isinstance(op, Pointer) and op.form.segment), "")
    if segment:
        encode = _with_prefix(SEGMENT_PREFIXES[segment], encode)
    if any(isinstance(op, Register) and op.kind == "high8" for op in operands):
        encode = _without_rex(mnemonic, encode)
    if _needs_distinct_registers(mnemonic):
        encode = _with_distinct_registers(mnemonic, encode)
    if re.fullmatch(_COMPLEX, re.sub(_PREFIXED, "", mnemonic)):
        encode = _with_own_target(mnemonic, encode)
    touches_upper = any(isinstance(op, Register) and op.kind in ("ymm", "zmm") for op in operands)
    trailing = _trailing_bytes(encode, operands)
    is_kept = trailing < 0 and not any(isinstance(op, int) for op in operands[:-1])
    return EncoderChoice(encode, touches_upper, trailing, is_kept)


def _candidates(mnemonic: str, operands: Sequence[Operand]) -> list[Encode]:
    name = mnemonic.removeprefix(_LOCK)
    if not extension_forms(name) and name != (base := re.sub(_PREFIXED, "", name)):
        wanted = (_EVEX,) if name.endswith("_EVEX") else VEX
        asked = [_raised(op) for op in operands] if _EVEX in wanted else operands
        own = [form.encode for form in extension_forms(base) if form.matches(asked)]
        peachpys = encoders_of(base, asked) if is_known(base) else ()
        chosen = [encode for encode in (*own, *peachpys) if encode(operands)[0] in wanted]
        return chosen[:1] if own else chosen
    own = [form.encode for form in extension_forms(name) if form.matches(operands)]
    if own or is_miscoded(name, operands) or not is_known(name):
        return own[:1]
    encoders = list(encoders_of(name, operands))
    return [_with_prefix(b"\xf0", encode) for encode in encoders] if name != mnemonic else encoders


def _raised(operand: Operand) -> Operand:
    """A vector register that only EVEX has: PeachPy offers no EVEX where VEX does; its encoder takes any register."""
    if isinstance(operand, Register) and operand.kind in VECTOR_KINDS:
        return register(operand.kind, operand.id | 16, operand.mask, operand.zeroing)
    return operand


def _says_what_is_asked(mnemonic: str, encode: Encode, operands: Sequence[Operand]) -> bool:
    name = mnemonic.removeprefix(_LOCK)
    immediates = [(position, op) for position, op in enumerate(operands) if isinstance(op, int)]
    return all(says(name, encode, operands, position, _same_choice(value)) for position, value in immediates)


def _same_choice(immediate: int) -> range:
    """The immediates between the same two bounds: PeachPy chooses equal encoders for all of them."""
    after = bisect_right(_IMMEDIATE_BOUNDS, immediate)
    start = _IMMEDIATE_BOUNDS[after - 1] if after else immediate
    return range(start, _IMMEDIATE_BOUNDS[after] if after < len(_IMMEDIATE_BOUNDS) else immediate + 1)


def _with_prefix(prefix: bytes, encode: Encode) -> Encode:
    return lambda operands: prefix + encode(operands)


def _without_rex(mnemonic: str, encode: Encode) -> Encode:
    """With a REX prefix, the number of ah means spl."""

    def checked(operands: Sequence[Any]) -> bytes:
        code = encode(operands)
        if 0x40 <= code.lstrip(_LEGACY_PREFIXES)[0] <= 0x4F:
            text = text_of(mnemonic, operands)
            raise InvalidArguments(f"{text}: ah, ch, dh and bh are not beside r8 to r15, sil, dil, and 64 bits")
        return code

    return checked


def _trailing_bytes(encode: Encode, operands: Sequence[Any]) -> int:
    """Bytes of immediate after the displacement of a pool operand; found by changing the displacement."""
    if not any(isinstance(operand, Pointer) and (operand.form.in_pool or operand.form.label) for operand in operands):
        return -1
    zeros, ones = (
        encode([op.at(displacement) if isinstance(op, Pointer) else op for op in operands]) for displacement in (0, -1)
    )
    first = next(position for position, (a, b) in enumerate(zip(zeros, ones, strict=True)) if a != b)
    return len(zeros) - first - 4


def _check_size_is_known(mnemonic: str, operands: Sequence[Operand]) -> None:
    """Raises InvalidArguments when memory without a size would let PeachPy silently take the first of several forms."""
    pointer = next((op for op in operands if isinstance(op, Pointer) and not op.size), None)
    if pointer is None:
        return
    encodings: dict[bytes, int] = {}
    for size in _SIZES:
        sized = [pointer.sized(size) if operand is pointer else operand for operand in operands]
        for encode in _candidates(mnemonic, sized)[:1]:
            encodings.setdefault(bytes(encode(sized)), size)
    if len(encodings) > 1:
        sizes = ", ".join(map(str, encodings.values()))
        text = text_of(mnemonic, operands)
        raise InvalidArguments(f"{text} leaves the size of memory open: say mem(..., size=...) with one of {sizes}")


def _check_constraints(mnemonic: str, operands: Sequence[Operand]) -> None:
    """What the processor demands of a form and PeachPy does not know.  Raises InvalidArguments."""
    if mnemonic.startswith(_LOCK) and not isinstance(operands[0] if operands else None, Pointer):
        raise InvalidArguments(f"{text_of(mnemonic, operands)}: LOCK needs memory as the first operand")
    indexed = any(isinstance(op, Pointer) and op.form.index and op.form.index.kind in VECTOR_KINDS for op in operands)
    if indexed and len(operands) < 3 and not any(getattr(op, "kcode", 0) for op in operands):
        raise InvalidArguments(f"{text_of(mnemonic, operands)} needs a write mask k1 to k7, as in dst.masked(k1)")


def _needs_distinct_registers(mnemonic: str) -> bool:
    return "GATHER" in mnemonic or mnemonic.startswith(("TDP", "TCMM"))


def _with_distinct_registers(mnemonic: str, encode: Encode) -> Encode:
    """A gather's destination, index and vector mask, and the tiles of a product, must differ (#UD otherwise)."""

    def checked(operands: Sequence[Any]) -> bytes:
        numbers = [op.form.index.id if isinstance(op, Pointer) and op.form.index else op.id for op in operands]
        if len(set(numbers)) < len(numbers):
            raise InvalidArguments(f"{text_of(mnemonic, operands)} needs registers that all differ")
        return encode(operands)

    return checked


def _with_own_target(mnemonic: str, encode: Encode) -> Encode:
    """The target of a complex product must be none of its factors (#UD otherwise)."""

    def checked(operands: Sequence[Any]) -> bytes:
        target, *factors = [operand.id for operand in operands if isinstance(operand, Register)]
        if target in factors:
            raise InvalidArguments(f"{text_of(mnemonic, operands)} needs a target that is none of its factors")
        return encode(operands)

    return checked


def _no_form(mnemonic: str, operands: Sequence[Operand]) -> str:
    return f"{text_of(mnemonic, operands)} does not exist: the forms are {'; '.join(written_forms(mnemonic))}"


def written_forms(mnemonic: str) -> list[str]:
    """The operands that an instruction takes, a line each; none for an unknown one."""
    name = mnemonic.removeprefix(_LOCK)
    name = name if extension_forms(name) else re.sub(_PREFIXED, "", name)
    forms = [f"{name}({', '.join(form.patterns)})" for form in extension_forms(name)]
    return forms + (forms_of(name) if is_known(name) else [])
