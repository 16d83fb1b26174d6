"""The descriptions of backward convolutions and deconvolutions, validated at once.

With the forward pass dst = convolution(src, weights) + bias of description.py in convolution/, of a loss L:

    backward data       diff_src[n, i, y, x] = dL / dsrc, from diff_dst = dL / ddst and weights
    backward weights    diff_weights[o, i, r, s] = dL / dweights, from diff_dst and src
                        diff_bias[o] = dL / dbias = sum over n, v, u of diff_dst[n, o, v, u]

Tensors have the dims of the forward pass, with 1, 2 or 3 spatial axes and groups; every format may be "any".  Names are
oneDNN's (convolution_backward_data and so on).  `of` makes a description for a forward pass as it was planned.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import activations, desc_words, weights
from asmdnn.primitives.convolution.description import ConvolutionDesc, ConvolutionForward, DeconvolutionForward
from asmdnn.primitives.core.backward import BackwardDesc
from asmdnn.primitives.core.description import WithFormats, asked
from asmdnn.primitives.shapes.tensors import check_descs
from asmdnn.records import dataclass
from asmdnn.types import Algorithm, ConvolutionAlgorithm

WINDOW = ("strides", "dilations", "padding_l", "padding_r", "algorithm")
OF_DATA = {"src": "diff_src", "weights": "weights", "dst": "diff_dst"}
OF_WEIGHTS = {"src": "src", "weights": "diff_weights", "bias": "diff_bias", "dst": "diff_dst"}


@dataclass(frozen=True, slots=True)
class ConvolutionBackward(WithFormats, BackwardDesc):
    """What all of them have in common.  roles: its tensors, by their names there."""

    FORWARD: ClassVar[type[ConvolutionDesc]] = ConvolutionForward
    PACKED = ("weights",)
    roles: ClassVar[Mapping[str, str]] = OF_DATA

    def __post_init__(self) -> None:
        optional = tuple(name for name in self.roles.values() if name == "diff_bias")
        check_descs(self, *[name for name in self.roles.values() if name not in optional], optional=optional)
        try:
            forward = self.forward()
        except InvalidArguments as reason:
            raise InvalidArguments(f"{type(self).__name__}, seen from its forward pass: {reason}") from None
        for name in WINDOW:
            object.__setattr__(self, name, getattr(forward, name))

    def forward(self) -> ConvolutionDesc:
        """The forward pass.  Raises InvalidArguments if sizes do not fit together."""
        every: dict[str, Any] = {role: getattr(self, name) for role, name in self.roles.items()}
        return self.FORWARD(**every, **{name: getattr(self, name) for name in WINDOW})

    def tensors(self) -> dict[str, MemoryDesc]:
        """The descriptors by argument name; without diff_bias if there is none."""
        return asked(self)

    def letters(self, name: str, tensor: MemoryDesc) -> str:
        """What the dims of a tensor are called where its format is printed."""
        if name.endswith("weights"):
            return weights(tensor.ndims, self.forward().has_groups)
        return activations(tensor.ndims) if name.endswith(("src", "dst")) else ""

    def __str__(self) -> str:
        tensors = ", ".join(
            f"{name} {desc_words(desc, self.letters(name, desc))}" for name, desc in self.tensors().items()
        )
        p = self.forward()
        window = f"strides {p.strides}, dilations {p.dilations}, padding {p.padding_l} {p.padding_r}"
        return f"{type(self).__name__} of {tensors}, {window}"


@dataclass(frozen=True, slots=True)
class GradientOfData(ConvolutionBackward):
    """Its tensors and window."""

    diff_src: MemoryDesc
    weights: MemoryDesc
    diff_dst: MemoryDesc
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    padding_l: tuple[int, ...] = ()
    padding_r: tuple[int, ...] = ()
    algorithm: Algorithm | ConvolutionAlgorithm = Algorithm.convolution_direct


@dataclass(frozen=True, slots=True)
class GradientOfWeights(ConvolutionBackward):
    """Its tensors and window."""

    roles: ClassVar[Mapping[str, str]] = OF_WEIGHTS
    src: MemoryDesc
    diff_weights: MemoryDesc
    diff_dst: MemoryDesc
    diff_bias: MemoryDesc | None = None
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    padding_l: tuple[int, ...] = ()
    padding_r: tuple[int, ...] = ()
    algorithm: Algorithm | ConvolutionAlgorithm = Algorithm.convolution_direct


@dataclass(frozen=True, slots=True)
class ConvolutionBackwardData(GradientOfData):
    """diff_src[n, i, y, x] = sum over o, v, u, r, s of weights[o, i, r, s] * diff_dst[n, o, v, u]

    over all v, u, r, s with y = v*sh + r*(dh+1) - pt and x = u*sw + s*(dw+1) - pl; a pixel of src that no window
    reaches gets 0.  Dims and window are those of ConvolutionForward.
    algorithm: an Algorithm, or "direct", "auto" or "winograd".  Raises InvalidArguments if sizes do not fit together.
    """


@dataclass(frozen=True, slots=True)
class DeconvolutionBackwardData(GradientOfData):
    """diff_src[n, i, v, u] = sum over o, r, s of weights[o, i, r, s] * diff_dst[n, o, y, x]

    with y = v*sh + r*(dh+1) - pt and x = u*sw + s*(dw+1) - pl: a convolution of diff_dst.  Dims and window are those of
    DeconvolutionForward.  Raises InvalidArguments if sizes do not fit together.
    """

    FORWARD = DeconvolutionForward
    algorithm: Algorithm | ConvolutionAlgorithm = Algorithm.deconvolution_direct


@dataclass(frozen=True, slots=True)
class ConvolutionBackwardWeights(GradientOfWeights):
    """diff_weights[o, i, r, s] = sum over n, v, u of diff_dst[n, o, v, u] * src[n, i, y, x]; diff_bias: sums

    with y = v*sh + r*(dh+1) - pt and x = u*sw + s*(dw+1) - pl, products with padding left out.  diff_bias may be None.
    Dims and window are those of ConvolutionForward; diff_weights of format "any" get panels as the forward pass reads
    them.  Raises InvalidArguments if sizes do not fit together.
    """


@dataclass(frozen=True, slots=True)
class DeconvolutionBackwardWeights(GradientOfWeights):
    """diff_weights[o, i, r, s] = sum over n, v, u of diff_dst[n, o, y, x] * src[n, i, v, u]; diff_bias: sums

    with y and x as above: the same sum with the roles of src and diff_dst exchanged.  Dims and window are those of
    DeconvolutionForward.  Raises InvalidArguments if sizes do not fit together.
    """

    FORWARD = DeconvolutionForward
    algorithm: Algorithm | ConvolutionAlgorithm = Algorithm.deconvolution_direct


BackwardWeights = ConvolutionBackwardWeights | DeconvolutionBackwardWeights
BackwardData = ConvolutionBackwardData | DeconvolutionBackwardData
