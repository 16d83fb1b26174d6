"""Convolution tiles by types: every type of dst and of what post-ops read, starts of pixels, dots of several steps."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from asmdnn.corpus import conv
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.conv_shape import ARGUMENTS, TapGroup, blocks_of
from asmdnn.generators.dot.matmul_shape import RESULTS
from asmdnn.generators.dot.starts import StartsSpec
from asmdnn.generators.functions.postops import BinaryOp, Operand, ReluOp, SumOp
from asmdnn.isa.dot import BF16, DOTS, F16, F32, U8S8, Types, dot_class
from asmdnn.isa.dot_widened import PairsDot, S32Dot, WidenedDot, WordsDot
from asmdnn.isa.levels import AVX2, AVX512_CORE
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.records import replace
from asmdnn.types import DataType, f32, s32

EVERY = 5  # of the cases of f32
LEVELS_OF_TYPES = tuple((types, level.name) for types, level in DOTS)
ENDS = tuple(of for of in LEVELS_OF_TYPES if of[0] in (F32, U8S8, BF16, F16))  # what is stored depends on these
PARTS = tuple(of for of in LEVELS_OF_TYPES if of[0] in (BF16, F16))  # multiplied along rows of a kernel, in pairs
HALVES = tuple(of for of in LEVELS_OF_TYPES if dot_class(*of).has_halves)
SHIFTED = tuple(of for of in LEVELS_OF_TYPES if dot_class(*of).shift)
OTHERS = tuple(of for of in LEVELS_OF_TYPES if dot_class(*of) in (WidenedDot, WordsDot, PairsDot, S32Dot))


def of_types(spec: ConvTileSpec, isa: str, types: Types, dst: DataType, cut: int = 0) -> ConvTileSpec:
    """A tile of f32 with as many groups of other types, whose last one is cut, and another type of dst."""
    groups = tuple(replace(x, channels=max(1, x.channels * types.group - cut)) for x in spec.groups)
    row_bytes = spec.weights_row_bytes // f32.size_bytes * types.weights_bytes
    distances = ("dst_pixel_bytes", "dst_vector_bytes")
    size = {name: getattr(spec, name) // f32.size_bytes * dst.size_bytes for name in distances}
    default = f32 if spec.post_ops else types.sums
    kind = None if dst == default else dst
    return replace(spec, isa=isa, types=types, groups=groups, weights_row_bytes=row_bytes, dst=kind, **size)


def results(isa: str, types: Types) -> Iterator[ConvTileSpec]:
    """Every type of dst, of a bias that waits for the sums, and of what dst held; vectors and tails."""
    level, lanes, first = f32_level(isa), lanes_of(isa), len(ARGUMENTS)
    for cut, dst in enumerate(RESULTS):
        operands = (Operand(first, 0, lanes * dst.size_bytes, False), Operand(first + 1, 0, 0, True))
        post_ops = (BinaryOp("add", operands[0]), BinaryOp("mul", operands[1]), SumOp(0.5), ReluOp(0.0))
        chained: dict[str, Any] = {"post_ops": post_ops, "operand_types": (dst, f32)}
        for tile in (
            conv.blocked(level, 2, 2, channels=2 * lanes - 3, bias=True, **chained),
            conv.plain(level, 3, 2 * lanes - 1),
            conv.plain(level, 2, lanes + 1, 1, **chained),
            conv.plain(level, 1, lanes, 1),
        ):
            yield of_types(tile, isa, types, dst, cut % types.group)


def starts_of_pixels(isa: str, types: Types) -> Iterator[ConvTileSpec]:
    """Pixels that start alike, and not; tails, of which starts have whole vectors."""
    row = 4 * lanes_of(isa)
    for starts in ((0, 0, 0), (3 * row, 0, 3 * row), (0, 3 * row, 6 * row)):
        for channels in (lanes_of(isa), 2 * lanes_of(isa) - 3):
            tile = conv.plain(f32_level(isa), len(starts), channels, 2, bias=True, starts=starts)
            yield of_types(tile, isa, types, s32, 1)


def other_dots(isa: str, types: Types) -> Iterator[ConvTileSpec]:
    """Runs of channels and groups of pixels, for dots that are more than a multiply of what lies in memory."""
    level, blocks = f32_level(isa), blocks_of(types, isa)
    cases = (*conv.runs(level), *conv.groups(level), *conv.tails(level))
    for number, spec in enumerate(cases[::EVERY]):
        if len(spec.src_pixel_bytes) <= blocks[spec.vectors]:
            yield of_types(spec, isa, types, f32 if spec.post_ops else types.sums, number % types.group)


def parts_of_groups(isa: str, types: Types) -> Iterator[ConvTileSpec]:
    """Runs whose last group is cut, after others and alone, and groups that lack their first element."""
    pixels = (0, 6, 14, 2, 26)  # not at multiples of a group
    every, some = tuple(range(len(pixels))), (1, 2, 3)
    row_bytes = types.weights_bytes * lanes_of(isa)
    for vectors, size in ((1, 3), (2, 5), (3, 15)):
        for groups in (
            (TapGroup(every, size), TapGroup(some, 2, 1), TapGroup((4,), 1)),
            (TapGroup((0,), 2, 1), TapGroup((0,), size), TapGroup(every, size + 1), TapGroup(every, 2, 1)),
        ):
            fields: dict[str, Any] = {
                "src_pixel_bytes": pixels,
                "weights_row_bytes": vectors * row_bytes,
                "prefetch_lines": 2,
            }
            tile = conv.plain(f32_level(isa), len(pixels), vectors * lanes_of(isa) - 1, bias=True, **fields)
            yield replace(tile, isa=isa, types=types, groups=groups)


def half_vectors(isa: str, types: Types) -> Iterator[ConvTileSpec]:
    """The low half of the last vector, for every number of channels in it; whole vectors of dst, and old sums."""
    half = lanes_of(isa) // 2
    for tail in range(1, half + 1):
        vectors = 1 + tail % 3
        channels = (vectors - 1) * 2 * half + tail
        start = {"bias": True} if tail % 2 else {"accumulate": True}
        blocked = conv.blocked(f32_level(isa), 3, vectors, channels=channels, **start)
        plain = conv.plain(f32_level(isa), 2, channels, 3, bias=True, weights_vector_bytes=256 * (tail % 2))
        for tile in (blocked, plain):
            yield replace(of_types(tile, isa, types, types.sums, tail % types.group), half_last=True)


def starts(isa: str) -> Iterator[StartsSpec]:
    """Sums of rows, times a shift, a zero point, or both."""
    for vectors in (1, 2, 4):
        for shift, has_zero_point in ((128, False), (0, True), (128, True)):
            yield StartsSpec(isa=isa, vectors=vectors, shift=shift, has_zero_point=has_zero_point)
    yield StartsSpec(isa=isa, vectors=2, shift=128, has_zero_point=True, negated=True)


FAMILIES = {
    **{f"conv-results-{types}-{isa}": partial(results, isa, types) for types, isa in ENDS},
    **{f"conv-halves-{types}-{isa}": partial(half_vectors, isa, types) for types, isa in HALVES},
    **{f"conv-parts-{types}-{isa}": partial(parts_of_groups, isa, types) for types, isa in PARTS},
    **{f"conv-starts-{types}-{isa}": partial(starts_of_pixels, isa, types) for types, isa in SHIFTED},
    **{f"conv-dots-{types}-{isa}": partial(other_dots, isa, types) for types, isa in (*OTHERS, *SHIFTED)},
    **{f"conv-start-vectors-{level}": partial(starts, level.name) for level in (AVX2, AVX512_CORE)},
}
