"""The descriptions of forward convolutions and deconvolutions, validated at once."""

from collections.abc import Mapping
from math import prod
from typing import TypeVar

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import activations, desc_words, weights
from asmdnn.primitives.attributes.numbers import FORWARD, check_prop_kind
from asmdnn.primitives.convolution.words import algorithm_of
from asmdnn.primitives.core.description import WithFormats
from asmdnn.primitives.shapes.tensors import check_descs
from asmdnn.primitives.shapes.windows import FIELDS, sizes_of
from asmdnn.records import altered, dataclass, replace
from asmdnn.types import Algorithm, ConvolutionAlgorithm, PropKind

AXES = ("depth", "height", "width")
Desc = TypeVar("Desc", bound="ConvolutionDesc")


@dataclass(frozen=True, slots=True)
class ConvolutionDesc(WithFormats):
    """The fields and checks that forward convolutions and deconvolutions share."""

    src: MemoryDesc
    weights: MemoryDesc
    dst: MemoryDesc
    bias: MemoryDesc | None = None
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    padding_l: tuple[int, ...] = ()
    padding_r: tuple[int, ...] = ()
    prop_kind: PropKind = PropKind.forward_inference
    algorithm: Algorithm | ConvolutionAlgorithm = Algorithm.convolution_direct

    def __post_init__(self) -> None:
        self._check_ranks()
        axes = self.src.ndims - 2
        for name, (least, default) in FIELDS.items():
            value = getattr(self, name)
            if type(value) is tuple and not value:
                value = (default,) * axes
            object.__setattr__(self, name, sizes_of(name, value, axes, least))
        check_prop_kind(self.prop_kind, FORWARD)
        object.__setattr__(self, "algorithm", algorithm_of(self._word(), self.algorithm))
        self._check_channels()
        for axis, name in enumerate(AXES[-axes:]):
            self._check_axis(axis, name)

    @property
    def algorithm_name(self) -> str:
        """`convolution_direct` and so on."""
        return Algorithm(self.algorithm).value

    @property
    def has_groups(self) -> bool:
        """Whether weights have a dim of groups."""
        return len(self.weights.dims) > len(self.src.dims)  # asked hundreds of times a plan

    @property
    def groups(self) -> int:
        """The number of groups; a group of output channels is computed from its group of input channels only."""
        dims = self.weights.dims
        return dims[0] if len(dims) > len(self.src.dims) else 1

    @property
    def parts(self) -> int:
        """The number of convolutions, each with some of the kernel's positions, into which it is cut."""
        return 1

    @property
    def kernel(self) -> tuple[int, ...]:
        """Positions along each axis."""
        return self.weights.dims[2 - len(self.src.dims) :]

    def letters(self, name: str, tensor: MemoryDesc) -> str:
        """The letters of a tensor's dims where its format is printed."""
        if name == "weights":
            return weights(tensor.ndims, self.has_groups)
        return activations(tensor.ndims) if name in ("src", "dst") else ""

    def tensors(self) -> dict[str, MemoryDesc]:
        """The descriptors by argument name; without "bias" if there is none."""
        every = {"src": self.src, "weights": self.weights, "bias": self.bias, "dst": self.dst}
        return {name: desc for name, desc in every.items() if desc is not None}

    def with_formats(self: Desc, tensors: Mapping[str, MemoryDesc]) -> Desc:
        """The same with other formats of some tensors."""
        if all(self._differs_in_format(name, desc) for name, desc in tensors.items()):  # which nothing checks
            found: Desc = altered(self, **tensors)
            return found
        every = {"src": self.src, "weights": self.weights, "bias": self.bias, "dst": self.dst, **tensors}
        return replace(self, **every)  # type: ignore[arg-type]  # by name, of the right types

    def _differs_in_format(self, name: str, desc: MemoryDesc | None) -> bool:
        """At most."""
        own: MemoryDesc | None = getattr(self, name)
        return own is not None and isinstance(desc, MemoryDesc) and own.dims == desc.dims and own.dtype == desc.dtype

    def __str__(self) -> str:
        tensors = ", ".join(
            f"{name} {desc_words(desc, self.letters(name, desc))}" for name, desc in self.tensors().items()
        )
        window = f"strides {self.strides}, dilations {self.dilations}, padding {self.padding_l} {self.padding_r}"
        return f"{self._word()} forward of {tensors}, {window}"

    def _word(self) -> str:
        return type(self).__name__.removesuffix("Forward").lower()

    def _check_ranks(self) -> None:
        check_descs(self, "src", "weights", "dst", optional=("bias",))
        rank = self.src.ndims
        if not 3 <= rank <= 5:
            raise InvalidArguments(f"src must have 3, 4 or 5 dims, not {rank}: {self.src.dims}")
        ranks = {"weights": (rank, rank + 1), "dst": (rank,), "bias": (1,)}
        for name, allowed in ranks.items():
            desc = getattr(self, name)
            if desc is not None and desc.ndims not in allowed:
                words = "1 dim" if allowed == (1,) else " or ".join(map(str, allowed)) + " dims"
                raise InvalidArguments(f"{name} must have {words}, not {desc.ndims}: {desc.dims}")
        if min(self.weights.dims) < 1:
            raise InvalidArguments(f"weights has an empty dim, every one must be at least 1: {self.weights.dims}")

    def _check_channels(self) -> None:
        (mb, ic), (oc, wic), (dmb, doc) = self.src.dims[:2], self.weights.dims[self.has_groups :][:2], self.dst.dims[:2]
        of_groups = f" in {self.groups} groups" if self.has_groups else ""
        oc, wic = self.groups * oc, self.groups * wic
        if ic != wic:
            raise InvalidArguments(
                f"weights has {wic} input channels{of_groups}, src has {ic}: src.dims[1] must be as many"
            )
        if oc != doc:
            raise InvalidArguments(f"dst has {doc} channels, weights makes {oc}{of_groups}: they must be equal")
        if mb != dmb:
            raise InvalidArguments(f"dst has a batch of {dmb}, src has {mb}: dims[0] of both must be equal")
        if self.bias is not None and self.bias.dims[0] != oc:
            raise InvalidArguments(f"bias has {self.bias.dims[0]} elements, weights makes {oc} channels")

    def _extent(self, axis: int) -> int:
        """Pixels from a kernel's first position to its last, along an axis."""
        return (self.kernel[axis] - 1) * (self.dilations[axis] + 1) + 1

    def _check_padding_r(self, axis: int) -> None:
        after, stride = self.padding_r[axis], self.strides[axis]
        if after <= -stride:
            raise InvalidArguments(f"padding_r of {after} is too small, it must be larger than -stride, {-stride}")

    def _check_axis(self, axis: int, name: str) -> None:
        """Raise InvalidArguments unless dst has the size that the other fields give."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ConvolutionForward(ConvolutionDesc):
    """dst[n, o, y, x] = bias[o] + sum over c, r, s of weights[o, c, r, s] * src[n, c, i, j]

    with i = y*sh + r*(dh+1) - pt and j = x*sw + s*(dw+1) - pl; with 1, 2 or 3 spatial axes alike.

    src: (n, c, [d, [h,]] w); weights: (o, c, [kd, [kh,]] kw), or (g, o / g, c / g, ...) for g groups of channels; bias:
    (o,) or None; dst: (n, o, [od, [oh,]] ow); every format may be "any".  n and the sizes of axes of src and dst may be
    0: a dst without elements is not written.
    For each axis, outermost first: strides >= 1 (default 1); dilations >= 0, 0 being dense (default); padding_l >= 0
    and padding_r > -stride, before and after src (default 0), each as large as you like.  Elements outside src count
    as zero.  Raises InvalidArguments if sizes do not fit together.
    algorithm: an Algorithm, or "direct", "auto" or "winograd".
    The fields and their limits are oneDNN's (convolution_forward::primitive_desc).
    """

    def _check_axis(self, axis: int, name: str) -> None:
        size, out, stride = self.src.dims[2 + axis], self.dst.dims[2 + axis], self.strides[axis]
        extent = self._extent(axis)
        self._check_padding_r(axis)
        padded = size + self.padding_l[axis] + self.padding_r[axis]
        room = padded - extent
        made = room // stride + 1
        if room < 0 and (out or made < 0):
            raise InvalidArguments(f"weights' {name} of {extent} (dilated) exceeds the padded src's {padded}")
        if made != out:
            raise InvalidArguments(f"dst's {name} is {out}, src, weights, strides and padding make it {made}")


@dataclass(frozen=True, slots=True)
class DeconvolutionForward(ConvolutionDesc):
    """The adjoint of a convolution, also called transposed: every pixel of src adds a window to dst.

    dst[n, o, y, x] = bias[o] + sum over c, i, j, r, s of weights[o, c, r, s] * src[n, c, i, j]

    over all i, j, r, s with y = i*sh + r*(dh+1) - pt and x = j*sw + s*(dw+1) - pl; with 1, 2 or 3 spatial axes alike.

    Tensors are as in ConvolutionForward, src being the smaller one where there are strides.  padding_l >= 0 and
    padding_r > -stride are cut off dst, so that a negative padding_r adds pixels to it (frameworks' output padding).
    For each axis dst has (src - 1) * stride + (kernel - 1) * (dilation + 1) + 1 - padding_l - padding_r pixels.
    Raises InvalidArguments if sizes do not fit together.
    The fields and their limits are oneDNN's (deconvolution_forward::primitive_desc).
    """

    algorithm: Algorithm | ConvolutionAlgorithm = Algorithm.deconvolution_direct

    @property
    def parts(self) -> int:
        return prod(self.strides)

    def _check_axis(self, axis: int, name: str) -> None:
        size, out, stride = self.src.dims[2 + axis], self.dst.dims[2 + axis], self.strides[axis]
        self._check_padding_r(axis)
        made = (size - 1) * stride + self._extent(axis) - self.padding_l[axis] - self.padding_r[axis] if size else 0
        if made < 0:
            raise InvalidArguments(
                f"padding of {self.padding_l[axis]} and {self.padding_r[axis]} leaves nothing of dst's {name}"
            )
        if made != out:
            raise InvalidArguments(f"dst's {name} is {out}, src, weights, strides and padding make it {made}")


def channels_of_group(desc: ConvolutionDesc, name: str) -> int:
    """How many channels of src or dst each group has."""
    return desc.tensors()[name].dims[1] // desc.groups
