"""The specs of products by tiles of AMX: every cut of rows, columns and depth, starts of sums, and what follows."""

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Any

from asmdnn.corpus.conv import CHAINS, LEAKY, RELU, SUM_HALF
from asmdnn.corpus.elementwise import of_most_operands, post_ops
from asmdnn.corpus.matmul import BIASES
from asmdnn.generators.dot.amx import AmxTileSpec
from asmdnn.generators.dot.matmul_shape import ARGUMENTS, RESULTS, Bias, Items, MatmulTile, PieceLoop
from asmdnn.generators.functions.chain import operands_of
from asmdnn.generators.functions.postops import OLD_DST, BinaryOp, Operand, SumOp
from asmdnn.isa.dot import GROUP_BYTES, OFFERED, Types
from asmdnn.isa.levels import AVX512_CORE_AMX
from asmdnn.isa.tiles import TILE_COLUMNS, TILE_GROUPS, TILE_ROW_BYTES, Far, tile_product
from asmdnn.records import replace
from asmdnn.types import f32

ISA = AVX512_CORE_AMX.name
ROWS = (1, 2, 15, 16, 17, 31, 32, 33, 48, 64, 83, 97)  # one tile, two, an odd one, a loop of pairs; rows computed again
COLUMNS = (1, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 97)
EVERY = 5  # of the chains that read tensors


def tile(types: Types, rows: int, columns: int, depth: int, **fields: Any) -> AmxTileSpec:
    """Operands with gaps after the rows of src and dst, and after the panels of weights, of two vectors or one."""
    vectors = min(2, -(-columns // TILE_COLUMNS))
    row_bytes = TILE_ROW_BYTES * vectors
    plain = MatmulTile(
        isa=ISA,
        rows=rows,
        columns=columns,
        depth=depth,
        src_row_bytes=types.src.size_bytes * (depth + 3),
        src_depth_bytes=GROUP_BYTES,
        weights_row_bytes=row_bytes,
        panel_vectors=vectors,
        panel_bytes=(-(-depth // types.group) + 1) * row_bytes,
        padded=True,
        dst_row_bytes=4 * (columns + 7),
        types=types,
    )
    return AmxTileSpec(tile=replace(plain, **fields))


def cuts(types: Types) -> Iterator[AmxTileSpec]:
    """Rows and columns, with depths that fill a tile, several, none, and one and a part."""
    whole = TILE_GROUPS * types.group
    depths = (whole, 3 * whole, 2 * types.group, whole + 5 * types.group, 2 * whole + 1)
    for number, (rows, columns) in enumerate(zip(ROWS, COLUMNS, strict=True)):
        yield tile(types, rows, columns, depths[number % len(depths)])
        yield tile(types, rows, COLUMNS[-1 - number], depths[(number + 2) % len(depths)])
    for depth in (*range(1, 2 * types.group + 2), *range(whole - 1, whole + types.group + 2), 5 * whole - 1):
        yield tile(types, 18, 33, depth)
        yield tile(types, 5, 16, depth)


def ends(types: Types) -> Iterator[AmxTileSpec]:
    """What a sum starts from, and post-ops; of integers no post-op reads sums from dst."""
    for number, chain in enumerate(CHAINS):
        yield tile(types, 19, 33 - number, 7, post_ops=chain)
        if OLD_DST not in operands_of(chain):
            yield tile(types, 33, 32, 9, accumulate=True, post_ops=chain)
    for bias in BIASES:
        for columns in (32, 35):
            yield tile(types, 35, columns, 9, bias=bias)
    yield tile(types, 35, 70, 9, bias=BIASES[0], post_ops=(LEAKY, SUM_HALF, RELU))
    yield tile(types, 3, 70, 9, accumulate=True)


def images(types: Types) -> Iterator[AmxTileSpec]:
    """Several items, whose tiles are odd and even in number, and k in pieces, which overlap from row to row."""
    group, shared = types.group, Operand(len(ARGUMENTS), 0, 4 * TILE_COLUMNS, False)
    for number, rows in enumerate((1, 7, 16, 17, 30, 32, 33, 47, 48, 97)):
        count, columns, channels = 2 + number % 3, COLUMNS[number], group * (3, 16, 17, 40)[number % 4]
        pixel, line = GROUP_BYTES * (channels // group), GROUP_BYTES * (channels // group) * (rows + 2)
        items = Items(count, line, 0, 0, 4 * (columns + 7) * (rows + 1))
        yield tile(types, rows, columns, channels, items=items, src_row_bytes=pixel)
        loops = ((3, line),), ((2, line), (3, 2 * pixel)), ((2, 3 * line), (2, line), (2, pixel))
        pieces = loops_of(loops[number % len(loops)], channels // group, columns, turned=number % 2 > 0)
        depth = channels * prod(loop.count for loop in pieces)
        panel = pieces[0].count * pieces[0].weights_bytes
        in_pieces = partial(tile, types, rows, columns, depth, src_row_bytes=pixel, pieces=pieces, panel_bytes=panel)
        yield in_pieces()
        yield in_pieces(items=items, bias=BIASES[0], post_ops=(BinaryOp("mul", shared),))


def joined(types: Types) -> Iterator[AmxTileSpec]:
    """Items that tiles have rows of several of, with rows between them and without, and steps of dst of their own."""
    groups = 18
    pixel = GROUP_BYTES * groups
    for number, (rows, pitch, count) in enumerate(
        ((7, 9, 7), (7, 8, 3), (2, 3, 20), (5, 5, 9), (13, 15, 13), (3, 20, 2))
    ):
        columns, gap = COLUMNS[2 * number], number % 2
        items = Items(count, pitch * pixel, 0, 0, 4 * (columns + 7) * (rows + gap), joined=True)
        fields: dict[str, Any] = {"items": items, "src_row_bytes": pixel}
        yield tile(types, rows, columns, types.group * groups, **fields)
        pieces = loops_of(((3, pitch * pixel), (2, pixel)), groups, columns, turned=False)
        panel = pieces[0].count * pieces[0].weights_bytes
        bias = Bias(0, True) if gap else None
        fields |= {"pieces": pieces, "panel_bytes": panel, "bias": bias, "post_ops": (RELU,)}
        yield tile(types, rows, columns, 6 * types.group * groups, **fields)


def items_with_operands(types: Types) -> Iterator[AmxTileSpec]:
    """Items that each have their part of one tensor that post-ops read, and share another one: by themselves, by twos,
    and joined."""
    first, channels = len(ARGUMENTS), 18
    pixel = GROUP_BYTES * channels
    for number, (rows, pitch, count, joined) in enumerate(
        ((17, 19, 3, False), (14, 16, 5, False), (7, 9, 7, True), (5, 5, 9, True), (2, 3, 20, True))
    ):
        columns = COLUMNS[2 * number + 1]
        row_bytes = 4 * (columns + 7)
        own = BinaryOp("add", Operand(first, row_bytes, 4 * TILE_COLUMNS, False))
        shared = BinaryOp("mul", Operand(first + 1, 0, 4 * TILE_COLUMNS, False))
        steps = (count, pitch * pixel, 0, 0, row_bytes * (rows + 1))
        items = Items(*steps, joined=joined, operand_bytes=(row_bytes * (rows + 2), 0))
        fields: dict[str, Any] = {"items": items, "src_row_bytes": pixel, "post_ops": (own, shared, RELU)}
        yield tile(types, rows, columns, types.group * channels, **fields)


def caches(types: Types) -> Iterator[AmxTileSpec]:
    """Operands that are read past L1, and several panels for each block."""
    for number, far in enumerate((Far(src=True), Far(weights=True), Far(src=True, weights=True))):
        yield replace(tile(types, 18 + 16 * number, 70, (3 * TILE_GROUPS + number) * types.group), far=far)
    for rows, columns, at_once in ((33, 64, 2), (70, 100, 3), (97, 128, 2), (47, 130, 4)):
        yield replace(tile(types, rows, columns, 40 * types.group, bias=BIASES[0]), panels_at_once=at_once)
    beside = BinaryOp("add", Operand(len(ARGUMENTS), 4 * 107, 4 * TILE_COLUMNS, False))
    yield tile(types, 70, 100, 40 * types.group, prefetches_dst=True)
    yield tile(types, 97, 50, 9 * types.group, bias=BIASES[0], post_ops=(beside, RELU), prefetches_dst=True)
    items = Items(4, 4 * GROUP_BYTES * 40 * 20, 0, 0, 4 * 80 * 20)
    yield replace(tile(types, 14, 64, 40 * types.group, items=items), panels_at_once=2)


def loops_of(steps: tuple[tuple[int, int], ...], groups: int, columns: int, turned: bool) -> tuple[PieceLoop, ...]:
    """Loops of so many pieces, so far apart in src.  turned: src is read from the end on, and weights have gaps."""
    found, bytes_of_piece = [], (groups + turned) * TILE_ROW_BYTES * min(2, -(-columns // TILE_COLUMNS))
    for count, step in reversed(steps):
        found.append(PieceLoop(count, -step if turned else step, bytes_of_piece))
        bytes_of_piece *= count
    return tuple(reversed(found))


def operands(types: Types) -> Iterator[AmxTileSpec]:
    """Long chains, and tensors that they read."""
    for chain in tuple(post_ops(len(ARGUMENTS), TILE_COLUMNS))[::EVERY]:
        yield tile(types, 18, 35, 9, bias=BIASES[0], post_ops=chain)
    most = of_most_operands(len(ARGUMENTS), TILE_COLUMNS)
    yield tile(types, 35, 63, 9, bias=BIASES[1], post_ops=most)
    rows, columns = 96, 70  # in loops of items, panels, pairs of tiles and rows: few registers are left
    items = Items(2, 4 * (rows + 1) * types.src.size_bytes, 0, 0, 4 * (columns + 7) * (rows + 1))
    near = partial(tile, types, rows, columns, 4, src_row_bytes=4 * types.src.size_bytes)
    yield near(items=items, bias=BIASES[0], post_ops=most)


def results(types: Types) -> Iterator[AmxTileSpec]:
    """Every type of dst, of a bias that waits for the sums, and of what dst held."""
    first = len(ARGUMENTS)
    for number, dst in enumerate(RESULTS):
        yield tile(types, 34, 33 + number, 9, dst=dst)
        added = BinaryOp("add", Operand(first, 0, TILE_COLUMNS * dst.size_bytes, False))
        scaled = BinaryOp("mul", Operand(first + 1, 4, 0, True))
        for columns in (16, 31, 35):
            spec = tile(types, 18, columns, 9, dst=dst, post_ops=(added, scaled, SumOp(0.5)))
            yield AmxTileSpec(tile=replace(spec.tile, operand_types=(dst, f32)))


FAMILIES = {
    f"amx-{family.__name__}-{types}": partial(family, types)
    for types in OFFERED
    if tile_product(types)
    for family in (cuts, ends, images, joined, items_with_operands, caches, operands, results)
}
