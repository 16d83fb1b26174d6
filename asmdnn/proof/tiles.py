"""Rule "tiles": tile registers are used as their configuration says, on which every path to an instruction agrees.

A configuration is 64 bytes of the kernel's constants.  A tile that is loaded, stored, zeroed or multiplied has rows,
and the three of a product fit.  cpu_state.py asks that none is configured at a RET.  Source: Intel manual, volume 2,
LDTILECFG and TDPBF16PS; the exceptions of class AMX-E4.
"""

from functools import lru_cache
from struct import unpack
from typing import Final

from asmdnn.proof.facts import Access
from asmdnn.proof.kernel import Kernel, PlacedInstruction
from asmdnn.proof.values import CODE, AbstractValue
from asmdnn.records import replace

RULE: Final = "tiles"
NOT_CONFIGURED: Final = b""
CONFIG_BYTES: Final = 64
TILES: Final = 8
MOST_ROWS: Final = 16
MOST_ROW_BYTES: Final = 64
GROUP_BYTES: Final = 4  # of k that are side by side, in a row of weights for each column
Shape = tuple[int, int]  # rows, and bytes of a row


def constant_config(kernel: Kernel, step: PlacedInstruction, where: AbstractValue) -> bytes:
    """What LDTILECFG reads there.  Raises BrokenRule unless it is a constant of the kernel that configures tiles."""
    if where.base != CODE or where.offset is None or where.offset < 0:
        raise kernel.broken(RULE, "the configuration is no constant", step)
    config = kernel.code.data[where.offset : where.offset + CONFIG_BYTES]
    reason = fault(config)
    if reason:
        raise kernel.broken(RULE, reason, step)
    return config


def fault(config: bytes) -> str:
    """Why LDTILECFG does not take it, or ""."""
    if len(config) < CONFIG_BYTES or config[0] != 1:
        return "the configuration is not of palette 1"
    if any((*config[2:16], *config[32:48], *config[56:64])):
        return "reserved bytes of the configuration are not 0"
    for number, (rows, row_bytes) in enumerate(shapes(config)):
        if rows > MOST_ROWS or row_bytes > MOST_ROW_BYTES or bool(rows) != bool(row_bytes):
            return f"tmm{number} is configured with {rows} rows of {row_bytes} bytes"
    return ""


@lru_cache
def shapes(config: bytes) -> tuple[Shape, ...]:
    """Of the eight tiles."""
    return tuple(zip(config[48 : 48 + TILES], unpack("<8H", config[16:32]), strict=True))


def shape_of(kernel: Kernel, step: PlacedInstruction, configs: frozenset[bytes], number: int) -> Shape:
    """Of one tile.  Raises BrokenRule where it has none, or not one on all paths."""
    if NOT_CONFIGURED in configs:
        raise kernel.broken(RULE, "a tile is used and none may be configured, on a path to here", step)
    found = {shapes(config)[number] for config in configs}
    if len(found) > 1:
        raise kernel.broken(RULE, f"tmm{number} has other rows or bytes on another path to here", step)
    (shape,) = found
    if not shape[0]:
        raise kernel.broken(RULE, f"tmm{number} has no rows in this configuration", step)
    return shape


@lru_cache
def row_of(access: Access, row_bytes: int) -> Access:
    """The access to one row."""
    return replace(access, size_bytes=row_bytes, element_bytes=row_bytes, tile=None)


def check_use(kernel: Kernel, step: PlacedInstruction, configs: frozenset[bytes]) -> None:
    """Raise BrokenRule for a tile without rows, and for products of tiles that do not fit."""
    numbers = [operand.number for operand in step.fact.operands if operand.kind == "tile"]
    used = [shape_of(kernel, step, configs, number) for number in numbers]
    if not step.fact.mnemonic.startswith("tdp"):
        return
    if len(set(numbers)) < 3:
        raise kernel.broken(RULE, "a product of tiles needs three of them", step)
    (m, n), (a_rows, k), (groups, b_bytes) = used
    if (m, n, k) != (a_rows, b_bytes, GROUP_BYTES * groups) or n % GROUP_BYTES:
        reason = f"{m}x{n}, {a_rows}x{k} and {groups}x{b_bytes} bytes are no product of tiles"
        raise kernel.broken(RULE, reason, step)
