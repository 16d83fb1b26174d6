"""Mask registers, and the instructions that touch memory lane by lane: gathers and scatters."""

from collections.abc import Callable

import numpy as np
from iced_x86 import RegisterExt

from asmdnn.emulator.cpu import Cpu, mask_array
from asmdnn.emulator.memory import BITS64
from asmdnn.emulator.operands import Operands, Step

_BITS = {"B": 8, "W": 16, "D": 32, "Q": 64}
_LOGIC: dict[str, Callable[[int, int], int]] = {
    "KAND": lambda a, b: a & b, "KANDN": lambda a, b: ~a & b, "KOR": lambda a, b: a | b,
    "KXOR": lambda a, b: a ^ b, "KXNOR": lambda a, b: ~(a ^ b), "KADD": lambda a, b: a + b,
}  # fmt: skip


def _low(ops: Operands) -> int:
    """The bits that an instruction whose name ends in B, W, D or Q works on."""
    return (1 << _BITS[ops.name[-1]]) - 1


def _is_k(ops: Operands, i: int) -> bool:
    return ops.is_register(i) and bool(RegisterExt.is_k(ops.ins.op_register(i)))


def kmov(ops: Operands) -> Step:
    """Between mask registers, general registers and memory; what is above the moved bits becomes zero."""
    k, low = ops.cpu.k, _low(ops)
    if not _is_k(ops, 0):
        write, source = ops.write_int(0), ops.number(1)

        def store() -> None:
            write(k[source] & low)

        return store
    target = ops.number(0)
    if _is_k(ops, 1):
        from_mask = ops.number(1)

        def copy() -> None:
            k[target] = k[from_mask] & low

        return copy
    read = ops.read_int(1)

    def load() -> None:
        k[target] = read() & low

    return load


def logic(ops: Operands) -> Step:
    k, low, function = ops.cpu.k, _low(ops), _LOGIC[ops.name[:-1]]
    target, a, b = (ops.number(i) for i in range(3))

    def step() -> None:
        k[target] = function(k[a], k[b]) & low

    return step


def knot(ops: Operands) -> Step:
    k, low, target, source = ops.cpu.k, _low(ops), ops.number(0), ops.number(1)

    def step() -> None:
        k[target] = ~k[source] & low

    return step


def kshift(ops: Operands) -> Step:
    k, low, target, source, count = ops.cpu.k, _low(ops), ops.number(0), ops.number(1), ops.immediate()
    left = ops.name.startswith("KSHIFTL")

    def step() -> None:
        value = k[source] & low
        k[target] = value << count & low if left else value >> count

    return step


def kunpack(ops: Operands) -> Step:
    """Operand 1's low half above operand 2's."""
    half = {"KUNPCKBW": 8, "KUNPCKWD": 16, "KUNPCKDQ": 32}[ops.name]
    k, low = ops.cpu.k, (1 << half) - 1
    target, a, b = (ops.number(i) for i in range(3))

    def step() -> None:
        k[target] = (k[a] & low) << half | k[b] & low

    return step


def _set_flags(cpu: Cpu, zf: bool, cf: bool) -> None:
    cpu.zf, cpu.cf = zf, cf
    cpu.of = cpu.sf = cpu.pf = False


def kortest(ops: Operands) -> Step:
    """ZF: the union is empty; CF: it is full."""
    cpu, low, a, b = ops.cpu, _low(ops), ops.number(0), ops.number(1)

    def step() -> None:
        value = (cpu.k[a] | cpu.k[b]) & low
        _set_flags(cpu, value == 0, value == low)

    return step


def ktest(ops: Operands) -> Step:
    """ZF: the intersection is empty; CF: operand 1 has nothing outside operand 0."""
    cpu, low, a, b = ops.cpu, _low(ops), ops.number(0), ops.number(1)

    def step() -> None:
        first, second = cpu.k[a], cpu.k[b]
        _set_flags(cpu, not first & second & low, not ~first & second & low)

    return step


def gather(ops: Operands) -> Step:
    """VGATHERDPS, VPGATHERDD: the active lanes, after which the mask (a vector, or k for EVEX) is zero."""
    cpu, out, load, address = ops.cpu, ops.vector(0, np.uint32), ops.cpu.memory.load, ops.address()
    lanes, size, number = len(out), ops.size(0), ops.number(0)
    index, scale = _indices(ops, lanes)
    masks, by_vector = cpu.k, ops.ins.op_count == 3
    mask = ops.number(2) if by_vector else RegisterExt.number(ops.ins.op_mask)
    sign = cpu.vector(mask, np.int32, lanes)

    def step() -> None:
        base = address()
        active = sign < 0 if by_vector else mask_array(masks[mask], lanes)
        for i in active.nonzero()[0].tolist():
            out[i : i + 1] = load((base + index[i].item() * scale) & BITS64, 4, np.uint32, 1)
        cpu.settle(number, size)
        if by_vector:
            sign.fill(0)
            cpu.settle(mask, size)
        else:
            masks[mask] = 0

    return step


def scatter(ops: Operands) -> Step:
    """VSCATTERDPS, VPSCATTERDD: the active lanes in order, after which the mask is zero."""
    values, store, address, masks = ops.vector(1, np.uint32), ops.cpu.memory.store, ops.address(), ops.cpu.k
    index, scale = _indices(ops, len(values))
    mask = RegisterExt.number(ops.ins.op_mask)

    def step() -> None:
        base = address()
        for i in mask_array(masks[mask], len(values)).nonzero()[0].tolist():
            store((base + index[i].item() * scale) & BITS64, 4, np.uint32, 1)[:] = values[i]
        masks[mask] = 0

    return step


def _indices(ops: Operands, lanes: int) -> tuple[np.ndarray, int]:
    register = ops.ins.memory_index
    return ops.cpu.vector(RegisterExt.number(register), np.int32, lanes), int(ops.ins.memory_index_scale)


TABLE: dict[str, Callable[[Operands], Step]] = {
    **{f"KMOV{width}": kmov for width in _BITS}, **{f"KNOT{width}": knot for width in _BITS},
    **{f"{name}{width}": logic for name in _LOGIC for width in _BITS},
    **{f"KSHIFT{side}{width}": kshift for side in "LR" for width in _BITS},
    **{f"KORTEST{width}": kortest for width in _BITS}, **{f"KTEST{width}": ktest for width in _BITS},
    "KUNPCKBW": kunpack, "KUNPCKWD": kunpack, "KUNPCKDQ": kunpack, "VGATHERDPS": gather, "VPGATHERDD": gather,
    "VSCATTERDPS": scatter, "VPSCATTERDD": scatter,
}  # fmt: skip
