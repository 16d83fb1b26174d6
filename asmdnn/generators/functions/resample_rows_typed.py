"""Resampling of other types than f32 where rows are dense: as resample_rows.py, with elements that become f32 once they
are in the lanes of results, and are rounded as their types are before they are stored.

Every combination of types has the arithmetic of f32, so results are those of conversions before and after.  Of plain
bits, "b8" to "b32", each result is one element, which is moved.
"""

from typing import Any

from asmdnn.generators.functions.code import apply_program
from asmdnn.generators.functions.resample_columns import Pick
from asmdnn.generators.functions.resample_rows import ResampleRowsCode, ResampleRowsSpec
from asmdnn.generators.functions.resample_types import SPARES
from asmdnn.generators.functions.typed_program import typed_program
from asmdnn.isa.assembler import Register
from asmdnn.isa.elements import element_of
from asmdnn.isa.vector import Vector
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedResampleRowsSpec(ResampleRowsSpec):
    """types: of src and dst."""

    types: tuple[str, str] = ("f32", "f32")

    @property
    def kinds(self) -> tuple[str, str]:
        return self.types

    @property
    def spares(self) -> int:
        return SPARES if self.computes else 0

    @property
    def computes(self) -> bool:
        """Whether elements are numbers."""
        return not all(element_of(kind).stays for kind in self.kinds)

    def code(self, v: Vector) -> ResampleRowsCode:
        return TypedResampleRowsCode(self, v)


class TypedResampleRowsCode(ResampleRowsCode):
    """Vectors of src and dst in memory are those of their types."""

    spec: TypedResampleRowsSpec

    def bring(self, target: Register, tap: int, pick: Pick, offset: int) -> None:
        super().bring(target, tap, pick, offset)
        if self.spec.computes:
            element_of(self.spec.kinds[0]).to_f32(self.v, target)

    def finish(self, x: Register) -> None:
        """Post-ops, and the rounding to dst's type."""
        if self.spec.computes:
            program = typed_program((self.spec.chain,), ("f32",), (self.spec.kinds[1],))
            apply_program(program, self.v, x, (), self.spares, self.slots)

    def put(self, at: Any, x: Register, is_last: bool) -> None:
        if not is_last and self.dst_size < F32_BYTES:  # lanes are packed in their register
            self.v.move(self.spare, x)
            x = self.spare
        super().put(at, x, is_last)
