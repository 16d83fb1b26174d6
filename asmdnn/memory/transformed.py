"""What formats of weights that hold no elements have in common: a reorder makes them, kernels read them."""

from typing import Any, ClassVar, Final, NoReturn

from asmdnn.errors import InvalidArguments
from asmdnn.memory.desc import MemoryDesc
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES, UPPER_FLOATS

GROUPS: Final = {t: F32_BYTES // t.size_bytes for t in UPPER_FLOATS}  # elements that a multiply takes together


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class TransformedDesc(MemoryDesc):
    """A description whose elements nothing views or copies.  why: what they are instead; `storage` lies in memory."""

    why: ClassVar[str]
    holds_elements: ClassVar[bool] = False
    _storage: MemoryDesc

    @property
    def storage(self) -> MemoryDesc:
        return self._storage

    @property
    def form(self) -> str:
        """What it is called in front of the tag of its storage."""
        raise NotImplementedError

    @property
    def tag(self) -> str | None:
        tag = self.storage.tag
        return tag and f"{self.form}:{tag}"

    @property
    def alias(self) -> None:
        return None

    @property
    def is_dense(self) -> bool:
        return False

    def permute_axes(self, permutation: Any) -> MemoryDesc:
        raise self._no("other axes")

    def reshape(self, dims: Any) -> NoReturn:
        raise self._no("other dims")

    def _require_layout(self, what: str) -> None:
        if what != "size":
            raise self._no(what)

    def _no(self, what: str) -> InvalidArguments:
        return InvalidArguments(f"desc {self} has no {what}, {self.why}: keep the plain weights")
