"""What the records of a Winograd convolution are made for."""

from collections.abc import Iterable, Mapping

import numpy as np

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.winograd.arguments import ARGUMENTS
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.phase import Int64, records_of
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.operands import TileOperand
from asmdnn.primitives.convolution.winograd.cut import CutSizes, WinogradCut
from asmdnn.records import dataclass, field
from asmdnn.types import DataType


@dataclass(frozen=True, eq=False)
class WinogradJob:
    """What records are made for.

    readable: channels of src that a transform reads, with those that are zero padding.  whole_vectors: whether dst has
    room for all lanes.  places: of the operands of post-ops, by argument; operand_types: theirs, unless all are f32.
    specs: the kernels, numbered as they come up.
    """

    isa: str
    tuning: Tuning
    g: ConvGeometry
    cut: WinogradCut
    sizes: CutSizes
    readable: int
    whole_vectors: bool
    bias: bool
    post_ops: tuple[PostOp, ...]
    places: Mapping[str, TileOperand]
    dst_type: DataType
    operand_types: tuple[DataType, ...]
    specs: dict[KernelSpec, int] = field(default_factory=dict)

    @property
    def lanes(self) -> int:
        return lanes_of(self.isa)

    @property
    def call_cycles(self) -> int:
        return self.tuning.phases.call_cycles

    @property
    def width(self) -> int:
        """Output channels of a panel."""
        return self.cut.vectors * self.lanes

    def records(self, columns: Mapping[str, Int64 | int], kernel: Int64) -> Int64:
        return records_of((*ARGUMENTS, *self.places), columns, kernel)

    def numbers(self, specs: Iterable[KernelSpec]) -> Int64:
        return np.array([self.specs.setdefault(spec, len(self.specs)) for spec in specs], np.int64)
