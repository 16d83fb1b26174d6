"""Registers and rounding modes: immutable, interned values.  Nothing here needs PeachPy.

A register carries the bit fields of its number under the names that PeachPy's encoders read (`lcode`, `hcode`, ...),
so that those encoders run on these values directly, at the price of an attribute.
"""

from functools import cache
from itertools import count
from typing import Final

from asmdnn.errors import InvalidArguments
from asmdnn.records import dataclass, field

REGISTER_BYTES: Final = {
    "r8": 1, "high8": 1, "r16": 2, "r32": 4, "r64": 8, "mm": 8, "k": 8, "xmm": 16, "ymm": 32, "zmm": 64, "tmm": 1024,
    "seg": 2,
}  # fmt: skip
VECTOR_KINDS: Final = ("xmm", "ymm", "zmm")
_COUNT: Final = {"high8": 4, "seg": 6, "mm": 8, "k": 8, "tmm": 8, "xmm": 32, "ymm": 32, "zmm": 32}
_LEGACY: Final = ("ax", "cx", "dx", "bx", "sp", "bp", "si", "di")
_SEGMENTS: Final = ("es", "cs", "ss", "ds", "fs", "gs")
_DX: Final = ("r16", 2)
_SUFFIX: Final = {"r8": "b", "r16": "w", "r32": "d", "r64": ""}

_LAST_WITH_HIGH_BYTE: Final = 3

_numbers = count()
_registers: dict[tuple[str, int, int, bool], "Register"] = {}


@cache
def signature(*parts: object) -> int:
    """A number for these properties of an operand, the same for equal ones.

    Operands of equal signature are those that PeachPy's choice of an instruction form cannot tell apart; `encoder.py`
    keys its cache with it.
    """
    return next(_numbers)


@dataclass(frozen=True, slots=True, eq=False)
class Register:
    """A physical register, with a write mask (`mask` = 1..7) or without (0).  Made by `register()`; equal is same."""

    kind: str
    id: int
    mask: int
    zeroing: bool
    signature: int = field(init=False)
    form: "Register" = field(init=False)  # itself, in the place of a memory operand's address
    code: int = field(init=False)  # bits 0-4 of the number
    lcode: int = field(init=False)  # bits 0-2
    hcode: int = field(init=False)  # bit 3
    ecode: int = field(init=False)  # bit 4
    hlcode: int = field(init=False)  # bits 0-3
    ehcode: int = field(init=False)  # bits 3-4
    kcode: int = field(init=False)  # EVEX.aaa: the write mask, never the register's own number
    zcode: int = field(init=False)  # EVEX.z
    rex_xb: int = field(init=False)  # X and B of a REX or VEX prefix when this is the r/m operand
    evex_xb: int = field(init=False)  # X and B of an EVEX prefix when this is the r/m operand
    evex_v: int = field(init=False)  # V' of an EVEX prefix: bit 4 of a vector index, 0 for a register

    def __post_init__(self) -> None:
        number = self.id
        low = number + 4 if self.kind == "high8" else number & 7
        special = number if number < 2 else 2 if number < 16 else 3  # al/rax/xmm0, cl, VEX-encodable, EVEX only
        if self.kind == "seg" or (self.kind, number) == _DX:  # ports are in dx; each segment has opcodes of its own
            special = 16 + number
        fields = {
            "form": self,
            "signature": signature(self.kind, special, self.mask > 0, self.zeroing),
            "code": number, "lcode": low, "hcode": number >> 3 & 1, "ecode": number >> 4,
            "hlcode": number & 15, "ehcode": number >> 3, "kcode": self.mask, "zcode": int(self.zeroing),
            "rex_xb": number >> 3 & 1, "evex_xb": number >> 3, "evex_v": 0,
        }  # fmt: skip
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def size_bytes(self) -> int:
        return REGISTER_BYTES[self.kind]

    @property
    def xmm(self) -> "Register":
        """The low 16 bytes of this vector register."""
        return _vector_view(self, "xmm")

    @property
    def ymm(self) -> "Register":
        """The 32-byte view of this vector register."""
        return _vector_view(self, "ymm")

    @property
    def zmm(self) -> "Register":
        """The 64-byte view of this vector register."""
        return _vector_view(self, "zmm")

    def masked(self, k: "Register") -> "Register":
        """This destination written only where `k` (k1-k7) is set; other elements keep their value."""
        return self._with_mask(k, zeroing=False)

    def zeroed(self, k: "Register") -> "Register":
        """This destination written where `k` (k1-k7) is set, zero elsewhere."""
        return self._with_mask(k, zeroing=True)

    def _with_mask(self, k: "Register", *, zeroing: bool) -> "Register":
        if self.kind not in (*VECTOR_KINDS, "k") or (zeroing and self.kind == "k"):
            raise InvalidArguments(f"{self} takes no {'zeroing' if zeroing else 'write'} mask")
        return register(self.kind, self.id, mask_number(self, k), zeroing)

    def __str__(self) -> str:
        mask = f"{{k{self.mask}}}" if self.mask else ""
        return register_name(self.kind, self.id) + mask + ("{z}" if self.zeroing else "")

    __repr__ = __str__


def register_name(kind: str, number: int) -> str:
    """The Intel manual's name of a register, e.g. ("r32", 9) -> "r9d"."""
    if kind == "high8":
        return _LEGACY[number][0] + "h"
    if kind == "seg":
        return _SEGMENTS[number]
    if kind not in _SUFFIX:
        return f"{kind}{number}"
    if number > 7:
        return f"r{number}{_SUFFIX[kind]}"
    name = _LEGACY[number]
    if kind == "r8":
        return name[0] + "l" if number < 4 else name + "l"
    return {"r16": "", "r32": "e", "r64": "r"}[kind] + name


def register(kind: str, number: int, mask: int = 0, zeroing: bool = False) -> Register:
    """The one Register of that kind ("r64", "zmm", "k", ...), number and write mask."""
    key = (kind, number, mask, zeroing)
    found = _registers.get(key)
    if found is None:
        if kind not in REGISTER_BYTES or not 0 <= number < _COUNT.get(kind, 16):
            kinds = ", ".join(REGISTER_BYTES)
            raise InvalidArguments(f"register {number} of kind {kind!r} does not exist: kinds are {kinds}")
        found = _registers.setdefault(key, Register(*key))  # atomic: racing threads get the same object
    return found


def _vector_view(reg: Register, kind: str) -> Register:
    if reg.kind not in VECTOR_KINDS:
        raise InvalidArguments(f"{reg} has no {kind} view: it is not a vector register")
    return register(kind, reg.id)


def mask_number(target: object, k: Register) -> int:
    """The number of the write mask k.  Raises InvalidArguments when it cannot mask `target`."""
    if k.kind != "k" or k.id == 0:
        raise InvalidArguments(f"{target} cannot be masked with {k}: write masks are k1 to k7")
    return k.id


def low32(reg: Register) -> Register:
    """The 32-bit name of a 64-bit register; writing it clears the upper half."""
    if reg.kind != "r64":
        raise InvalidArguments(f"low32({reg}): a 64-bit general-purpose register is needed")
    return register("r32", reg.id)


def high8(reg: Register) -> Register:
    """Bits 8 to 15 of rax, rcx, rdx or rbx: ah, ch, dh, bh.  No instruction has one beside r8 to r15 or 64 bits."""
    if reg.kind != "r64" or reg.id > _LAST_WITH_HIGH_BYTE:
        raise InvalidArguments(f"high8({reg}): only rax, rcx, rdx and rbx have a high byte")
    return register("high8", reg.id)


rsp: Final = register("r64", 4)


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddedRounding:
    """Embedded rounding or exception suppression, the last operand but an immediate, e.g. `VADDPS(a, b, c, rz_sae)`."""

    name: str
    code: int

    @property
    def signature(self) -> int:
        return signature("sae" if self.name == "sae" else "er")

    def __str__(self) -> str:
        return f"{{{self.name}}}"


rn_sae: Final = EmbeddedRounding("rn-sae", 0)
rd_sae: Final = EmbeddedRounding("rd-sae", 1)
ru_sae: Final = EmbeddedRounding("ru-sae", 2)
rz_sae: Final = EmbeddedRounding("rz-sae", 3)
sae: Final = EmbeddedRounding("sae", 0)
