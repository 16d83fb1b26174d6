"""Instruction forms from lines in the Intel manual's notation.

A line has the mnemonic, the encoding and the operands, two spaces or more between them:

    VMULPH          EVEX.MAP5.W0 59                v{k}{z}, v, v/m/b16, {er}
    VPDPB{UU,SS}D   VEX.{0F38,F2.0F38}.W0 50       v, v, v/m
    MOVDIRI         o64 0F 38 F9 /r MR             m64, r64

Encoding, as in the manual's column "Opcode": EVEX without a length stands for 128, 256 and 512 bits, VEX for 128 and
256; LIG are scalars.  o16, o64 and a32 are sizes that need a prefix.  A last word such as MR says which operand is
ModRM.reg (R), ModRM.rm (M) and VEX.vvvv (V), where they are not RVM or RM; /6 is a fixed ModRM.reg.

Operands: v is a vector of the length, h of half and q of a quarter of it; x, y, z and t are registers; seg is a segment
register; al, dx and fs are those registers; /m is memory as wide as the register before it, /b16 an element of 16 bits
repeated, /c8 memory as wide whose displacement counts units of 8 bits, k+1 a pair of masks.  {er} and {sae} are there
with registers of 512 bits and with scalars, or left out.

Braces in mnemonic and encoding make one line several: each takes the next word of every brace.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import Any, Final, NamedTuple

from asmdnn.isa.encoding import evex, modrm_sib_disp, optional_rex, rex, vex3
from asmdnn.isa.forms import Form
from asmdnn.isa.memory_operand import Operand, Pointer
from asmdnn.isa.operands import VECTOR_KINDS, EmbeddedRounding, Register, register
from asmdnn.records import dataclass

_VECTOR: Final = (
    r"(?P<prefix>EVEX|VEX)(\.(?P<length>128|256|512|LIG))?(\.(?P<pp>66|F3|F2))?\.(?P<map>0F|0F38|0F3A|MAP5|MAP6)"
    r"\.W(?P<w>[01]) (?P<opcode>\w\w)( /(?P<digit>\d))?( (?P<order>[RMV]+))?"
)
_LEGACY: Final = (
    r"(?P<prefixes>((o16|o64|a32|66|F3|F2) )*)(?P<opcode>([0-9A-F]{2} ?)+)(/(?P<digit>r|\d) ?)?(?P<order>[RM]*)"
)
_PP: Final = {None: 0, "66": 1, "F3": 2, "F2": 3}
_MAPS: Final = {"0F": 1, "0F38": 2, "0F3A": 3, "MAP5": 5, "MAP6": 6}
_LENGTHS: Final = {"128": (0,), "256": (1,), "512": (2,), "LIG": (0,), "EVEX": (0, 1, 2), "VEX": (0, 1)}
_PREFIX_BYTES: Final = {"a32": b"\x67", "o16": b"\x66", "66": b"\x66", "F3": b"\xf3", "F2": b"\xf2", "o64": b""}
_HALVED: Final = {"v": 0, "h": 1, "q": 2}  # how often the vector's length
_NAMED: Final = {"x": "xmm", "y": "ymm", "z": "zmm", "t": "tmm"}
_ORDERS: Final = {0: "", 1: "M", 2: "RM", 3: "RVM"}
_BRACES: Final = r"\{([^{}]*,[^{}]*)\}"
_NOTHING: Final = register("r64", 0)  # in the place of an operand that is not there: its bits are 0


class ManualLine(NamedTuple):
    """A line without braces."""

    encoding: str
    operands: tuple[str, ...]


def rows_of(lines: str) -> dict[str, tuple[ManualLine, ...]]:
    """All lines by mnemonic, in their order."""
    rows: dict[str, tuple[ManualLine, ...]] = {}
    for line in filter(None, map(str.strip, lines.splitlines())):
        name, encoding, *operands = re.split(" {2,}", line)
        for one in _without_braces(f"{name} {encoding}"):
            mnemonic, _, encoded = one.partition(" ")
            row = ManualLine(encoded, tuple(operands[0].split(", ")) if operands else ())
            rows[mnemonic] = (*rows.get(mnemonic, ()), row)
    return rows


def forms_of(mnemonic: str, row: ManualLine) -> Iterator[Form]:
    """The forms of a row: of each length, and with a rounding mode."""
    make = _vector_forms if row.encoding.startswith(("EVEX", "VEX")) else _legacy_forms
    return make(mnemonic, row.encoding, row.operands)


def _without_braces(text: str) -> list[str]:
    plain, words = re.split(_BRACES, text)[::2], [group.split(",") for group in re.findall(_BRACES, text)]
    turns = zip(*words, strict=True) if words else [()]
    return ["".join(chain(*zip_longest(plain, chosen, fillvalue=""))) for chosen in turns]


def _vector_forms(name: str, encoding: str, operands: Sequence[str]) -> Iterator[Form]:
    found = re.fullmatch(_VECTOR, encoding)
    assert found, encoding
    plain = [operand for operand in operands if operand not in ("{er}", "{sae}")]
    for ll in _LENGTHS[found["length"] or found["prefix"]]:
        is_evex = found["prefix"] == "EVEX"
        patterns = [_pattern(operand, ll, not is_evex) for operand in plain]
        encode = _VectorEncoder(
            _with_evex if is_evex else _with_vex,
            (_MAPS[found["map"]], int(found["w"]) << 7 | _PP[found["pp"]], ll),
            int(found["opcode"], 16),
            _Roles(found["digit"], found["order"]),
            _unit_bytes(plain, patterns) if is_evex else 1,
        )
        yield Form(name, tuple(patterns), encode)
        if len(plain) < len(operands) and (ll == 2 or found["length"] == "LIG"):
            yield Form(name, tuple(_pattern(operand, ll, False).partition("/")[0] for operand in operands), encode)


def _pattern(operand: str, ll: int, low: bool) -> str:
    """As `Form` has it; low: vector registers are the first 16."""
    first, *others = operand.split("/")
    letter, suffix = first[0], first[1:]
    if letter in _HALVED and not suffix.strip("{kz}"):
        kind = VECTOR_KINDS[max(0, ll - _HALVED[letter])]
        bits = (128 << ll) >> _HALVED[letter]
    elif letter in _NAMED:
        kind, bits = _NAMED[letter], 128 << list(_NAMED).index(letter)
    else:
        kind, suffix, bits = first, "", int(first[1:]) if first[1:].isdecimal() else 0
    number = "<16" if low and kind in VECTOR_KINDS else ""
    return "/".join([f"{kind}{number}{suffix}", *(_memory(other, bits) for other in others)])


def _memory(text: str, bits: int) -> str:
    """An alternative that is memory, beside a register of so many bits."""
    found = re.fullmatch(r"([mbc])(\d*)(\{k\})?", text)
    assert found, text
    letter, size, mask = found.groups()
    if letter == "b":
        return f"m{size}{{1to{bits // int(size)}}}"
    return f"m{size if letter == 'm' and size else bits}{mask or ''}"


def _unit_bytes(operands: Sequence[str], patterns: Sequence[str]) -> int:
    """The unit of an 8-bit displacement, which the memory operand says."""
    for operand, pattern in zip(operands, patterns, strict=True):
        compressed = re.search(r"c(\d+)", operand)
        if compressed:
            return int(compressed[1]) // 8
        memory = re.search(r"\bm(\d+)", pattern)
        if memory:
            return int(memory[1]) // 8
    return 1


@dataclass(frozen=True, slots=True)
class _Roles:
    """Which operand is ModRM.reg, ModRM.rm and VEX.vvvv; digit: what ModRM.reg is where no operand is."""

    digit: str | None
    order: str | None

    def of(self, operands: Sequence[Any]) -> tuple[Any, Any, Any]:
        """reg, rm, vvvv of the operands that are registers and memory; 0 or None for those that are not there."""
        order = self.order or ("M" if self.digit and len(operands) == 1 else _ORDERS[len(operands)])
        found = dict(zip(order, operands, strict=True))
        return found.get("R", register("r64", int(self.digit or 0))), found.get("M"), found.get("V", _NOTHING)


@dataclass(frozen=True, slots=True)
class _VectorEncoder:
    """Encodes with VEX or EVEX.  fields: opcode map, W and pp, L."""

    prefix: Callable[..., bytes]
    fields: tuple[int, int, int]
    opcode: int
    roles: _Roles
    unit_bytes: int

    def __call__(self, operands: Sequence[Any]) -> bytes:
        places = _places(operands)
        immediate = bytes(operand & 0xFF for operand in operands if isinstance(operand, int))
        reg, rm, vvvv = self.roles.of(places)
        head = self.prefix(self.fields, reg, rm or _NOTHING, vvvv, operands)
        return head + bytes((self.opcode,)) + _modrm(reg, rm, self.unit_bytes) + immediate


def _with_vex(fields: tuple[int, int, int], reg: Any, rm: Any, vvvv: Any, operands: Sequence[Any]) -> bytes:
    opcode_map, w_pp, ll = fields
    return vex3(0xC4, opcode_map, w_pp | ll << 2, reg.hcode, rm, vvvv.hlcode)


def _with_evex(fields: tuple[int, int, int], reg: Any, rm: Any, vvvv: Any, operands: Sequence[Any]) -> bytes:
    """Mask and zeroing are those of the first operand."""
    opcode_map, w_pp, ll = fields
    rounding = next((operand for operand in operands if isinstance(operand, EmbeddedRounding)), None)
    broadcast = rm.bcode if isinstance(rm, Pointer) else 0
    return evex(
        mm=opcode_map,
        w____1pp=4 | w_pp,
        ll=rounding.code if rounding else ll,
        rr=reg.ehcode,
        rm=rm,
        Vvvvv=vvvv.code,
        aaa=operands[0].kcode,
        z=operands[0].zcode,
        b=int(rounding is not None) | broadcast,
    )


def _places(operands: Sequence[Operand]) -> list[Operand]:
    """Registers and memory."""
    return [operand for operand in operands if isinstance(operand, Register | Pointer)]


def _modrm(reg: Register, rm: Register | Pointer | None, unit_bytes: int, force_sib: bool = False) -> bytes:
    if isinstance(rm, Pointer):
        return modrm_sib_disp(reg.lcode, rm, force_sib, disp8xN=unit_bytes)
    return bytes((0xC0 | reg.lcode << 3 | (rm or _NOTHING).lcode,))


def _legacy_forms(name: str, encoding: str, operands: Sequence[str]) -> Iterator[Form]:
    found = re.fullmatch(_LEGACY, encoding)
    assert found, encoding
    prefixes = found["prefixes"].split()
    encoder = _LegacyEncoder(
        b"".join(_PREFIX_BYTES[prefix] for prefix in sorted(prefixes, key=list(_PREFIX_BYTES).index)),
        "o64" in prefixes,
        bytes.fromhex(found["opcode"]),
        _Roles(found["digit"].replace("r", ""), found["order"]) if found["digit"] else None,
        tuple(int(operand[3:]) // 8 for operand in operands if operand.startswith("imm")),
    )
    yield Form(name, tuple(_pattern(operand, 0, True) for operand in operands), encoder)


@dataclass(frozen=True, slots=True)
class _LegacyEncoder:
    """Encodes without VEX; wide: with REX.W.  roles: None without ModRM.  immediate_bytes: of each immediate."""

    prefixes: bytes
    wide: bool
    opcode: bytes
    roles: _Roles | None
    immediate_bytes: tuple[int, ...]

    def __call__(self, operands: Sequence[Any]) -> bytes:
        places = _places(operands)
        given = [operand for operand in operands if isinstance(operand, int)]
        sized = zip(given, self.immediate_bytes, strict=True)
        immediate = b"".join((value & (1 << 8 * size) - 1).to_bytes(size, "little") for value, size in sized)
        if self.roles is None:
            return self.prefixes + b"\x48" * self.wide + self.opcode + immediate
        reg, rm, _ = self.roles.of(places)
        extended = rex(1, reg.hcode, rm) if self.wide else optional_rex(reg.hcode, rm)
        return self.prefixes + extended + self.opcode + _modrm(reg, rm, 1) + immediate
