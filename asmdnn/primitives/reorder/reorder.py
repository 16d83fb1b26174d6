"""Reorder: the same tensor in another format or another type."""

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import desc_words, letters_of_either
from asmdnn.primitives.shapes.tensors import check_tensor
from asmdnn.records import dataclass
from asmdnn.types import s8


@dataclass(frozen=True, slots=True)
class Reorder:
    """dst = src, element by element, in dst's format and type; the zero padding of dst is written too.

    With attributes

        dst = saturate(round((src_scale * (src - src_zero_point) + sum * dst) / dst_scale + dst_zero_point))

    in f32, computed as src_scale / dst_scale * (src - src_zero_point) + sum / dst_scale * dst + dst_zero_point, and
    rounded to nearest even.  What is above the largest integer of dst's type becomes that, +inf too; NaN and what is
    below the smallest become the smallest; the largest s32 is 2147483520, the last f32 below 2^31.  Scales are used as
    they are, without a check: negative ones, and 0 or NaN, whose infinities and NaN are stored like all others.  bf16
    and f16 overflow to infinity and keep NaN.  The same type without attributes is copied bit by bit.

    compensation: a mask of dims of an s8 dst; there is a further result of that name then, s32, dense, over the dims of
    the mask (a single number for 0): -128 times the sum of dst, as it is stored, over all other dims, modulo 2^32.  It
    corrects products of dst with u8 that are s8 plus 128.
    Source of the formulas: oneDNN's reorder.  Raises InvalidArguments unless both have the same dims and a format, and
    for a compensation that is no mask of dst's dims, or of a dst that is not s8.
    """

    src: MemoryDesc
    dst: MemoryDesc
    compensation: int | None = None

    def __post_init__(self) -> None:
        for name, desc in (("src", self.src), ("dst", self.dst)):
            check_tensor(name, desc)
            if desc.is_any:
                raise InvalidArguments(f"{name} has the format any, a reorder needs a real one")
        if self.src.dims != self.dst.dims:
            raise InvalidArguments(f"dst has dims {self.dst.dims}, src has {self.src.dims}: they must be equal")
        if self.compensation is not None:
            self.check_compensation(self.compensation)

    def check_compensation(self, mask: int) -> None:
        if isinstance(mask, bool) or not isinstance(mask, int) or mask < 0:
            raise InvalidArguments(f"compensation must be a mask of dims, an integer >= 0, or None, not {shown(mask)}")
        if mask >> self.dst.ndims:
            raise InvalidArguments(
                f"compensation has the mask {shown(mask)}, which is for more than {counted(self.dst.ndims, 'dim')}"
            )
        if self.dst.dtype != s8:
            raise InvalidArguments(f"compensation needs an s8 dst, this one is {self.dst.dtype}")

    def __str__(self) -> str:
        compensation = "" if self.compensation is None else f" with compensation over mask {self.compensation}"
        letters = letters_of_either(self.src, self.dst)
        return f"reorder of {desc_words(self.src, letters)} to {desc_words(self.dst, letters)}{compensation}"
