"""What a scatter is: its tensors, and what they must be."""

from typing import Literal

from asmdnn.errors import InvalidArguments
from asmdnn.generators.move.scatter import REDUCTIONS
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.numbers import check_alg
from asmdnn.primitives.concat.concat import axis_of
from asmdnn.primitives.shapes.tensors import check_descs
from asmdnn.records import dataclass
from asmdnn.types import s32

Reduction = Literal["none", "add", "mul", "max", "min"]
MOVES: Reduction = "none"
ALGORITHMS = (MOVES, *REDUCTIONS)


@dataclass(frozen=True, slots=True)
class Scatter:
    """dst = src, and then dst[a.., indices[i..], b..] = updates[a.., i.., b..], the index being along `axis` of dst.

    The mirror of a Gather.  updates: of the dims of a gather's dst.  indices: s32, any dims, from -n to n - 1 where
    axis has n elements; negative ones count from the end, and others make `execute` and bound calls raise
    InvalidArguments before anything is written.  They are taken in row-major order: of those that name one row the last
    one stays.

    alg: "none"; or "add", "mul", "max", "min", which combine updates with what dst has, in the same order, in f32; max
    and min hand NaN on.  src, updates and dst have one type, any of them where alg is none, else f32, bf16 or f16, each
    result rounded once; any formats.  Source: ONNX's ScatterElements and ScatterND.  Raises InvalidArguments.
    """

    src: MemoryDesc
    indices: MemoryDesc
    updates: MemoryDesc
    dst: MemoryDesc
    axis: int = 0
    alg: Reduction = MOVES

    def __post_init__(self) -> None:
        check_alg("Scatter.alg", self.alg, ALGORITHMS)
        check_descs(self, "src", "indices", "updates", "dst")
        for name, desc in (("src", self.src), ("indices", self.indices), ("updates", self.updates)):
            if desc.is_any:
                raise InvalidArguments(f"{name} has the format any, a scatter needs a real one")
        if self.indices.dtype != s32:
            raise InvalidArguments(f"indices are {self.indices.dtype}, they must be s32")
        for name, desc in (("updates", self.updates), ("dst", self.dst)):
            if desc.dtype != self.src.dtype:
                raise InvalidArguments(f"{name} is {desc.dtype}, it must have the type of src, {self.src.dtype}")
        object.__setattr__(self, "axis", axis_of(self.axis, self.src.ndims))
        self._check_dims()

    def _check_dims(self) -> None:
        dims = self.src.dims
        wanted = (*dims[: self.axis], *self.indices.dims, *dims[self.axis + 1 :])
        if self.updates.dims != wanted:
            raise InvalidArguments(f"updates has dims {self.updates.dims}, those of src and indices make it {wanted}")
        if self.dst.dims != dims:
            raise InvalidArguments(f"dst has dims {self.dst.dims}, src has {dims}: they must be equal")
        if not self.limit and self.indices.nelems():
            raise InvalidArguments(f"axis {self.axis} of src has no elements, indices must have none either")

    @property
    def limit(self) -> int:
        """How many elements an index chooses from."""
        return self.src.dims[self.axis]

    def __str__(self) -> str:
        into = f"scatter of {self.updates} by {self.indices} into {self.src} to {self.dst}, axis {self.axis}"
        return into if self.alg == MOVES else f"{into}, alg {self.alg}"
