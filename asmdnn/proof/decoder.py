"""Instructions as iced-x86 decodes them, reduced to what the rules ask for; each byte string is decoded once.

iced-x86 shares nothing with PeachPy, whose encoders made the bytes.
"""

import re
from functools import cache
from importlib.util import find_spec
from typing import Any, Final

from asmdnn.errors import Unimplemented
from asmdnn.proof.facts import NO_REGISTER, Access, DecodedOperand, Fact, TileRows
from asmdnn.proof.register_parts import use_of

DIRECTION_FLAG: Final = 0x40  # iced-x86's RflagsBits.DF

# All 64-bit CPUs have these; PREFETCHT1 and SFENCE are SSE.
X86_64_FEATURES: Final = frozenset((
    "intel8086", "intel186", "intel286", "intel386", "intel486", "x64", "cmov", "multibytenop", "sse", "sse2",
))  # fmt: skip

_SYSTEM: Final = frozenset((
    "syscall", "sysenter", "retf", "iret", "iretd", "iretq", "uiret", "rsm", "getsec", "enclu",
))  # fmt: skip
_COMPRESSES: Final = re.compile("vp?(compress|scatter)")  # where an element goes is not where it comes from
_MASKED_MOVES: Final = ("vmovup", "vmovap", "vmovdq", "vmaskmov", "vpmaskmov")


def require_decoder(who: str = "prove") -> None:
    """Raise Unimplemented, with what to install, when iced-x86 is missing."""
    if find_spec("iced_x86") is None:
        raise Unimplemented(f"{who} needs the independent decoder iced-x86: pip install iced-x86")


def fact_at(code: bytes, offset: int) -> Fact | None:
    """The instruction that starts there, None if there is none."""
    found = _first(code[offset : offset + 15])
    return None if found is None else _fact_of(code[offset : offset + found])


def features_of(code: bytes) -> frozenset[str] | None:
    """The CPU features that all instructions of `code` need; None if one of them is not known."""
    iced, features = _decoder(), _tables()[1]
    decoder, ins, found = iced.Decoder(64, code), iced.Instruction(), dict[int, list[int]]()
    while decoder.can_decode:
        decoder.decode_out(ins)
        if ins.code not in found:
            found[ins.code] = ins.cpuid_features()
    if iced.Code.INVALID in found:
        return None
    return frozenset(features[f] for each in found.values() for f in each) - X86_64_FEATURES


def _first(window: bytes) -> int | None:
    instruction = _decoder().Decoder(64, window).decode()
    return None if instruction.is_invalid else int(instruction.len)


@cache
def _decoder() -> Any:
    import iced_x86

    return iced_x86


@cache
def _tables() -> tuple[dict[int, str], dict[int, str], dict[int, str]]:
    """Names of mnemonics, features and registers by iced-x86's numbers."""
    iced = _decoder()

    def names(enumeration: Any) -> dict[int, str]:
        return {value: name.lower() for name, value in vars(enumeration).items() if name[0].isupper()}

    return names(iced.Mnemonic), names(iced.CpuidFeature), names(iced.Register)


@cache
def _formatter() -> Any:
    iced = _decoder()
    formatter = iced.Formatter(iced.FormatterSyntax.NASM)
    formatter.number_base = 10
    formatter.space_after_operand_separator = True
    formatter.rip_relative_addresses = True
    formatter.show_branch_size = False
    formatter.use_pseudo_ops = False
    formatter.memory_size_options = iced.MemorySizeOptions.NEVER
    return formatter


@cache
def _info_factory() -> Any:
    return _decoder().InstructionInfoFactory()


@cache
def _fact_of(data: bytes) -> Fact:
    iced = _decoder()
    mnemonics, features, _ = _tables()
    ins = iced.Decoder(64, data).decode()
    info = _info_factory().info(ins)
    mnemonic = mnemonics[ins.mnemonic]
    access = iced.OpAccess
    reading = (access.READ, access.COND_READ, access.READ_WRITE, access.READ_COND_WRITE)
    writing = (access.WRITE, access.COND_WRITE, access.READ_WRITE, access.READ_COND_WRITE)
    ext = iced.RegisterExt
    written = [r.register for r in info.used_registers() if r.access in writing]
    gp_written = tuple(sorted({_number(n) for n in written if ext.is_gpr(n)}))
    masks_written = tuple(ext.number(n) for n in written if ext.is_k(n))
    operands = tuple(_operand(ins, i) for i in range(ins.op_count))
    accesses = tuple(_access(ins, m, m.access in reading, m.access in writing) for m in info.used_memory())
    if mnemonic == "lea":
        accesses = (_lea_address(ins),)
    flags, of_tiles = bool(ins.rflags_modified), mnemonic.startswith(("tile", "tdp"))
    return Fact(
        length=ins.len,
        mnemonic=mnemonic,
        text=str(_formatter().format(ins)),
        features=frozenset(features[f] for f in ins.cpuid_features()) - X86_64_FEATURES,
        flow=_flow(ins),
        target=_signed(ins.near_branch_target) if _flow(ins) in ("jump", "branch", "call") else 0,
        operands=operands,
        accesses=accesses,
        gp_written=gp_written,
        gp_read=_values_read(operands, mnemonic),
        vectors_written=tuple(ext.number(n) for n in written if ext.is_vector_register(n)),
        masks_written=masks_written,
        uses_upper=any(operand.kind == "vector" and operand.bits > 128 for operand in operands),
        changes_direction=bool(ins.rflags_modified & DIRECTION_FLAG),
        changes_flags=flags,
        inert=not (gp_written or masks_written or accesses or flags or of_tiles) and _flow(ins) == "next",
        is_string=bool(ins.is_string_instruction),
        is_special=mnemonic in ("vzeroupper", "vzeroall", "tilerelease", "cld", "std", "sfence", "mfence"),
        use=use_of(iced, ins, info, mnemonic),
    )


def _flow(ins: Any) -> str:
    kinds, mnemonics = _decoder().FlowControl, _decoder().Mnemonic
    if ins.is_privileged or _tables()[0][ins.mnemonic] in _SYSTEM or _loads_segment(ins):
        return "trap"
    if ins.flow_control == kinds.XBEGIN_XABORT_XEND:  # an abort goes where XBEGIN says
        return "branch" if ins.mnemonic == mnemonics.XBEGIN else "next"
    return {
        kinds.NEXT: "next", kinds.UNCONDITIONAL_BRANCH: "jump", kinds.CONDITIONAL_BRANCH: "branch",
        kinds.RETURN: "return", kinds.CALL: "call", kinds.INDIRECT_CALL: "indirect call",
        kinds.INDIRECT_BRANCH: "indirect jump",
    }.get(ins.flow_control, "trap")  # fmt: skip


def _loads_segment(ins: Any) -> bool:
    """Whether it writes a segment register, on which addresses depend that nobody follows here."""
    is_segment, reads = _decoder().RegisterExt.is_segment_register, _decoder().OpAccess.READ
    used = _info_factory().info(ins).used_registers()
    return any(is_segment(each.register) and each.access != reads for each in used)


def _number(register: Any) -> int:
    """Of a general-purpose register, by the whole one: iced-x86 counts ah to bh between bl and spl."""
    ext = _decoder().RegisterExt
    return int(ext.number(ext.full_register(register)))


def _operand(ins: Any, index: int) -> DecodedOperand:
    iced = _decoder()
    kind, ext = ins.op_kind(index), iced.RegisterExt
    if kind == iced.OpKind.REGISTER:
        register = ins.op_register(index)
        if ext.is_gpr(register):
            high = _tables()[2][register] in ("ah", "bh", "ch", "dh")
            return DecodedOperand("other") if high else DecodedOperand("gp", _number(register), 8 * ext.size(register))
        if ext.is_vector_register(register):
            return DecodedOperand("vector", ext.number(register), 8 * ext.size(register))
        kind_of = "mask" if ext.is_k(register) else "tile" if ext.is_tmm(register) else "other"
        return DecodedOperand(kind_of, ext.number(register))
    if kind == iced.OpKind.MEMORY:
        return DecodedOperand("memory", bits=8 * iced.MemorySizeExt.size(ins.memory_size))
    if iced.OpKind.IMMEDIATE8 <= kind <= iced.OpKind.IMMEDIATE32TO64:
        return DecodedOperand("number", _signed(ins.immediate(index)))
    return DecodedOperand("other")


def _values_read(operands: tuple[DecodedOperand, ...], mnemonic: str) -> tuple[int, ...]:
    """Registers whose value flows into the result; a plain destination's does not."""
    skip = 1 if mnemonic in ("mov", "movzx", "movsx", "movsxd", "lea") else 0
    return tuple(operand.number for operand in operands[skip:] if operand.kind == "gp")


def _access(ins: Any, memory: Any, reads: bool, writes: bool) -> Access:
    iced = _decoder()
    ext, size, none = iced.RegisterExt, iced.MemorySizeExt, iced.Register.NONE
    element = size.element_size(memory.memory_size)
    return Access(
        base=ext.number(memory.base) if ext.is_gpr(memory.base) else NO_REGISTER,
        index=ext.number(memory.index) if ext.is_gpr(memory.index) else NO_REGISTER,
        scale=memory.scale,
        displacement=_signed(memory.displacement),
        size_bytes=element if size.is_broadcast(memory.memory_size) else size.size(memory.memory_size),
        reads=reads,
        writes=writes,
        in_code=bool(ins.is_ip_rel_memory_operand) and memory.base == none,
        scattered=memory.index != none and not ext.is_gpr(memory.index),
        oddity=_oddity(memory),
        mask=(mask := _mask_of(ins, memory)),
        conditional=mask is None and memory.access in (iced.OpAccess.COND_WRITE, iced.OpAccess.READ_COND_WRITE),
        element_bytes=element,
        tile=_tile_rows(ins) if memory.memory_size == iced.MemorySize.TILE else None,
    )


def _tile_rows(ins: Any) -> TileRows:
    ext = _decoder().RegisterExt
    tile = next(ins.op_register(i) for i in range(ins.op_count) if ext.is_tmm(ins.op_register(i)))
    stride = ext.number(ins.memory_index) if ext.is_gpr(ins.memory_index) else NO_REGISTER
    return TileRows(ext.number(tile), stride, ins.memory_index_scale)


def _oddity(memory: Any) -> str:
    segment, ext = _tables()[2][memory.segment], _decoder().RegisterExt
    if segment in ("fs", "gs"):
        return f"is relative to {segment}"
    if any(ext.is_gpr(register) and ext.size(register) != 8 for register in (memory.base, memory.index)):
        return "has only 32 bits"
    return ""


def _lea_address(ins: Any) -> Access:
    """The address that LEA computes; nothing is touched."""
    ext, in_code = _decoder().RegisterExt, bool(ins.is_ip_rel_memory_operand)
    registers = (-1 if in_code else ins.memory_base, ins.memory_index)
    base, index = (ext.number(r) if r >= 0 and ext.is_gpr(r) else NO_REGISTER for r in registers)
    displacement = ins.ip_rel_memory_address if in_code else ins.memory_displacement
    scale = ins.memory_index_scale
    return Access(
        base=base,
        index=index,
        scale=scale,
        displacement=_signed(displacement),
        size_bytes=0,
        reads=False,
        writes=False,
        in_code=in_code,
        scattered=False,
        oddity="",
        mask=None,
        element_bytes=0,
    )


def _mask_of(ins: Any, memory: Any) -> tuple[str, int] | None:
    """Only moves, and stores, touch as little as their mask says; for others the whole operand counts."""
    iced, mnemonic = _decoder(), _tables()[0][ins.mnemonic]
    stores = memory.access == iced.OpAccess.COND_WRITE and not _COMPRESSES.match(mnemonic)
    if not (mnemonic.startswith(_MASKED_MOVES) or stores):
        return None
    if ins.op_mask != iced.Register.NONE:
        return "mask", iced.RegisterExt.number(ins.op_mask)
    if "maskmov" in mnemonic:
        return "vector", iced.RegisterExt.number(ins.op_register(1))
    return None


def _signed(word: int) -> int:
    return (word & (1 << 64) - 1) - ((word >> 63 & 1) << 64)
