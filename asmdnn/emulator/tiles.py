"""Tile registers (AMX): eight of up to 16 rows of 64 bytes, whose sizes LDTILECFG sets for palette 1.

TDPBF16PS has two chains of fused multiply-adds for each element, over the even and over the odd k, both from zero;
their sum is added to what was there.  Every step rounds to nearest even, and denormal inputs and results count as zero,
whatever MXCSR says.  So measured on hardware, bit for bit.  Products of bytes are exact, their sums modulo 2^32.
"""

from collections.abc import Callable

import numpy as np
from iced_x86 import Register, RegisterExt

from asmdnn.emulator.cpu import Cpu, TileState
from asmdnn.emulator.dots import add_product, flushed, lower, upper
from asmdnn.emulator.memory import BITS64, Array, EmulationFault
from asmdnn.emulator.operands import Operands, Step

TILES, MOST_ROWS, ROW_BYTES, GROUP_BYTES = 8, 16, 64, 4
CONFIG_BYTES = 64
RESERVED = (*range(2, 16), *range(32, 48), *range(56, 64))  # of palette 1, which has 8 of the 16 tiles
BYTES: dict[str, type] = {"S": np.int8, "U": np.uint8}


def shapes_of(config: bytes) -> tuple[tuple[int, int], ...]:
    """(rows, bytes of a row) of every tile.  Raises EmulationFault for what LDTILECFG answers with #GP."""
    if config[0] != 1:
        raise EmulationFault(f"configures tiles of palette {config[0]}: there is only palette 1 (#GP)")
    if any(config[i] for i in RESERVED):
        raise EmulationFault("configures tiles with reserved bytes that are not 0 (#GP)")
    words = np.frombuffer(config, np.uint16, TILES, 16).tolist()
    shapes = tuple(zip(config[48 : 48 + TILES], words, strict=True))
    for number, (rows, row_bytes) in enumerate(shapes):
        if rows > MOST_ROWS or row_bytes > ROW_BYTES or (rows == 0) != (row_bytes == 0):
            raise EmulationFault(f"configures tmm{number} of {rows} rows of {row_bytes} bytes (#GP)")
    return shapes


def load_config(ops: Operands) -> Step:
    """LDTILECFG: all tiles become zero; palette 0 releases them."""
    cpu, address = ops.cpu, ops.address()

    def step() -> None:
        config = cpu.memory.load(address(), CONFIG_BYTES, np.uint8, CONFIG_BYTES).tobytes()
        if not config[0]:
            cpu.tiles = None
            return
        cpu.tiles = TileState(config, shapes_of(config), np.zeros((TILES, MOST_ROWS, ROW_BYTES), np.uint8))

    return step


def store_config(ops: Operands) -> Step:
    """STTILECFG: 64 zeros if tiles are not configured."""
    cpu, address = ops.cpu, ops.address()

    def step() -> None:
        config = cpu.tiles.config if cpu.tiles else bytes(CONFIG_BYTES)
        cpu.memory.store(address(), CONFIG_BYTES, np.uint8, CONFIG_BYTES)[:] = np.frombuffer(config, np.uint8)

    return step


def release(ops: Operands) -> Step:
    cpu = ops.cpu

    def step() -> None:
        cpu.tiles = None

    return step


def configured(cpu: Cpu, number: int) -> tuple[Array, int, int]:
    """What a tile holds, uint8[16, 64], and its rows and bytes of a row."""
    if cpu.tiles is None:
        raise EmulationFault("uses tiles that are not configured (#UD)")
    rows, row_bytes = cpu.tiles.shapes[number]
    if not rows:
        raise EmulationFault(f"uses tmm{number}, which has no rows in this configuration (#UD)")
    return cpu.tiles.data[number], rows, row_bytes


def _number(ops: Operands, operand: int) -> int:
    return int(RegisterExt.number(ops.ins.op_register(operand)))


def row_addresses(ops: Operands) -> Callable[[int], list[int]]:
    """Where so many rows lie: the index register is their distance, and no part of the address of the first."""
    ins, gpr = ops.ins, ops.cpu.gpr
    base, index, scale = ins.memory_base, ins.memory_index, ins.memory_index_scale
    b, displacement = RegisterExt.number(base), int(ins.memory_displacement)
    x = None if index == Register.NONE else RegisterExt.number(index)

    def addresses(rows: int) -> list[int]:
        stride = 0 if x is None else gpr[x] * scale
        return [(gpr[b] + displacement + row * stride) & BITS64 for row in range(rows)]

    return addresses


def load(ops: Operands) -> Step:
    """TILELOADD and TILELOADDT1: zeros after the bytes of a row, and in the rows after."""
    cpu, number, addresses = ops.cpu, _number(ops, 0), row_addresses(ops)

    def step() -> None:
        tile, rows, row_bytes = configured(cpu, number)
        loaded = [cpu.memory.load(at, row_bytes, np.uint8, row_bytes).copy() for at in addresses(rows)]
        tile[:] = 0
        tile[:rows, :row_bytes] = loaded

    return step


def store(ops: Operands) -> Step:
    cpu, number, addresses = ops.cpu, _number(ops, 1), row_addresses(ops)

    def step() -> None:
        tile, rows, row_bytes = configured(cpu, number)
        for row, at in zip(tile, addresses(rows), strict=False):
            cpu.memory.store(at, row_bytes, np.uint8, row_bytes)[:] = row[:row_bytes]

    return step


def zero(ops: Operands) -> Step:
    cpu, number = ops.cpu, _number(ops, 0)

    def step() -> None:
        configured(cpu, number)[0][:] = 0

    return step


def product(ops: Operands) -> Step:
    """TDPBF16PS, TDPBSSD, TDPBSUD, TDPBUSD and TDPBUUD: sums[m, n] += sum over the groups k of a[m, k] . b[k, n]."""
    cpu, numbers = ops.cpu, [_number(ops, i) for i in range(3)]
    multiply = pairs if ops.name == "TDPBF16PS" else fours(BYTES[ops.name[4]], BYTES[ops.name[5]])

    def step() -> None:
        if len(set(numbers)) < 3:
            raise EmulationFault("multiplies tiles that are not three (#UD)")
        (sums, m, n), (a, a_rows, k), (b, groups, b_bytes) = (configured(cpu, number) for number in numbers)
        if (m, n, k) != (a_rows, b_bytes, GROUP_BYTES * groups) or n % GROUP_BYTES:
            sizes = f"{m}x{n}, {a_rows}x{k} and {groups}x{b_bytes}"
            raise EmulationFault(f"multiplies tiles whose rows and bytes do not fit: {sizes} (#UD)")
        found = multiply(sums[:m, :n].copy(), a[:m, :k].copy(), b[:groups, :n].copy())
        sums[:] = 0
        sums[:m, :n] = found.view(np.uint8)

    return step


def fours(of_a: type, of_b: type) -> Callable[[Array, Array, Array], Array]:
    """Products of four bytes."""

    def multiply(sums: Array, a: Array, b: Array) -> Array:
        left = a.view(of_a).astype(np.int64).reshape(len(a), -1, GROUP_BYTES)
        right = b.view(of_b).astype(np.int64).reshape(len(b), -1, GROUP_BYTES)
        found: Array = (sums.view(np.uint32) + np.einsum("mkq,knq->mn", left, right)).astype(np.uint32)
        return found

    return multiply


def pairs(sums: Array, a: Array, b: Array) -> Array:
    """Products of two bf16."""
    left, right = a.view(np.uint32), b.view(np.uint32)
    chains = []
    for half in (lower, upper):
        x, y = flushed(half(left)), flushed(half(right))
        chain: Array = np.zeros((len(a), b.shape[1] // GROUP_BYTES), np.float32)
        for k in range(len(b)):
            chain = add_product(np.broadcast_to(x[:, k, None], chain.shape), y[k], chain)
        chains.append(chain)
    even, odd = chains
    return np.ascontiguousarray(flushed(flushed(sums.view(np.float32)) + flushed(even + odd)))


TABLE: dict[str, Callable[[Operands], Step]] = {
    "LDTILECFG": load_config, "STTILECFG": store_config, "TILERELEASE": release, "TILEZERO": zero,
    "TILELOADD": load, "TILELOADDT1": load, "TILESTORED": store,
    **dict.fromkeys(("TDPBF16PS", "TDPBSSD", "TDPBSUD", "TDPBUSD", "TDPBUUD"), product),
}  # fmt: skip
