"""Architectural state: general registers, flags, vector and mask registers, and what is undefined in them."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import numpy as np

from asmdnn.emulator.memory import AddressSpace, Array, EmulationFault
from asmdnn.records import dataclass

RSP = 4
CALLER_SAVED = (0, 1, 2, 6, 7, 8, 9, 10, 11)
CALLEE_SAVED = {3: "rbx", 5: "rbp", 12: "r12", 13: "r13", 14: "r14", 15: "r15"}
POISON_WIDTH = 65  # width of a vector register that the kernel has not written: any write clears its upper part


@lru_cache(maxsize=4096)
def mask_array(mask: int, lanes: int) -> Array:
    """The low `lanes` bits of a mask register as a read-only bool array, lane 0 first."""
    bits = np.frombuffer((mask & ((1 << lanes) - 1)).to_bytes((lanes + 7) // 8, "little"), np.uint8)
    array = np.unpackbits(bits, count=lanes, bitorder="little").astype(bool)
    array.flags.writeable = False
    return array


def mask_value(array: Array) -> int:
    """The inverse of `mask_array`."""
    return int.from_bytes(np.packbits(array, bitorder="little").tobytes(), "little")


ENTRY_MXCSR = 0x5FA1  # at a call: rounding upwards, and something was inexact


@dataclass(frozen=True, slots=True)
class TileState:
    """What LDTILECFG has read, the rows and bytes of a row of each tile, and what the tiles hold: uint8[8, 16, 64]."""

    config: bytes
    shapes: tuple[tuple[int, int], ...]
    data: Array


class Cpu:
    """Registers and flags.  Steps capture the lists and arrays, so they are only ever changed in place.

    A flag that is None is undefined.  `width[i]` is the number of low bytes of vector register i that may be nonzero.
    """

    __slots__ = ("callbacks", "cf", "code_base", "df", "entry_gpr", "gpr", "k", "memory", "mxcsr", "of", "pf",
                 "scratch", "sf", "tiles", "underflow", "vectors", "views", "width", "zf")  # fmt: skip
    cf: bool | None
    zf: bool | None
    sf: bool | None
    of: bool | None
    pf: bool | None

    def __init__(self) -> None:
        self.gpr = [0] * 16
        self.k = [0] * 8
        self.vectors = np.zeros((32, 64), np.uint8)
        self.width = [0] * 32
        self.memory = AddressSpace()
        self.code_base = 0
        self.callbacks: Mapping[int, Callable[..., int | None]] = {}
        self.underflow = False
        self.scratch: dict[int, tuple[Array, ...]] = {}  # of `fma`, for each number of lanes
        self.views: dict[tuple[int, type, int], Array] = {}
        self.reset()

    def reset(self) -> None:
        """The state at a call: what the ABI leaves unspecified is garbage that faults, or is NaN, when it is used."""
        self.poison_gpr(range(16))
        self.entry_gpr = tuple(self.gpr)
        self.poison_vectors()
        self.undefine_flags("cf", "zf", "sf", "of", "pf")
        self.df = False
        self.mxcsr = ENTRY_MXCSR
        self.tiles: TileState | None = None  # None: not configured

    def poison_gpr(self, numbers: Iterable[int]) -> None:
        """Fill registers with distinct addresses that are not canonical."""
        for i in numbers:
            self.gpr[i] = 0xBAD0_0000_0000_0000 | i << 32 | 0xDEAD_BEE0 + i

    def poison_vectors(self) -> None:
        """NaN in every float lane; masks with every other bit set."""
        self.vectors.view(np.uint32)[:] = 0x7FBA_DBAD
        self.width[:] = [POISON_WIDTH] * 32
        self.k[:] = [0xA5A5_5A5A_A5A5_5A5A] * 8

    def undefine_flags(self, *names: str) -> None:
        for name in names:
            setattr(self, name, None)

    def flag(self, name: str) -> bool:
        """A flag's value; EmulationFault when the last instruction that wrote it left it undefined."""
        value = getattr(self, name)
        if value is None:
            raise EmulationFault(f"uses {name.upper()}, which is undefined here")
        return bool(value)

    def vector(self, number: int, dtype: type, count: int) -> Array:
        """The low `count` lanes of a vector register: one view an answer, shared by all steps."""
        key = (number, dtype, count)
        if key not in self.views:
            self.views[key] = self.vectors[number].view(dtype)[:count]
        return self.views[key]

    def settle(self, number: int, size: int) -> None:
        """After a write of the low `size` bytes: everything above is zero."""
        if self.width[number] > size:
            self.vectors[number, size:] = 0
        self.width[number] = size

    def zero_upper(self) -> None:
        """VZEROUPPER: bits 128 and up of registers 0 to 15."""
        self.vectors[:16, 16:] = 0
        self.width[:16] = [16] * 16

    def dirty_upper(self) -> list[int]:
        """The registers among 0 to 15 whose upper part the kernel wrote and did not clear."""
        return [i for i in range(16) if 16 < self.width[i] < POISON_WIDTH]
