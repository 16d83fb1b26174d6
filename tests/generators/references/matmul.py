"""What matrix tiles and matrix-vector products compute, as loops written from the tables in their docstrings."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from asmdnn.bench.typed import narrowed
from asmdnn.generators.dot.amx import AmxTileSpec
from asmdnn.generators.dot.counted_tile import CountedTileSpec
from asmdnn.generators.dot.dots import DotsSpec
from asmdnn.generators.dot.gemv import GemvSpec
from asmdnn.generators.dot.matmul import UNROLL, MatmulTileSpec
from asmdnn.generators.dot.matmul_shape import ARGUMENTS, ONE_ITEM, Items, MatmulTile
from asmdnn.generators.dot.outer import OuterSpec
from asmdnn.generators.dot.pack import PackSpec
from asmdnn.generators.dot.skinny import SkinnySpec
from asmdnn.generators.dot.start_vector import StartVectorSpec
from asmdnn.generators.functions.chain import operands_read
from asmdnn.generators.functions.postops import OLD_DST, Operand, SumOp
from asmdnn.isa.dot import dot_class, unshifted_level
from asmdnn.isa.dot_runs import RUN_GROUPS
from asmdnn.types import DataType, f32, s32
from tests.generators.case import MOST_SLOPE, UNIT_ROUNDOFF, Case, Reference
from tests.generators.reference import LANES, Memory, keeps_integers, operand
from tests.support import functions
from tests.support.arena import Doubles, Elements, buffer_of, constant_buffer, elements, magnitudes

F16_ROUNDOFF, F16_DENORMAL = 2.0**-11, 2.0**-24
Product = MatmulTile | GemvSpec | DotsSpec | OuterSpec | SkinnySpec


def matmul_case(
    kernel: AmxTileSpec | MatmulTileSpec | CountedTileSpec | GemvSpec | DotsSpec | OuterSpec | SkinnySpec,
    random: np.random.Generator,
    integers: bool,
) -> Case:
    spec = kernel.tile if isinstance(kernel, AmxTileSpec | MatmulTileSpec | CountedTileSpec) else kernel
    if isinstance(kernel, AmxTileSpec):  # which takes src as it is
        spec = replace(kernel.tile, isa=unshifted_level(kernel.tile.types, kernel.isa))
    memory = matmul_memory(spec, kernel.frame, random, integers)
    compute(spec, memory)
    tolerance: Doubles | float = 0.0
    is_exact = not isinstance(spec, MatmulTile) or keeps_integers(spec.post_ops)
    of_integers = spec.types.sums == s32 and not (isinstance(spec, MatmulTile) and spec.works_in_f32)
    if not of_integers and not (integers and is_exact):
        tolerance = tolerance_of(spec if is_exact else replace(spec, post_ops=(SumOp(1.0),)), memory)
    if not is_exact:
        dst = buffer_of(memory["dst"])
        assert dst is not None
        tolerance = MOST_SLOPE * (np.resize(tolerance, dst.wanted.shape).max() + UNIT_ROUNDOFF * np.abs(dst.wanted))
    buffers = {name: buffer_of(memory[name]) for name in memory}
    if isinstance(kernel, CountedTileSpec):
        buffers["words"] = constant_buffer(np.array(kernel.numbers, np.int64))
    dst = buffers["dst"]
    if dst is not None and dst.kind != f32 and not of_integers:
        wanted, tolerance = narrowed(dst.wanted, np.asarray(tolerance), dst.kind)
        buffers["dst"] = replace(dst, wanted=wanted)
    return Case(kernel, buffers, {"dst": tolerance})


def matmul_memory(spec: Product, frame: tuple[str, ...], random: np.random.Generator, integers: bool) -> Memory:
    """Data for every argument; weights have zeros after the columns if they are padded, and after the depth."""
    kinds = kinds_of(spec) if isinstance(spec, MatmulTile) else kinds_of_sums(spec)
    memory = {name: elements(random, integers, *kinds.get(name, ())) for name in frame}
    if isinstance(spec, MatmulTile | OuterSpec):
        items = spec.items if isinstance(spec, MatmulTile) else ONE_ITEM
        group = spec.types.group
        for item in range(items.count):
            for k in range(-(-spec.depth // group) * group):
                for c in range(spec.columns if k < spec.depth else 0, padded_columns(spec)):
                    if spec.padded or c < spec.columns:
                        memory["weights"].clear(item * items.weights_bytes + weight_at(spec, k, c), 1)
    return memory


def kinds_of_sums(spec: GemvSpec | DotsSpec | OuterSpec | SkinnySpec) -> dict[str, tuple[DataType, ...]]:
    """The element types of what leaves sums as they are; of dots the matrix is what a dot calls weights."""
    types = spec.types
    src, weights = (types.weights, types.src) if isinstance(spec, DotsSpec) else (types.src, types.weights)
    return {"src": (src,), "weights": (weights,), "bias": (types.sums,), "dst": (types.sums,)}


def kinds_of(spec: MatmulTile) -> dict[str, tuple[DataType, ...]]:
    """The element types of arguments that need not be f32; of dst what a start from it takes, and what is left."""
    types, result = spec.types, spec.dst_type
    operands = {f"operand{len(ARGUMENTS) + i}": (kind,) for i, kind in enumerate(spec.operand_types)}
    starts = spec.accumulate and not spec.scaled
    return {
        "src": (types.src,),
        "weights": (types.weights,),
        "packed": (types.src if spec.near_row_bytes else types.weights,),
        "bias": (types.sums,),
        "dst": (types.sums if starts else result, result),
        **operands,
    }


def padded_columns(spec: MatmulTile | OuterSpec) -> int:
    """The columns of whole vectors."""
    lanes = LANES[spec.isa]
    return spec.vectors * lanes if isinstance(spec, MatmulTile) else -(-spec.columns // lanes) * lanes


def weight_at(spec: MatmulTile | OuterSpec, k: int, c: int) -> int:
    """Groups of k have a row each, in which the group of one column lies beside that of the next."""
    width, types = spec.panel_vectors * LANES[spec.isa], spec.types
    step, within = divmod(k, types.group)
    pieces: list[int] = []
    if isinstance(spec, MatmulTile) and spec.pieces:
        numbers, step = piece_at(spec, step)
        pieces = [i * loop.weights_bytes for i, loop in zip(numbers, spec.pieces, strict=True)]
    at = step * spec.weights_row_bytes + c // width * spec.panel_bytes + sum(pieces)
    return at + types.weights.size_bytes * (types.group * (c % width) + within)


def compute(spec: Product, memory: Memory) -> None:
    COMPUTE[type(spec)](spec, memory)


def tiles(spec: MatmulTile, memory: Memory) -> None:
    for item in range(spec.items.count):
        one_tile(spec, memory, spec.items, item)
    for r in range(spec.rows_of_src if spec.items.joined else 0):  # those between items are read, and add to nothing
        for step in range(-(-spec.depth // spec.types.group)):
            memory["src"].load(r * spec.src_row_bytes + src_at(spec, step), spec.types.group)


def factors_of(spec: GemvSpec | SkinnySpec | OuterSpec, memory: Memory, row_bytes: int) -> Doubles:
    """A row of src, group after group, with what the dot adds to each element."""
    group, found = spec.types.group, []
    for step, k in enumerate(range(0, spec.depth, group)):
        found.append(memory["src"].load(row_bytes + step * spec.src_depth_bytes, min(group, spec.depth - k)))
    return np.concatenate(found) + dot_class(spec.types, spec.isa).shift


def gemv(spec: GemvSpec, memory: Memory) -> None:
    """dst[c] = sum over k of src[k] * weights[k, c]."""
    total = np.zeros(spec.columns)
    for k, factor in enumerate(factors_of(spec, memory, 0)):
        total += factor * memory["weights"].load(k * spec.weights_row_bytes, spec.columns)
    memory["dst"].store(0, total)


def skinny(spec: SkinnySpec, memory: Memory) -> None:
    """dst[r, c] = sum over k of src[r, k] * weights[k, c]."""
    for r in range(spec.rows):
        total = np.zeros(spec.columns)
        for k, factor in enumerate(factors_of(spec, memory, r * spec.src_row_bytes)):
            total += factor * memory["weights"].load(k * spec.weights_row_bytes, spec.columns)
        memory["dst"].store(r * spec.dst_row_bytes, total)


def dots(spec: DotsSpec, memory: Memory) -> None:
    """dst[r, c] = (dst[r, c] if accumulate else 0) + sum over k of src[r, k] * weights[k, c]."""
    size = spec.types.sums.size_bytes
    for c in range(spec.columns):
        weights = memory["weights"].load(c * spec.column_bytes, spec.depth)
        for r in range(spec.rows):
            total = np.sum(memory["src"].load(r * spec.src_row_bytes, spec.depth) * weights)
            at = c * spec.dst_column_bytes + size * r if spec.dst_column_bytes else size * (r * spec.columns + c)
            total += memory["dst"].load(at, 1)[0] if spec.accumulate else 0
            memory["dst"].store(at, np.array([total]))


def pack_case(spec: PackSpec, random: np.random.Generator, integers: bool) -> Case:
    """weights[p, k, c] = prefetched[k, p * panel + c], and 0 after the columns of the last vector; bias[c] = -shift *
    sum over k of prefetched[k, c]."""
    memory = {name: elements(random, integers, spec.types.weights) for name in spec.frame}
    memory["bias"] = elements(random, True, s32)
    lanes, group = LANES[spec.isa], spec.types.group
    for step in range(-(-spec.depth // group)):
        rows = np.zeros((group, spec.vectors * lanes))
        for i, k in enumerate(range(step * group, min(spec.depth, (step + 1) * group))):
            rows[i, : spec.columns] = memory["prefetched"].load(k * spec.row_bytes, spec.columns)
        for j, vector in enumerate(rows.T.reshape(-1, lanes * group)):
            panel, within = divmod(j, spec.panel_vectors)
            at = panel * spec.panel_bytes + spec.types.weights_bytes * lanes * (step * spec.panel_vectors + within)
            memory["weights"].store(at, vector)
    if spec.sums:
        rows = [memory["prefetched"].load(k * spec.row_bytes, spec.columns) for k in range(spec.depth)]
        memory["bias"].store(0, -dot_class(spec.types, spec.isa).shift * np.sum(rows, 0))
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {"weights": 0.0})


def start_case(spec: StartVectorSpec, random: np.random.Generator, _: bool) -> Case:
    """start[c] = (shift + zero_point[0]) * sums[c], modulo 2^32."""
    memory = {name: elements(random, integers=True, kind=s32) for name in spec.frame}
    factor = spec.shift + memory["zero_point"].load(0, 1)
    memory["start"].store(0, factor * memory["sums"].load(0, spec.count))
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {})


def outer(spec: OuterSpec, memory: Memory) -> None:
    """dst[r, c] = bias[r, c] + sum over k of src[r, k] * weights[k, c]."""
    read = padded_columns(spec) if spec.padded else spec.columns
    group = spec.types.group
    table = np.zeros((-(-spec.depth // group), group, read))
    for k in range(len(table) * group):
        if not (spec.padded or k < spec.depth):
            continue
        for c in range(read):
            table[k // group, k % group, c] = memory["weights"].load(weight_at(spec, k, c), 1)[0]
    weights = table.reshape(-1, read)
    for r in range(spec.rows):
        total = np.zeros(spec.columns)
        if spec.bias:
            total += memory["bias"].load(r * spec.bias.row_bytes, spec.columns if spec.bias.columns else 1)
        for factor, row in zip(factors_of(spec, memory, r * spec.src_row_bytes), weights, strict=False):
            total += factor * row[: spec.columns]
        memory["dst"].store(r * spec.dst_row_bytes, total)


def one_tile(spec: MatmulTile, memory: Memory, items: Items, item: int) -> None:
    lanes = LANES[spec.isa]
    src, weights, bias, dst = (
        item * step for step in (items.src_bytes, items.weights_bytes, items.bias_bytes, items.dst_bytes)
    )
    read, group = spec.vectors * lanes if spec.padded else spec.columns, spec.types.group
    steps, shift = range(-(-spec.depth // group)), dot_class(spec.types, spec.isa).shift
    table = np.zeros((len(steps), group, spec.vectors * lanes))
    for step in steps:
        for c in range(read):
            table[step, :, c] = memory["weights"].load(weights + weight_at(spec, step * group, c), group)
    if spec.packs:
        memory["packed"].store(0, table.transpose(0, 2, 1).ravel())
    for r in range(spec.rows):
        at, row = dst + r * spec.dst_row_bytes, src + r * spec.src_row_bytes
        total = np.zeros(spec.columns)
        if spec.near_row_bytes:
            memory["packed"].store(r * spec.near_row_bytes, memory["src"].load(row, spec.depth))
        for step in steps:
            count = min(group, spec.depth - step * group)
            factors = memory["src"].load(row + src_at(spec, step), count) + shift
            total += factors @ table[step, :count, : spec.columns]
        operands = operands_of_row(spec, memory, r, item)
        memory["dst"].store(at, epilogue(spec, memory, total, bias + r * row_of_bias(spec), at, operands))


def src_at(spec: MatmulTile, step: int) -> int:
    """Where a group of k lies in a row of src: in one of its pieces."""
    at, within = piece_at(spec, step)
    places = (i * loop.src_bytes for i, loop in zip(at, spec.pieces, strict=True))
    return sum(places) + within * spec.src_depth_bytes


def piece_at(spec: MatmulTile, step: int) -> tuple[list[int], int]:
    """The numbers of a group's piece, in its loops, and that of the group in it."""
    counts = [loop.count for loop in spec.pieces]
    *at, within = np.unravel_index(step, (*counts, -(-spec.depth // spec.types.group) // math.prod(counts)))
    return [int(i) for i in at], int(within)


def row_of_bias(spec: MatmulTile) -> int:
    return spec.bias.row_bytes if spec.bias else 0


def operands_of_row(spec: MatmulTile, memory: Memory, r: int, item: int) -> dict[Operand, Doubles]:
    """What post-ops read for a row of an item."""
    lanes, found = LANES[spec.isa], {}
    for o in operands_read(spec.post_ops):
        if o is not OLD_DST:
            counts = [min(lanes, spec.columns - j * lanes) for j in range(-(-spec.columns // lanes))]
            first = item * spec.items.operand_step(o.argument)
            found[o] = np.concatenate([operand(o, r, j, count, count, memory, first) for j, count in enumerate(counts)])
    return found


def epilogue(
    spec: MatmulTile, memory: Memory, total: Doubles, bias_at: int, at: int, operands: dict[Operand, Doubles]
) -> Doubles:
    """Scales or start, then post-ops."""
    needed = spec.accumulate or spec.beta or OLD_DST in operands_read(spec.post_ops)
    old = memory["dst"].load(at, spec.columns) if needed else None
    if spec.scaled:
        total = memory["scale"].load(0, 1) * total
        if spec.beta:
            total = total + memory["scale"].load(4, 1) * old
        elif spec.accumulate:
            total = total + old
    elif spec.accumulate:
        total = total + old
    elif spec.bias:
        total = total + memory["bias"].load(bias_at, spec.columns if spec.bias.columns else 1)
    return functions.apply(spec.post_ops, total, old, operands)


def tolerance_of(spec: Product, memory: dict[str, Elements]) -> Doubles:
    """The bound of Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1."""
    sizes = magnitudes(memory)
    compute(spec, sizes)
    terms = spec.depth + 5 + (2 * len(spec.post_ops) if isinstance(spec, MatmulTile) else 0)
    size = buffer_of(sizes["dst"])
    assert size is not None
    of_f32 = size.wanted * terms * UNIT_ROUNDOFF / (1 - terms * UNIT_ROUNDOFF)
    return of_f32 + of_runs(spec.depth, size.wanted) if spec.types.run else of_f32


def of_runs(depth: int, size: Doubles) -> Doubles:
    """The same of runs of pairs of k, whose sums are f16: of normal numbers, and of denormals, each half a step off."""
    terms = min(-(-depth // 2), RUN_GROUPS + UNROLL)
    return size * terms * F16_ROUNDOFF / (1 - terms * F16_ROUNDOFF) + depth * F16_DENORMAL / 2


COMPUTE: dict[type, Callable[[Any, Memory], None]] = {
    MatmulTile: tiles, GemvSpec: gemv, DotsSpec: dots, OuterSpec: outer,
    SkinnySpec: skinny,
}  # fmt: skip
KERNELS = (AmxTileSpec, MatmulTileSpec, CountedTileSpec, GemvSpec, DotsSpec, OuterSpec, SkinnySpec)
REFERENCES = {kind: Reference(matmul_case, rounds=True) for kind in KERNELS}
REFERENCES |= {StartVectorSpec: Reference(start_case, rounds=False)}
REFERENCES |= {PackSpec: Reference(pack_case, rounds=False)}
