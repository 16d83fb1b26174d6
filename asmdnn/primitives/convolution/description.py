"""The description of a forward convolution, validated at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import index

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.numbers import FORWARD, check_prop_kind
from asmdnn.types import Algorithm, PropKind

MAX_SIZE = 2**31 - 1


def pair(name: str, value: Sequence[int], least: int) -> tuple[int, int]:
    """Two integers (height, width) of at least `least`, or InvalidArguments naming the field."""
    try:
        numbers = tuple(index(n) for n in value if not isinstance(n, bool))  # numpy's integers too
    except Exception:  # whatever the caller's object does when it is iterated over
        numbers = ()
    if len(numbers) != 2 or not all(least <= n <= MAX_SIZE for n in numbers):
        raise InvalidArguments(f"{name} must be two integers from {least} to 2**31 - 1, not {shown(value)}")
    return numbers[0], numbers[1]


@dataclass(frozen=True, slots=True)
class ConvolutionForward:
    """dst[n, o, y, x] = bias[o] + sum over c, r, s of weights[o, c, r, s] * src[n, c, i, j]

    with i = y*sh + r*(dh+1) - pt and j = x*sw + s*(dw+1) - pl.

    src: (n, c, h, w); weights: (o, c, kh, kw); bias: (o,) or None; dst: (n, o, oh, ow); every format may be "any".
    strides (sh, sw) >= 1; dilations (dh, dw) >= 0, 0 being dense; padding_l (top, left) and padding_r (bottom, right)
    >= 0; elements outside src count as zero.  Raises InvalidArguments if sizes do not fit together.
    The fields are oneDNN's (convolution_forward::primitive_desc).
    """

    src: MemoryDesc
    weights: MemoryDesc
    dst: MemoryDesc
    bias: MemoryDesc | None = None
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (0, 0)
    padding_l: tuple[int, int] = (0, 0)
    padding_r: tuple[int, int] = (0, 0)
    prop_kind: PropKind = PropKind.forward_inference
    algorithm: Algorithm = Algorithm.convolution_direct

    def __post_init__(self) -> None:
        for name, least in (("strides", 1), ("dilations", 0), ("padding_l", 0), ("padding_r", 0)):
            object.__setattr__(self, name, pair(name, getattr(self, name), least))
        check_prop_kind(self.prop_kind, FORWARD)
        if not isinstance(self.algorithm, Algorithm):
            raise InvalidArguments(f"algorithm must be an Algorithm, not {shown(self.algorithm)}")
        self._check_ranks()
        self._check_channels()
        for axis, name in enumerate(("height", "width")):
            self._check_axis(axis, name)

    def tensors(self) -> dict[str, MemoryDesc]:
        """The descriptors by argument name; without "bias" if there is none."""
        every = {"src": self.src, "weights": self.weights, "bias": self.bias, "dst": self.dst}
        return {name: desc for name, desc in every.items() if desc is not None}

    def with_formats(self, tensors: Mapping[str, MemoryDesc]) -> "ConvolutionForward":
        """The same convolution with other formats of some tensors."""
        every = {"src": self.src, "weights": self.weights, "bias": self.bias, "dst": self.dst, **tensors}
        return replace(self, **every)  # type: ignore[arg-type]  # by name, of the right types

    def __str__(self) -> str:
        tensors = ", ".join(f"{name} {desc}" for name, desc in self.tensors().items())
        window = f"strides {self.strides}, dilations {self.dilations}, padding {self.padding_l} {self.padding_r}"
        return f"convolution forward of {tensors}, {window}"

    def _check_ranks(self) -> None:
        for name, rank in (("src", 4), ("weights", 4), ("dst", 4), ("bias", 1)):
            desc = getattr(self, name)
            if desc is None and name == "bias":
                continue
            if not isinstance(desc, MemoryDesc):
                raise InvalidArguments(f"{name} must be a MemoryDesc, not {shown(desc)}")
            if len(desc.dims) != rank:
                raise InvalidArguments(f"{name} must have {rank} dims, not {len(desc.dims)}: {desc.dims}")
            if min(desc.dims) < 1:
                raise InvalidArguments(f"{name} has an empty dim, every one must be at least 1: {desc.dims}")

    def _check_channels(self) -> None:
        (mb, ic, _, _), (oc, wic, _, _), (dmb, doc, _, _) = self.src.dims, self.weights.dims, self.dst.dims
        if ic != wic:
            raise InvalidArguments(f"weights has {wic} input channels, src has {ic}: dims[1] of both must be equal")
        if oc != doc:
            raise InvalidArguments(f"dst has {doc} channels, weights makes {oc}: dst.dims[1] must be weights.dims[0]")
        if mb != dmb:
            raise InvalidArguments(f"dst has a batch of {dmb}, src has {mb}: dims[0] of both must be equal")
        if self.bias is not None and self.bias.dims[0] != oc:
            raise InvalidArguments(f"bias has {self.bias.dims[0]} elements, weights makes {oc} channels")

    def _check_axis(self, axis: int, name: str) -> None:
        size, kernel, out = (desc.dims[2 + axis] for desc in (self.src, self.weights, self.dst))
        before, after, stride = self.padding_l[axis], self.padding_r[axis], self.strides[axis]
        extent = (kernel - 1) * (self.dilations[axis] + 1) + 1
        for field, pad in (("padding_l", before), ("padding_r", after)):
            if pad > extent:
                raise InvalidArguments(
                    f"{field} of {pad} is larger than the kernel's {name} of {extent}, it may not be"
                )
        room = size + before + after - extent
        if room < 0:
            raise InvalidArguments(
                f"weights' {name} of {extent} (dilated) exceeds the padded src's {size + before + after}"
            )
        if room // stride + 1 != out:
            raise InvalidArguments(
                f"dst's {name} is {out}, src, weights, strides and padding make it {room // stride + 1}"
            )
