"""The specs of matrix products: blocks, tails, depths, starts, ends, panels, packing, items, vectors, small depths."""

from collections.abc import Iterator
from typing import Any

from asmdnn.corpus.conv import CHAINS, LANES, LEAKY, RELU, SUM_HALF, of_levels
from asmdnn.corpus.elementwise import of_most_operands, post_ops
from asmdnn.generators.dot.counted_tile import CountedTileSpec
from asmdnn.generators.dot.dots import DotsSpec, columns_at_once
from asmdnn.generators.dot.gemv import GemvSpec
from asmdnn.generators.dot.matmul import MatmulTileSpec
from asmdnn.generators.dot.matmul_shape import ARGUMENTS, Bias, Items, MatmulTile
from asmdnn.generators.dot.outer import CHUNK, OuterSpec
from asmdnn.generators.dot.pack import PackSpec
from asmdnn.generators.dot.skinny import SkinnySpec
from asmdnn.isa.dot import F32, blocks_of
from asmdnn.isa.vectors import lanes_of
from asmdnn.records import replace

BIASES = (Bias(0, True), Bias(4, False), Bias(0, False), Bias(1000, True))
DEPTHS = (0, 1, 2, 7, 8, 9, 15, 16, 17, 26)


def with_gaps(isa: str, rows: int, columns: int, depth: int) -> dict[str, Any]:
    """Fields of row-major operands with gaps after the rows."""
    return {
        "isa": isa,
        "rows": rows,
        "columns": columns,
        "depth": depth,
        "src_row_bytes": 4 * (depth + 3),
        "src_depth_bytes": 4,
        "weights_row_bytes": 4 * (columns + 5),
    }


def tile(isa: str, rows: int, columns: int, depth: int = 3, **fields: Any) -> MatmulTileSpec:
    """Row-major operands with gaps after the rows; weights are not padded."""
    plain = MatmulTile(
        **with_gaps(isa, rows, columns, depth),
        panel_vectors=-(-columns // lanes_of(isa)),
        panel_bytes=0,
        padded=False,
        dst_row_bytes=4 * (columns + 7),
    )
    return MatmulTileSpec(tile=replace(plain, **fields))


def panels(isa: str, vectors: int = 2) -> dict[str, Any]:
    """Fields of weights in zero-padded panels."""
    row_bytes = 4 * LANES[isa] * vectors
    return {"weights_row_bytes": row_bytes, "panel_vectors": vectors, "panel_bytes": 40 * row_bytes, "padded": True}


def tiles(isa: str) -> Iterator[MatmulTileSpec]:
    """Every full block, with and without a tail; depths around the loop; panels side by side."""
    lanes = LANES[isa]
    for vectors, rows in blocks_of(F32, isa).items():
        yield tile(isa, rows, vectors * lanes)
        yield tile(isa, rows, vectors * lanes - 3, depth=9, bias=BIASES[0], post_ops=(LEAKY, SUM_HALF, RELU))
        yield tile(isa, max(1, rows - 1), vectors * lanes - 1, src_depth_bytes=84, src_row_bytes=4)
        if vectors > 1:
            yield tile(isa, rows, vectors * lanes - lanes - 2, depth=17, **panels(isa))
            yield tile(isa, rows, vectors * lanes, depth=4, **panels(isa), stream_bytes=1024)
    for depth in DEPTHS:
        yield tile(isa, 3, lanes + 1, depth)
        yield tile(isa, 1, 2 * lanes + 1, depth, stream_bytes=4000)
    for columns in range(1, lanes):
        yield tile(isa, 2, columns, bias=BIASES[0])


def ends(isa: str) -> Iterator[MatmulTileSpec]:
    """What a sum starts from, scales, post-ops."""
    lanes = LANES[isa]
    for chain in CHAINS:
        yield tile(isa, 3, lanes + 3, post_ops=chain)
        yield tile(isa, 2, 2 * lanes, accumulate=True, post_ops=chain)
    for bias in BIASES:
        for columns in (lanes, lanes + 3):
            yield tile(isa, 3, columns, bias=bias)
            yield tile(isa, 1, columns, depth=0, bias=bias)
    for rows, columns in ((6, 2 * lanes - 1), (1, lanes), (2, 3)):
        yield tile(isa, rows, columns, scaled=True)
        yield tile(isa, rows, columns, scaled=True, beta=True)
        yield tile(isa, rows, columns, depth=0, scaled=True, beta=True)
        yield tile(isa, rows, columns, scaled=True, accumulate=True)


def in_turn(isa: str) -> Iterator[MatmulTileSpec]:
    """Several sums that steps of k take in turn: whole rounds and rests; a bias, dst, scales, tails, panels."""
    lanes = LANES[isa]
    for depth in (1, 9, 16, 35):
        yield tile(isa, 1, lanes, depth, sums=8)
        yield tile(isa, 1, 2 * lanes - 3, depth, sums=4, bias=BIASES[0], post_ops=(LEAKY,))
        yield tile(isa, 2, lanes + 1, depth, sums=2, **panels(isa))
    yield tile(isa, 3, lanes, 19, sums=2, accumulate=True)
    yield tile(isa, 1, lanes - 1, 19, sums=8, scaled=True, beta=True)


def streaming(isa: str) -> Iterator[MatmulTileSpec]:
    """Whole vectors past the caches, where dst begins with one; tails, scales, post-ops."""
    lanes = LANES[isa]
    apart: dict[str, Any] = {**panels(isa), "dst_row_bytes": 16 * lanes, "streams": True}
    for chain in ((), (LEAKY, RELU)):
        yield tile(isa, 3, 2 * lanes, 9, post_ops=chain, **apart)
        yield tile(isa, 2, lanes + 3, bias=BIASES[0], post_ops=chain, **apart)
    yield tile(isa, blocks_of(F32, isa)[2], 2 * lanes, scaled=True, **apart)


def packing(isa: str) -> Iterator[MatmulTileSpec]:
    """Weights left in a panel; prefetches."""
    lanes = LANES[isa]
    for rows, columns, depth in ((6, 2 * lanes, 8), (1, 2 * lanes - 1, 17), (5, 3, 16), (2, lanes, 3)):
        yield tile(isa, rows, columns, depth, packs=True, panel_vectors=2, stream_bytes=640)
    yield tile(isa, 4, lanes - 1, 9, packs=True, panel_vectors=1)
    for lines in (1, 3, 9):
        yield tile(isa, 2, 2 * lanes, 25, **panels(isa), prefetch_lines=lines)
    yield tile(isa, 3, 2 * lanes, 25, **panels(isa), prefetch_lines=3, prefetch_step_bytes=1000)
    yield tile(isa, 2, lanes + 1, 9, **panels(isa), prefetches_dst=True)
    for rows, columns, depth in ((blocks_of(F32, isa)[2], 2 * lanes, 24), (2, lanes, 8), (3, lanes - 1, 16)):
        yield tile(isa, rows, columns, depth, **panels(isa), near_row_bytes=4 * depth + 64, prefetch_lines=1)


def packs(isa: str) -> Iterator[PackSpec]:
    """Columns around vectors, panels, and what is on its way at a time; rows that are no multiple of lines apart."""
    lanes = LANES[isa]
    for columns in (1, lanes - 1, lanes, 2 * lanes + 1, 6 * lanes, 8 * lanes, 9 * lanes - 2):
        yield PackSpec(
            isa=isa, depth=3, columns=columns, row_bytes=4 * (columns + 5), panel_vectors=2,
            panel_bytes=24 * lanes + 64, prefetch_rows=2,
        )  # fmt: skip
    yield PackSpec(
        isa=isa, depth=1, columns=3 * lanes, row_bytes=64 * lanes, panel_vectors=2, panel_bytes=512 * lanes,
        prefetch_rows=8,
    )  # fmt: skip
    yield PackSpec(
        isa=isa, depth=9, columns=3 * lanes - 1, row_bytes=12 * lanes, panel_vectors=1, panel_bytes=36 * lanes
    )


def items(isa: str) -> Iterator[MatmulTileSpec]:
    """Several tiles a call; operands that they share."""
    lanes = LANES[isa]
    for steps in (Items(3, 512, 1024, 0, 2048), Items(2, 0, 2048, 64, 512), Items(5, 128, 0, 4, 4096)):
        for depth in (2, 8, 19):
            yield tile(isa, 2, lanes - 1, depth, src_row_bytes=4 * depth, items=steps, bias=BIASES[0])
        yield tile(isa, 1, lanes, 2, items=steps, post_ops=(SUM_HALF,))


def vectors(isa: str) -> Iterator[GemvSpec]:
    """Columns around a chunk, rows around a pass."""
    lanes = LANES[isa]
    for columns in (1, lanes - 1, lanes, 3 * lanes + 1, 4 * lanes, 4 * lanes + 1, 9 * lanes - 1, 12 * lanes):
        for depth in (1, 7, 8, 9, 24, 27):
            yield GemvSpec(
                isa=isa, columns=columns, depth=depth, src_depth_bytes=4, weights_row_bytes=4 * (columns + 2)
            )
    yield GemvSpec(isa=isa, columns=5 * lanes, depth=11, src_depth_bytes=40, weights_row_bytes=20 * lanes)


def skinny(isa: str) -> Iterator[SkinnySpec]:
    """Rows that leave registers for fewer vectors at a time, columns around these, depths around a pass."""
    lanes = LANES[isa]
    for rows in (2, 3, 4):
        for columns, depth in ((1, 8), (2 * lanes + 1, 7), (4 * lanes, 9), (9 * lanes - 1, 17)):
            yield SkinnySpec(
                isa=isa, rows=rows, columns=columns, depth=depth, src_row_bytes=4 * (depth + 3), src_depth_bytes=4,
                weights_row_bytes=4 * (columns + 2), dst_row_bytes=4 * (columns + 1),
            )  # fmt: skip
    yield SkinnySpec(
        isa=isa, rows=2, columns=5 * lanes, depth=11, src_row_bytes=4, src_depth_bytes=40, weights_row_bytes=20 * lanes,
        dst_row_bytes=24 * lanes,
    )  # fmt: skip


def dots(isa: str) -> Iterator[DotsSpec]:
    """Rows around a strip, depths around a step; columns from two to the most, one after another or apart."""
    lanes = LANES[isa]
    for rows in (1, 3, 4, 5, 8):
        for depth in (1, lanes, lanes + 1, 2 * lanes, 2 * lanes + 3, 5 * lanes - 1, 6 * lanes):
            yield DotsSpec(isa=isa, rows=rows, depth=depth, src_row_bytes=4 * (depth + 3))
    for columns in range(2, columns_at_once(F32, isa) + 1):
        for depth in (1, 2 * lanes, 3 * lanes + 1):
            few = DotsSpec(
                isa=isa, rows=7, depth=depth, src_row_bytes=4 * (depth + 3), columns=columns,
                column_bytes=4 * (depth + 2),
            )  # fmt: skip
            yield few
            yield replace(few, dst_column_bytes=40)
            yield replace(few, dst_column_bytes=40 * (columns % 2), accumulate=True)


def outer(isa: str, rows: int, columns: int, depth: int = 2, **fields: Any) -> OuterSpec:
    """Row-major operands with gaps after the rows; weights are not padded, dst's rows are aligned."""
    vector_bytes = 4 * LANES[isa]
    spec = OuterSpec(
        **with_gaps(isa, rows, columns, depth), panel_vectors=CHUNK, panel_bytes=CHUNK * vector_bytes, padded=False,
        dst_row_bytes=(-(-4 * columns // vector_bytes) + 1) * vector_bytes,
    )  # fmt: skip
    return replace(spec, **fields)


def outers(isa: str) -> Iterator[OuterSpec]:
    """Columns around a chunk, depths, biases, panels; streaming stores, whose data may start anywhere."""
    lanes = LANES[isa]
    chunk = CHUNK * lanes
    for columns in (1, lanes, chunk - 1, chunk, chunk + 1, chunk + lanes, 3 * chunk - 2):
        yield outer(isa, 3, columns)
        yield outer(isa, 2, columns, 5, src_row_bytes=4, src_depth_bytes=24, streaming=True)
        for vectors in (1, 2):
            width = 4 * vectors * lanes
            fields = {"weights_row_bytes": width, "panel_vectors": vectors, "panel_bytes": 9 * width, "padded": True}
            yield outer(isa, 2, columns, 3, **fields, prefetches=True)
    for bias in BIASES:
        yield outer(isa, 2, chunk + lanes + 3, bias=bias)
        yield outer(isa, 3, 2 * chunk, 4, bias=bias, streaming=True)
    for depth in (1, 9, 16):
        yield outer(isa, 2, chunk + 3, depth)


def operands(isa: str) -> Iterator[MatmulTileSpec]:
    """Long chains, and tensors that they read: with registers left, with all of them taken, and with a tail."""
    lanes = LANES[isa]
    for chain in post_ops(len(ARGUMENTS), lanes):
        yield tile(isa, 2, lanes + 1, bias=BIASES[0], post_ops=chain)
        yield tile(isa, blocks_of(F32, isa)[2], 2 * lanes - 1, depth=9, **panels(isa), post_ops=chain)
        yield tile(isa, 1, 2 * lanes, accumulate=True, post_ops=chain)
    yield tile(isa, 3, 2 * lanes - 1, bias=BIASES[1], post_ops=of_most_operands(len(ARGUMENTS), lanes))


def counted(isa: str) -> Iterator[CountedTileSpec]:
    """Rows around those that have pointers, the most of them; depths around a round; rows far apart."""
    lanes = LANES[isa]
    for vectors, most in blocks_of(F32, isa).items():
        for rows in sorted({*range(1, min(5, most)), most}):
            fields = {**panels(isa, vectors), "src_row_bytes": 400, "dst_row_bytes": 68 * lanes}
            yield CountedTileSpec(tile=tile(isa, rows, vectors * lanes - rows % 2, 5 + 4 * rows, **fields).tile)
    for depth in (1, 7, 8, 9, 24):
        yield CountedTileSpec(tile=tile(isa, 5, lanes - 1, depth, **panels(isa), dst_row_bytes=4000).tile)


FAMILIES = {
    **of_levels(
        "matmul",
        tiles=tiles,
        ends=ends,
        in_turn=in_turn,
        streaming=streaming,
        packing=packing,
        items=items,
        vectors=vectors,
        dots=dots,
    ),
    **of_levels("matmul", packs=packs, skinny=skinny, outers=outers, operands=operands),
    **of_levels("matmul", counted=counted),
}
