"""General-purpose instructions on bits: rotations, scans, tests, BMI, a checksum."""

from collections.abc import Callable

from asmdnn.emulator.cpu import Cpu
from asmdnn.emulator.memory import EmulationFault
from asmdnn.emulator.operands import Operands, Step

POLYNOMIAL = 0x82F6_3B78  # of CRC32C, the lowest power in the highest bit


def _set(cpu: Cpu, **flags: bool | None) -> None:
    for name, value in flags.items():
        setattr(cpu, name, value)


def rotate(ops: Operands) -> Step:
    """ROL, ROR: CF is the bit that came around; OF is defined for a count of one; a count of 0 keeps both."""
    cpu, bits, left = ops.cpu, 8 * ops.size(0), ops.name == "ROL"
    read, read_count, write = ops.read_int(0), ops.read_int(1), ops.write_int(0)

    def step() -> None:
        masked = read_count() & (63 if bits == 64 else 31)
        count, value = masked % bits, read()
        up = count if left else (bits - count) % bits
        value = (value << up | value >> bits - up) & (1 << bits) - 1
        write(value)
        if masked:
            top, next_top = value >> bits - 1 & 1, value >> bits - 2 & 1
            cpu.cf = bool(value & 1 if left else top)
            cpu.of = (top != (value & 1) if left else top != next_top) if masked == 1 else None

    return step


def rotate_without_flags(ops: Operands) -> Step:
    """RORX."""
    read, write, bits = ops.read_int(1), ops.write_int(0), 8 * ops.size(0)
    count = ops.immediate() % bits

    def step() -> None:
        value = read()
        write(value >> count | value << bits - count)

    return step


def scan(ops: Operands) -> Step:
    """BSF, BSR: the place of the lowest or highest set bit; of 0 the result is undefined, and ZF says so."""
    cpu, read, write, lowest = ops.cpu, ops.read_int(1), ops.write_int(0), ops.name == "BSF"

    def step() -> None:
        value = read()
        cpu.undefine_flags("cf", "of", "sf", "pf")
        cpu.zf = value == 0
        if value == 0:
            raise EmulationFault("scans 0, of which the result is undefined: use TZCNT or LZCNT")
        write((value & -value).bit_length() - 1 if lowest else value.bit_length() - 1)

    return step


def bit_test(ops: Operands) -> Step:
    """BT, BTS, BTR, BTC of a register, or of memory by an immediate: CF is the bit before."""
    if ops.is_memory(0) and ops.is_register(1):
        ops.unsupported("memory and a register, which may reach far beyond the operand")
    cpu, bits, name = ops.cpu, 8 * ops.size(0), ops.name
    read, place = ops.read_int(0), ops.read_int(1)
    write = ops.write_int(0) if name != "BT" else None

    def step() -> None:
        value, bit = read(), 1 << place() % bits
        cpu.cf = bool(value & bit)
        cpu.undefine_flags("of", "sf", "pf")
        if write:
            write({"BTS": value | bit, "BTR": value & ~bit, "BTC": value ^ bit}[name])

    return step


def byte_swap(ops: Operands) -> Step:
    """BSWAP; MOVBE on its way from or to memory."""
    size = ops.size(0)
    if size == 2 and ops.name == "BSWAP":
        ops.unsupported("16 bits, of which the result is undefined")
    read, write = ops.read_int(ops.ins.op_count - 1), ops.write_int(0)
    return lambda: write(int.from_bytes(read().to_bytes(size, "little"), "big"))


def _logic_flags(cpu: Cpu, value: int, bits: int, carry: bool) -> None:
    _set(cpu, zf=value == 0, sf=bool(value >> bits - 1), cf=carry, of=False, pf=None)


def and_not(ops: Operands) -> Step:
    """ANDN."""
    cpu, bits, read_a, read_b, write = ops.cpu, 8 * ops.size(0), ops.read_int(1), ops.read_int(2), ops.write_int(0)

    def step() -> None:
        value = ~read_a() & read_b()
        _logic_flags(cpu, value, bits, carry=False)
        write(value)

    return step


LOWEST: dict[str, Callable[[int], int]] = {
    "BLSI": lambda x: x & -x, "BLSR": lambda x: x & x - 1, "BLSMSK": lambda x: x ^ x - 1,
}  # fmt: skip


def lowest_bit(ops: Operands) -> Step:
    """BLSI, BLSR, BLSMSK: CF tells a source of 0, of BLSI the opposite."""
    cpu, bits, function, read, write = ops.cpu, 8 * ops.size(0), LOWEST[ops.name], ops.read_int(1), ops.write_int(0)

    def step() -> None:
        source = read()
        value = function(source) & (1 << bits) - 1
        _logic_flags(cpu, value, bits, carry=(source == 0) != (ops.name == "BLSI"))
        write(value)

    return step


def extract_bits(ops: Operands) -> Step:
    """BEXTR: from the bit that operand 2's low byte says, as many as its next byte says."""
    cpu, read, control, write = ops.cpu, ops.read_int(1), ops.read_int(2), ops.write_int(0)

    def step() -> None:
        how = control()
        value = read() >> (how & 255) & (1 << (how >> 8 & 255)) - 1
        _set(cpu, zf=value == 0, cf=False, of=False, sf=None, pf=None)
        write(value)

    return step


def by_mask(ops: Operands) -> Step:
    """PDEP spreads the low bits over the mask's places, PEXT gathers the bits there."""
    read, read_mask, write, spreads = ops.read_int(1), ops.read_int(2), ops.write_int(0), ops.name == "PDEP"

    def step() -> None:
        value, mask = read(), read_mask()
        places = [i for i in range(64) if mask >> i & 1]
        pairs = ((i, p) if spreads else (p, i) for i, p in enumerate(places))
        write(sum((value >> source & 1) << target for source, target in pairs))

    return step


def carry(ops: Operands) -> Step:
    """CLC, STC, CMC."""
    cpu, name = ops.cpu, ops.name

    def step() -> None:
        cpu.cf = name == "STC" if name != "CMC" else not cpu.flag("cf")

    return step


def checksum(ops: Operands) -> Step:
    """CRC32: the polynomial of Castagnoli."""
    size, read, read_data, write = ops.size(1), ops.read_int(0), ops.read_int(1), ops.write_int(0)

    def step() -> None:
        value = (read() & 0xFFFF_FFFF) ^ read_data()
        for _ in range(8 * size):
            value = value >> 1 ^ POLYNOMIAL * (value & 1)
        write(value)

    return step


TABLE: dict[str, Callable[[Operands], Step]] = {
    "ROL": rotate, "ROR": rotate, "RORX": rotate_without_flags,
    "BSF": scan, "BSR": scan, **dict.fromkeys(("BT", "BTS", "BTR", "BTC"), bit_test), "BSWAP": byte_swap,
    "MOVBE": byte_swap, "ANDN": and_not, **dict.fromkeys(LOWEST, lowest_bit), "BEXTR": extract_bits,
    "PDEP": by_mask, "PEXT": by_mask,
    **dict.fromkeys(("CLC", "STC", "CMC"), carry), "CRC32": checksum,
}  # fmt: skip
