"""How to cut a Winograd convolution: the form, the register block, blocks of tiles; and the candidates."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import gcd

from asmdnn.generators.dot import conv_shape
from asmdnn.generators.winograd.forms import FORMS
from asmdnn.isa.dot import F32, Types
from asmdnn.isa.lines import LINE_BYTES, odd_lines
from asmdnn.isa.vectors import lanes_of
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.records import dataclass

MOST_VECTORS = 3  # of output channels in a panel
Form = tuple[int, Types]  # results of a tile along an axis, and what is multiplied


@cache
def rows_of(isa: str, types: Types = F32) -> Mapping[int, int]:
    """Rows of the register block for each number of vectors of output channels, as in the tiles of convolutions."""
    return {vectors: rows for vectors, rows in conv_shape.blocks_of(types, isa).items() if vectors <= MOST_VECTORS}


@dataclass(frozen=True, slots=True)
class WinogradCut:
    """m: results along an axis of a tile.  vectors: of output channels in a panel of weights.  block: tiles that are
    transformed and multiplied together, 0 for all of them at once.  panels: of output channels whose products are held.
    groups: of channels that are computed together; their panels are held all at once, if they are several.
    types: what is multiplied, transformed, in whatever types tensors are.
    """

    m: int
    vectors: int
    block: int
    panels: int
    groups: int = 1
    types: Types = F32

    @property
    def is_fused(self) -> bool:
        return self.block > 0

    def __str__(self) -> str:
        how = f"blocks of {self.block}, {self.panels} panels at once" if self.is_fused else "three phases"
        groups = f", {self.groups} groups" * (self.groups > 1)
        types = f" of {self.types.src}" * (self.types != F32)
        return f"F({self.m}x{self.m},3x3){types} panels of {self.vectors} vectors, {how}{groups}"


@dataclass(frozen=True, slots=True)
class CutSizes:
    """Of the groups of channels that a cut computes together: counts, and bytes of what is between the transforms.

    source_vectors, result_vectors: of their channels in src and dst.  panels: of the output channels of one group.

    Channels of groups lie side by side, though no whole vectors: then the products of one are whole vectors that reach
    into the next one's place, which are computed after them.

    Tiles lie `rows` together, each run with all its frequencies: a register block, or all of a fused block, in whole
    register blocks.  So the distance of frequencies, which kernels contain, hardly depends on how many tiles there are.
    Rows are padded by a line, and frequencies are an odd number of lines apart: else the (m + 2)^2 places that one
    transform writes would share a few sets of L1.
    """

    tiles: int
    together: int
    rows: int
    frequencies: int
    source_vectors: int
    result_vectors: int
    panels: int
    panel_bytes: int
    source_row_bytes: int
    source_frequency_bytes: int
    products_row_bytes: int
    products_frequency_bytes: int

    @property
    def source_block_bytes(self) -> int:
        """From a run of tiles to the next one."""
        return self.frequencies * self.source_frequency_bytes

    @property
    def products_block_bytes(self) -> int:
        return self.frequencies * self.products_frequency_bytes

    @property
    def source_bytes(self) -> int:
        """With the room of runs that have fewer tiles."""
        return -(-self.together // self.rows) * self.source_block_bytes

    @property
    def products_bytes(self) -> int:
        return -(-self.together // self.rows) * self.products_block_bytes

    def steps(self, rows: int) -> tuple[int, int]:
        """From a register block of so many rows to the next one, in the transformed source and in the products."""
        if self.together <= self.rows:
            return rows * self.source_row_bytes, rows * self.products_row_bytes
        return self.source_block_bytes, self.products_block_bytes

    @property
    def source_held_bytes(self) -> int:
        """What transforms fill of it."""
        return self.frequencies * self.together * self.source_row_bytes

    @property
    def products_held_bytes(self) -> int:
        return self.frequencies * self.together * self.products_row_bytes

    @property
    def group_bytes(self) -> int:
        """Weights of a group."""
        return self.frequencies * self.panels * self.panel_bytes


def sizes_of(g: ConvGeometry, cut: WinogradCut, isa: str, images: int) -> CutSizes:
    """Of so many images."""
    lanes, rows = lanes_of(isa), rows_of(isa, cut.types)[cut.vectors]
    tiles = images * tiles_of(g, cut.m)
    together = min(cut.block, tiles) if cut.is_fused else tiles
    rows *= -(-together // rows) if cut.is_fused else 1  # maybe larger than L2: streams
    source_vectors, result_vectors = (-(-cut.groups * channels // lanes) for channels in (g.ic, g.oc))
    width = lanes * cut.vectors
    panels, sum_bytes = -(-g.oc // width), cut.types.sums.size_bytes
    held_bytes = sum_bytes * (width * cut.panels if cut.groups == 1 else lanes * result_vectors)
    source_row, products_row = (
        size + LINE_BYTES for size in (cut.types.src.size_bytes * lanes * source_vectors, held_bytes)
    )
    return CutSizes(
        tiles=tiles,
        together=together,
        rows=rows,
        frequencies=FORMS[cut.m].frequencies,
        source_vectors=source_vectors,
        result_vectors=result_vectors,
        panels=panels,
        panel_bytes=steps_of(g, cut) * cut.types.weights_bytes * width,
        source_row_bytes=source_row,
        source_frequency_bytes=odd_lines(rows * source_row),
        products_row_bytes=products_row,
        products_frequency_bytes=odd_lines(rows * products_row),
    )


def steps_of(g: ConvGeometry, cut: WinogradCut) -> int:
    """Of a sum: input channels, as many at a time as one multiply takes."""
    return -(-g.ic // cut.types.group)


def tiles_of(g: ConvGeometry, m: int) -> int:
    """Tiles of an image."""
    rows, cols = (-(-axis.o // m) for axis in g.axes)
    return rows * cols


def records_of_image(g: ConvGeometry, cut: WinogradCut, isa: str) -> int:
    """Of a cut in blocks, about, and of the groups that are computed together."""
    tiles, sizes = tiles_of(g, cut.m), sizes_of(g, cut, isa, 1)
    chunks, blocks = -(-sizes.panels // cut.panels), -(-tiles // cut.block)
    return tiles * (1 + chunks) + 2 * blocks * sizes.frequencies * sizes.panels * cut.groups


def candidates(g: ConvGeometry, isa: str, forms: Sequence[Form], widths: Sequence[int]) -> Iterator[WinogradCut]:
    """Every cut that may be the fastest, of these forms and numbers of vectors: blocks are whole register blocks."""
    lanes = lanes_of(isa)
    together = groups_together(g, lanes)
    for m, types in forms:
        tiles = g.mb * tiles_of(g, m)
        for vectors in widths:
            panels = -(-g.oc // (lanes * vectors))
            whole = g.groups == 1 or g.oc % lanes == 0  # phases share out groups, whose products must not overlap then
            yield WinogradCut(m, vectors, 0 if whole else tiles, panels, g.groups, types)
            for groups in together:
                held = sorted({1, panels}) if groups == 1 else [panels]
                for block in blocks_of(tiles, rows_of(isa, types)[vectors], g.groups // groups):
                    yield from (WinogradCut(m, vectors, block, n, groups, types) for n in held)


def groups_together(g: ConvGeometry, lanes: int) -> list[int]:
    """How many groups may be computed together: equal shares of all, of whole vectors of channels unless it is all."""
    return [
        n
        for n in range(1, g.groups + 1)
        if g.groups % n == 0 and (n == g.groups or (n * g.ic % lanes == 0 and n * g.oc % lanes == 0))
    ]


def blocks_of(tiles: int, rows: int, shares: int = 1) -> list[int]:
    """Sizes of blocks to consider, about whole register blocks of so many rows; few blocks are ones that threads can
    share: about a multiple of four, and an even number.  Of several tiles none is alone: its one row of products would
    wait for weights.  shares: into how many equal parts channels are cut."""
    counts = [-(-tiles // (times * rows)) for times in REGISTER_BLOCKS]
    unit = SHARES // gcd(SHARES, shares)
    sizes = dict.fromkeys(-(-tiles // (n if n * shares >= MANY else -(-n // unit) * unit)) for n in counts)
    made = {size: shares * -(-tiles // size) for size in sizes if size > 1 or tiles == 1}
    return [size for size, count in made.items() if count >= SHARES and (count % 2 == 0 or count >= MANY // 2)]


REGISTER_BLOCKS = (1, 2, 4, 6, 8)  # in a block of tiles
SHARES, MANY = 4, 16
