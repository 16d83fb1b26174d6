"""Lanes that a mask chooses, side by side; and which lanes are equal to one before."""

from collections.abc import Callable

import numpy as np

from asmdnn.emulator.memory import Array
from asmdnn.emulator.operands import Operands, Step

_LANES: dict[str, type] = {"B": np.uint8, "W": np.uint16, "D": np.uint32, "Q": np.uint64, "S": np.uint32}


def _dtype(ops: Operands) -> type:
    return np.uint64 if ops.name.endswith("PD") else _LANES[ops.name[-1]]


def compress(ops: Operands) -> Step:
    """VPCOMPRESSD and its family: the chosen lanes of operand 1 are the first of operand 0; memory gets no others."""
    dtype = _dtype(ops)
    values, itemsize = ops.vector(1, dtype), np.dtype(dtype).itemsize
    active = ops.active(len(values))

    def chosen() -> Array:
        return values.copy() if active is None else values[active()]

    if ops.is_memory(0):
        address, store = ops.address(), ops.cpu.memory.store

        def to_memory() -> None:
            found = chosen()
            if len(found):
                store(address(), len(found) * itemsize, dtype, len(found))[:] = found

        return to_memory
    out, zeroing, cpu, number, size = ops.vector(0, dtype), ops.ins.zeroing_masking, ops.cpu, ops.number(0), ops.size(0)

    def step() -> None:
        found = chosen()
        out[: len(found)] = found
        if zeroing:
            out[len(found) :] = 0
        cpu.settle(number, size)

    return step


def expand(ops: Operands) -> Step:
    """VPEXPANDD and its family: the first of operand 1 are the chosen lanes; of memory no others are read."""
    dtype = _dtype(ops)
    count, itemsize = ops.vector_size // np.dtype(dtype).itemsize, np.dtype(dtype).itemsize
    active = ops.active(count)
    if ops.is_memory(1):
        address, load = ops.address(), ops.cpu.memory.load

        def first(n: int) -> Array:
            return load(address(), n * itemsize, dtype, n) if n else np.empty(0, dtype)
    else:
        values = ops.vector(1, dtype)

        def first(n: int) -> Array:
            return values[:n].copy()

    def fill(out: Array) -> None:
        lanes = np.ones(count, bool) if active is None else active()
        out[lanes] = first(int(lanes.sum()))

    return ops.define(dtype, fill)


def conflicts(ops: Operands) -> Step:
    """VPCONFLICTD and Q: for each lane a bit for every lane before it that is equal."""
    dtype = _dtype(ops)
    a = ops.source(1, dtype, ops.vector_size, masked=False)

    def fill(out: Array) -> None:
        values = a().tolist()
        out[:] = [sum(1 << j for j in range(i) if values[j] == x) for i, x in enumerate(values)]

    return ops.define(dtype, fill)


TABLE: dict[str, Callable[[Operands], Step]] = {
    **{f"VPCOMPRESS{lane}": compress for lane in "BWDQ"},
    **{f"VPEXPAND{lane}": expand for lane in "BWDQ"},
    **{f"V{name}P{kind}": build for name, build in (("COMPRESS", compress), ("EXPAND", expand)) for kind in "SD"},
    "VPCONFLICTD": conflicts, "VPCONFLICTQ": conflicts,
}  # fmt: skip
