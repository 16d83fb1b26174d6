"""General-purpose instructions on two words: products, quotients, sign extension, double shifts, chains of carries."""

from collections.abc import Callable

from asmdnn.emulator.memory import EmulationFault
from asmdnn.emulator.operands import Operands, Step

RAX, RDX = 0, 2


def _signed(value: int, bits: int) -> int:
    return (value & (1 << bits) - 1 ^ 1 << bits - 1) - (1 << bits - 1)


def double_shift(ops: Operands) -> Step:
    """SHLD, SHRD: bits of operand 1 come in."""
    cpu, bits, left = ops.cpu, 8 * ops.size(0), ops.name == "SHLD"
    if bits == 16:
        ops.unsupported("16 bits")
    read, read_in, read_count, write = ops.read_int(0), ops.read_int(1), ops.read_int(2), ops.write_int(0)

    def step() -> None:
        count, value = read_count() & bits - 1, read()
        if not count:
            write(value)
            return
        both = value << bits | read_in() if left else read_in() << bits | value
        shifted = both << count >> bits if left else both >> count
        result = shifted & (1 << bits) - 1
        carry = value >> bits - count if left else value >> count - 1
        cpu.cf, cpu.zf, cpu.sf = bool(carry & 1), result == 0, bool(result >> bits - 1)
        cpu.pf = (result & 255).bit_count() % 2 == 0
        cpu.of = (result ^ value) >> bits - 1 & 1 == 1 if count == 1 else None
        write(result)

    return step


def sign_extend(ops: Operands) -> Step:
    """CBW, CWDE, CDQE within rax; CWD, CDQ, CQO into rdx."""
    gpr, name = ops.cpu.gpr, ops.name
    bits = {"CBW": 8, "CWDE": 16, "CDQE": 32, "CWD": 16, "CDQ": 32, "CQO": 64}[name]
    into, size = (RAX, 2 * bits) if name in ("CBW", "CWDE", "CDQE") else (RDX, bits)
    keep = 0xFFFF_FFFF_FFFF_0000 if size == 16 else 0

    def step() -> None:
        value = _signed(gpr[RAX], bits) >> (bits if into == RDX else 0)
        gpr[into] = gpr[into] & keep | value & (1 << size) - 1

    return step


def multiply(ops: Operands) -> Step:
    """MUL, and IMUL of one operand: rdx above rax, or ax; CF = OF: the upper half says something."""
    cpu, gpr, bits, read = ops.cpu, ops.cpu.gpr, 8 * ops.size(0), ops.read_int(0)
    low, signed = (1 << bits) - 1, ops.name == "IMUL"
    upper = 0 if bits >= 32 else ~low

    def step() -> None:
        a, b = gpr[RAX] & low, read()
        product = _signed(a, bits) * _signed(b, bits) if signed else a * b
        fits = product == (_signed(product, bits) if signed else product & low)
        cpu.cf = cpu.of = not fits
        cpu.undefine_flags("zf", "sf", "pf")
        if bits == 8:
            gpr[RAX] = gpr[RAX] & ~0xFFFF | product & 0xFFFF
            return
        gpr[RAX] = gpr[RAX] & upper | product & low
        gpr[RDX] = gpr[RDX] & upper | product >> bits & low

    return step


def multiply_wide(ops: Operands) -> Step:
    """MULX: operand 0 is the upper half of edx or rdx times operand 2, operand 1 the lower; no flags."""
    gpr, bits, read = ops.cpu.gpr, 8 * ops.size(0), ops.read_int(2)
    high, low = ops.write_int(0), ops.write_int(1)

    def step() -> None:
        product = (gpr[RDX] & (1 << bits) - 1) * read()
        low(product)
        high(product >> bits)

    return step


def divide(ops: Operands) -> Step:
    """DIV, IDIV: rdx above rax, or ax; a quotient that does not fit is a fault."""
    cpu, gpr, bits, read, signed = ops.cpu, ops.cpu.gpr, 8 * ops.size(0), ops.read_int(0), ops.name == "IDIV"
    low = (1 << bits) - 1
    upper = 0 if bits >= 32 else ~low

    def step() -> None:
        a = gpr[RAX] & 0xFFFF if bits == 8 else (gpr[RDX] & low) << bits | gpr[RAX] & low
        b = read()
        if signed:
            a, b = _signed(a, 2 * bits), _signed(b, bits)
        quotient = abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1) if b else 0
        if not b or not (-(1 << bits - 1) <= quotient < 1 << bits - 1 if signed else quotient <= low):
            raise EmulationFault(f"divides {a} by {b}, of which the quotient does not fit {bits} bits")
        rest = a - quotient * b
        cpu.undefine_flags("cf", "of", "zf", "sf", "pf")
        if bits == 8:
            gpr[RAX] = gpr[RAX] & ~0xFFFF | (rest & 255) << 8 | quotient & 255
            return
        gpr[RAX] = gpr[RAX] & upper | quotient & low
        gpr[RDX] = gpr[RDX] & upper | rest & low

    return step


def add_chain(ops: Operands) -> Step:
    """ADCX with CF alone, ADOX with OF alone."""
    cpu, bits, flag = ops.cpu, 8 * ops.size(0), "cf" if ops.name == "ADCX" else "of"
    read_a, read_b, write = ops.read_int(0), ops.read_int(1), ops.write_int(0)

    def step() -> None:
        total = read_a() + read_b() + cpu.flag(flag)
        setattr(cpu, flag, bool(total >> bits))
        write(total)

    return step


TABLE: dict[str, Callable[[Operands], Step]] = {
    "SHLD": double_shift, "SHRD": double_shift,
    **dict.fromkeys(("CBW", "CWDE", "CDQE", "CWD", "CDQ", "CQO"), sign_extend),
    "MUL": multiply, "MULX": multiply_wide, "DIV": divide, "IDIV": divide, "ADCX": add_chain, "ADOX": add_chain,
}  # fmt: skip
