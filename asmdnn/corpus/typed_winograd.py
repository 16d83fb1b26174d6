"""Winograd's transforms by types: tiles of every type, rounded to bf16 or not, and every type of dst."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from asmdnn.corpus import winograd
from asmdnn.corpus.conv import CONV_LEVELS
from asmdnn.generators.dot.matmul_shape import RESULTS
from asmdnn.generators.functions.postops import BinaryOp, Operand, ReluOp, SumOp
from asmdnn.generators.winograd.arguments import ARGUMENTS
from asmdnn.generators.winograd.forms import FORMS
from asmdnn.generators.winograd.products import ProductsTransformSpec
from asmdnn.generators.winograd.source import SourceTransformSpec
from asmdnn.generators.winograd.weights import WeightsTransformSpec
from asmdnn.isa.levels import AVX512_CORE_BF16
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.records import replace
from asmdnn.types import HALF_FLOATS, INTEGERS8, DataType, bf16, f32

ROUNDING = AVX512_CORE_BF16.name
LEVELS = (*CONV_LEVELS, ROUNDING)


def of_size(spec: Any, dtype: DataType, **fields: Any) -> Any:
    """A transform of f32 images with elements of another size."""
    names = ("row_bytes", "pixel_bytes", "vector_bytes")
    sizes = {name: getattr(spec, name) // f32.size_bytes * dtype.size_bytes for name in names}
    return replace(spec, **sizes, **fields)


def sources(isa: str) -> Iterator[SourceTransformSpec]:
    """Whole tiles, edges and tails of all types but f32; f32 and bf16 to bf16, where that is rounded."""
    lanes, level = lanes_of(isa), f32_level(isa)
    pairs = [(src, f32) for src in (*HALF_FLOATS, *INTEGERS8)] + [(bf16, bf16), (f32, bf16)] * (isa == ROUNDING)
    for m in FORMS:
        for src, source in pairs:
            for spec in (
                winograd.source(level, m, 2 * lanes, **winograd.blocked(level)),
                winograd.source(level, m, lanes + 3),
                winograd.source(level, m, 1, rows=(1, m + 2), cols=(0, 2)),
            ):
                yield of_size(spec, src, isa=isa, src_type=src, source_type=source)


def results(isa: str) -> Iterator[ProductsTransformSpec]:
    """Every type of dst, alone and with tensors of it and of f32; vectors and tails, whole and cut tiles."""
    lanes, level, first = lanes_of(isa), f32_level(isa), len(ARGUMENTS)
    for dst in RESULTS:
        operands = (Operand(first, 0, lanes * dst.size_bytes, False), Operand(first + 1, 0, 0, True))
        post_ops = (BinaryOp("add", operands[0]), BinaryOp("mul", operands[1]), SumOp(0.5), ReluOp(0.0))
        for m in FORMS:
            plain = winograd.products(level, m, lanes + 1, rows=m - 1)
            chained = winograd.products(level, m, lanes + 3, *post_ops)
            yield of_size(plain, dst, isa=isa, dst_type=dst)
            yield of_size(chained, dst, isa=isa, dst_type=dst, operand_types=(dst, f32))
        whole = winograd.products(level, 4, 2 * lanes, ReluOp(0.0), bias=False, **winograd.blocked(level))
        yield of_size(whole, dst, isa=isa, dst_type=dst)


def weights(isa: str) -> Iterator[WeightsTransformSpec]:
    """Rounded to bf16; taps from the end."""
    for m in FORMS:
        for vectors, tap, frequency in ((3, 256, 320), (1, -256, 64), (2, 128, 64)):
            yield WeightsTransformSpec(
                isa=isa, m=m, vectors=vectors, tap_bytes=tap, frequency_bytes=frequency, dtype=bf16
            )


FAMILIES = {
    f"winograd-typed-{name}-{isa}": partial(family, isa)
    for isa in LEVELS
    for name, family in {"sources": sources, "results": results}.items()
} | {f"winograd-typed-weights-{isa}": partial(weights, isa) for isa in CONV_LEVELS}
