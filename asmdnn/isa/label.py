"""A place in the code."""

from asmdnn.records import dataclass


@dataclass(slots=True, eq=False)
class Label:
    """`piece` is the index of the piece of code that the label stands before, -1 until it is bound."""

    name: str
    piece: int = -1

    def __str__(self) -> str:
        return self.name
