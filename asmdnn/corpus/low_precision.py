"""The specs of tiles of other types than f32: the cases of f32 tiles, and every cut of a group of k."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

from asmdnn.corpus import conv, matmul
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.matmul import UNROLL, MatmulTileSpec
from asmdnn.generators.functions.chain import operands_of
from asmdnn.generators.functions.postops import OLD_DST
from asmdnn.isa.dot import DOTS, F32, Types
from asmdnn.isa.vectors import f32_level, lanes_of

EVERY = 5  # of the chains that read tensors, which do not depend on what is multiplied
LEVELS_OF_TYPES = tuple((types, level.name) for types, level in DOTS if types != F32)


def groups(isa: str, types: Types) -> Iterator[MatmulTileSpec]:
    """Depths around a group and around the loop; groups dense, and apart as the rows of a transposed src."""
    lanes, group = lanes_of(isa), types.group
    loop = 2 * UNROLL * group
    for depth in (*range(1, 2 * group + 2), *range(loop - 1, loop + group + 2)):
        for rows, columns in ((3, lanes + 1), (1, 2 * lanes + 1), (1, lanes)):
            yield matmul.tile(isa, rows, columns, depth, types=types)
        yield matmul.tile(isa, 2, lanes, depth, types=types, src_row_bytes=4, src_depth_bytes=24)
        yield matmul.tile(isa, 2, lanes + 1, depth, types=types, packs=True, panel_vectors=2)


def regrouped(specs: Iterator[MatmulTileSpec], isa: str, types: Types) -> Iterator[MatmulTileSpec]:
    """Tiles of f32 with as many groups of other types, the last ones cut in turn.

    Left out is what has no meaning: sums of integers in dst that a post-op reads as f32.
    """
    for number, spec in enumerate(specs):
        tile = spec.tile
        if not (tile.accumulate and not tile.scaled and OLD_DST in operands_of(tile.post_ops)):
            depth = max(0, tile.depth * types.group - number % types.group)
            yield MatmulTileSpec(replace(tile, isa=isa, types=types, depth=depth))


def _of(family: Callable[[str], Iterator[MatmulTileSpec]]) -> Callable[[str, Types], Iterator[MatmulTileSpec]]:
    return lambda isa, types: regrouped(family(f32_level(isa)), isa, types)


def operands(isa: str, types: Types) -> Iterator[MatmulTileSpec]:
    """Some chains of post-ops that read tensors."""
    yield from tuple(regrouped(matmul.operands(f32_level(isa)), isa, types))[::EVERY]


def conv_tiles(isa: str, types: Types) -> Iterator[ConvTileSpec]:
    """Convolutions: runs of channels, groups of pixels, starts and ends, tails; last groups of channels cut in turn."""
    level = f32_level(isa)
    of_f32 = chain(conv.runs(level), conv.groups(level), conv.ends(level), tuple(conv.tails(level))[::EVERY])
    for number, spec in enumerate(of_f32):
        if not (spec.accumulate and OLD_DST in operands_of(spec.post_ops)):
            cut = number % types.group
            taps = tuple(replace(x, channels=max(1, x.channels * types.group - cut)) for x in spec.groups)
            yield replace(spec, isa=isa, types=types, groups=taps)


_PRODUCTS: dict[str, Callable[[str, Types], Iterator[MatmulTileSpec]]] = {
    "groups": groups,
    **{family.__name__: _of(family) for family in (matmul.tiles, matmul.ends, matmul.packing, matmul.items)},
    "operands": operands,
}
FAMILIES: dict[str, Callable[[], Iterator[MatmulTileSpec | ConvTileSpec]]] = {
    **{f"conv-{types}-{isa}": partial(conv_tiles, isa, types) for types, isa in LEVELS_OF_TYPES},
    **{
        f"matmul-{name}-{types}-{isa}": partial(family, isa, types)
        for types, isa in LEVELS_OF_TYPES
        for name, family in _PRODUCTS.items()
    },
}
