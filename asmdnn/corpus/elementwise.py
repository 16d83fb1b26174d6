"""The specs of element-wise blocks, and of convolution tiles with long chains: algorithms, operands, edges."""

from collections.abc import Iterator
from typing import Any

from asmdnn.corpus.conv import LANES, MOST_VECTORS, blocked, most_pixels, of_levels, plain, rounded
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.conv_shape import ARGUMENTS
from asmdnn.generators.functions.elementwise import (
    ElementwiseSpec,
    SeveralResultsSpec,
    TypedElementwiseSpec,
    TypedResultsSpec,
)
from asmdnn.generators.functions.elementwise_code import INTERLEAVED, Result
from asmdnn.generators.functions.eltwise.algorithms import ALGORITHMS
from asmdnn.generators.functions.eltwise.gradients import GRADIENTS
from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.postops import (
    BINARY,
    BinaryOp,
    EltwiseOp,
    ExpressionOp,
    GradientOp,
    OffsetSumOp,
    Operand,
    PostOp,
    PReluOp,
    ReluOp,
    SelectOp,
    SumOp,
)
from asmdnn.isa.elements import NUMBERS, size_of
from asmdnn.records import replace

PARAMETERS: dict[str, tuple[float, float]] = {
    "relu": (0.25, 0.0), "elu": (0.5, 0.0), "linear": (0.5, -0.25), "clip": (-0.5, 0.75), "clip_v2": (-0.5, 0.75),
    "soft_relu": (0.5, 0.0), "swish": (1.5, 0.0), "pow": (2.0, 1.5), "hardswish": (0.25, 0.5),
    "hardsigmoid": (0.25, 0.5),
}  # fmt: skip
SUM = SumOp(1.0)


def eltwise(alg: str, scale: float = 1.0) -> EltwiseOp:
    """With the usual kind of alpha and beta."""
    return EltwiseOp(alg, *PARAMETERS.get(alg, (0.0, 0.0)), scale)


def distance(a: Operand, b: Operand) -> ExpressionOp:
    """|a x - b| where x is positive, else x: an expression with two operands, as a user would write."""
    build = Builder(3)
    x, first, second = build.inputs
    return ExpressionOp(build.finish(build.where(x > 0.0, abs(build.fma(first, x, -second)), x)), (a, b))


def mapped(isa: str, chain: tuple[PostOp, ...], rows: int = 1, elements: int = 5, gap: int = 3) -> ElementwiseSpec:
    """Rows `gap` elements apart."""
    row_bytes = 4 * (elements + gap)
    return ElementwiseSpec(
        isa=isa, rows=rows, elements=elements, src=Operand(0, row_bytes, 0, False), dst_row_bytes=row_bytes + 8,
        chain=chain,
    )  # fmt: skip


def operand(argument: int, elements: int = 5, row_bytes: int | None = None) -> Operand:
    """A dense one."""
    return Operand(argument, 4 * elements if row_bytes is None else row_bytes, 0, False)


def algorithms(isa: str) -> Iterator[ElementwiseSpec]:
    """Every function and every gradient, in the main loop, after it, and in the tail."""
    elements = LANES[isa] * (INTERLEAVED + 1) + 3
    for alg in ALGORITHMS:
        yield mapped(isa, (eltwise(alg),), elements=elements)
    for alg, gradients in GRADIENTS.items():
        for from_dst, gradient in ((False, gradients.of_src), (True, gradients.of_dst)):
            if gradient:
                parameters = PARAMETERS.get(alg, (0.0, 0.0))
                yield mapped(isa, (GradientOp(alg, *parameters, from_dst, operand(2)),), elements=LANES[isa] + 3)
    for alg in BINARY:
        yield mapped(isa, (BinaryOp(alg, operand(2)),), elements=LANES[isa] + 3)
    yield mapped(isa, (SelectOp(operand(2), operand(3)),), elements=LANES[isa] + 3)


def typed(isa: str) -> Iterator[TypedElementwiseSpec]:
    """Every type in the loop, after it and in the tail; tails; a sum, operands of other types, one for a whole row."""
    lanes, linear = LANES[isa], EltwiseOp("linear", 2.0, 1.0, 1.0)

    def spec(types: tuple[str, ...], elements: int, chain: tuple[PostOp, ...], rows: int = 1) -> TypedElementwiseSpec:
        src, dst = (size_of(kind) * (elements + 3) for kind in types[:2])
        return TypedElementwiseSpec(
            isa=isa, rows=rows, elements=elements, src=Operand(0, src, 0, False), dst_row_bytes=dst, chain=chain,
            types=types,
        )  # fmt: skip

    for kind in NUMBERS[1:]:
        yield spec((kind, kind), lanes * (INTERLEAVED + 1) + 3, (linear,))
        yield spec((kind, "f32"), lanes + 1, (linear,), 2)
        yield spec(("f32", kind), lanes + 2, (linear, SUM), 2)
    for kind in ("f16", "u8"):
        for elements in (1, lanes // 2 + 1, lanes - 1, 2 * lanes * INTERLEAVED):
            yield spec((kind, kind), elements, (linear,))
        element = Operand(2, size_of(kind), 0, True)
        yield spec(("f32", "bf16", kind), lanes + 3, (BinaryOp("add", element),), 2)
    yield spec(("f32", "s8", "u8", "s8"), lanes + 3, (SelectOp(operand(2, row_bytes=0), operand(3, row_bytes=0)),))


def masked(isa: str) -> Iterator[TypedResultsSpec]:
    """f32, and bytes that say where it is above a number: in the loop, after it and in the tail; short rows; alone."""
    lanes, types = LANES[isa], ("f32", "f32", "u8", "f32")
    chain = (EltwiseOp("linear", 2.0, 1.0, 1.0), ReluOp(0.0))
    for rows, elements in ((1, 3), (3, lanes * INTERLEAVED + 5), (7, lanes)):
        row_bytes = 4 * (elements + 4)
        more = (Result(2, elements + 3, (*chain, BinaryOp("gt", Operand(3, 4, 0, True)))),)
        src = Operand(0, row_bytes, 0, False)
        yield TypedResultsSpec(
            isa=isa, rows=rows, elements=elements, src=src, dst_row_bytes=row_bytes, chain=chain, types=types, more=more
        )


def short_rows(isa: str) -> Iterator[ElementwiseSpec]:
    """Of whole vectors, together and one left: with what is the same in all rows, an element of each, and old sums."""
    lanes = LANES[isa]
    same, each = operand(2, lanes, 0), Operand(3, 8, 0, True)
    chain = (BinaryOp("sub", same), BinaryOp("mul", each), SUM)
    for rows, vectors in ((INTERLEAVED, 1), (2 * INTERLEAVED + 1, 1), (4, 2)):
        yield mapped(isa, chain, rows, vectors * lanes, 0)
    dense = Operand(0, 4 * lanes, 0, False)
    yield ElementwiseSpec(
        isa=isa, rows=INTERLEAVED + 2, elements=lanes, src=dense, dst_row_bytes=4 * lanes,
        chain=(BinaryOp("add", same),), streaming=True,
    )  # fmt: skip


def padded(isa: str) -> Iterator[ElementwiseSpec]:
    """Rows that are part of a vector, or one and a part, with zeros behind them: past the caches, sums, other types."""
    lanes, linear = LANES[isa], EltwiseOp("linear", 2.0, 1.0, 1.0)
    beside = BinaryOp("add", Operand(2, 0, 0, False))
    half = lanes // 2
    for elements, zeroed, rows in ((lanes - 3, 3, 2 * INTERLEAVED + 1), (half, half, 2), (1, 2 * lanes - 1, 3)):
        row = elements + zeroed
        yield ElementwiseSpec(
            isa=isa, rows=rows, elements=elements, src=Operand(0, 4 * row, 0, False), dst_row_bytes=4 * row,
            chain=(linear, beside) if rows == 2 else (linear, SUM, beside), zeroed=zeroed, streaming=rows == 2,
        )  # fmt: skip
        more = (Result(2, row, (linear, BinaryOp("gt", Operand(3, 4, 0, True)))),)
        yield TypedResultsSpec(
            isa=isa, rows=rows, elements=elements, src=Operand(0, 2 * row, 0, False), dst_row_bytes=2 * row,
            chain=(linear,), zeroed=zeroed, types=("bf16", "bf16", "u8", "f32"), more=more,
        )  # fmt: skip


def shapes(isa: str) -> Iterator[ElementwiseSpec]:
    """Numbers of elements around a vector and around a turn of the loop; rows apart, touching, repeated; elements."""
    lanes = LANES[isa]
    for elements in (*range(1, lanes + 2), *(lanes * INTERLEAVED * n + more for n in (1, 2, 3) for more in (-1, 0, 1))):
        yield mapped(isa, (ReluOp(0.0),), elements=elements)
    for rows in (2, 5):
        for gap in (0, 3):
            yield mapped(isa, (eltwise("linear"), SUM), rows, lanes + 1, gap)
    for gap in (0, lanes):
        elements = lanes * (INTERLEAVED + 1) + 3
        for op in (eltwise("linear"), GradientOp("exp", 0.0, 0.0, False, operand(2, elements))):  # short and long
            streaming = mapped(isa, (op,), 3, elements, lanes - 3 + gap)
            yield replace(streaming, streaming=True, dst_row_bytes=4 * lanes * (INTERLEAVED + 3))
    for row_bytes in (0, 4, 8 * lanes):
        element = Operand(2, row_bytes, 0, True)
        yield mapped(isa, (BinaryOp("mul", element), SUM), 3, 2 * lanes + 1)
        yield mapped(isa, (BinaryOp("sub", operand(2, row_bytes=row_bytes)),), 3, 2 * lanes + 1)
        src = Operand(0, row_bytes, 0, True)
        yield ElementwiseSpec(
            isa=isa, rows=3, elements=lanes + 2, src=src, dst_row_bytes=4 * (lanes + 2),
            chain=(BinaryOp("add", operand(2, lanes + 2)),),
        )  # fmt: skip


def post_ops(first: int, lanes: int) -> Iterator[tuple[PostOp, ...]]:
    """Chains on operands of each kind: a vector or an element, that moves along pixels, channels, or does not."""
    vector, element = Operand(first, 4 * lanes, 160 * lanes, False), Operand(first, 0, 0, True)
    channel, pixel = Operand(first + 1, 0, 4 * lanes, False), Operand(first + 2, 12, 0, True)
    yield (eltwise("tanh"),)
    yield (eltwise("tanh", 0.5), SUM, eltwise("linear"))
    yield (OffsetSumOp(0.5, 0.25), eltwise("gelu_erf"))
    yield (BinaryOp("mul", element), PReluOp(channel))
    yield (BinaryOp("add", vector), SUM, ReluOp(0.0))
    yield (BinaryOp("add", channel), distance(vector, pixel), eltwise("logistic"))
    yield (SUM, BinaryOp("sub", vector), distance(vector, vector), eltwise("swish"), eltwise("elu", 2.0), SUM)


def of_most_operands(first: int, lanes: int) -> tuple[PostOp, ...]:
    """32 post-ops, the most that can be chained, of which 30 read a tensor each: more than there are registers."""
    kinds = (
        lambda a: BinaryOp("add", Operand(a, 4 * lanes, 160 * lanes, False)),
        lambda a: BinaryOp("max", Operand(a, 0, 4 * lanes, False)),
        lambda a: PReluOp(Operand(a, 12, 0, True)),
        lambda a: BinaryOp("sub", Operand(a, 0, 0, True)),
        lambda a: distance(Operand(a, 8 * lanes, 4 * lanes, False), Operand(first, 4 * lanes, 160 * lanes, False)),
    )
    return (*(kinds[i % len(kinds)](first + i) for i in range(30)), SUM, ReluOp(0.0))


def cells(isa: str) -> Iterator[SeveralResultsSpec]:
    """Several results: an LSTM's state c = c f + i g and output h = o tanh(c) from src = f; three; a sum."""
    lanes = LANES[isa]
    for rows, elements in ((1, 3), (3, lanes * INTERLEAVED + 5)):
        row_bytes = 4 * (elements + 3)
        state = (eltwise("logistic"), BinaryOp("mul", operand(3, elements)), BinaryOp("add", operand(4, elements)))
        output = (*state, eltwise("tanh"), BinaryOp("mul", operand(5, elements)))
        base = mapped(isa, state, rows, elements)
        fields: dict[str, Any] = {
            "isa": isa,
            "rows": rows,
            "elements": elements,
            "src": base.src,
            "dst_row_bytes": base.dst_row_bytes,
        }
        yield SeveralResultsSpec(**fields, chain=state, more=(Result(2, row_bytes, output),))
        product, both = (BinaryOp("mul", operand(3, elements)),), (BinaryOp("add", operand(4, elements)),)
        whole = {**fields, "dst_row_bytes": 4 * lanes * (INTERLEAVED + 2), "chain": product}  # past the caches
        for row in (4 * lanes * (INTERLEAVED + 3), row_bytes):  # what is not a multiple is of one row
            rows_of = whole if row % (4 * lanes) == 0 else {**whole, "rows": 1}
            yield SeveralResultsSpec(**rows_of, more=(Result(2, row, both),), streaming=True)
        more = (Result(2, row_bytes, (SUM, ReluOp(0.0))), Result(3, row_bytes + 16, ()))
        yield SeveralResultsSpec(**fields, chain=(SUM, BinaryOp("max", operand(4, elements))), more=more)


def maps_with_chains(isa: str) -> Iterator[ElementwiseSpec]:
    """The same chains after an element-wise function."""
    for chain in post_ops(2, LANES[isa]):
        yield mapped(isa, (eltwise("abs"), *chain), 2, LANES[isa] * INTERLEAVED + 3)
    for rows, elements in ((1, 5), (3, LANES[isa] * INTERLEAVED * 2 + 3)):
        yield mapped(isa, of_most_operands(2, LANES[isa]), rows, elements)


def chains(isa: str) -> Iterator[ConvTileSpec]:
    """Each with registers left, with all of them taken, and with a tail that takes one more."""
    lanes = LANES[isa]
    for chain in post_ops(len(ARGUMENTS), lanes):
        yield blocked(isa, 2, 2, post_ops=chain, bias=True, channels=lanes + 1)
        for vectors in (1, MOST_VECTORS[isa]):
            yield plain(isa, most_pixels(isa, vectors), vectors * lanes - 1, run=1, post_ops=chain)
    yield plain(isa, 3, 2 * lanes - 1, run=1, post_ops=of_most_operands(len(ARGUMENTS), lanes))


FAMILIES = {
    **of_levels("conv", chains=chains),
    **of_levels(
        "map",
        algorithms=algorithms,
        typed=typed,
        masked=masked,
        padded=padded,
        shapes=shapes,
        short=short_rows,
        chains=maps_with_chains,
        cells=cells,
    ),
    "map-rounded": rounded(typed),
}
