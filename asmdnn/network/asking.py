"""What lowering asks of primitives: their plans, and whether they would do something."""

from collections.abc import Callable
from typing import Any, ClassVar

from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.core.descriptor import PrimitiveDesc, primitive_desc
from asmdnn.primitives.core.engine import Engine

Question = Callable[[Any, Attr, Engine], bool]


class Asking:
    """For an engine.  All that networks learn of primitives while they are lowered goes through here."""

    is_traced: ClassVar[bool] = False  # whether dims stand for several

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def planned(self, desc: Description, attr: Attr = NO_ATTR) -> PrimitiveDesc:
        """Raises InvalidArguments, Unimplemented."""
        return primitive_desc(desc, attr, self.engine)

    def only_here(self, why: str) -> None:
        """What is made holds for no other shape."""

    def whether(self, question: Question, desc: Description, attr: Attr) -> bool:
        """What a question about a description is answered with."""
        return question(desc, attr, self.engine)
