"""The specs of convolution tiles: blocks, tails, runs of channels, groups, starts, post-ops, prefetches, distances."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, TypeVar

from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.conv_shape import TapGroup, blocks_of
from asmdnn.generators.functions.postops import PostOp, ReluOp, SumOp
from asmdnn.isa.dot import F32
from asmdnn.isa.levels import AVX2, AVX512_CORE, AVX512_CORE_BF16
from asmdnn.isa.vectors import vector_class
from asmdnn.records import replace

LANES: dict[str, int] = {level.name: level.vector_bytes // 4 for level in (AVX2, AVX512_CORE)}
CONV_LEVELS = tuple(LANES)
MOST_VECTORS = {isa: max(blocks_of(F32, isa)) for isa in CONV_LEVELS}
Family = TypeVar("Family")

RELU, LEAKY, SUM, SUM_HALF = ReluOp(0.0), ReluOp(0.25), SumOp(1.0), SumOp(0.5)
CHAINS: tuple[tuple[PostOp, ...], ...] = (
    (), (RELU,), (LEAKY,), (SUM,), (SUM_HALF,), (SUM, RELU), (SUM_HALF, LEAKY), (RELU, SUM), (LEAKY, SUM_HALF, RELU),
)  # fmt: skip
STARTS: tuple[dict[str, bool], ...] = ({}, {"bias": True}, {"accumulate": True})
GROUPS: tuple[tuple[TapGroup, ...], ...] = (
    (),
    (TapGroup((2,), 3),),
    (TapGroup((0, 1, 2, 3, 4), 8), TapGroup((0, 1, 2, 3, 4), 1)),
    (TapGroup((0,), 2), TapGroup((0, 1, 2, 3, 4), 2), TapGroup((1, 2, 3, 4), 2), TapGroup((3, 4), 2)),
    tuple(TapGroup(pixels, c) for c, pixels in enumerate(((0, 2, 4), (1,), (4,), (0, 1), (1, 3), (2, 3, 4)), 1)),
    (TapGroup((4, 1), 5), TapGroup((3, 0), 4)),
)


def most_pixels(isa: str, vectors: int) -> int:
    """As many as leave a register for the weights row and one for a source element, and three for the end."""
    return (vector_class(isa).count - max(vectors + 1, 3)) // vectors


def blocked(isa: str, pixels: int, vectors: int = 1, run: int = 2, **fields: Any) -> ConvTileSpec:
    """src and dst blocked by the vector, all channels real; one group of all pixels with `run` input channels."""
    vector_bytes = 4 * LANES[isa]
    spec = ConvTileSpec(
        isa=isa,
        vectors=vectors,
        channels=vectors * LANES[isa],
        src_pixel_bytes=tuple(32 * p for p in range(pixels)),
        src_channel_bytes=4,
        weights_row_bytes=vectors * vector_bytes,
        dst_pixel_bytes=vector_bytes,
        dst_vector_bytes=40 * vector_bytes,
        whole_vectors=True,
        groups=(TapGroup(tuple(range(pixels)), run),),
    )
    return replace(spec, **fields)


def plain(isa: str, pixels: int, channels: int, run: int = 2, **fields: Any) -> ConvTileSpec:
    """The last panel of a dst that has a pixel's channels dense and no padding, as nhwc has; `channels` in it."""
    vectors, vector_bytes = -(-channels // LANES[isa]), 4 * LANES[isa]
    whole = channels % LANES[isa] == 0
    layout = {"dst_pixel_bytes": 4 * (channels + 5), "dst_vector_bytes": vector_bytes, "whole_vectors": whole}
    return blocked(isa, pixels, vectors, run, channels=channels, **{**layout, **fields})


def planar(pixels: int) -> dict[str, Any]:
    """Fields of a source whose channels lie apart, as in nchw."""
    return {"src_pixel_bytes": tuple(8 * p for p in range(pixels)), "src_channel_bytes": 4 * 59}


def blocks(isa: str) -> Iterator[ConvTileSpec]:
    """Every block up to a full register file; the full ones with all that wants registers beside the accumulators."""
    for vectors in range(1, MOST_VECTORS[isa] + 1):
        most = most_pixels(isa, vectors)
        for pixels in range(1, most + 1):
            yield blocked(isa, pixels, vectors)
        channels = LANES[isa] * vectors - 3
        yield plain(isa, most, channels, run=8, bias=True, post_ops=(LEAKY, SUM_HALF, RELU), prefetch_lines=2)
        yield plain(isa, most, channels, accumulate=True, **planar(most))


def tails(isa: str) -> Iterator[ConvTileSpec]:
    """Every number of channels in the last vector, first with room for padding in dst, then without."""
    lanes = LANES[isa]
    for tail in range(1, lanes):
        yield blocked(isa, 2, 1, channels=tail, bias=True, post_ops=(SUM,))
        yield plain(isa, 3, tail, bias=True, post_ops=(SUM, RELU))
        yield plain(isa, 2, tail + lanes, bias=True, post_ops=(LEAKY,))
        yield plain(isa, 2, tail, accumulate=True)
    for vectors in range(2, MOST_VECTORS[isa] + 1):
        yield blocked(isa, 2, vectors, channels=5, bias=True)  # vectors without any real channel
        yield plain(isa, 2, vectors * lanes, bias=True, post_ops=(SUM,))
    yield plain(isa, 4, 1, bias=True, dst_pixel_bytes=4, dst_vector_bytes=4 * 77)  # one channel of a plane


def runs(isa: str) -> Iterator[ConvTileSpec]:
    """Every number of channels in a tap, dense and a plane apart."""
    for run, pixels, vectors in product(range(1, 9), (3,), (1, 2)):
        yield blocked(isa, pixels, vectors, run)
        yield blocked(isa, pixels, vectors, run, **planar(pixels))
        yield plain(isa, pixels, vectors * LANES[isa] - 1, run, prefetch_lines=5)


def groups(isa: str) -> Iterator[ConvTileSpec]:
    """Taps that reach some of the pixels, and lists without a tap."""
    for taps, vectors in product(GROUPS, (1, 2)):
        yield blocked(isa, 5, vectors, groups=taps, bias=True)
        yield plain(isa, 5, vectors * LANES[isa] - 2, groups=taps, prefetch_lines=1, **planar(5))


def ends(isa: str) -> Iterator[ConvTileSpec]:
    """What a sum starts from, and what happens to it at the end."""
    for chain, fields in product(CHAINS, STARTS):
        yield blocked(isa, 3, 2, post_ops=chain, **fields)
        yield plain(isa, 2, LANES[isa] + 3, post_ops=chain, **fields)


def prefetching(isa: str) -> Iterator[ConvTileSpec]:
    """Prefetches: fewer, as many and more lines than channels in a tap."""
    for lines, run in product((1, 2, 9), (1, 2, 8)):
        yield blocked(isa, 2, 2, run, prefetch_lines=lines)
    for pixels, run in ((5, 8), (1, 2)):  # of the source: several lines, and one
        yield blocked(isa, pixels, 2, run, src_prefetch_bytes=32 * pixels, prefetch_lines=1)
        yield plain(isa, pixels, 2 * LANES[isa] - 1, run, prefetches_dst=True)


def streaming(isa: str) -> Iterator[ConvTileSpec]:
    """Whole vectors past the caches, where dst begins with one; tails, post-ops, sums that begin with dst."""
    yield blocked(isa, 3, 2, streams=True)
    yield blocked(isa, 2, 1, accumulate=True, streams=True)
    yield plain(isa, 2, LANES[isa] + 3, bias=True, dst_pixel_bytes=12 * LANES[isa], streams=True)
    for chain in CHAINS:
        yield blocked(isa, 3, 2, post_ops=chain, streams=True)


def distances(isa: str) -> Iterator[ConvTileSpec]:
    """Displacements: none, of one byte scaled or not, of four, negative; pixels that share sources; wide panels."""
    vector_bytes = 4 * LANES[isa]
    for source in ((0, 64, 128), (0, 60, 4000, 4060), (0, 0, 4), (0, 124, 128, 508, 512, 8128), (0, 50_000), (0, -96)):
        everywhere = (TapGroup(tuple(range(len(source))), 3),)
        for vectors in (1, 2):
            yield blocked(isa, len(source), vectors, src_pixel_bytes=source, groups=everywhere)
    for vectors in range(1, MOST_VECTORS[isa]):
        yield blocked(isa, 2, vectors, weights_row_bytes=MOST_VECTORS[isa] * vector_bytes)
    for pixel_bytes in (vector_bytes + 4, 127 * vector_bytes, 128 * vector_bytes, 40_000):
        yield blocked(isa, 2, 1, dst_pixel_bytes=pixel_bytes)
    for vector_distance in (vector_bytes, 2 * vector_bytes + 4, 40_000):
        yield blocked(isa, 1, 2, dst_pixel_bytes=2 * vector_bytes, dst_vector_bytes=vector_distance)


def gradients(isa: str) -> Iterator[ConvTileSpec]:
    """Of weights: the vectors of a row apart, rows of several input channels and kernel positions, not all reached."""
    vector_bytes = 4 * LANES[isa]
    for vectors, rows in ((1, 4), (2, 3), (3, 4)):
        fields = {"src_channel_bytes": 64, "weights_row_bytes": vector_bytes, "weights_vector_bytes": 40 * vector_bytes}
        yield blocked(isa, rows, vectors, 8, accumulate=vectors == 2, **fields)
        some = (TapGroup(tuple(range(1, rows)), 3), TapGroup((0,), 1))
        yield blocked(isa, rows, vectors, groups=some, **fields)


def row_sums(isa: str) -> Iterator[ConvTileSpec]:
    """Gradients of weights with that of a bias: full blocks, channels that fill no vector, taps of no pixel."""
    lanes, vector_bytes = LANES[isa], 4 * LANES[isa]
    for vectors in range(1, MOST_VECTORS[isa] + 1):
        fields = {"src_channel_bytes": 64, "weights_row_bytes": vector_bytes, "weights_vector_bytes": 40 * vector_bytes}
        for accumulate, missing in ((False, 0), (True, 0), (False, 3), (True, lanes - 1)):
            channels = vectors * lanes - missing
            starts = {"channels": channels, "accumulate": accumulate, "row_sums": True}
            yield blocked(isa, most_pixels(isa, vectors) - 1, vectors, 8, **starts, **fields)
            some = (TapGroup((1, 2), 3), TapGroup((), 2), TapGroup((0,), 1))
            yield blocked(isa, 3, vectors, groups=some, **starts, **fields)


def of_levels(kind: str, **families: Callable[[str], Iterator[Family]]) -> dict[str, Callable[[], Iterator[Family]]]:
    """Each family for every level, by names such as conv-blocks-avx2."""
    return {
        f"{kind}-{name.replace('_', '-')}-{isa}": partial(family, isa)
        for isa in CONV_LEVELS
        for name, family in families.items()
    }


def rounded(family: Callable[[str], Iterator[Any]]) -> Callable[[], Iterator[Any]]:
    """Those with results of bf16, for the level that has an instruction which rounds to it."""

    def of_level() -> Iterator[Any]:
        for spec in family(AVX512_CORE.name):
            if (spec.types[1] if hasattr(spec, "types") else spec.kind) == "bf16":
                yield replace(spec, isa=AVX512_CORE_BF16.name)

    return of_level


FAMILIES = of_levels(
    "conv",
    blocks=blocks,
    tails=tails,
    runs=runs,
    groups=groups,
    ends=ends,
    prefetching=prefetching,
    streaming=streaming,
    distances=distances,
    gradients=gradients,
    row_sums=row_sums,
)
