"""What a non-maximum suppression is: its tensors, and what they must be."""

from math import inf
from numbers import Real

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.exact import exact
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.numbers import finite
from asmdnn.primitives.shapes.tensors import check_tensor
from asmdnn.records import dataclass
from asmdnn.types import f32, s32

MOST_BOXES = 1 << 24  # planes of coordinates are within reach of code
TYPES = {"corners": f32, "scores": f32, "dst": s32}


@exact
@dataclass(frozen=True, slots=True, eq=False)
class NonMaxSuppression:
    """dst[i, c] = the numbers of the boxes of image i that class c keeps, the best first, and -1 after the last.

    Of the boxes with scores[i, c] > least the best one is kept, of equal scores that with the lowest number, and those
    are left out of which it shares more than `overlap`: the intersection over the union.  So do those that are left.
    corners: f32 (images, 4, boxes), both lower coordinates, then both upper ones; scores: f32 (images, classes, boxes);
    dst: s32 (images, classes, most); any formats.  A box without an area shares nothing, and a score that is no number
    is not above `least`.  overlap: from 0 to 1; least: -inf for all that are larger.
    Every operation is rounded once, as in onnxruntime.  Source: ONNX's NonMaxSuppression.  Raises InvalidArguments.
    """

    corners: MemoryDesc
    scores: MemoryDesc
    dst: MemoryDesc
    overlap: float = 0.5
    least: float = -inf

    def __post_init__(self) -> None:
        for name, dtype in TYPES.items():
            check_tensor(name, desc := getattr(self, name))
            if desc.dtype != dtype:
                raise InvalidArguments(f"{name} is {desc.dtype}, it must be {dtype}")
            if desc.ndims != 3:
                raise InvalidArguments(f"{name} has {counted(desc.ndims, 'dim')}, it must have 3")
        for name in ("overlap", "least"):
            number = getattr(self, name)
            is_lowest = name == "least" and isinstance(number, Real) and number == -inf
            known = -inf if is_lowest else finite(f"NonMaxSuppression.{name}", number)
            object.__setattr__(self, name, known)
        if not 0 <= self.overlap <= 1:
            raise InvalidArguments(f"NonMaxSuppression.overlap is {shown(self.overlap)}, it must be from 0 to 1")
        self._check_sizes()

    def _check_sizes(self) -> None:
        images, classes, boxes = self.scores.dims
        check_tensor("corners", self.corners, (images, 4, boxes))
        check_tensor("dst", self.dst, (images, classes, self.most))
        if not 1 <= boxes <= MOST_BOXES:
            raise InvalidArguments(f"boxes are {boxes}, use 1 to {MOST_BOXES}")
        if not 1 <= self.most <= boxes:
            raise InvalidArguments(f"dst has room for {self.most} of {boxes}: use 1 to {boxes}")

    @property
    def boxes(self) -> int:
        return self.scores.dims[2]

    @property
    def most(self) -> int:
        """Of the boxes of a class."""
        return self.dst.dims[2]

    def __str__(self) -> str:
        what = f"the best {self.most} of boxes {self.corners} by {self.scores} to {self.dst}"
        return f"{what}, overlap {self.overlap:g}, least {self.least:g}"
