"""Resampling of other types than f32 where channels are dense: as resample.py, with elements that become f32 as they
are loaded, and are rounded as their types are before they are stored.

Every combination of types has the arithmetic of f32, so results are those of conversions before and after.
"""

from collections.abc import Sequence
from typing import Any

from asmdnn.generators.functions.code import apply_program
from asmdnn.generators.functions.resample import ResampleCode, ResampleSpec, Store
from asmdnn.generators.functions.resample_types import SPARES
from asmdnn.generators.functions.typed_program import typed_program
from asmdnn.generators.stores import Places, store_rounded
from asmdnn.isa.assembler import Register, mem
from asmdnn.isa.element import Element
from asmdnn.isa.elements import element_of, storing_element
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedResampleSpec(ResampleSpec):
    """types: of src and dst."""

    types: tuple[str, str] = ("f32", "f32")

    @property
    def kinds(self) -> tuple[str, str]:
        return self.types

    @property
    def spares(self) -> int:
        return SPARES

    def code(self, v: Vector) -> ResampleCode:
        return TypedResampleCode(self, v)


class TypedResampleCode(ResampleCode):
    """Vectors of src and dst in memory are those of their types."""

    def run(self, store: Store) -> None:
        """All loops; a rest of channels is a tail."""
        full, rest = divmod(self.spec.elements, self.v.lanes)
        with self.v.parts(full + (rest > 0), self.spec.elements) as parts:
            self.loop(0, parts)

    def add(self, target: Register, offset: int, part: Lanes, i: int) -> None:
        """target = or += a vector of src times the weights of combination i of outer taps."""
        x = self.spare if self.across else target
        self.load(x, mem(self.src, offset, size=self.v.bytes), part)
        if not self.across:
            return
        if i == 0:
            self.v.mul(target, self.across[i], x)
        else:
            self.v.fma(target, self.across[i], x)

    def load(self, x: Register, at: Any, part: Lanes) -> None:
        """As f32."""
        element_of(self.spec.kinds[0]).load(self.v, x, at, part)

    @property
    def stored(self) -> Element:
        return storing_element(self.spec.kinds[1], self.spec.isa)

    def put_all(self, places: Places, results: Sequence[Register], is_last: bool) -> None:
        if self.stored.narrows_pairs:
            store_rounded(self.v, self.stored, results[: len(places)], places, self.spares)
        else:
            super().put_all(places, results, is_last)

    def put(self, at: Any, part: Lanes, x: Register, is_last: bool) -> None:
        if not is_last:
            self.v.move(self.spare, x)
        self.stored.lanes(self.v, part).store(at, x if is_last else self.spare)

    def finish(self, results: Any) -> None:
        """Post-ops, and the rounding to dst's type."""
        program = typed_program((self.spec.chain,), ("f32",), (self.stored.stored_as,))
        for x in results:
            apply_program(program, self.v, x, (), self.spares, self.slots)
