"""Hypothesis strategies for tile specs: what the corpus lists by reason, mixed at random."""

from dataclasses import replace

from hypothesis import strategies as st

from asmdnn.corpus.conv import CONV_LEVELS, MOST_VECTORS, blocked, most_pixels
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.conv_shape import TapGroup
from asmdnn.generators.functions.postops import PostOp, ReluOp, SumOp
from tests.generators.reference import LANES

POST_OPS = st.sampled_from((ReluOp(0.0), ReluOp(0.25), ReluOp(-0.5), SumOp(1.0), SumOp(0.5)))
FARTHEST_BYTES = 1200  # 29 pixels so far apart stay within a reference's reach


def elements_apart(least: int) -> st.SearchStrategy[int]:
    """Distances in bytes of at least so many, whole elements."""
    return st.integers(least // 4, max(least, FARTHEST_BYTES) // 4).map(lambda elements: 4 * elements)


@st.composite
def tap_groups(draw: st.DrawFn, pixels: int) -> tuple[TapGroup, ...]:
    reached = st.lists(st.integers(0, pixels - 1), min_size=1, max_size=pixels, unique=True).map(tuple)
    return tuple(draw(st.lists(st.builds(TapGroup, reached, st.integers(1, 8)), max_size=5)))


@st.composite
def tiles(draw: st.DrawFn) -> ConvTileSpec:
    isa = draw(st.sampled_from(CONV_LEVELS))
    lanes, vectors = LANES[isa], draw(st.integers(1, MOST_VECTORS[isa]))
    vector_bytes, pixels = 4 * lanes, draw(st.integers(1, most_pixels(isa, vectors)))
    whole = draw(st.booleans())
    channels = draw(st.integers(1 if whole else (vectors - 1) * lanes + 1, vectors * lanes))
    chain: list[PostOp] = draw(st.lists(POST_OPS, max_size=4))
    start = draw(st.sampled_from(({}, {"bias": True}, {"accumulate": True})))
    spec = replace(
        blocked(isa, pixels, vectors),
        channels=channels,
        src_pixel_bytes=(0, *(draw(elements_apart(0)) for _ in range(pixels - 1))),
        src_channel_bytes=draw(st.sampled_from((4, 4, 4 * 49))),
        weights_row_bytes=draw(st.integers(vectors, 4)) * vector_bytes,
        whole_vectors=whole or channels == vectors * lanes,
        groups=draw(tap_groups(pixels)),
        post_ops=tuple(chain),
        prefetch_lines=draw(st.sampled_from((0, 0, 1, 9))),
        **start,
    )
    if draw(st.booleans()):  # a pixel's channels are together, as in nhwc
        pixel_bytes = draw(elements_apart(vectors * vector_bytes))
        return replace(spec, dst_vector_bytes=vector_bytes, dst_pixel_bytes=pixel_bytes)
    pixel_bytes = draw(elements_apart(vector_bytes))
    return replace(spec, dst_pixel_bytes=pixel_bytes, dst_vector_bytes=pixel_bytes * pixels)
