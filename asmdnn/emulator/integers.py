"""General-purpose instructions, with the flags that they define, keep and leave undefined."""

from collections.abc import Callable

from asmdnn.emulator.cpu import RSP, Cpu
from asmdnn.emulator.memory import BITS64
from asmdnn.emulator.operands import Operands, Step
from asmdnn.emulator.wide import multiply

EVEN_PARITY = tuple(bin(i).count("1") % 2 == 0 for i in range(256))


def _result_flags(cpu: Cpu, value: int, bits: int) -> None:
    cpu.zf, cpu.sf, cpu.pf = value == 0, bool(value >> bits - 1), EVEN_PARITY[value & 255]


def _add(cpu: Cpu, a: int, b: int, bits: int, carry: int = 0) -> int:
    total = a + b + carry
    value = total & ((1 << bits) - 1)
    cpu.cf, cpu.of = bool(total >> bits), bool((a ^ value) & (b ^ value) & 1 << bits - 1)
    _result_flags(cpu, value, bits)
    return value


def _sub(cpu: Cpu, a: int, b: int, bits: int, borrow: int = 0) -> int:
    value = (a - b - borrow) & ((1 << bits) - 1)
    cpu.cf, cpu.of = a < b + borrow, bool((a ^ b) & (a ^ value) & 1 << bits - 1)
    _result_flags(cpu, value, bits)
    return value


def _logic(function: Callable[[int, int], int]) -> Callable[[Cpu, int, int, int], int]:
    def apply(cpu: Cpu, a: int, b: int, bits: int) -> int:
        value = function(a, b)
        cpu.cf = cpu.of = False
        _result_flags(cpu, value, bits)
        return value

    return apply


def _inc(cpu: Cpu, a: int, bits: int, delta: int) -> int:
    carry = cpu.cf  # the one flag that INC and DEC keep
    value = _add(cpu, a, 1, bits) if delta > 0 else _sub(cpu, a, 1, bits)
    cpu.cf = carry
    return value


BINARY: dict[str, Callable[[Cpu, int, int, int], int]] = {
    "ADD": _add,
    "ADC": lambda cpu, a, b, bits: _add(cpu, a, b, bits, cpu.flag("cf")),
    "SUB": _sub,
    "CMP": _sub,
    "SBB": lambda cpu, a, b, bits: _sub(cpu, a, b, bits, cpu.flag("cf")),
    "AND": _logic(lambda a, b: a & b),
    "TEST": _logic(lambda a, b: a & b),
    "OR": _logic(lambda a, b: a | b),
    "XOR": _logic(lambda a, b: a ^ b),
}
UNARY: dict[str, Callable[[Cpu, int, int], int]] = {
    "INC": lambda cpu, a, bits: _inc(cpu, a, bits, 1),
    "DEC": lambda cpu, a, bits: _inc(cpu, a, bits, -1),
    "NEG": lambda cpu, a, bits: _sub(cpu, 0, a, bits),
    "NOT": lambda cpu, a, bits: a ^ ((1 << bits) - 1),
}


def binary(ops: Operands) -> Step:
    cpu, function, bits = ops.cpu, BINARY[ops.name], 8 * ops.size(0)
    read_a, read_b, low = ops.read_int(0), ops.read_int(1), (1 << 8 * ops.size(0)) - 1
    if ops.name in ("CMP", "TEST"):

        def compare() -> None:
            function(cpu, read_a(), read_b() & low, bits)

        return compare
    write = ops.write_int(0)

    def step() -> None:
        write(function(cpu, read_a(), read_b() & low, bits))

    return step


def unary(ops: Operands) -> Step:
    cpu, function, bits, read, write = ops.cpu, UNARY[ops.name], 8 * ops.size(0), ops.read_int(0), ops.write_int(0)

    def step() -> None:
        write(function(cpu, read(), bits))

    return step


def mov(ops: Operands) -> Step:
    read, write = ops.read_int(1), ops.write_int(0)

    def step() -> None:
        write(read())

    return step


def mov_extended(ops: Operands) -> Step:
    """MOVSX and MOVSXD; MOVZX is a MOV, because reads are unsigned."""
    read, write, sign = ops.read_int(1), ops.write_int(0), 1 << 8 * ops.size(1) - 1

    def step() -> None:
        write((read() ^ sign) - sign)

    return step


def lea(ops: Operands) -> Step:
    address, write = ops.address(), ops.write_int(0)

    def step() -> None:
        write(address())

    return step


def imul(ops: Operands) -> Step:
    """Two and three operands: CF = OF = the product does not fit; the other flags are undefined."""
    if ops.ins.op_count == 1:
        return multiply(ops)
    cpu, bits = ops.cpu, 8 * ops.size(0)
    first = 0 if ops.ins.op_count == 2 else 1
    read_a, read_b, write = ops.read_int(first), ops.read_int(first + 1), ops.write_int(0)
    sign, low = 1 << bits - 1, (1 << bits) - 1

    def step() -> None:
        product = ((read_a() ^ sign) - sign) * (((read_b() & low) ^ sign) - sign)
        cpu.cf = cpu.of = not -sign <= product < sign
        cpu.undefine_flags("zf", "sf", "pf")
        write(product)

    return step


def shift(ops: Operands) -> Step:
    """SHL, SHR, SAR: a count of zero keeps all flags; OF is defined for a count of one."""
    cpu, name, bits = ops.cpu, ops.name, 8 * ops.size(0)
    read, read_count, write = ops.read_int(0), ops.read_int(1), ops.write_int(0)
    count_mask, sign, low = (63 if bits == 64 else 31), 1 << bits - 1, (1 << bits) - 1

    def step() -> None:
        count, value = read_count() & count_mask, read()
        if not count:
            write(value)  # a 32-bit register's upper half is cleared all the same
            return
        if name in ("SHL", "SAL"):
            result, carry = value << count & low, value << count >> bits & 1
            overflow = bool(result >> bits - 1) != bool(carry)
        else:
            signed = (value ^ sign) - sign if name == "SAR" else value
            result, carry = signed >> count & low, signed >> count - 1 & 1
            overflow = name == "SHR" and bool(value & sign)
        _result_flags(cpu, result, bits)
        cpu.cf = None if count >= bits else bool(carry)
        cpu.of = overflow if count == 1 else None
        write(result)

    return step


def shift_without_flags(ops: Operands) -> Step:
    """SHLX, SHRX, SARX."""
    name, bits = ops.name, 8 * ops.size(0)
    read, read_count, write, sign = ops.read_int(1), ops.read_int(2), ops.write_int(0), 1 << bits - 1

    def step() -> None:
        value, count = read(), read_count() & bits - 1
        signed = (value ^ sign) - sign if name == "SARX" else value
        write(value << count if name == "SHLX" else signed >> count)

    return step


def bzhi(ops: Operands) -> Step:
    """Clear the bits from a position on; CF tells a position past the operand."""
    cpu, bits = ops.cpu, 8 * ops.size(0)
    read, read_position, write = ops.read_int(1), ops.read_int(2), ops.write_int(0)

    def step() -> None:
        value, position = read(), read_position() & 255
        if position < bits:
            value &= (1 << position) - 1
        _result_flags(cpu, value, bits)
        cpu.cf, cpu.of = position >= bits, False
        cpu.undefine_flags("pf")
        write(value)

    return step


def xchg(ops: Operands) -> Step:
    read_a, read_b, write_a, write_b = ops.read_int(0), ops.read_int(1), ops.write_int(0), ops.write_int(1)

    def step() -> None:
        a, b = read_a(), read_b()
        write_a(b)
        write_b(a)

    return step


def xadd(ops: Operands) -> Step:
    cpu, bits = ops.cpu, 8 * ops.size(0)
    read_a, read_b, write_a, write_b = ops.read_int(0), ops.read_int(1), ops.write_int(0), ops.write_int(1)

    def step() -> None:
        a, b = read_a(), read_b()
        write_b(a)
        write_a(_add(cpu, a, b, bits))

    return step


def push(ops: Operands) -> Step:
    gpr, read, store_int = ops.cpu.gpr, ops.read_int(0), ops.cpu.memory.store_int

    def step() -> None:
        value = read()
        gpr[RSP] = (gpr[RSP] - 8) & BITS64
        store_int(gpr[RSP], 8, value)

    return step


def pop(ops: Operands) -> Step:
    gpr, write, load_int = ops.cpu.gpr, ops.write_int(0), ops.cpu.memory.load_int

    def step() -> None:
        value = load_int(gpr[RSP], 8)
        gpr[RSP] = (gpr[RSP] + 8) & BITS64
        write(value)

    return step


TABLE: dict[str, Callable[[Operands], Step]] = {
    **dict.fromkeys(BINARY, binary), **dict.fromkeys(UNARY, unary), **dict.fromkeys(("MOV", "MOVZX"), mov),
    **dict.fromkeys(("MOVSX", "MOVSXD"), mov_extended), **dict.fromkeys(("SHL", "SAL", "SHR", "SAR"), shift),
    **dict.fromkeys(("SHLX", "SHRX", "SARX"), shift_without_flags), "LEA": lea, "IMUL": imul, "BZHI": bzhi,
    "XCHG": xchg, "XADD": xadd, "PUSH": push, "POP": pop,
}  # fmt: skip
