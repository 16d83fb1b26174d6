"""Memory operands.

A Pointer is an interned AddressForm, which holds whatever can be computed from the registers, and a displacement; so
making one costs a dictionary look-up, and encoding one little more than its displacement.
"""

from collections.abc import Callable, Sequence
from functools import cache
from operator import index as as_int
from typing import Any, Final, NamedTuple, SupportsIndex

from asmdnn.errors import InvalidArguments
from asmdnn.isa.label import Label
from asmdnn.isa.operands import VECTOR_KINDS, EmbeddedRounding, Register, mask_number, rsp, signature
from asmdnn.records import dataclass

Heads = tuple[tuple[bytes, ...], tuple[bytes, ...], tuple[bytes, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class AddressForm:
    """Everything of a memory operand but its displacement.  Made by `_address_form`; equal is same."""

    base: Register | None
    index: Register | None
    scale: int
    size: int
    broadcast: int
    mask: int
    in_pool: bool
    segment: str  # "fs", "gs" or ""
    label: Label | None  # the address is its, and not in the pool
    signature: int
    rm: int  # ModRM.rm
    sib: int  # the SIB byte; -1 without
    heads: Heads
    rex_xb: int
    evex_xb: int
    evex_v: int

    @property
    def place(self) -> tuple[bool, str, Label | None]:
        return self.in_pool, self.segment, self.label


class Address(NamedTuple):
    """What an AddressForm is made of: its first fields."""

    base: Register | None
    index: Register | None  # type: ignore[assignment]  # of a tuple it would be a method, which nobody needs
    scale: int
    size: int
    broadcast: int
    mask: int = 0
    in_pool: bool = False
    segment: str = ""
    label: Label | None = None


class Pointer(NamedTuple):
    """A memory operand; made by `mem()` or `Assembler.const()`.  In the pool, `displacement` counts from its start."""

    form: AddressForm
    displacement: int
    signature: int  # the form's, where the choice of an encoder finds it without a call

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
        return _pointer((f.base, f.index, f.scale, f.size, 0, mask_number(self, k), *f.place), self.displacement)

    def broadcast_to(self, count: int) -> "Pointer":
        """The element here (4 bytes when the operand has no size) repeated `count` times: an EVEX source."""
        f = self.form
        return _pointer((f.base, f.index, f.scale, f.size or 4, count, f.mask, *f.place), self.displacement)

    def sized(self, size: int) -> "Pointer":
        """The same operand accessing `size` bytes."""
        f = self.form
        return _pointer((f.base, f.index, f.scale, size, f.broadcast, f.mask, *f.place), self.displacement)

    def shifted(self, offset_bytes: int) -> "Pointer":
        """The same operand `offset_bytes` further."""
        return self.at(self.displacement + as_int(offset_bytes))

    def at(self, displacement: SupportsIndex) -> "Pointer":
        """The same operand with another displacement."""
        return Pointer(self.form, _displacement(displacement), self.signature)

    def __str__(self) -> str:
        f = self.form
        parts = ["rip"] if f.in_pool or f.label else [str(f.base)] if f.base else []
        parts += [str(f.label)] if f.label else []
        parts += [f"{f.index}*{f.scale}" if f.scale > 1 or not f.base else str(f.index)] if f.index else []
        text = "+".join(parts) + (f"{self.displacement:+d}" if self.displacement and parts else "")
        text = f"{f.segment}:" * bool(f.segment) + (text or str(self.displacement))
        size = _SIZE_NAMES[f.size] + " " if f.size else ""
        broadcast = f"{{1to{f.broadcast}}}" if f.broadcast else ""
        return f"{size}[{text}]{broadcast}" + (f"{{k{f.mask}}}" if f.mask else "")


_SIZE_NAMES: Final = {
    1: "byte", 2: "word", 4: "dword", 8: "qword", 10: "tword", 16: "oword", 32: "yword", 64: "zword",
}  # fmt: skip
SEGMENT_PREFIXES: Final = {"fs": b"\x64", "gs": b"\x65"}
_forms: dict[tuple[Any, ...], AddressForm] = {}
_plain: dict[Register | Label | None, AddressForm] = {}  # those of a base alone, which most are
_new: Final = tuple.__new__  # half the time of a named tuple's own constructor
OPERAND_BYTES: Final = tuple(_SIZE_NAMES)
_SCALE_BITS: Final = {1: 0x00, 2: 0x40, 4: 0x80, 8: 0xC0}


def _displacement(integer: SupportsIndex) -> int:
    value = as_int(integer)
    if not -0x80000000 <= value <= 0x7FFFFFFF:
        raise InvalidArguments(f"displacement {value} does not fit 32 bits: add it to a register")
    return value


def mem(
    base: Register | Label | None,
    disp: int = 0,
    *,
    index: Register | None = None,
    scale: int = 1,
    size: int = 0,
    broadcast: int = 0,
    segment: str = "",
) -> Pointer:
    """The memory operand [base + index*scale + disp].

    base: 64-bit register, None with an index or segment, or a label: the bytes of the code there, or their address.
    segment: "fs" or "gs", whose start is added.  index: 64-bit register but rsp, or a vector register (gather).
    disp: bytes.  size: bytes accessed, needed only where the instruction leaves it open.  broadcast: number of times
    the element of `size` 2, 4 or 8 bytes is repeated.  Raises InvalidArguments.
    """
    if type(disp) is not int or not -0x80000000 <= disp <= 0x7FFFFFFF:
        disp = _displacement(disp)
    is_plain = index is None and not size and not broadcast and scale == 1 and not segment
    if is_plain and base in _plain:
        form = _plain[base]
        return _new(Pointer, (form, disp, form.signature))
    if isinstance(base, Label):
        if index is not None or segment:
            raise InvalidArguments(f"mem({base}): an address from rip has no index and no segment")
        form = _address_form(Address(None, None, 1, size, broadcast, label=base))
        return Pointer(form, disp, form.signature)
    pointer = _pointer((base, index, scale, size, broadcast, 0, False, segment, None), disp)
    if is_plain and base is not None:
        _plain[base] = pointer.form
    return pointer


def pool_pointer(offset: int, size: int, broadcast: int) -> Pointer:
    """The rip-relative operand `offset` bytes into the constant pool after the code."""
    return _pointer((None, None, 1, size, broadcast, 0, True, "", None), offset)


def _pointer(address: tuple[Any, ...], displacement: int) -> Pointer:
    """address: the fields of an Address.  Of racing threads, one's form is kept."""
    form = _forms.get(address) or _forms.setdefault(address, _address_form(Address(*address)))
    return _new(Pointer, (form, displacement, form.signature))


def _address_form(a: Address) -> AddressForm:
    _check_address(a)
    index, base = a.index, a.base
    kind = None if index is None else (index.kind, index.id > 15)
    area = "pool" if a.in_pool else "label" if a.label else a.segment
    shared = signature(area, kind, a.size, a.broadcast, a.mask > 0)
    if a.in_pool or a.label:
        return AddressForm(*a, shared, 5, -1, heads(5, -1), 0, 0, 0)
    rex_xb = (index.hcode << 1 if index else 0) | (base.hcode if base else 0)
    if base is None or index is not None or base.lcode == 4:  # 4 in ModRM.rm announces a SIB byte
        sib = _SCALE_BITS[a.scale] | (index.lcode if index else 4) << 3 | (base.lcode if base else 5)
        rm = 4
    else:
        rm, sib = base.lcode, -1
    evex_v = index.ecode if index is not None and index.kind in VECTOR_KINDS else 0
    return AddressForm(*a, shared, rm, sib, heads(rm, sib), rex_xb, rex_xb, evex_v)


@cache
def heads(rm: int, sib: int) -> Heads:
    """ModRM, and SIB where it is not -1: without a displacement, with 8 bits and with 32; of each by ModRM.reg."""
    tail = (sib,) if sib >= 0 else ()
    bare, near, far = (tuple(bytes((mod | reg << 3 | rm, *tail)) for reg in range(8)) for mod in (0x00, 0x40, 0x80))
    return bare, near, far


def _check_address(a: Address) -> None:
    base, index = a.base, a.index
    if a.segment not in ("", *SEGMENT_PREFIXES):
        raise InvalidArguments(f"segment {a.segment!r} is not 'fs' or 'gs': the others start at 0")
    if not (base or index or a.in_pool or a.label or a.segment):
        raise InvalidArguments("mem() needs a base or an index register")
    if base is not None and base.kind != "r64":
        raise InvalidArguments(f"base {base} is not a 64-bit general-purpose register")
    if index is not None and (index.kind not in (*VECTOR_KINDS, "r64") or index.mask or index is rsp):
        raise InvalidArguments(f"index {index} is not an unmasked vector register or a 64-bit register other than rsp")
    if a.scale not in _SCALE_BITS:
        raise InvalidArguments(f"scale {a.scale} is not 1, 2, 4 or 8")
    if a.size and a.size not in _SIZE_NAMES:
        raise InvalidArguments(f"size {a.size} is not an operand size in bytes: {', '.join(map(str, _SIZE_NAMES))}")
    if a.broadcast and index is not None and index.kind in VECTOR_KINDS:
        raise InvalidArguments(f"broadcast {a.broadcast} with the vector index {index}: a gather has no broadcast")
    if a.broadcast and (a.size not in (2, 4, 8) or a.size * a.broadcast not in (4, 8, 16, 32, 64)):
        what = f"broadcast {a.broadcast} with size {a.size}"
        raise InvalidArguments(f"{what}: size must be 2, 4 or 8, and all fill a vector")


Operand = Register | Pointer | EmbeddedRounding | int
Encode = Callable[[Sequence[Any]], bytes]  # operands of one form to the instruction's bytes
