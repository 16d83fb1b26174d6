"""The specs of tiles of few output channels: outputs, pixels, tails of channels, groups, the end; and all by types."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from asmdnn.corpus.conv import LANES, RELU, SUM_HALF, of_levels
from asmdnn.generators.dot.conv_shape import TapGroup
from asmdnn.generators.dot.few_outputs import FewTileSpec
from asmdnn.generators.dot.few_outputs_shape import MOST_OUTPUTS
from asmdnn.generators.dot.matmul_shape import RESULTS
from asmdnn.generators.functions.postops import BinaryOp, Operand
from asmdnn.isa.dot import DOTS, F32, F32_BF16, F32_F16, OFFERED, Types, dot_class
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.records import replace
from asmdnn.types import DataType, bf16, f16, f32, u8

WIDENED = {F32: (u8, bf16), F32_BF16: (f32, bf16), F32_F16: (f16,)}  # what src is, if not what is multiplied
TYPED = tuple((types, isa.name) for types, isa in DOTS if types in OFFERED and not dot_class(types, isa.name).shift)


def tile(isa: str, pixels: int, outputs: int, channels: int = 0, **fields: Any) -> FewTileSpec:
    """src blocked by the vector; one group of all pixels, with so many channels, else a vector of them."""
    vector_bytes = 4 * LANES[isa]
    spec = FewTileSpec(
        isa=isa,
        outputs=outputs,
        src_pixel_bytes=tuple(vector_bytes * p for p in range(pixels)),
        src_vector_bytes=40 * vector_bytes,
        weights_vector_bytes=3 * outputs * vector_bytes,
        dst_output_bytes=500,
        groups=(TapGroup(tuple(range(pixels)), channels or LANES[isa]),),
    )
    return replace(spec, **fields)


def outputs(isa: str) -> Iterator[FewTileSpec]:
    """Every number of outputs, of whole vectors of channels and of a rest, all pixels and one."""
    lanes = LANES[isa]
    for count in range(1, MOST_OUTPUTS + 1):
        yield tile(isa, lanes, count, 2 * lanes, bias=True)
    for count in (1, 3, 6, MOST_OUTPUTS):  # with registers for weights and a mask, with less
        yield tile(isa, lanes, count, lanes + 3)
    yield tile(isa, 1, 2, 1, bias=True)


def pixels(isa: str) -> Iterator[FewTileSpec]:
    """Pixels that are no power of two, whose last sums are of fewer."""
    for count in range(2, LANES[isa], 2 if LANES[isa] == 8 else 4):
        yield tile(isa, count, 1)
        yield tile(isa, count + 1, 3, post_ops=(RELU,))


def groups(isa: str) -> Iterator[FewTileSpec]:
    """Taps that reach some of the pixels, some of which are computed at other times, and none."""
    last = LANES[isa] - 1
    several = (TapGroup((0,), 3), TapGroup(tuple(range(last + 1)), LANES[isa]), TapGroup((last - 1, last), 2))
    for count in (1, 4):
        yield tile(isa, last + 1, count, groups=several, bias=True)
        yield tile(isa, last + 1, count, groups=several[:1])
        yield tile(isa, last + 1, count, groups=(), bias=True)


def ends(isa: str) -> Iterator[FewTileSpec]:
    """Sums, and operands of every broadcast."""
    pixels, element, one = Operand(5, 500, 0, False), Operand(6, 4, 0, True), Operand(7, 0, 0, False)
    chain = (SUM_HALF, *map(BinaryOp, ("add", "mul", "max"), (pixels, element, one)))
    for size in (LANES[isa], LANES[isa] - 1):
        yield tile(isa, size, 2, bias=True, post_ops=chain)
        yield tile(isa, size, 1, post_ops=(RELU,))


def retyped(spec: FewTileSpec, isa: str, types: Types, src: DataType, cut: int = 0, **fields: Any) -> FewTileSpec:
    """A tile of f32 with as many groups of other types, whose last one is cut."""
    found = tuple(replace(x, channels=max(1, x.channels * types.group - cut)) for x in spec.groups)
    row_bytes = spec.weights_vector_bytes // f32.size_bytes * types.weights_bytes
    bias = spec.bias and types.sums == f32
    changed = replace(spec, isa=isa, types=types, src_type=src, groups=found, weights_vector_bytes=row_bytes, bias=bias)
    return replace(changed, **{"dst_type": types.sums, **fields})


def of_types(types: Types, isa: str) -> Iterator[FewTileSpec]:
    """Weights in registers and in memory; every rest of a group; taps that reach some of the pixels."""
    level, lanes = f32_level(isa), lanes_of(isa)
    for src in WIDENED.get(types, (types.src,)):
        for count in (1, 2, 3, 5, MOST_OUTPUTS):
            yield retyped(tile(level, lanes, count, 2 * lanes, bias=True), isa, types, src)
        for cut, left in enumerate((3, 1, lanes // 2 + 1, lanes)):
            yield retyped(tile(level, lanes - 1, 2, lanes + left), isa, types, src, cut % types.group)
            yield retyped(tile(level, 3, 6, left), isa, types, src, cut % types.group)
        yield from (retyped(spec, isa, types, src) for spec in groups(level) if spec.outputs > 1)


def results(types: Types, isa: str) -> Iterator[FewTileSpec]:
    """Every type of dst and of what post-ops read, of vectors and tails of pixels."""
    level, lanes = f32_level(isa), lanes_of(isa)
    pixels, element = Operand(5, 500, 0, False), Operand(6, 4, 0, True)
    chain = (SUM_HALF, BinaryOp("add", pixels), BinaryOp("mul", element), RELU)
    src = WIDENED.get(types, (types.src,))[-1]
    for dst in RESULTS:
        for size in (lanes, lanes - 3):
            yield retyped(tile(level, size, 2, lanes, bias=True), isa, types, src, dst_type=dst)
            post_ops: dict[str, Any] = {"post_ops": chain, "operand_types": (dst, f32)}
            yield retyped(tile(level, size, 3, 5), isa, types, src, dst_type=dst, **post_ops)


FAMILIES = {
    **of_levels("few_outputs", outputs=outputs, pixels=pixels, groups=groups, ends=ends),
    **{f"few_outputs-types-{types}-{isa}": partial(of_types, types, isa) for types, isa in TYPED},
    **{f"few_outputs-results-{types}-{isa}": partial(results, types, isa) for types, isa in TYPED},
}
