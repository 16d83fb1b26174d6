"""General-purpose instructions do on this CPU what they do in the emulator, defined flags included."""

import numpy as np
import pytest
from iced_x86 import Decoder, Instruction

from asmdnn.emulator.memory import Array, EmulationFault
from tests.emulator.assembling import Label, Mem, argument, assemble, ins
from tests.emulator.native import Twin, missing_features

REGISTERS = ("rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11")
IN, OUT = "rdi", "rdi"  # the frame has only one buffer: registers in, registers out, flags, memory
AT_OUT, AT_FLAGS, AT_MEMORY, SIZE = 64, 128, 192, 256
SETS = {"o": "SETO_RM8", "s": "SETS_RM8", "z": "SETE_RM8", "c": "SETB_RM8", "p": "SETP_RM8"}
ALL = "oszcp"
CONDITIONS = ("O", "NO", "B", "AE", "E", "NE", "BE", "A", "S", "NS", "P", "NP", "L", "GE", "LE", "G")
_LEGACY = {"rax": ("eax", "ax", "al"), "rcx": ("ecx", "cx", "cl"), "rdx": ("edx", "dx", "dl"),
           "rsi": ("esi", "si", "sil")}  # fmt: skip


def part(register: str, bits: int) -> str:
    """The name of the low bits of a 64-bit register."""
    if bits == 64:
        return register
    i = (32, 16, 8).index(bits)
    return _LEGACY[register][i] if register in _LEGACY else register + "dwl"[i]


def program(instruction: Instruction, flags: str) -> bytes:
    """Load the registers, run the instruction, store them and the flags that it defines."""
    return assemble(
        argument("rdi", 0),
        *(ins("MOV_R64_RM64", name, Mem(IN, 8 * i)) for i, name in enumerate(REGISTERS)),
        ins("CMP_RM64_R64", "r8", "r9"),  # so that flags which an instruction keeps are defined
        instruction,
        *(ins("MOV_RM64_R64", Mem(OUT, AT_OUT + 8 * i), name) for i, name in enumerate(REGISTERS)),
        *(ins(SETS[flag], Mem(OUT, AT_FLAGS + i)) for i, flag in enumerate(flags)),
        ins("RETNQ"),
    )


def operands(shape: str, bits: int, rng: np.random.Generator) -> list[str | int | Mem]:
    """Of a shape such as "rm,r,i": registers, memory or immediates of that size; m is memory."""

    def one(kind: str) -> str | int | Mem:
        if kind == "i":
            return int(rng.integers(-128, 128))
        if kind == "m":
            return Mem("rdi", AT_MEMORY + int(rng.integers(0, 40)))
        return part(str(rng.choice(REGISTERS)), bits)

    return [one(kind) for kind in shape.split(",")]


def contents(rng: np.random.Generator) -> Array:
    """Random words of every size, and the values at which carries and overflows change."""
    words = rng.integers(0, 1 << 64, SIZE // 8, np.uint64, endpoint=False)
    edges = np.array([0, 1, 31, 32, 33, 63, 64, *((1 << bits) - delta for bits in (7, 8, 15, 16, 31, 32, 63)
                                                  for delta in (0, 1)), (1 << 64) - 1], np.uint64)  # fmt: skip
    pick = rng.random(len(words)) < 0.5
    words[pick] = rng.choice(edges, int(pick.sum()))
    return words.view(np.uint8)


BINARY = [(f"{name}_{form.format(bits)}", shape, bits, ALL)
          for name in ("ADD", "SUB", "CMP", "AND", "OR", "XOR", "ADC", "SBB") for bits in (8, 16, 32, 64)
          for form, shape in (("RM{0}_R{0}", "r,r"), ("RM{0}_R{0}", "m,r"), ("R{0}_RM{0}", "r,m"),
                              ("RM{}_IMM8", "r,i"))]  # fmt: skip
OTHERS = [
    *((f"{name}_RM{bits}", shape, bits, ALL if name != "NOT" else "") for bits in (8, 16, 32, 64)
      for name in ("INC", "DEC", "NEG", "NOT") for shape in "rm"),
    *((f"TEST_RM{bits}_R{bits}", "r,r", bits, ALL) for bits in (8, 16, 32, 64)),
    *((f"IMUL_R{bits}_RM{bits}", shape, bits, "oc") for bits in (16, 32, 64) for shape in ("r,r", "r,m")),
    *((f"IMUL_R{bits}_RM{bits}_IMM8", "r,r,i", bits, "oc") for bits in (16, 32, 64)),
    *((f"{name}_RM{bits}_1", "r", bits, ALL) for name in ("SHL", "SHR", "SAR") for bits in (8, 16, 32, 64)),
    *((f"{name}_RM{bits}_CL", "r", bits, "") for name in ("SHL", "SHR", "SAR") for bits in (8, 16, 32, 64)),
    *((f"MOV_R{bits}_RM{bits}", shape, bits, ALL) for bits in (8, 16, 32, 64) for shape in ("r,r", "r,m")),
    *((f"MOV_RM{bits}_R{bits}", "m,r", bits, ALL) for bits in (8, 16, 32, 64)),
    *((f"XCHG_RM{bits}_R{bits}", shape, bits, ALL) for bits in (8, 16, 32, 64) for shape in ("r,r", "m,r")),
    *((f"XADD_RM{bits}_R{bits}", shape, bits, ALL) for bits in (8, 16, 32, 64) for shape in ("r,r", "m,r")),
    *((f"VEX_{name}_R{bits}_RM{bits}_R{bits}", shape, bits, ALL) for name in ("SHLX", "SHRX", "SARX")
      for bits in (32, 64) for shape in ("r,r,r", "r,m,r")),
    *((f"POPCNT_R{bits}_RM{bits}", shape, bits, ALL) for bits in (16, 32, 64) for shape in ("r,r", "r,m")),
    *((f"{name}_R{bits}_RM{bits}", shape, bits, "zc") for name in ("LZCNT", "TZCNT") for bits in (16, 32, 64)
      for shape in ("r,r", "r,m")),
    *((f"{name}_RM{bits}_{extra}", shape, bits, "") for name in ("ROL", "ROR") for bits in (8, 16, 32, 64)
      for shape in "rm" for extra in ("1", "CL")),
    *((f"VEX_RORX_R{bits}_RM{bits}_IMM8", shape, bits, ALL) for bits in (32, 64) for shape in ("r,r,i", "r,m,i")),
    *((f"{name}_RM{bits}_R{bits}_IMM8", "r,r,i", bits, "") for name in ("SHLD", "SHRD") for bits in (32, 64)),
    *((f"{name}_RM{bits}_R{bits}", "r,r", bits, "c") for name in ("BT", "BTS", "BTR", "BTC") for bits in (16, 32, 64)),
    *((f"BSWAP_R{bits}", "r", bits, ALL) for bits in (32, 64)),
    *((f"MOVBE_R{bits}_M{bits}", "r,m", bits, ALL) for bits in (16, 32, 64)),
    *((name, "", 0, ALL) for name in ("CBW", "CWDE", "CDQE", "CWD", "CDQ", "CQO", "CLC", "STC", "CMC")),
    *((f"VEX_ANDN_R{bits}_R{bits}_RM{bits}", shape, bits, "oszc") for bits in (32, 64) for shape in ("r,r,r", "r,r,m")),
    *((f"VEX_{name}_R{bits}_RM{bits}", shape, bits, "oszc") for name in ("BLSI", "BLSR", "BLSMSK") for bits in (32, 64)
      for shape in ("r,r", "r,m")),
    *((f"VEX_BEXTR_R{bits}_RM{bits}_R{bits}", "r,r,r", bits, "ozc") for bits in (32, 64)),
    *((f"VEX_{name}_R{bits}_R{bits}_RM{bits}", shape, bits, ALL) for bits in (32, 64)
      for name in ("PDEP", "PEXT", "MULX") for shape in ("r,r,r", "r,r,m")),
    *((f"{name}_RM{bits}", shape, bits, "oc") for name in ("MUL", "IMUL") for bits in (8, 16, 32, 64)
      for shape in "rm"),
    *((f"{name}_R{bits}_RM{bits}", shape, bits, ALL) for name in ("ADCX", "ADOX") for bits in (32, 64)
      for shape in ("r,r", "r,m")),
    *((f"CRC32_R{wide}_RM{bits}", shape, bits, ALL) for wide, bits in ((32, 32), (64, 64)) for shape in ("r,r", "r,m")),
    *((f"VEX_BZHI_R{bits}_RM{bits}_R{bits}", "r,r,r", bits, "oszc") for bits in (32, 64)),
]  # fmt: skip


MNEMONICS = sorted({code.removeprefix("VEX_").split("_")[0] for code, *_ in BINARY + OTHERS})


@pytest.mark.parametrize("mnemonic", MNEMONICS)
def test_arithmetic(mnemonic: str) -> None:
    rng = np.random.default_rng(5)
    for code, shape, bits, flags in BINARY + OTHERS:
        if mnemonic not in code.split("_"):
            continue
        for _ in range(2):
            values = operands(shape, bits, rng) if shape else []
            extra = [1] if code.endswith("_1") else ["cl"] if code.endswith("_CL") else []
            compare(program(ins(code, *values, *extra), flags), rng)


def compare(code: bytes, rng: np.random.Generator, runs: int = 4) -> None:
    twin = Twin(code, {"all": SIZE})
    if lacking := missing_features(code):
        pytest.skip(f"this CPU has no {', '.join(sorted(lacking))}")
    for _ in range(runs):
        native, emulated = twin.run({"all": contents(rng)})
        assert np.array_equal(native["all"], emulated["all"]), [str(i) for i in Decoder(64, code)]


@pytest.mark.parametrize("count", [0, 1, 3, 31, 32, 63])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", ["SHL", "SHR", "SAR"])
def test_shift_flags(name: str, bits: int, count: int) -> None:
    """OF is defined for a count of one; a count of zero, which 32 is for 32 bits, keeps all flags."""
    flags = "szcp" if count % bits > 1 else ALL
    compare(program(ins(f"{name}_RM{bits}_IMM8", part("r10", bits), count), flags), np.random.default_rng(count))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions(condition: str) -> None:
    """CMOVcc, Jcc and SETcc after a comparison."""
    rng = np.random.default_rng(11)
    compare(program(ins(f"CMOV{condition}_R32_RM32", "esi", "r10d"), ALL), rng)
    compare(program(ins(f"CMOV{condition}_R64_RM64", "rsi", Mem("rdi", AT_MEMORY)), ALL), rng)
    compare(program(ins(f"SET{condition}_RM8", "sil"), ALL), rng)
    jump = assemble(
        argument("rdi", 0),
        ins("MOV_R64_RM64", "rax", Mem("rdi")),
        ins("CMP_RM64_R64", Mem("rdi", 8), "rax"),
        ins(f"J{condition}_REL8_64", Label(5)),
        ins("MOV_RM32_IMM32", Mem("rdi", 64), 7),
        ins("RETNQ"),
    )
    compare(jump, rng)


def test_extension_and_addresses() -> None:
    rng = np.random.default_rng(12)
    for code, to, source in (("MOVZX_R32_RM8", 32, 8), ("MOVZX_R64_RM16", 64, 16), ("MOVSX_R32_RM8", 32, 8),
                             ("MOVSX_R64_RM16", 64, 16), ("MOVSXD_R64_RM32", 64, 32)):  # fmt: skip
        compare(program(ins(code, part("r9", to), part("rcx", source)), ALL), rng)
        compare(program(ins(code, part("r9", to), Mem("rdi", AT_MEMORY + 3)), ALL), rng)
    compare(program(ins("LEA_R64_M", "rax", Mem("rcx", -12345, "r8", 8)), ALL), rng)
    compare(program(ins("LEA_R32_M", "eax", Mem("", 77, "r11", 4)), ALL), rng)
    compare(program(ins("MOV_R64_IMM64", "rax", (1 << 62) + 5), ALL), rng)
    compare(program(ins("MOV_RM64_IMM32", "rax", -3), ALL), rng)


def test_stack_and_calls() -> None:
    """PUSH, POP and a call of code in the same blob."""
    code = assemble(
        argument("rdi", 0),
        ins("PUSH_R64", "rbx"),
        ins("MOV_R64_RM64", "rbx", Mem("rdi")),
        ins("CALL_REL32_64", Label(7)),
        ins("MOV_RM64_R64", Mem("rdi", 64), "rbx"),
        ins("POP_R64", "rbx"),
        ins("RETNQ"),
        ins("ADD_RM64_R64", "rbx", "rbx"),
        ins("RETNQ"),
    )
    compare(code, np.random.default_rng(13))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("name", ["DIV", "IDIV"])
def test_division(name: str, bits: int) -> None:
    """Of small numbers with either sign; a quotient that does not fit is a fault here, and a signal on the CPU."""
    rng = np.random.default_rng(bits)
    code = program(ins(f"{name}_RM{bits}", part("r8", bits)), "")
    twin, low = Twin(code, {"all": SIZE}), (1 << bits) - 1
    for _ in range(8):
        data = contents(rng)
        words = data.view(np.uint64)
        divisor = int(rng.integers(3, 100)) * (-1 if name == "IDIV" and rng.random() < 0.5 else 1)
        dividend = int(rng.integers(0, 200)) * (-1 if name == "IDIV" and rng.random() < 0.5 else 1)
        words[0] = dividend & (0xFFFF if bits == 8 else low)
        words[2], words[4] = dividend >> 64 & low, divisor & low
        native, emulated = twin.run({"all": data})
        assert np.array_equal(native["all"], emulated["all"]), (dividend, divisor)


@pytest.mark.parametrize(("a", "b"), [(7, 0), (1 << 40, 3)])
def test_a_quotient_that_does_not_fit(a: int, b: int) -> None:
    code = program(ins("DIV_RM32", "r8d"), "")
    twin = Twin(code, {"all": SIZE})
    twin.buffers["all"].view(np.uint64)[[0, 2, 4]] = a & 0xFFFF_FFFF, a >> 32, b
    with pytest.raises(EmulationFault, match="of which the quotient does not fit 32 bits"):
        twin.machine.call(code, 0x10_0000, twin.frame.ctypes.data)


@pytest.mark.parametrize("count", [1, 3, 31])
@pytest.mark.parametrize("name", ["ROL", "ROR", "SHLD", "SHRD"])
def test_rotation_flags(name: str, count: int) -> None:
    """OF is defined for a count of one."""
    form, extra = (f"{name}_RM64_R64_IMM8", ["r9"]) if name.startswith("SH") else (f"{name}_RM64_IMM8", [])
    instruction = ins(form, "r10", *extra, count)
    compare(program(instruction, "szcp" + "o" * (count == 1)), np.random.default_rng(count))


@pytest.mark.parametrize("name", ["BSF", "BSR"])
def test_scans(name: str) -> None:
    code = program(ins(f"{name}_R64_RM64", "rsi", "r10"), "z")
    twin = Twin(code, {"all": SIZE})
    for value in (1, 6, 1 << 63, 1 << 40 | 8):
        data = np.zeros(SIZE, np.uint8)
        data.view(np.uint64)[6] = value
        native, emulated = twin.run({"all": data})
        assert np.array_equal(native["all"], emulated["all"])
    with pytest.raises(EmulationFault, match="scans 0"):
        twin.run({"all": np.zeros(SIZE, np.uint8)})


@pytest.mark.parametrize("name", ["VUCOMISS", "VCOMISS", "VUCOMISD", "VCOMISD"])
def test_comparisons_of_numbers(name: str) -> None:
    """The flags of less, equal, greater and of a NaN."""
    size = 32 if name.endswith("SS") else 64
    dtype = {32: np.float32, 64: np.float64}[size]
    code = assemble(
        argument("rdi", 0),
        ins("VEX_VMOVUPS_XMM_XMMM128", "xmm1", Mem("rdi")),
        ins(f"VEX_{name}_XMM_XMMM{size}", "xmm1", Mem("rdi", 16)),
        *(ins(SETS[flag], Mem("rdi", AT_FLAGS + i)) for i, flag in enumerate(ALL)),
        ins("VEX_VZEROUPPER"),
        ins("RETNQ"),
    )
    twin = Twin(code, {"all": SIZE})
    for a, b in ((1, 2), (2, 1), (2, 2), (np.nan, 1), (1, np.nan), (0.0, -0.0), (-np.inf, np.inf)):
        data = np.zeros(SIZE, np.uint8)
        data.view(dtype)[0], data.view(dtype)[16 * 8 // size] = a, b
        native, emulated = twin.run({"all": data})
        assert np.array_equal(native["all"], emulated["all"]), (a, b)
