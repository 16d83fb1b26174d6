"""The specs of Winograd's transforms: edges of images, tails of channels, distances, ends."""

from collections.abc import Iterator
from typing import Any

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.postops import BinaryOp, EltwiseOp, Operand, PostOp, ReluOp, SumOp
from asmdnn.generators.winograd.arguments import ARGUMENTS
from asmdnn.generators.winograd.diff_dst import DiffDstTransformSpec
from asmdnn.generators.winograd.diff_weights import DiffWeightsTransformSpec
from asmdnn.generators.winograd.forms import FORMS, GRADIENTS
from asmdnn.generators.winograd.products import ProductsTransformSpec
from asmdnn.generators.winograd.source import SourceTransformSpec
from asmdnn.generators.winograd.weights import WeightsTransformSpec
from asmdnn.records import replace

WIDTH = 9  # pixels of a row
FREQUENCY_BYTES = 320  # five lines
FIRST_OPERAND = len(ARGUMENTS)


def source(isa: str, m: int, channels: int, **fields: Any) -> SourceTransformSpec:
    """A whole tile of nhwc images of these channels."""
    n, pixel = m + 2, 4 * channels
    spec = SourceTransformSpec(
        isa=isa, m=m, rows=(0, n), cols=(0, n), row_bytes=WIDTH * pixel, pixel_bytes=pixel, channels=channels,
        vector_bytes=4 * LANES[isa], frequency_bytes=FREQUENCY_BYTES,
    )  # fmt: skip
    return replace(spec, **fields)


def products(isa: str, m: int, channels: int, *post_ops: PostOp, **fields: Any) -> ProductsTransformSpec:
    """A whole tile of nhwc images of these channels."""
    pixel = 4 * channels
    spec = ProductsTransformSpec(
        isa=isa, m=m, rows=m, cols=m, row_bytes=WIDTH * pixel, pixel_bytes=pixel, row_pixels=WIDTH, channels=channels,
        whole_vectors=channels % LANES[isa] == 0, vector_bytes=4 * LANES[isa], frequency_bytes=FREQUENCY_BYTES,
        bias=True, post_ops=post_ops,
    )  # fmt: skip
    return replace(spec, **fields)


def blocked(isa: str) -> dict[str, int]:
    """Fields of images whose channels are blocked by the vector."""
    pixel = 4 * LANES[isa]
    return {"pixel_bytes": pixel, "row_bytes": WIDTH * pixel, "vector_bytes": 6 * WIDTH * pixel}


def sources(isa: str) -> Iterator[SourceTransformSpec]:
    """Edges: a tile at each side, one that is larger than the image, one in the padding alone.  Tails."""
    lanes = LANES[isa]
    for m in FORMS:
        n = m + 2
        yield source(isa, m, 3 * lanes, **blocked(isa))
        yield source(isa, m, 2 * lanes + 3)
        for rows, cols in (((1, n), (1, n)), ((0, n - 1), (0, 2)), ((1, 2), (0, 1)), ((0, 0), (0, n))):
            yield source(isa, m, lanes, rows=rows, cols=cols, **blocked(isa))
            yield source(isa, m, 1, rows=rows, cols=cols)
    yield source(isa, 4, lanes - 1, frequency_bytes=64)


def results(isa: str) -> Iterator[ProductsTransformSpec]:
    """Edges: fewer rows, fewer columns.  Tails, with and without room for padding; without a bias."""
    lanes = LANES[isa]
    for m in FORMS:
        yield products(isa, m, 3 * lanes, **blocked(isa))
        yield products(isa, m, lanes + 2, bias=False, whole_vectors=True, **blocked(isa))
        for rows, cols in ((1, m), (m - 1, m - 1), (m, 1)):
            yield products(isa, m, 2 * lanes, rows=rows, cols=cols, **blocked(isa))
            yield products(isa, m, lanes - 1, rows=rows, cols=cols)
    yield products(isa, 4, 1, frequency_bytes=64)


def ends(isa: str) -> Iterator[ProductsTransformSpec]:
    """Post-ops: alone, of what dst held, of tensors of every broadcast, of many registers."""
    pixel = Operand(FIRST_OPERAND, 4 * LANES[isa], 6 * 4 * LANES[isa], False)
    channel, one = Operand(FIRST_OPERAND + 1, 0, 4 * LANES[isa], False), Operand(FIRST_OPERAND + 2, 4, 0, True)
    tensors = (BinaryOp("add", pixel), BinaryOp("mul", channel), BinaryOp("max", one))
    gelu = EltwiseOp("gelu_erf", 0.0, 0.0, 1.0)
    for m in FORMS:
        for channels in (LANES[isa], LANES[isa] + 3):
            yield products(isa, m, channels, ReluOp(0.0))
            yield products(isa, m, channels, SumOp(0.5), ReluOp(0.25), bias=False)
            yield products(isa, m, channels, *tensors, ReluOp(0.0), rows=m - 1)
            yield products(isa, m, channels, gelu, whole_vectors=True, **blocked(isa))


def weights(isa: str) -> Iterator[WeightsTransformSpec]:
    """One vector, and several, by lines or alone; taps from the end."""
    for m in FORMS:
        for vectors, step in ((1, 64), (3, 256), (4, 256)):
            yield WeightsTransformSpec(isa=isa, m=m, vectors=vectors, tap_bytes=step, frequency_bytes=step + 64)
        yield WeightsTransformSpec(isa=isa, m=m, vectors=3, tap_bytes=-256, frequency_bytes=256)


def diff_dst(isa: str) -> Iterator[DiffDstTransformSpec]:
    """Edges: fewer rows, fewer columns.  Tails."""
    lanes = LANES[isa]
    for m in GRADIENTS:
        for channels, width in ((3 * lanes, lanes), (2 * lanes + 3, 2 * lanes + 3)):  # blocked, and side by side
            for rows, cols in ((m, m), (m - 1, 1), (1, m)):
                apart = 1 if width == channels else 6 * WIDTH
                yield DiffDstTransformSpec(
                    isa=isa, m=m, rows=(0, rows), cols=(0, cols), row_bytes=WIDTH * 4 * width, pixel_bytes=4 * width,
                    channels=channels, vector_bytes=4 * lanes * apart, frequency_bytes=FREQUENCY_BYTES,
                )  # fmt: skip


def diff_weights(isa: str) -> Iterator[DiffWeightsTransformSpec]:
    """Alone and several, added to what is there, with zeros after them."""
    for m in GRADIENTS:
        for vectors, zeros in ((1, 0), (3, 1), (4, 2)):
            spec = DiffWeightsTransformSpec(
                isa=isa, m=m, vectors=vectors, tap_bytes=64 * (vectors + zeros), frequency_bytes=256 + 64, zeros=zeros
            )
            yield spec
            yield replace(spec, accumulate=True)


FAMILIES = of_levels(
    "winograd", sources=sources, results=results, ends=ends, weights=weights, diff_dst=diff_dst,
    diff_weights=diff_weights,
)  # fmt: skip
