"""Vector moves: whole and scalar, masked, broadcast; and the two instructions that clear registers."""

from collections.abc import Callable

import numpy as np
from iced_x86 import RegisterExt

from asmdnn.emulator.memory import Array, EmulationFault
from asmdnn.emulator.operands import Operands, Step

_UNSIGNED: dict[int, type] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

# Bytes of a mask lane of the whole-vector moves.
WHOLE = {"VMOVUPS": 4, "VMOVAPS": 4, "VMOVUPD": 8, "VMOVAPD": 8, "VMOVDQU": 4, "VMOVDQA": 4, "VMOVDQU8": 1,
         "VMOVDQU16": 2, "VMOVDQU32": 4, "VMOVDQU64": 8, "VMOVDQA32": 4, "VMOVDQA64": 8, "VMOVNTPS": 4,
         "VMOVNTPD": 8, "VMOVNTDQ": 4, "VMOVNTDQA": 4, "VLDDQU": 4}  # fmt: skip
ALIGNED = {"VMOVAPS", "VMOVAPD", "VMOVDQA", "VMOVDQA32", "VMOVDQA64", "VMOVNTPS", "VMOVNTPD", "VMOVNTDQ", "VMOVNTDQA"}
# Bytes of (a mask lane, the piece that is repeated).
BROADCASTS = {"VBROADCASTSS": (4, 4), "VBROADCASTSD": (8, 8), "VBROADCASTF128": (4, 16), "VBROADCASTI128": (4, 16),
              "VBROADCASTF32X2": (4, 8), "VBROADCASTI32X2": (4, 8), "VBROADCASTF32X4": (4, 16),
              "VBROADCASTI32X4": (4, 16), "VBROADCASTF64X2": (8, 16), "VBROADCASTI64X2": (8, 16),
              "VBROADCASTF32X8": (4, 32), "VBROADCASTI32X8": (4, 32), "VBROADCASTF64X4": (8, 32),
              "VBROADCASTI64X4": (8, 32), "VPBROADCASTB": (1, 1), "VPBROADCASTW": (2, 2), "VPBROADCASTD": (4, 4),
              "VPBROADCASTQ": (8, 8)}  # fmt: skip


def whole(ops: Operands) -> Step:
    dtype, size = _UNSIGNED[WHOLE[ops.name]], ops.vector_size
    if ops.name in ALIGNED and (ops.is_memory(0) or ops.is_memory(1)):
        return _aligned(ops, size, _whole(ops, dtype, size))
    return _whole(ops, dtype, size)


def _whole(ops: Operands, dtype: type, size: int) -> Step:
    source = ops.source(1, dtype, size)
    if ops.is_register(0) or ops.active(1) is not None:

        def fill(out: Array) -> None:
            out[:] = source()

        return ops.define(dtype, fill)
    address, store, view, count = ops.address(), ops.cpu.memory.store, source(), size // np.dtype(dtype).itemsize

    def step() -> None:
        store(address(), size, dtype, count)[:] = view

    return step


def _aligned(ops: Operands, size: int, move: Step) -> Step:
    address = ops.address()

    def step() -> None:
        if address() % size:
            raise EmulationFault(f"needs an address aligned to {size} bytes, not {address():#x}")
        move()

    return step


def scalar(ops: Operands) -> Step:
    """VMOVSS, VMOVSD, VMOVSH: loads clear the rest of the register, with three registers it is that of operand 1."""
    dtype = _UNSIGNED[{"VMOVSH": 2, "VMOVSS": 4, "VMOVSD": 8}[ops.name]]
    itemsize = np.dtype(dtype).itemsize
    low = ops.source(ops.ins.op_count - 1, dtype, itemsize)
    if ops.ins.op_count == 3:
        return ops.define_low(dtype, low)

    def fill(out: Array) -> None:
        out[:] = low()

    return ops.define(dtype, fill, itemsize if ops.is_register(0) else None)


def with_integer(ops: Operands) -> Step:
    """VMOVD, VMOVQ: between the low lane of a vector and a general register or memory."""
    size = 4 if ops.name == "VMOVD" else 8
    dtype = _UNSIGNED[size]
    if ops.is_register(0) and RegisterExt.is_vector_register(ops.ins.op_register(0)):
        if ops.is_register(1) and RegisterExt.is_gpr(ops.ins.op_register(1)):
            read = ops.read_int(1)
            return ops.define(dtype, lambda out: out.fill(read()), size)
        low = ops.source(1, dtype, size)

        def fill(out: Array) -> None:
            out[:] = low()

        return ops.define(dtype, fill, size)
    write, lane = ops.write_int(0), ops.vector(1, dtype, size)

    def step() -> None:
        write(lane.item())

    return step


def signs(ops: Operands) -> Step:
    """VMOVMSKPS: the sign of every lane as a bit."""
    write, lanes = ops.write_int(0), ops.vector(1, np.int32)

    def step() -> None:
        write(sum(1 << i for i in (lanes < 0).nonzero()[0].tolist()))

    return step


def broadcast(ops: Operands) -> Step:
    """Every piece of operand 0 is the first piece of operand 1."""
    lane_size, piece = BROADCASTS[ops.name]
    dtype, size = _UNSIGNED[lane_size], ops.size(0)
    if ops.is_register(1):
        if RegisterExt.is_gpr(ops.ins.op_register(1)):
            read, low = ops.read_int(1), (1 << 8 * lane_size) - 1
            return ops.define(dtype, lambda out: out.fill(read() & low))
        view = ops.vector(1, dtype, piece)
        if piece == lane_size:
            return ops.define(dtype, lambda out: out.fill(view.item()))
        return ops.define(dtype, lambda out: _repeat(view.copy(), out))
    address, load, count = ops.address(), ops.cpu.memory.load, piece // lane_size
    active = ops.active(size // lane_size)
    if active is None and count == 1:
        return ops.define(dtype, lambda out: out.fill(load(address(), piece, dtype, 1).item()))

    def fill(out: Array) -> None:
        if active is None or active().any():
            _repeat(load(address(), piece, dtype, count), out)

    return ops.define(dtype, fill)


def _repeat(piece: Array, out: Array) -> None:
    out.reshape(-1, len(piece))[:] = piece


def masked_by_vector(ops: Operands) -> Step:
    """VMASKMOVPS, VPMASKMOVD: the lanes whose mask has its sign bit set; others load as zero and store nothing."""
    size, memory = ops.vector_size, ops.cpu.memory
    address, sign = ops.address(), ops.vector(1, np.int32)
    if ops.is_memory(0):
        values = ops.vector(2, np.uint32)
        return lambda: memory.store_masked(address(), sign < 0, values)

    def fill(out: Array) -> None:
        memory.load_masked(address(), sign < 0, out)

    return ops.define(np.uint32, fill, size)


def zero_upper(ops: Operands) -> Step:
    return ops.cpu.zero_upper


def zero_all(ops: Operands) -> Step:
    cpu = ops.cpu

    def step() -> None:
        cpu.vectors[:16] = 0
        cpu.width[:16] = [16] * 16

    return step


TABLE: dict[str, Callable[[Operands], Step]] = {
    **dict.fromkeys(WHOLE, whole), **dict.fromkeys(BROADCASTS, broadcast),
    **dict.fromkeys(("VMOVSS", "VMOVSD", "VMOVSH"), scalar),
    "VMOVD": with_integer, "VMOVQ": with_integer, "VMASKMOVPS": masked_by_vector, "VPMASKMOVD": masked_by_vector,
    "VZEROUPPER": zero_upper, "VZEROALL": zero_all, "VMOVMSKPS": signs,
}  # fmt: skip
