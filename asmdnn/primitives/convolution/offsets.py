"""The offsets in a convolution's records: those of tiles, panels, groups, images and pieces of an image."""

from collections.abc import Mapping
from math import prod

import numpy as np

from asmdnn.exact import exact
from asmdnn.generators.dot.conv_shape import ARGUMENTS
from asmdnn.planning.phase import Int64, records_of
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout
from asmdnn.primitives.convolution.operands import TileOperand
from asmdnn.primitives.convolution.tiles import Tiles
from asmdnn.records import dataclass

OF_WEIGHTS = ("weights", "prefetched")  # the arguments that advance with the weights of an image
Steps = tuple[int, ...]  # bytes of every argument


@exact
@dataclass(frozen=True, slots=True, eq=False)
class ConvPanels:
    """Weights in `count` panels of `width` output channels; of each, a range of input channels takes depth_bytes,
    which are depth_share of it."""

    count: int
    width: int
    panel_bytes: int
    depth_bytes: int
    depth_share: float


@dataclass(frozen=True, slots=True)
class Offsets:
    """Of a geometry's tensors, and of the operands of post-ops by their arguments' names.

    bias_channels: the distance of the start values of neighbouring groups of channels.  vectors: the names of the
    arguments that point to the vectors of dst after the first one, at distances of `vector_bytes`.
    """

    g: ConvGeometry
    operands: Mapping[str, TileOperand]
    bias_channels: int
    vectors: tuple[str, ...] = ()
    vector_bytes: int = 0

    @property
    def arguments(self) -> tuple[str, ...]:
        return (*ARGUMENTS, *self.operands, *self.vectors)

    @property
    def of_dst(self) -> tuple[str, ...]:
        """The arguments that advance with dst."""
        return ("dst", *self.vectors)

    def image_steps(self) -> Steps:
        """The distance that every argument advances from an image to the next one."""
        moves = {"src": self.g.src.image_bytes, **dict.fromkeys(self.of_dst, self.g.dst.image_bytes)}
        moves |= dict.fromkeys(OF_WEIGHTS, self.g.weights_image_bytes)
        moves |= {name: place.layout.image_bytes for name, place in self.operands.items()}
        return tuple(moves.get(name, 0) for name in self.arguments)

    def steps_along(self, axis: int, outputs: int) -> Steps:
        """The distance that every argument advances with so many outputs along an axis."""
        g = self.g
        pixels = outputs * prod(inner.o for inner in g.axes[axis + 1 :])
        moves = {
            "src": outputs * g.axes[axis].s * g.src.axis_bytes[axis],
            **dict.fromkeys(self.of_dst, outputs * g.dst.axis_bytes[axis]),
            **{name: pixels * place.layout.pixel_bytes for name, place in self.operands.items()},
        }
        return tuple(moves.get(name, 0) for name in self.arguments)

    def of_tiles(self, tiles: Tiles, images: range) -> Int64:
        """int64[tiles, 1 + arguments]: for every tile of some images, where its source, its first channel in dst, and
        the operands of post-ops begin."""
        g, image = self.g, np.arange(images.start, images.stop)
        pixels = tiles.first if g.parts == 1 or not self.operands else g.pixels_of_dst(tiles.first)
        dst = of_images(image, g.dst, tiles.dst_bytes)
        columns = {"src": of_images(image, g.src, tiles.src_bytes), **dict.fromkeys(self.of_dst, dst)}
        columns |= {
            name: of_images(image, o.layout, pixels * o.layout.pixel_bytes) for name, o in self.operands.items()
        }
        if g.weights_image_bytes:
            columns |= dict.fromkeys(OF_WEIGHTS, np.repeat(image * g.weights_image_bytes, len(tiles.first)))
        return records_of(self.arguments, columns)

    def of_panels(self, panels: ConvPanels) -> Int64:
        """int64[panels, 1 + arguments]: the offsets of each panel.

        Each prefetches the next one; the last one prefetches the first panel's next range of channels.
        """
        number = np.arange(panels.count)
        channels, begin = panels.width * number, number * panels.panel_bytes
        following = begin + panels.panel_bytes
        following[-1] = panels.depth_bytes
        columns = {"weights": begin, "prefetched": following, "bias": self.g.types.sums.size_bytes * channels}
        dst = self.g.dst.channels(channels)
        columns |= {name: dst + j * self.vector_bytes for j, name in enumerate(self.of_dst)}
        columns |= {name: place.of_channels(channels) for name, place in self.operands.items()}
        return records_of(self.arguments, columns)

    def of_groups(self, group_bytes: int) -> Int64:
        """int64[groups, 1 + arguments]: the offsets of each group of channels; it has `group_bytes` of
        weights."""
        g, number = self.g, np.arange(self.g.groups)
        if g.groups == 1:
            return np.zeros((1, 1 + len(self.arguments)), np.int64)
        first = g.ic * number
        columns = {
            "src": g.src.channels(first // g.types.group) + first % g.types.group * g.types.src.size_bytes,
            "weights": number * group_bytes,
            "bias": g.types.sums.size_bytes * self.bias_channels * number,
            **dict.fromkeys(self.of_dst, g.dst.channels(g.oc * number)),
            "prefetched": number * group_bytes,
            **{name: place.of_channels(g.oc * number) for name, place in self.operands.items()},
        }
        return records_of(self.arguments, columns)


def of_images(image: Int64, layout: ImageLayout, within: Int64) -> Int64:
    """int64[images * n]: where places in an image, in bytes, are in each of these images."""
    starts: Int64 = layout.start_bytes + image * layout.image_bytes
    return starts + within if len(starts) == 1 else np.add.outer(starts, within).ravel()
