"""What a gather is: its tensors, and what they must be."""

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.concat.concat import axis_of
from asmdnn.primitives.shapes.tensors import check_descs
from asmdnn.records import dataclass
from asmdnn.types import s32


@dataclass(frozen=True, slots=True)
class Gather:
    """dst[a.., i.., b..] = src[a.., indices[i..], b..], the index being along `axis` of src: ONNX's Gather, numpy.take.

    With axis 0 rows of a table, an embedding.  indices: s32, any dims, from -n to n - 1 where axis has n elements;
    negative ones count from the end, and others make `execute` and bound calls raise InvalidArguments before anything
    is read.  src and dst have one type, any of them; any formats.  Raises InvalidArguments.
    """

    src: MemoryDesc
    indices: MemoryDesc
    dst: MemoryDesc
    axis: int = 0

    def __post_init__(self) -> None:
        check_descs(self, "src", "indices", "dst")
        for name, desc in (("src", self.src), ("indices", self.indices)):
            if desc.is_any:
                raise InvalidArguments(f"{name} has the format any, a gather needs a real one")
        if self.indices.dtype != s32:
            raise InvalidArguments(f"indices are {self.indices.dtype}, they must be s32")
        if self.dst.dtype != self.src.dtype:
            raise InvalidArguments(f"dst is {self.dst.dtype}, it must have the type of src, {self.src.dtype}")
        object.__setattr__(self, "axis", axis_of(self.axis, self.src.ndims))
        dims = self.src.dims
        wanted = (*dims[: self.axis], *self.indices.dims, *dims[self.axis + 1 :])
        if self.dst.dims != wanted:
            raise InvalidArguments(f"dst has dims {self.dst.dims}, those of src and indices make it {wanted}")
        if not self.limit and self.indices.nelems():
            raise InvalidArguments(f"axis {self.axis} of src has no elements, indices must have none either")

    @property
    def limit(self) -> int:
        """How many elements an index chooses from."""
        return self.src.dims[self.axis]

    def __str__(self) -> str:
        return f"gather of {self.src} by {self.indices} to {self.dst}, axis {self.axis}"
