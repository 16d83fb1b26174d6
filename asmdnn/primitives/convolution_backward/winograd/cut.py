"""How to cut a Winograd gradient of weights: the form, chunks of tiles, units of diff_weights; and what lies where."""

from collections.abc import Iterator

from asmdnn.generators.winograd.forms import FORMS
from asmdnn.isa.lines import LINE_BYTES, odd_lines
from asmdnn.planning.cuts import balanced
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.winograd.cut import tiles_of
from asmdnn.primitives.convolution_backward.weights_units import GradientPanels
from asmdnn.records import dataclass
from asmdnn.types import f32


@dataclass(frozen=True, slots=True)
class GradientCut:
    """m: gradients of results along an axis of a tile.  tiles: of a chunk, at most, unless a row of them has more.
    rows: input channels of a unit, whole blocks of a panel or all.  panels: of output channels of a unit.
    """

    m: int
    tiles: int
    rows: int
    panels: int

    def __str__(self) -> str:
        return f"F({self.m}x{self.m},3x3) chunks of {self.tiles} tiles, units of {self.rows} by {self.panels} panels"


@dataclass(frozen=True, slots=True)
class TileChunk:
    """The tiles [begin, end) of `images` images, counted from the first one of these on."""

    image: int
    images: int
    begin: int
    end: int

    @property
    def tiles(self) -> int:
        return self.end - self.begin

    @property
    def shape(self) -> tuple[int, int, int]:
        """What its records depend on: other images lie further on, that is all."""
        return self.images, self.begin, self.end


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """Counts, and bytes of what is between the transforms: transformed tiles of the largest chunk, and the sums of a
    unit, panel by panel, each with all frequencies.

    Rows of transformed tiles, all channels of one, are padded by a line, and frequencies are an odd number of lines
    apart: else the (m + 2)^2 places that one transform writes would share a few sets of L1.
    """

    frequencies: int
    panel_count: int
    source_vectors: int
    result_vectors: int
    source_row_bytes: int
    source_frequency_bytes: int
    result_row_bytes: int
    result_frequency_bytes: int
    sums_frequency_bytes: int

    @property
    def source_bytes(self) -> int:
        return self.frequencies * self.source_frequency_bytes

    @property
    def result_bytes(self) -> int:
        return self.frequencies * self.result_frequency_bytes

    @property
    def sums_panel_bytes(self) -> int:
        return self.frequencies * self.sums_frequency_bytes


def sizes_of(g: ConvGeometry, cut: GradientCut, panels: GradientPanels) -> ChunkSizes:
    lanes = panels.lanes
    tiles = max(chunk.tiles for chunk in chunks_of(g, cut))
    source_vectors, result_vectors = (-(-g.groups * channels // lanes) for channels in (g.ic, g.oc))
    source_row, result_row = (
        f32.size_bytes * lanes * vectors + LINE_BYTES for vectors in (source_vectors, result_vectors)
    )
    return ChunkSizes(
        frequencies=FORMS[cut.m].frequencies,
        panel_count=-(-g.oc // (panels.vectors * lanes)),
        source_vectors=source_vectors,
        result_vectors=result_vectors,
        source_row_bytes=source_row,
        source_frequency_bytes=odd_lines(tiles * source_row),
        result_row_bytes=result_row,
        result_frequency_bytes=odd_lines(tiles * result_row),
        sums_frequency_bytes=odd_lines(min(cut.rows, g.ic) * panels.row_bytes),
    )


def chunks_of(g: ConvGeometry, cut: GradientCut) -> list[TileChunk]:
    """In order: some whole images each, or rows of tiles of one."""
    image = tiles_of(g, cut.m)
    if image <= cut.tiles:
        return list(of_images(g.mb, cut.tiles // image, image))
    rows = -(-g.axes[0].o // cut.m)
    across, found = image // rows, []
    strips = balanced(rows, max(1, cut.tiles // across))
    for n in range(g.mb):
        begin = 0
        for strip in strips:
            found.append(TileChunk(n, 1, begin, begin + strip * across))
            begin += strip * across
    return found


def of_images(images: int, most: int, tiles: int) -> Iterator[TileChunk]:
    at = 0
    for count in balanced(images, most):
        yield TileChunk(at, count, 0, count * tiles)
        at += count
