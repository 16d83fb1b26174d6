"""Single elements of xmm registers: VPINSRB/W/D/Q from, and VPEXTRB/W/D/Q to, a general register or memory."""

from collections.abc import Callable

import numpy as np

from asmdnn.emulator.memory import Array
from asmdnn.emulator.operands import Operands, Step

_TYPES: dict[str, type] = {"B": np.uint8, "W": np.uint16, "D": np.uint32, "Q": np.uint64}


def insert(ops: Operands) -> Step:
    dtype = _TYPES[ops.name[-1]]
    size = np.dtype(dtype).itemsize
    a, lane, low = ops.vector(1, dtype, 16), ops.immediate() % (16 // size), (1 << 8 * size) - 1
    if ops.is_memory(2):
        address, load = ops.address(), ops.cpu.memory.load

        def read() -> int:
            return int(load(address(), size, dtype, 1).item())
    else:
        read = ops.read_int(2)

    def fill(out: Array) -> None:
        out[:] = a
        out[lane] = read() & low

    return ops.define(dtype, fill, 16)


def extract(ops: Operands) -> Step:
    dtype = _TYPES[ops.name[-1]]
    size = np.dtype(dtype).itemsize
    a, lane = ops.vector(1, dtype, 16), ops.immediate() % (16 // size)
    if ops.is_register(0):
        write = ops.write_int(0)
        return lambda: write(a[lane].item())
    address, store = ops.address(), ops.cpu.memory.store

    def step() -> None:
        store(address(), size, dtype, 1)[0] = a[lane]

    return step


TABLE: dict[str, Callable[[Operands], Step]] = {
    **{f"VPINSR{kind}": insert for kind in _TYPES},
    **{f"VPEXTR{kind}": extract for kind in _TYPES},
}
