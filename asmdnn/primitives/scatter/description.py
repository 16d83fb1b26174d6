"""What a scatter is: its tensors, and what they must be."""

from typing import Literal

from asmdnn.errors import InvalidArguments
from asmdnn.generators.move.scatter import REDUCTIONS
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.numbers import check_alg
from asmdnn.primitives.gather.indices import settle
from asmdnn.records import dataclass

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
        settle(self, "scatter", ("src", "indices", "updates", "dst"), parts="updates")
        if self.dst.dims != self.src.dims:
            raise InvalidArguments(f"dst has dims {self.dst.dims}, src has {self.src.dims}: they must be equal")

    @property
    def limit(self) -> int:
        """How many elements an index chooses from."""
        return self.src.dims[self.axis]

    def __str__(self) -> str:
        into = f"scatter of {self.updates} by {self.indices} into {self.src} to {self.dst}, axis {self.axis}"
        return into if self.alg == MOVES else f"{into}, alg {self.alg}"
