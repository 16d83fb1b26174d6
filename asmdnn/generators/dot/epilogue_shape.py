"""What the end of a tile depends on: the types of sums, of dst and of operands; and what it reads; see epilogue.py."""

from typing import ClassVar

from asmdnn.generators.contract import Range
from asmdnn.generators.functions.postops import OLD_DST, Operand, PostOp, has_floats
from asmdnn.isa.dot import Types
from asmdnn.isa.element import Element
from asmdnn.isa.elements import element_of, native_element
from asmdnn.isa.vectors import NARROWEST
from asmdnn.records import dataclass
from asmdnn.types import DataType, f32


@dataclass(frozen=True, slots=True)
class EpilogueTypes:
    """The types of dst, and of the operands of post-ops by their arguments; operands of f32 may be left out.

    isa: the level whose instructions round to dst; for f32, which none rounds to, all are alike.
    sums: what registers hold, which becomes f32 first; f32 too where sums are stored as they are.
    """

    dst: DataType = f32
    operands: tuple[tuple[int, DataType], ...] = ()
    isa: str = NARROWEST
    sums: DataType = f32

    def of(self, operand: Operand | None) -> DataType:
        return self.dst if operand is OLD_DST else dict(self.operands).get(operand.argument, f32)

    @property
    def stored(self) -> Element:
        """Dst's element type as the level rounds to it."""
        return native_element(self.dst, self.isa)

    @property
    def rounds(self) -> bool:
        """Whether f32 are rounded by an instruction as they are stored."""
        return self.stored.is_packed or self.stored is not element_of(self.dst)

    @property
    def packs_bytes(self) -> bool:
        """Whether bytes are packed, of lanes that hold them."""
        return self.stored.is_byte_integer and not self.rounds

    @property
    def raises_to_0(self) -> bool:
        """Whether that instruction flushes subnormal results to 0."""
        return self.rounds and self.stored.limits is not None and self.stored.limits[0] == 0


class WithEpilogue:
    """What specs have in common that end so.  FIXED: the pointers in front of those to what post-ops read."""

    __slots__ = ()
    FIXED: ClassVar[tuple[str, ...]]
    isa: str
    post_ops: tuple[PostOp, ...]
    operand_types: tuple[DataType, ...]

    @property
    def types(self) -> Types:
        raise NotImplementedError

    @property
    def dst_type(self) -> DataType:
        raise NotImplementedError

    @property
    def works_in_f32(self) -> bool:
        """Whether something is computed from the sums: post-ops and other types of dst take f32."""
        return has_floats(self.post_ops) or self.dst_type != self.types.sums

    @property
    def has_halves(self) -> bool:
        """Whether half a register may hold the last vector of dst and of what post-ops read beside it."""
        return all(x.size_bytes == f32.size_bytes for x in (self.dst_type, *self.operand_types))

    @property
    def epilogue_types(self) -> EpilogueTypes:
        dst, sums = (self.dst_type, self.types.sums) if self.works_in_f32 else (f32, f32)  # stored as they are
        return EpilogueTypes(dst, tuple(enumerate(self.operand_types, len(self.FIXED))), self.isa, sums)


ALL_F32 = EpilogueTypes()


def operand_ranges(operand: Operand, rows: int, columns: int, lanes: int, dtype: DataType = f32) -> tuple[Range, ...]:
    """The bytes of an operand that the end of a tile reads, for vectors of real columns."""
    found: dict[Range, None] = {}
    for j, first in enumerate(range(0, columns, lanes)):
        width = dtype.size_bytes * (1 if operand.element else min(lanes, columns - first))
        for r in range(rows):
            begin = r * operand.row_bytes + j * operand.vector_bytes
            found[Range(operand.argument, begin, begin + width)] = None
    return tuple(found)
