"""The primitives that convolutions of arrays are: the window's numbers, descriptions, formats of weights."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from asmdnn.errors import InvalidArguments, counted, did_you_mean, shown
from asmdnn.memory import MemoryDesc
from asmdnn.ops.arguments import pads, per_axis
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.description import ConvolutionForward, DeconvolutionForward
from asmdnn.primitives.convolution.words import algorithm_of
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.shapes.windows import MAX_SIZE
from asmdnn.records import dataclass
from asmdnn.types import DataType, f32

PADDINGS = ("same", "valid")
USUAL_PIXELS = 28  # of an axis of dst that weights are packed for if no shape is given

Convolution = ConvolutionForward | DeconvolutionForward


@dataclass(frozen=True, slots=True)
class ConvFunction:
    """An array function: its name, its spatial axes, and whether it is the adjoint."""

    name: str
    axes: int
    transposed: bool = False

    @property
    def primitive(self) -> str:
        return "deconvolution" if self.transposed else "convolution"


class ConvWindow(NamedTuple):
    """stride, dilation (1 is dense), padding and output_padding as callers give them; groups of channels."""

    stride: Any
    padding: Any
    dilation: Any
    groups: Any = 1
    output_padding: Any = 0
    algorithm: Any = "direct"
    data_format: Any = None

    def plain(self, kind: ConvFunction) -> tuple[Any, ...]:
        """As they are given if they are plain integers, which True and 1.0 are not, though equal to one; else tuples.

        Raises InvalidArguments.
        """
        stride, padding, dilation, groups, more, algorithm, data_format = self
        if type(groups) is not int or not 1 <= groups <= MAX_SIZE:
            raise InvalidArguments(f"groups must be an integer of at least 1, below 2**31, not {shown(groups)}")
        if type(algorithm) is not str:
            algorithm_of(kind.primitive, algorithm)
        if type(stride) is type(padding) is type(dilation) is type(more) is int:
            return self
        axes = kind.axes
        return (
            stride if type(stride) is int else per_axis("stride", stride, axes, 1),
            padding if type(padding) is int else self._padding(kind),
            dilation if type(dilation) is int else per_axis("dilation", dilation, axes, 1),
            groups,
            more if type(more) is int else per_axis("output_padding", more, axes, 0),
            algorithm,
            data_format,
        )

    def _padding(self, kind: ConvFunction) -> str | tuple[int, ...]:
        """A word as it is: what it stands for depends on x."""
        if not isinstance(self.padding, str) or kind.transposed:
            return pads(self.padding, kind.axes)
        if self.padding not in PADDINGS:
            near = did_you_mean(self.padding, PADDINGS)
            raise InvalidArguments(f"padding must be integers or a word, not {shown(self.padding)}: {near}")
        return self.padding


def any_format(desc: MemoryDesc | None) -> MemoryDesc:
    assert desc is not None
    return MemoryDesc(desc.dims, desc.dtype, "any")


def plain_weights(kind: ConvFunction, shape: tuple[int, ...], groups: int, dtype: DataType = f32) -> MemoryDesc:
    """Dense weights as a primitive describes them: (o, c / groups, ...), of an adjoint (c, o / groups, ...)."""
    if len(shape) != kind.axes + 2:
        raise InvalidArguments(f"weights has dims {shape}, {kind.axes + 2} are needed")
    if not all(shape):
        raise InvalidArguments(f"weights has an empty dim, every one must be at least 1: {shape}")
    first, second, *window = shape
    if first % groups:
        raise InvalidArguments(f"weights has dims {shape}: the first must be a multiple of groups, {groups}")
    dims, letters = (groups, first // groups, second, *window), "abcdef"[: kind.axes + 3]
    if kind.transposed:
        dims, letters = (groups, second, first // groups, *window), "acb" + letters[3:]
    if groups > 1:
        return MemoryDesc(dims, dtype, letters)
    return MemoryDesc(dims[1:], dtype, "".join(chr(ord(letter) - 1) for letter in letters[1:]))


def description(
    kind: ConvFunction, src: MemoryDesc, weights: MemoryDesc, bias: MemoryDesc | None, window: ConvWindow
) -> Convolution:
    """The convolution with a dense result.  Raises InvalidArguments."""
    image = src.dims
    axes, groups = kind.axes, weights.dims[0] if weights.ndims == kind.axes + 3 else 1
    if len(image) != axes + 2 or weights.ndims not in (axes + 2, axes + 3):
        raise InvalidArguments(f"x has dims {image}, weights {weights.dims}: both must have {axes + 2}")
    if groups != window.groups:
        raise InvalidArguments(f"groups is {window.groups}, weights are packed for {groups}")
    channels = groups * weights.dims[-axes - 1]
    if image[1] != channels:
        raise InvalidArguments(f"x has {counted(image[1], 'channel')}, weights are for {channels}: make them equal")
    strides, dilations = (
        per_axis(name, value, axes, 1) for name, value in (("stride", window.stride), ("dilation", window.dilation))
    )
    kernel = weights.dims[-axes:]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    low, high = both_sides(window.padding, image[2:], strides, extents)
    if kind.transposed:
        more = per_axis("output_padding", window.output_padding, axes, 0)
        high = tuple(h - m for h, m in zip(high, more, strict=True))
        if any(h <= -s for h, s in zip(high, strides, strict=True)):
            raise InvalidArguments(
                f"output_padding is {shown(window.output_padding)}, it must be below the stride, {words(strides)}"
            )
        cut = [before + after for before, after in zip(low, high, strict=True)]
        sizes = [(i - 1) * s + e - c for i, s, e, c in zip(image[2:], strides, extents, cut, strict=True)]
    else:
        padded = [sum(sizes) for sizes in zip(image[2:], low, high, strict=True)]
        sizes = [(p - e) // s + 1 for p, e, s in zip(padded, extents, strides, strict=True)]
        if min(sizes) < 1:
            reach = f", which reach over {words(extents)}" if max(dilations) > 1 else ""
            raise InvalidArguments(f"weights of {words(kernel)}{reach} exceed the padded x of {words(padded)}")
    if min(sizes) < 1:
        raise InvalidArguments(f"padding leaves nothing of the result of x with dims {image}")
    form = DeconvolutionForward if kind.transposed else ConvolutionForward
    return form(
        src=src,
        weights=weights,
        bias=bias,
        dst=MemoryDesc((image[0], groups * weights.dims[groups > 1], *sizes), f32, "abx"),
        strides=strides,
        dilations=tuple(d - 1 for d in dilations),
        padding_l=low,
        padding_r=high,
        algorithm=algorithm_of(kind.primitive, window.algorithm),
    )


@lru_cache(1000)
def result_dims(
    kind: ConvFunction, image: tuple[int, ...], weights: tuple[int, ...], window: ConvWindow
) -> tuple[int, ...]:
    src, plain = (MemoryDesc(dims, f32, "any") for dims in (image, weights))
    return description(kind, src, plain, None, window).dst.dims


def both_sides(
    padding: Any, pixels: Sequence[int], strides: Sequence[int], extents: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What lies before x along each axis, and what after.

    "same" makes as many results as there are pixels, divided by the stride and rounded up; an odd pixel comes after,
    as in torch, and in ONNX's SAME_UPPER.
    """
    axes = len(pixels)
    if padding == "same":
        sizes = zip(pixels, strides, extents, strict=True)
        total = [max(0, (-(-pixel // stride) - 1) * stride + extent - pixel) for pixel, stride, extent in sizes]
        return tuple(all_of // 2 for all_of in total), tuple(all_of - all_of // 2 for all_of in total)
    numbers = pads(0 if padding == "valid" else padding, axes)
    return numbers[:axes], numbers[axes:]


def words(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))


def packing_desc(
    kind: ConvFunction,
    plain: MemoryDesc,
    image: tuple[int, ...] | None,
    window: ConvWindow,
    planned: tuple[Attr, Engine | None],
    src: DataType = f32,
) -> MemoryDesc:
    """The format of weights for images of these dims, whose elements are of type `src`; planned: with what."""
    strides, dilations = (
        per_axis(name, n, kind.axes, 1) for name, n in (("stride", window.stride), ("dilation", window.dilation))
    )
    kernel, channels = plain.dims[-kind.axes :], window.groups * plain.dims[-kind.axes - 1]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if kind.transposed:  # parts of one kernel position are all alike, however many there are
        image = image or (1, channels, *[USUAL_PIXELS] * kind.axes)
        window = window._replace(padding=0, output_padding=0, stride=tuple(map(min, strides, extents)))
    elif image is None:
        pixels = [(USUAL_PIXELS - 1) * s + extent for s, extent in zip(strides, extents, strict=True)]
        image, window = (1, channels, *pixels), window._replace(padding=0)
    desc = description(kind, MemoryDesc(image, src, "abx"), any_format(plain), None, window)
    return primitive_desc(desc, *planned).plan.tensors["weights"]
