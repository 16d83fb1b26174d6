"""What a gather is: its tensors, and what they must be."""

from asmdnn.memory import MemoryDesc
from asmdnn.primitives.gather.indices import settle
from asmdnn.records import dataclass


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
        settle(self, "gather", ("src", "indices", "dst"), parts="dst")

    @property
    def limit(self) -> int:
        """How many elements an index chooses from."""
        return self.src.dims[self.axis]

    def __str__(self) -> str:
        return f"gather of {self.src} by {self.indices} to {self.dst}, axis {self.axis}"
