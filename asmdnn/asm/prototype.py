"""C prototypes: which types a function takes and gives, and where System V puts them.

Source: System V ABI, AMD64 supplement, section 3.2.3 (parameter passing).  cffi's own parser reads the types.
"""

import re
from functools import cached_property
from typing import Any, Final

from asmdnn.errors import InvalidArguments, resembling
from asmdnn.isa.operands import Register, register
from asmdnn.jit.native import ffi
from asmdnn.records import dataclass

INTEGER_REGISTERS: Final = (7, 6, 2, 1, 8, 9)  # rdi rsi rdx rcx r8 r9
VECTOR_ARGUMENTS: Final = 8  # xmm0 to xmm7
WORD_BYTES: Final = 8
FLOATS: Final = {"float": 4, "double": 8}
WORDS_OF_TYPES: Final = (
    "float", "double", "void", "bool", "char", "short", "int", "long", "unsigned", "size_t", "int8_t", "int16_t",
    "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t",
)  # fmt: skip
_NAMED: Final = r"\s*(?P<type>.*?[\s*])\s*(?P<name>[A-Za-z_]\w*)\s*"
_SHAPE: Final = re.compile(_NAMED + r"\((?P<arguments>.*)\)\s*;?\s*", re.DOTALL)
_ARGUMENT: Final = re.compile(_NAMED + r"(?:\[\s*\])?\s*", re.DOTALL)


@dataclass(frozen=True)
class CType:
    """A scalar or a pointer of C.  item: what a pointer points to.  is_const: whether that may not be written."""

    text: str
    item: str = ""
    is_const: bool = False

    @cached_property
    def ctype(self) -> Any:
        """As cffi knows it."""
        return ffi.typeof(self.text)

    @property
    def is_pointer(self) -> bool:
        return bool(self.ctype.kind == "pointer")

    @property
    def is_float(self) -> bool:
        return self.text in FLOATS

    @property
    def is_void(self) -> bool:
        return bool(self.ctype.kind == "void")

    @property
    def size_bytes(self) -> int:
        return int(ffi.sizeof(self.ctype))

    @property
    def is_signed(self) -> bool:
        """Of integers."""
        return not self.is_pointer and self.text != "_Bool" and int(ffi.cast(self.ctype, -1)) < 0

    @property
    def is_integer(self) -> bool:
        return not (self.is_pointer or self.is_float or self.is_void)

    @property
    def range(self) -> tuple[int, int]:
        """The least and the largest value of an integer."""
        bits = 1 if self.text == "_Bool" else 8 * self.size_bytes
        return (-1 << bits - 1, (1 << bits - 1) - 1) if self.is_signed else (0, (1 << bits) - 1)

    @property
    def item_bytes(self) -> int:
        """Of what a pointer points to; 1 for void."""
        return 1 if self.item == "void" else int(ffi.sizeof(self.item))

    def __str__(self) -> str:
        return f"const {self.text}" if self.is_const else self.text


@dataclass(frozen=True)
class CArgument:
    """One of a function.  place: the number of its integer or vector register, or, `on_stack`, of its word there."""

    name: str
    type: CType
    place: int
    on_stack: bool

    @property
    def register(self) -> Register:
        """Where the caller puts it."""
        return register("xmm", self.place) if self.type.is_float else register("r64", INTEGER_REGISTERS[self.place])


@dataclass(frozen=True)
class Prototype:
    """`int64_t step(int64_t op, int64_t a)` taken apart."""

    name: str
    result: CType
    arguments: tuple[CArgument, ...]

    @cached_property
    def pointer_type(self) -> Any:
        """cffi's type of a pointer to such a function."""
        types = ", ".join(argument.type.text for argument in self.arguments)
        return ffi.typeof(f"{self.result.text}(*)({types or 'void'})")

    @cached_property
    def address_type(self) -> Any:
        """The same with addresses as integers; a result that is a pointer is one, too."""
        of = ["uintptr_t" if t.is_pointer else t.text for t in (self.result, *(a.type for a in self.arguments))]
        return ffi.typeof(f"{of[0]}(*)({', '.join(of[1:]) or 'void'})")

    def __str__(self) -> str:
        arguments = ", ".join(f"{a.type}{'' if a.type.is_pointer else ' '}{a.name}" for a in self.arguments)
        return f"{self.result}{'' if self.result.is_pointer else ' '}{self.name}({arguments or 'void'})"


def parse_prototype(text: str) -> Prototype:
    """The prototype; InvalidArguments says what of it cannot be read or passed."""
    shape = _SHAPE.fullmatch(text) if isinstance(text, str) else None
    if shape is None:
        raise InvalidArguments(f'prototype {text!r} is not of the form "float dot(const float *x, size_t n)".')
    inside = shape["arguments"].strip()
    pieces = [] if inside in ("", "void") else inside.split(",")
    named = []
    for piece in pieces:
        found = _ARGUMENT.fullmatch(piece)
        if found is None:
            raise InvalidArguments(f"argument {piece.strip()!r} of {text!r} has no type and name, as `float *x` has.")
        is_array = piece.rstrip().endswith("]")
        named.append((found["name"], _ctype(found["type"] + "*" * is_array, text)))
    if len({name for name, _ in named}) < len(named):
        raise InvalidArguments(f"prototype {text!r} names two arguments alike.")
    if any(ctype.is_void for _, ctype in named):
        raise InvalidArguments(f"prototype {text!r} has a void argument: only a pointer to void can be passed.")
    return Prototype(shape["name"], _ctype(shape["type"], text), _placed(named))


def parse_type(text: str, name: str) -> Prototype:
    """The prototype of a function `name` from a type without names, such as "double(double)"."""
    result, opened, inside = text.partition("(")
    pieces = [piece for piece in inside.rstrip(" )").split(",") if piece.strip() not in ("", "void")]
    if not opened or not text.rstrip().endswith(")"):
        raise InvalidArguments(f'type {text!r} of {name!r} is not of the form "double(double, int)".')
    arguments = ", ".join(f"{piece.strip()} a{i}" for i, piece in enumerate(pieces))
    return parse_prototype(f"{result.strip()} {name}({arguments})")


def _ctype(text: str, prototype: str) -> CType:
    """Of one argument or the result.  cffi drops const, so that it is looked for here."""
    words = text.replace("*", " * ").split()
    plain = " ".join(word for word in words if word not in ("const", "restrict", "volatile"))
    if plain == "bool":
        plain = "_Bool"
    try:
        ctype = ffi.typeof(plain)
    except (ffi.error, NotImplementedError):
        near = resembling(plain.replace("*", "").strip(), WORDS_OF_TYPES) or "."
        raise InvalidArguments(f"{text.strip()!r} in {prototype!r} is not a type that is known here{near}") from None
    if ctype.kind == "pointer":
        return CType(ctype.cname, ctype.item.cname, "const" in words[: words.index("*")])
    if ctype.kind not in ("primitive", "void") or ctype.cname in ("long double", "float _Complex", "double _Complex"):
        raise InvalidArguments(f"{text.strip()!r} in {prototype!r} is no integer, pointer, float or double.")
    return CType(ctype.cname)


def _placed(named: "list[tuple[str, CType]]") -> tuple[CArgument, ...]:
    """In order: the next integer or vector register, or the next word on the stack when these are used up."""
    integers = floats = words = 0
    found = []
    for name, ctype in named:
        taken, limit = (floats, VECTOR_ARGUMENTS) if ctype.is_float else (integers, len(INTEGER_REGISTERS))
        on_stack = taken >= limit
        found.append(CArgument(name, ctype, words if on_stack else taken, on_stack))
        words += on_stack
        floats += ctype.is_float and not on_stack
        integers += not ctype.is_float and not on_stack
    return tuple(found)
