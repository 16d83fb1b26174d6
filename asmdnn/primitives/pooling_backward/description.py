"""The description of a backward pooling, validated at once.  Names are oneDNN's (pooling_backward)."""

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.core.backward import BackwardDesc
from asmdnn.primitives.pooling.description import MAX, PoolingForward
from asmdnn.primitives.shapes.tensors import check_descs
from asmdnn.records import dataclass
from asmdnn.types import PoolingAlgorithm

WINDOW = ("kernel", "strides", "dilations", "padding_l", "padding_r")


@dataclass(frozen=True, slots=True)
class PoolingBackward(BackwardDesc):
    """The gradient of a PoolingForward: every element of diff_dst goes back to its window of diff_src.

    Means: divided by what the forward pass divides by, to all of the window inside src.  Max: to the element that
    `indices` names, as the forward pass has written them: s32 or u8, in any format; what names no element of its window
    is passed over.  diff_src, diff_dst: f32, bf16 or f16, in any formats, `any` too; dims and window are those of the
    forward pass.  Raises InvalidArguments if sizes do not fit together.
    """

    FORWARD = PoolingForward

    alg: PoolingAlgorithm
    diff_src: MemoryDesc
    diff_dst: MemoryDesc
    kernel: tuple[int, ...]
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    padding_l: tuple[int, ...] = ()
    padding_r: tuple[int, ...] = ()
    indices: MemoryDesc | None = None

    def __post_init__(self) -> None:
        check_descs(self, "diff_src", "diff_dst")
        try:
            forward = self.forward()
        except InvalidArguments as reason:
            raise InvalidArguments(f"PoolingBackward, seen from its forward pass: {reason}") from None
        if self.indices is None and self.alg == MAX:
            raise InvalidArguments("indices is None: the gradient of a maximum goes where the forward pass found it")
        for name in WINDOW:
            object.__setattr__(self, name, getattr(forward, name))

    def forward(self) -> PoolingForward:
        """The forward pass.  Raises InvalidArguments if sizes do not fit together."""
        window = (self.kernel, self.strides, self.dilations, self.padding_l, self.padding_r)
        return PoolingForward(self.alg, self.diff_src, self.diff_dst, *window, self.indices)

    def __str__(self) -> str:
        sizes = f"kernel {self.kernel}, strides {self.strides}, dilations {self.dilations}"
        tensors = f"{self.diff_dst} to {self.diff_src}" + (f" by {self.indices}" if self.indices else "")
        return f"pooling backward {self.alg} of {tensors}, {sizes}, {self.padding_l} {self.padding_r}"
