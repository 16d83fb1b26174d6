"""Tiles whose end rounds two vectors of a row by one instruction: even and odd numbers of vectors, tails, padding, and
chains of post-ops short enough for it, and too long."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from asmdnn.corpus import conv, matmul
from asmdnn.corpus.typed_conv import of_types
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.conv_shape import ARGUMENTS as CONV_ARGUMENTS
from asmdnn.generators.dot.matmul import MatmulTileSpec
from asmdnn.generators.dot.matmul_shape import ARGUMENTS
from asmdnn.generators.functions.postops import BinaryOp, EltwiseOp, Operand, PostOp, ReluOp, SumOp
from asmdnn.isa.dot import DOTS, Types
from asmdnn.isa.elements import native_element
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.records import replace
from asmdnn.types import bf16

LEVELS = tuple((types, level.name) for types, level in DOTS if native_element(bf16, level.name).narrows_pairs)


def chains(isa: str, first: int) -> Iterator[tuple[PostOp, ...]]:
    """None, a maximum, a tensor of bf16 and what dst held, and a function of many steps; first: the argument."""
    tensor = Operand(first, 0, bf16.size_bytes * lanes_of(isa), False)
    yield ()
    yield (ReluOp(0.0),)
    yield BinaryOp("mul", tensor), SumOp(1.0), ReluOp(0.25)
    yield (EltwiseOp("gelu_erf", 0.0, 0.0, 1.0),)


def conv_tiles(isa: str, types: Types) -> Iterator[ConvTileSpec]:
    level, lanes = f32_level(isa), lanes_of(isa)
    for number, post_ops in enumerate(chains(isa, len(CONV_ARGUMENTS))):
        fields: dict[str, Any] = {"post_ops": post_ops, "operand_types": (bf16,) * (number == 2), "bias": number > 0}
        for tile in (
            conv.plain(level, 5, 2 * lanes, **fields),
            conv.plain(level, 3, 3 * lanes, 1, **fields),
            conv.plain(level, 2, 4 * lanes - 3, 1, **fields),
            conv.plain(level, 3, lanes + 1, 1, whole_vectors=True, dst_pixel_bytes=10 * lanes, **fields),
        ):
            yield of_types(tile, isa, types, bf16, number % types.group)


def streamed_tiles(isa: str, types: Types) -> Iterator[ConvTileSpec]:
    """Pairs that fill lines, past the caches; a vector without another one beside it, and a tail."""
    level, lanes = f32_level(isa), lanes_of(isa)
    for channels, post_ops in ((2 * lanes, ()), (3 * lanes, (ReluOp(0.0),)), (4 * lanes - 3, ())):
        tile = conv.plain(level, 3, channels, bias=True, post_ops=post_ops, dst_pixel_bytes=16 * lanes, streams=True)
        yield of_types(tile, isa, types, bf16)


def matmul_tiles(isa: str, types: Types) -> Iterator[MatmulTileSpec]:
    lanes = lanes_of(isa)
    for number, post_ops in enumerate(chains(isa, len(ARGUMENTS))):
        for rows, columns in ((5, 2 * lanes), (3, 3 * lanes), (2, 4 * lanes - 3)):
            tile = matmul.tile(isa, rows, columns, types.group + 1, types=types, dst=bf16, post_ops=post_ops).tile
            yield MatmulTileSpec(tile=replace(tile, operand_types=(bf16,) * (number == 2)))


FAMILIES = {
    **{f"conv-pairs-{types}-{isa}": partial(conv_tiles, isa, types) for types, isa in LEVELS},
    **{f"conv-streamed-pairs-{types}-{isa}": partial(streamed_tiles, isa, types) for types, isa in LEVELS},
    **{f"matmul-pairs-{types}-{isa}": partial(matmul_tiles, isa, types) for types, isa in LEVELS},
}
