"""The depthwise convolution after a convolution, as a post-op of it."""

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.numbers import tensor
from asmdnn.primitives.shapes.windows import FIELDS, sizes_of
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class Depthwise:
    """dst = the depthwise convolution of op, every channel separately; post-ops after it work on its result.

    weights: (channels, 1, 1, [kd, [kh,]] kw); bias: (channels,) or None; both f32, and "any" leaves the format to the
    primitive.  strides, dilations, padding_l, padding_r: as those of ConvolutionForward.  As the chain's number i
    its tensors are the arguments "dw_weights_i" and "dw_bias_i" of the primitive.
    For convolutions only, once in a chain.  The description's dst is what this reads: the primitive's dst_desc has the
    dims of the result, in the format that the description asks for.  It is oneDNN's depthwise post-op
    (post_ops::append_dw), for kernels of any size.  Raises InvalidArguments.
    """

    weights: MemoryDesc
    bias: MemoryDesc | None = None
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    padding_l: tuple[int, ...] = ()
    padding_r: tuple[int, ...] = ()
    kind = "dw"

    def __post_init__(self) -> None:
        dims = tensor("Depthwise.weights", self.weights).dims
        if len(dims[3:]) not in (1, 2, 3) or dims[1:3] != (1, 1):
            raise InvalidArguments(f"Depthwise.weights has dims {dims}, they must be (channels, 1, 1, [kd, [kh,]] kw)")
        if self.bias is not None and tensor("Depthwise.bias", self.bias).dims != dims[:1]:
            raise InvalidArguments(f"Depthwise.bias has dims {self.bias.dims}, weights make it {dims[:1]}")
        for name, (least, default) in FIELDS.items():
            value = getattr(self, name)
            if type(value) is tuple and not value:
                value = (default,) * len(self.kernel)
            numbers = sizes_of(f"Depthwise.{name}", value, len(self.kernel), least)
            object.__setattr__(self, name, numbers)

    @property
    def tensors(self) -> dict[str, MemoryDesc]:
        found = {"dw_weights": self.weights, "dw_bias": self.bias}
        return {name: desc for name, desc in found.items() if desc is not None}

    @property
    def kernel(self) -> tuple[int, ...]:
        """Positions along each axis."""
        return self.weights.dims[3:]

    def result_dims(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        """Of the result for an op of these dims; negative where the kernel does not fit."""
        axes = zip(dims[2:], self.kernel, *(getattr(self, name) for name in FIELDS), strict=True)
        sizes = ((i + before + after - (k - 1) * (d + 1) - 1) // s + 1 for i, k, s, d, before, after in axes)
        return (*dims[:2], *sizes)
