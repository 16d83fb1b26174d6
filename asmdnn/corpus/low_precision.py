"""The specs of tiles of other types than f32: the cases of f32 tiles, and every cut of a group of k."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, product

from asmdnn.corpus import conv, matmul
from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.conv_shape import TapGroup
from asmdnn.generators.dot.dots import DotsSpec, columns_at_once
from asmdnn.generators.dot.gemv import GemvSpec
from asmdnn.generators.dot.matmul import UNROLL, MatmulTileSpec
from asmdnn.generators.dot.matmul_shape import ARGUMENTS, RESULTS
from asmdnn.generators.dot.outer import CHUNK, OuterSpec
from asmdnn.generators.dot.pack import PackSpec, most_summed
from asmdnn.generators.dot.skinny import SkinnySpec, vectors_at_once
from asmdnn.generators.dot.start_vector import StartVectorSpec
from asmdnn.generators.functions.chain import operands_of
from asmdnn.generators.functions.postops import OLD_DST, BinaryOp, Operand, SumOp
from asmdnn.isa.dot import DOTS, F32, GROUP_BYTES, S16, S16S8, S32, Types, blocks_of, dot_class
from asmdnn.isa.dot_native import AvxVnniDot, Bf16Dot, F16Dot, F32Dot, VnniDot
from asmdnn.isa.dot_runs import RUN_GROUPS
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.records import replace
from asmdnn.types import f32

EVERY = 5  # of the chains that read tensors, which do not depend on what is multiplied
RESULTS_OF_F32 = tuple((F32, level) for level in ("avx2", "avx512_core"))
LEVELS_OF_TYPES = tuple((types, level.name) for types, level in DOTS if types not in (F32, S16))
LEVELS_OF_CONVOLUTIONS = tuple(
    (t, isa) for t, isa in LEVELS_OF_TYPES if dot_class(t, isa) in (Bf16Dot, F16Dot, VnniDot, AvxVnniDot)
)


def may_pack(isa: str, types: Types) -> bool:
    """Whether weights are in registers as they lie in memory."""
    return types.weights_bytes == GROUP_BYTES and dot_class(types, isa).row_registers == 1


def groups(isa: str, types: Types) -> Iterator[MatmulTileSpec]:
    """Depths around a group and around the loop; groups dense, and apart as the rows of a transposed src."""
    lanes, group = lanes_of(isa), types.group
    loop = 2 * UNROLL * group
    for depth in (*range(1, 2 * group + 2), *range(loop - 1, loop + group + 2)):
        for rows, columns in ((3, lanes + 1), (1, 2 * lanes + 1), (1, lanes)):
            yield matmul.tile(isa, rows, columns, depth, types=types)
        yield matmul.tile(isa, 2, lanes, depth, types=types, src_row_bytes=4, src_depth_bytes=24)
        if may_pack(isa, types):
            yield matmul.tile(isa, 2, lanes + 1, depth, types=types, packs=True, panel_vectors=2)


def regrouped(specs: Iterator[MatmulTileSpec], isa: str, types: Types) -> Iterator[MatmulTileSpec]:
    """Tiles of f32 with as many groups of other types, the last ones cut in turn.

    Left out is what has no meaning: sums of integers in dst that a post-op reads as f32.
    """
    for number, spec in enumerate(specs):
        tile = spec.tile
        if tile.packs and not may_pack(isa, types):
            continue
        if not (tile.accumulate and not tile.scaled and OLD_DST in operands_of(tile.post_ops)):
            cut = 0 if tile.near_row_bytes else number % types.group
            depth = max(0, tile.depth * types.group - cut)
            rows = min(tile.rows, blocks_of(types, isa)[next(n for n in blocks_of(types, isa) if n >= tile.vectors)])
            padded = tile.padded or types == S16S8
            yield MatmulTileSpec(tile=replace(tile, isa=isa, types=types, depth=depth, rows=rows, padded=padded))


def _of(family: Callable[[str], Iterator[MatmulTileSpec]]) -> Callable[[str, Types], Iterator[MatmulTileSpec]]:
    return lambda isa, types: regrouped(family(f32_level(isa)), isa, types)


def runs(isa: str, types: Types) -> Iterator[MatmulTileSpec]:
    """Depths around one run of k and several, whose sums are of fewer bits; what sums start from, and become."""
    lanes, run = lanes_of(isa), RUN_GROUPS * types.group
    for number, depth in enumerate((run - 1, run, run + 8 * types.group, 2 * run + types.group + 1, 3 * run + 1)):
        yield matmul.tile(isa, 2, lanes + 1, depth, types=types, accumulate=number % 2 > 0)
        yield matmul.tile(isa, 1, lanes, depth, types=types, bias=matmul.BIASES[number % len(matmul.BIASES)])
        yield matmul.tile(isa, 2, 2 * lanes, depth, types=types, dst=types.src)


def in_turn(isa: str, types: Types) -> Iterator[MatmulTileSpec]:
    """Several sums that groups of k take in turn."""
    yield from tuple(regrouped(matmul.in_turn(f32_level(isa)), isa, types))[::2]


def operands(isa: str, types: Types) -> Iterator[MatmulTileSpec]:
    """Some chains of post-ops that read tensors."""
    yield from tuple(regrouped(matmul.operands(f32_level(isa)), isa, types))[::EVERY]


def results(isa: str, types: Types) -> Iterator[MatmulTileSpec]:
    """Every type of dst, of a bias that waits for the sums, and of what dst held; whole vectors and tails."""
    lanes, first = lanes_of(isa), len(ARGUMENTS)
    for dst in RESULTS:
        yield matmul.tile(isa, 3, lanes + 3, 2 * types.group + 1, types=types, dst=dst)
        added = BinaryOp("add", Operand(first, 0, lanes * dst.size_bytes, False))
        scaled = BinaryOp("mul", Operand(first + 1, 4, 0, True))
        chain = (added, scaled, SumOp(0.5))
        for columns in (1, lanes, 2 * lanes - 1):
            shape = matmul.tile(isa, 2, columns, 3 * types.group, types=types, dst=dst, post_ops=chain)
            yield MatmulTileSpec(tile=replace(shape.tile, operand_types=(dst, f32)))


def vectors(isa: str, types: Types) -> Iterator[GemvSpec | SkinnySpec]:
    """Few rows of src and plain weights: columns around a chunk, depths around groups and passes."""
    lanes, group, passed = (
        lanes_of(isa),
        types.group,
        GemvSpec(isa=isa, columns=1, depth=1, src_depth_bytes=0, weights_row_bytes=0, types=types).pass_groups
        * types.group,
    )
    columns = (1, lanes - 1, lanes, 3 * lanes + 1, 4 * lanes, 4 * lanes + 3, 9 * lanes - 1)
    depths = (1, group, group + 1, passed - 1, 3 * passed + 1)
    for number, (count, depth) in enumerate(product(columns, depths)):
        if number % len(columns) % 2:
            continue
        size = types.weights.size_bytes
        row_bytes = size * (count + 2)
        yield GemvSpec(
            isa=isa, columns=count, depth=depth, src_depth_bytes=(GROUP_BYTES, 24)[number % 2],
            weights_row_bytes=row_bytes, types=types,
        )  # fmt: skip
        rows = 2 + number % 3
        if vectors_at_once(types, isa, rows):
            dst_bytes = types.sums.size_bytes * (count + 1)
            src_bytes = GROUP_BYTES * (depth + 3)
            yield SkinnySpec(
                isa=isa, rows=rows, columns=count, depth=depth, src_row_bytes=src_bytes, src_depth_bytes=GROUP_BYTES,
                weights_row_bytes=row_bytes, dst_row_bytes=dst_bytes, types=types,
            )  # fmt: skip


def dots(isa: str, types: Types) -> Iterator[DotsSpec]:
    """Rows around a strip, depths around groups and steps."""
    lanes, size = lanes_of(isa) * types.group, types.weights.size_bytes
    for rows in (1, 5):
        for depth in (1, lanes - 1, lanes, lanes + 1, 2 * lanes, 2 * lanes + 3, 5 * lanes - 1):
            yield DotsSpec(isa=isa, rows=rows, depth=depth, src_row_bytes=size * (depth + 3), types=types)
    step = types.src.size_bytes * (2 * lanes + 8)
    for columns in range(2, columns_at_once(types, isa) + 1):
        few = DotsSpec(
            isa=isa, rows=7, depth=2 * lanes + 3, src_row_bytes=size * (2 * lanes + 4), types=types, columns=columns,
            column_bytes=step,
        )  # fmt: skip
        yield few
        yield replace(few, dst_column_bytes=40)
        yield replace(few, dst_column_bytes=40 * (columns % 2), accumulate=True)


def outers(isa: str, types: Types) -> Iterator[OuterSpec]:
    """Weights in panels, last groups cut; columns around a chunk; biases; streaming stores."""
    lanes = lanes_of(isa)
    chunk, width = CHUNK * lanes, types.weights_bytes * 2 * lanes
    panels = {"weights_row_bytes": width, "panel_vectors": 2, "panel_bytes": 9 * width, "padded": True, "types": types}
    for number, columns in enumerate((1, lanes, chunk - 1, chunk, chunk + lanes, 3 * chunk - 2)):
        depth = 3 * types.group - number % types.group
        yield replace(matmul.outer(f32_level(isa), 3, columns, depth, **panels), isa=isa)
        bias = matmul.BIASES[number % len(matmul.BIASES)]
        yield replace(matmul.outer(f32_level(isa), 2, columns, depth, **panels, bias=bias, streaming=True), isa=isa)


def packs(isa: str, types: Types) -> Iterator[PackSpec]:
    """Columns around vectors, panels, and what is interleaved at a time; every cut of a group; sums of columns."""
    lanes, size = lanes_of(isa), types.weights.size_bytes
    for number, columns in enumerate((1, lanes - 1, lanes, 2 * lanes + 1, 6 * lanes, 8 * lanes, 9 * lanes - 2)):
        depth = 1 + number % (2 * types.group)
        spec = PackSpec(
            isa=isa, depth=depth, columns=columns, row_bytes=size * (columns + 5), panel_vectors=1 + number % 2,
            panel_bytes=64 * lanes + 64, prefetch_rows=number % 3, types=types,
        )  # fmt: skip
        yield spec
        if columns <= most_summed(isa, types):
            yield replace(spec, depth=depth + types.group, sums=True)


def starts(isa: str) -> Iterator[StartVectorSpec]:
    """Tails, whole vectors, one turn of the loop and several."""
    lanes = lanes_of(isa)
    for count in (*range(1, lanes + 2), 4 * lanes, 4 * lanes + 1, 11 * lanes - 1):
        yield StartVectorSpec(isa=isa, count=count)
        yield StartVectorSpec(isa=isa, count=count, shift=128)


def conv_tiles(isa: str, types: Types) -> Iterator[ConvTileSpec]:
    """Convolutions: runs of channels, groups of pixels, starts and ends, tails; last groups of channels cut in turn."""
    level = f32_level(isa)
    of_f32 = chain(conv.runs(level), conv.groups(level), conv.ends(level), tuple(conv.tails(level))[::EVERY])
    for number, spec in enumerate(of_f32):
        if not (spec.accumulate and OLD_DST in operands_of(spec.post_ops)):
            cut = number % types.group
            taps = tuple(replace(x, channels=max(1, x.channels * types.group - cut)) for x in spec.groups)
            yield replace(spec, isa=isa, types=types, groups=taps)


def conv_runs(isa: str, types: Types) -> Iterator[ConvTileSpec]:
    """Taps that fill a run and that leave room in it, of all pixels and of some; of few taps and of none."""
    lanes = lanes_of(isa)
    every, some = (0, 1, 2), (1, 2)
    for number, steps in enumerate((7, 21, RUN_GROUPS // 2, RUN_GROUPS - 1, RUN_GROUPS)):
        channels = steps * types.group - number % types.group
        taps = (TapGroup(every, channels), TapGroup(some, channels), TapGroup((0,), types.group), TapGroup(every, 1))
        start = {"bias": True} if number % 2 else {"accumulate": True}
        for tile in (
            conv.plain(f32_level(isa), len(every), 2 * lanes - 1, groups=taps, **start),
            conv.blocked(f32_level(isa), len(every), 1, groups=taps[::-1]),
        ):
            yield replace(tile, isa=isa, types=types)


_PRODUCTS: dict[str, Callable[[str, Types], Iterator[MatmulTileSpec]]] = {
    "groups": groups,
    **{family.__name__: _of(family) for family in (matmul.tiles, matmul.ends, matmul.packing, matmul.items)},
    "operands": operands,
    "results": results,
}
OF_ALL = ("groups", "results", "tiles")  # also of dots that differ from f32's by their loads alone
_STREAMS: tuple[Callable[[str, Types], Iterator[KernelSpec]], ...] = (vectors, dots, outers)
_OF_WORDS: tuple[Callable[[str, Types], Iterator[KernelSpec]], ...] = (outers, packs)  # what plain weights become


def families_of(types: Types) -> tuple[Callable[[str, Types], Iterator[KernelSpec]], ...]:
    """Beside tiles."""
    if types.run:
        return (packs,)
    return _OF_WORDS if types == S16S8 else (*_STREAMS, *[packs] * (types.group > 1))


FAMILIES: dict[str, Callable[[], Iterator[KernelSpec]]] = {
    **{f"conv-{types}-{isa}": partial(conv_tiles, isa, types) for types, isa in LEVELS_OF_CONVOLUTIONS},
    **{
        f"matmul-{name}-{types}-{isa}": partial(family, isa, types)
        for types, isa in LEVELS_OF_TYPES
        for name, family in _PRODUCTS.items()
        if name in OF_ALL or not issubclass(dot_class(types, isa), F32Dot)
    },
    **{
        f"matmul-{family.__name__}-{types}-{isa}": partial(family, isa, types)
        for types, isa in LEVELS_OF_TYPES
        for family in families_of(types)
        if types != S32
    },
    **{f"conv-runs-{types}-{isa}": partial(conv_runs, isa, types) for types, isa in LEVELS_OF_TYPES if types.run},
    **{f"matmul-runs-{types}-{isa}": partial(runs, isa, types) for types, isa in LEVELS_OF_TYPES if types.run},
    **{
        f"matmul-in-turn-{types}-{isa}": partial(in_turn, isa, types) for types, isa in LEVELS_OF_TYPES if not types.run
    },
    **{f"matmul-results-{types}-{isa}": partial(results, isa, types) for types, isa in RESULTS_OF_F32},
    **{f"starts-{isa}": partial(starts, isa) for _, isa in RESULTS_OF_F32},
}
