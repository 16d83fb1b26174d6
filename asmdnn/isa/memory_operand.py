"""Memory operands.

A Pointer is an interned AddressForm, which holds whatever can be computed from the registers, and a displacement; so
making one costs a dictionary look-up, and encoding one little more than its displacement.
"""

from collections.abc import Callable, Sequence
from functools import cache
from operator import index as as_int
from typing import Any, Final, NamedTuple, SupportsIndex

from asmdnn.errors import InvalidArguments
from asmdnn.isa.operands import VECTOR_KINDS, EmbeddedRounding, Register, mask_number, rsp, signature
from asmdnn.records import dataclass, field


@dataclass(frozen=True, slots=True)
class AddressForm:
    """Everything of a memory operand but its displacement.  Made by `_address_form`."""

    base: Register | None
    index: Register | None
    scale: int
    size: int
    broadcast: int
    mask: int
    in_pool: bool
    signature: int = field(compare=False)
    rm: int  # ModRM.rm
    sib: bytes  # the SIB byte, or nothing
    rex_xb: int
    evex_xb: int
    evex_v: int


class Pointer(NamedTuple):
    """A memory operand; made by `mem()` or `Assembler.const()`.  In the pool, `displacement` counts from its start."""

    form: AddressForm
    displacement: int

    @property
    def signature(self) -> int:
        return self.form.signature

    @property
    def address(self) -> "Pointer":
        return self

    @property
    def bcode(self) -> int:
        return int(self.form.broadcast > 0)

    @property
    def kcode(self) -> int:
        return self.form.mask

    @property
    def zcode(self) -> int:
        return 0

    @property
    def size(self) -> int:
        return self.form.size

    def masked(self, k: Register) -> "Pointer":
        """This destination written only where `k` (k1-k7) is set.  The processor cannot zero elements in memory."""
        f = self.form
        if f.broadcast:
            raise InvalidArguments(f"{self} is a broadcast source and takes no write mask")
        form = _address_form(f.base, f.index, f.scale, f.size, 0, mask_number(self, k), f.in_pool)
        return Pointer(form, self.displacement)

    def broadcast_to(self, count: int) -> "Pointer":
        """The element here (4 bytes when the operand has no size) repeated `count` times: an EVEX source."""
        f = self.form
        form = _address_form(f.base, f.index, f.scale, f.size or 4, count, f.mask, f.in_pool)
        return Pointer(form, self.displacement)

    def sized(self, size: int) -> "Pointer":
        """The same operand accessing `size` bytes."""
        f = self.form
        return Pointer(_address_form(f.base, f.index, f.scale, size, f.broadcast, f.mask, f.in_pool), self.displacement)

    def shifted(self, offset_bytes: int) -> "Pointer":
        """The same operand `offset_bytes` further."""
        return Pointer(self.form, _displacement(self.displacement + as_int(offset_bytes)))

    def __str__(self) -> str:
        f = self.form
        parts = ["rip"] if f.in_pool else [str(f.base)] if f.base else []
        parts += [f"{f.index}*{f.scale}" if f.scale > 1 or not f.base else str(f.index)] if f.index else []
        text = "+".join(parts) + (f"{self.displacement:+d}" if self.displacement else "")
        size = _SIZE_NAMES[f.size] + " " if f.size else ""
        broadcast = f"{{1to{f.broadcast}}}" if f.broadcast else ""
        return f"{size}[{text}]{broadcast}" + (f"{{k{f.mask}}}" if f.mask else "")


_SIZE_NAMES: Final = {
    1: "byte", 2: "word", 4: "dword", 8: "qword", 10: "tword", 16: "oword", 32: "yword", 64: "zword",
}  # fmt: skip
OPERAND_BYTES: Final = tuple(_SIZE_NAMES)
_SCALE_BITS: Final = {1: 0x00, 2: 0x40, 4: 0x80, 8: 0xC0}


def _displacement(integer: SupportsIndex) -> int:
    value = as_int(integer)
    if not -0x80000000 <= value <= 0x7FFFFFFF:
        raise InvalidArguments(f"displacement {value} does not fit 32 bits: add it to a register")
    return value


def mem(
    base: Register | None,
    disp: int = 0,
    *,
    index: Register | None = None,
    scale: int = 1,
    size: int = 0,
    broadcast: int = 0,
) -> Pointer:
    """The memory operand [base + index*scale + disp].

    base: 64-bit register, or None with an index.  index: 64-bit register but rsp, or a vector register (gather).
    disp: bytes.  size: bytes accessed, needed only where the instruction leaves it open.  broadcast: number of times
    the element of `size` 2, 4 or 8 bytes is repeated.  Raises InvalidArguments.
    """
    form = _address_form(base, index, scale, size, broadcast, 0, False)
    return Pointer(form, disp if type(disp) is int and -0x80000000 <= disp <= 0x7FFFFFFF else _displacement(disp))


def pool_pointer(offset: int, size: int, broadcast: int) -> Pointer:
    """The rip-relative operand `offset` bytes into the constant pool after the code."""
    return Pointer(_address_form(None, None, 1, size, broadcast, 0, True), offset)


@cache
def _address_form(
    base: Register | None, index: Register | None, scale: int, size: int, broadcast: int, mask: int, in_pool: bool
) -> AddressForm:
    _check_address(base, index, scale, size, broadcast, in_pool)
    vector_index = index is not None and index.kind in VECTOR_KINDS
    kind = None if index is None else (index.kind, index.id > 15)
    shared = signature("pool" if in_pool else "mem", kind, size, broadcast, mask > 0)
    if in_pool:
        return AddressForm(None, None, 1, size, broadcast, mask, True, shared, 5, b"", 0, 0, 0)
    xb = (index.hcode << 1 if index else 0) | (base.hcode if base else 0)
    if base is None or index is not None or base.lcode == 4:  # 4 in ModRM.rm announces a SIB byte
        sib = _SCALE_BITS[scale] | (index.lcode if index else 4) << 3 | (base.lcode if base else 5)
        rm, tail = 4, bytes((sib,))
    else:
        rm, tail = base.lcode, b""
    evex_v = index.ecode if index is not None and vector_index else 0
    return AddressForm(base, index, scale, size, broadcast, mask, False, shared, rm, tail, xb, xb, evex_v)


def _check_address(
    base: Register | None, index: Register | None, scale: int, size: int, broadcast: int, in_pool: bool
) -> None:
    if base is None and index is None and not in_pool:
        raise InvalidArguments("mem() needs a base or an index register")
    if base is not None and base.kind != "r64":
        raise InvalidArguments(f"base {base} is not a 64-bit general-purpose register")
    if index is not None and (index.kind not in (*VECTOR_KINDS, "r64") or index.mask or index is rsp):
        raise InvalidArguments(f"index {index} is not an unmasked vector register or a 64-bit register other than rsp")
    if scale not in _SCALE_BITS:
        raise InvalidArguments(f"scale {scale} is not 1, 2, 4 or 8")
    if size and size not in _SIZE_NAMES:
        raise InvalidArguments(f"size {size} is not an operand size in bytes: {', '.join(map(str, _SIZE_NAMES))}")
    if broadcast and index is not None and index.kind in VECTOR_KINDS:
        raise InvalidArguments(f"broadcast {broadcast} with the vector index {index}: a gather has no broadcast")
    if broadcast and (size not in (2, 4, 8) or size * broadcast not in (4, 8, 16, 32, 64)):
        raise InvalidArguments(f"broadcast {broadcast} with size {size}: size must be 2, 4 or 8, and all fill a vector")


Operand = Register | Pointer | EmbeddedRounding | int
Encode = Callable[[Sequence[Any]], bytes]  # operands of one form to the instruction's bytes
