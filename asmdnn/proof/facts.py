"""What the rules ask for of an instruction; decoder.py finds it out."""

from typing import Final

from asmdnn.proof.register_parts import RegisterUse
from asmdnn.records import dataclass

RSP: Final = 4
NO_REGISTER: Final = -1


@dataclass(frozen=True, slots=True)
class DecodedOperand:
    """kind: "gp" (number, bits), "vector", "mask" or "tile" (number), "number" (its value), "memory", "other"."""

    kind: str
    number: int = 0
    bits: int = 64


@dataclass(frozen=True, slots=True)
class TileRows:
    """The number of a tile register; the general-purpose register that is, times `scale`, the distance of its rows."""

    tile: int
    stride: int
    scale: int


@dataclass(frozen=True, slots=True)
class Access:
    """Memory that an instruction touches: [base + index * scale + displacement], `size_bytes` of it.

    base, index: numbers of general-purpose registers, or NO_REGISTER.  in_code: the displacement counts from the
    instruction's start.  scattered: the index is a vector.  oddity: what makes the address no plain one, or "".
    mask: the register ("mask" or "vector", number) whose elements say which `element_bytes` are touched, or None when
    all are.  tile: of a tile's rows, else None; as many of `size_bytes` are touched as its configuration says.
    conditional: something else than this mask says how much is written.
    """

    base: int
    index: int
    scale: int
    displacement: int
    size_bytes: int
    reads: bool
    writes: bool
    in_code: bool
    scattered: bool
    oddity: str
    mask: tuple[str, int] | None
    element_bytes: int
    conditional: bool = False
    tile: TileRows | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of an instruction from its bytes alone.

    flow: next, jump, branch, call, return, indirect or trap.  target: of a direct jump, from the instruction's start.
    gp_written: full registers that it changes in any way.  reads_gp: those it reads as values, not as addresses.
    use: of registers of every kind, in parts; addresses and flags are among what it reads.
    """

    length: int
    mnemonic: str
    text: str
    features: frozenset[str]
    flow: str
    target: int
    operands: tuple[DecodedOperand, ...]
    accesses: tuple[Access, ...]
    gp_written: tuple[int, ...]
    gp_read: tuple[int, ...]
    vectors_written: tuple[int, ...]
    masks_written: tuple[int, ...]
    uses_upper: bool
    changes_direction: bool
    changes_flags: bool
    inert: bool  # changes no integer register, mask or flag, and touches no memory
    is_string: bool  # MOVS, STOS, ...: touches as much as rcx says
    is_special: bool  # changes what the ABI guards, but no register that the decoder tells of
    use: RegisterUse

    @property
    def calls_kernel(self) -> bool:
        """Whether it calls what a table holds: those are kernels, and all else that an executor calls is OpenMP's."""
        return self.flow == "indirect call" and any(access.index != NO_REGISTER for access in self.accesses)
