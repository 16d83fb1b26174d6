"""Counting: set bits, leading and trailing zeros, and sums of differences of bytes."""

from collections.abc import Callable

import numpy as np

from asmdnn.emulator.memory import Array
from asmdnn.emulator.operands import Operands, Step

_BITS = np.array([bin(i).count("1") for i in range(256)], np.uint8)
_LANES: dict[str, type] = {"B": np.uint8, "W": np.uint16, "D": np.uint32, "Q": np.uint64}


def population(ops: Operands) -> Step:
    """VPOPCNTB, W, D and Q: how many bits of each lane are set."""
    dtype = _LANES[ops.name[-1]]
    a, width = ops.source(1, dtype, ops.vector_size), np.dtype(dtype).itemsize

    def fill(out: Array) -> None:
        out[:] = _BITS[a().view(np.uint8)].reshape(-1, width).sum(axis=1, dtype=dtype)

    return ops.define(dtype, fill)


def absolute_differences(ops: Operands) -> Step:
    """VPSADBW: of every 8 bytes, the sum of |a - b|, as a lane of 64 bits."""
    a, b = ops.vector(1, np.uint8), ops.source(2, np.uint8, ops.vector_size, masked=False)

    def fill(out: Array) -> None:
        out[:] = np.abs(a.astype(np.int16) - b()).reshape(-1, 8).sum(axis=1, dtype=np.uint64)

    return ops.define(np.uint64, fill)


def count_bits(ops: Operands) -> Step:
    """POPCNT: ZF tells 0, all other flags are cleared."""
    cpu, read, write = ops.cpu, ops.read_int(1), ops.write_int(0)

    def step() -> None:
        value = read()
        write(value.bit_count())
        cpu.zf, cpu.cf, cpu.of, cpu.sf, cpu.pf = value == 0, False, False, False, False

    return step


def count_zeros(ops: Operands) -> Step:
    """LZCNT, TZCNT: all bits of 0, which CF tells; ZF tells the count 0, other flags are undefined."""
    cpu, read, write, bits = ops.cpu, ops.read_int(1), ops.write_int(0), 8 * ops.size(0)
    leading = ops.name == "LZCNT"

    def step() -> None:
        value = read()
        count = bits - value.bit_length() if leading else (value & -value).bit_length() - 1 if value else bits
        write(count)
        cpu.undefine_flags("of", "sf", "pf")
        cpu.cf, cpu.zf = value == 0, count == 0

    return step


TABLE: dict[str, Callable[[Operands], Step]] = {
    **{f"VPOPCNT{lane}": population for lane in _LANES}, "VPSADBW": absolute_differences, "POPCNT": count_bits,
    "LZCNT": count_zeros, "TZCNT": count_zeros,
}  # fmt: skip
