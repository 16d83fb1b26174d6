"""What specs of resampling have in common: the types of their elements, and registers for what becomes of sums."""

from asmdnn.generators.functions.postops import PostOp
from asmdnn.isa.elements import size_of
from asmdnn.types import f32

SPARES = 2  # registers for post-ops


class ResampleTypes:
    """Of f32; specs of other types have their own kinds and spares."""

    __slots__ = ()
    chain: tuple[PostOp, ...]

    @property
    def kinds(self) -> tuple[str, str]:
        """The types of src and dst."""
        return (f32.name, f32.name)

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of their elements."""
        src, dst = self.kinds
        return size_of(src), size_of(dst)

    @property
    def spares(self) -> int:
        """Registers for what becomes of sums before they are stored."""
        return SPARES if self.chain else 0
