"""How results of pooling leave registers: as f32, as bits that were there before, or rounded to a narrow type."""

from collections.abc import Callable, Sequence
from typing import Any

from asmdnn.generators.functions.code import apply_program
from asmdnn.generators.functions.typed_program import typed_program
from asmdnn.generators.functions.values import Slots
from asmdnn.generators.pooling.window import Reduction
from asmdnn.generators.stores import store_rounded
from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.element import ElementLanes
from asmdnn.isa.elements import storing_element
from asmdnn.isa.vector import Lanes

Store = Callable[[Any, Any], None]


class Results:
    """Of a reduction: vectors of f32, and where they are stored as its type."""

    def __init__(self, reduction: Reduction, isa: str, slots: Slots) -> None:
        self.v, self.reduction, self.element, self.slots = reduction.v, reduction, reduction.element, slots
        self.stored = storing_element(self.element.name, isa)
        self.rounds = self.stored.narrows_pairs and not reduction.is_max

    def convert(self, acc: Register) -> None:
        """To the form that is stored, unless a store rounds."""
        if self.element.cut_bits and self.reduction.is_max:
            self.v.asm.VPSRLD(acc, acc, self.element.cut_bits)  # one of those that were there
        elif not self.element.stays and not self.rounds:
            program = typed_program(((),), ("f32",), (self.element.name,))
            apply_program(program, self.v, acc, (), self.reduction.staged, self.slots)

    def store(
        self, results: Sequence[Register], places: Sequence[Pointer], parts: Sequence[Lanes], whole: Store
    ) -> None:
        """Vectors side by side; `whole` is for those of f32 without a tail."""
        if self.rounds:
            where = [(at, x.part if isinstance(x, ElementLanes) else x) for at, x in zip(places, parts, strict=True)]
            store_rounded(self.v, self.stored, results[: len(where)], where, self.reduction.staged)
            return
        for x, at, part in zip(results, places, parts, strict=False):
            (whole if part is self.v else part.store_last)(at, x)
