"""What convolution tiles compute, as loops written from the tables in the generator's docstring, and data for them."""

from dataclasses import replace

import numpy as np

from asmdnn.bench.typed import narrowed
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.conv_shape import ARGUMENTS, vectors_of_dst
from asmdnn.generators.dot.starts import StartsSpec
from asmdnn.generators.functions.chain import operands_read
from asmdnn.generators.functions.postops import OLD_DST, SumOp
from asmdnn.isa.dot import dot_class
from asmdnn.types import DataType, f32, s32
from tests.generators.case import MOST_SLOPE, UNIT_ROUNDOFF, Case, Reference
from tests.generators.reference import LANES, Memory, keeps_integers, operand
from tests.generators.references.matmul import of_runs
from tests.support import functions
from tests.support.arena import Buffer, Doubles, buffer_of, constant_buffer, elements, magnitudes

TAPS_OF_GROUP = (2, 1, 7, 0, 3)  # how many taps the groups of a kernel get, in turn
TAP_SPREAD_BYTES = 4096  # sources of taps begin within so many bytes of the pointer, on either side

Taps = list[list[tuple[int, int]]]  # for each group, (src, weights) byte offsets


def conv_case(spec: ConvTileSpec, random: np.random.Generator, integers: bool) -> Case:
    """Sums within the bound of Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1."""
    taps = make_taps(spec, random)
    others = [name for name in spec.frame if name not in ("taps", "prefetched")]
    kinds = kinds_of_conv(spec)
    memory = {name: elements(random, integers, *kinds.get(name, ())) for name in others}
    zero_padding(spec, taps, memory)
    conv_tile(spec, taps, memory)
    words = np.array([word for group in taps for word in (len(group), *(x for tap in group for x in tap))], np.int64)
    buffers = {name: buffer_of(memory[name]) for name in memory}
    tap_list = constant_buffer(words) if len(words) else None
    tolerances: dict[str, Doubles | float] = {}
    stored = tuple(dict.fromkeys([*(dst_of(spec, j) for j in range(spec.vectors)), *["bias"] * spec.row_sums]))
    is_exact = keeps_integers(spec.post_ops)
    of_integers = spec.dst_type == s32 and not spec.works_in_f32
    if not of_integers and not (integers and is_exact):
        sizes = magnitudes(memory)
        conv_tile(spec if is_exact else replace(spec, post_ops=(SumOp(1.0),)), taps, sizes)
        group = spec.types.group  # whose last one may be cut
        depth = sum(group * -(-g.channels // group) * len(t) for g, t in zip(spec.groups, taps, strict=True))
        tolerances = {name: tolerance_of(spec, sizes, buffers, name, depth) for name in stored}
    for name in stored:
        dst = buffers[name]
        if dst is not None and dst.kind != f32 and not of_integers:
            wanted, tolerances[name] = narrowed(dst.wanted, np.asarray(tolerances.get(name, 0.0)), dst.kind)
            buffers[name] = replace(dst, wanted=wanted)
    return Case(spec, {**buffers, "taps": tap_list, "prefetched": None}, tolerances, words)


def tolerance_of(
    spec: ConvTileSpec, sizes: Memory, buffers: dict[str, Buffer | None], name: str, depth: int
) -> Doubles | float:
    """Of what is stored through an argument; sizes: the magnitudes of everything.  depth: of all taps."""
    size, dst = buffer_of(sizes[name]), buffers[name]
    assert size is not None
    assert dst is not None
    terms = depth + 1 + 2 * len(spec.post_ops)
    tolerance = size.wanted * terms * UNIT_ROUNDOFF / (1 - terms * UNIT_ROUNDOFF)
    if spec.types.run:
        tolerance += of_runs(depth, size.wanted)
    if keeps_integers(spec.post_ops):
        return tolerance
    return MOST_SLOPE * (np.resize(tolerance, dst.wanted.shape).max() + UNIT_ROUNDOFF * np.abs(dst.wanted))


def kinds_of_conv(spec: ConvTileSpec) -> dict[str, tuple[DataType, ...]]:
    """The element types of arguments that need not be f32; of dst what a start from it takes, and what is left."""
    types, result = spec.types, spec.dst_type
    dst = dict.fromkeys(("dst", *vectors_of_dst(spec.vectors)), (types.sums if spec.accumulate else result, result))
    operands = {f"operand{len(ARGUMENTS) + i}": (kind,) for i, kind in enumerate(spec.operand_types)}
    return {"src": (types.src,), "weights": (types.weights,), "bias": (types.sums,), **dst, **operands}


def make_taps(spec: ConvTileSpec, random: np.random.Generator) -> Taps:
    """Tap lists of several lengths; sources on both sides of the pointer, weights rows anywhere in a panel."""
    most_channels = max((group.channels for group in spec.groups), default=1)
    tap_rows_bytes = spec.weights_row_bytes * -(-most_channels // spec.types.group)

    def offsets(count: int) -> list[tuple[int, int]]:
        src = 4 * random.integers(-TAP_SPREAD_BYTES // 4, TAP_SPREAD_BYTES // 4, count)
        weights = tap_rows_bytes * random.integers(0, 8, count)
        return list(zip(src.tolist(), weights.tolist(), strict=True))

    return [offsets(TAPS_OF_GROUP[g % len(TAPS_OF_GROUP)]) for g in range(len(spec.groups))]


def zero_padding(spec: ConvTileSpec, taps: Taps, memory: Memory) -> None:
    """Zeros in the lanes after the last channel: of every weights row, and of dst where it has room for them.

    And after the last input channel, where weights hold several side by side.
    """
    lanes, together, size = LANES[spec.isa], spec.types.group, spec.types.weights.size_bytes
    apart = spec.weights_vector_bytes or spec.types.weights_bytes * lanes
    for group, offsets in zip(spec.groups, taps, strict=True):
        for _, weights in offsets:
            for step in range(-(-group.channels // together)):
                row, count = weights + step * spec.weights_row_bytes, min(together, group.channels - step * together)
                for c in range(spec.vectors * lanes):
                    real = count if c < spec.channels else 0
                    at = row + c // lanes * apart + (together * (c % lanes) + real) * size
                    memory["weights"].clear(at, together - real)
    for name, at_bytes in padding_of_dst(spec):
        memory[name].clear(at_bytes, 1)


def padding_of_dst(spec: ConvTileSpec) -> list[tuple[str, int]]:
    """Where dst has elements for lanes after the last channel: an argument, and bytes from its pointer."""
    lanes = LANES[spec.isa]
    padding = range(spec.channels, spec.vectors * lanes if spec.whole_vectors else spec.channels)
    size = spec.dst_type.size_bytes
    places = [(dst_of(spec, c // lanes), spec.place_in_dst(c // lanes)[1] + size * (c % lanes)) for c in padding]
    pixels = range(len(spec.src_pixel_bytes))
    return [(name, p * spec.dst_pixel_bytes + at) for p in pixels for name, at in places]


def conv_tile(spec: ConvTileSpec, taps: Taps, memory: Memory) -> None:
    """dst[p, o] = post_ops(bias[o] + sum over taps t, channels c of src[p, t.src + c] * weights[t.weights + c, o]).

    Where dst has room for all lanes, those after the last channel become zero.
    """
    lanes, together = LANES[spec.isa], spec.types.group  # so many channels lie side by side for each output channel
    sums, shift = start(spec, lanes, memory), dot_class(spec.types, spec.isa).shift
    of_rows = np.zeros(spec.vectors * lanes)
    if spec.row_sums and spec.accumulate:
        of_rows[: spec.channels] = memory["bias"].load(0, spec.channels)
    for group, offsets in zip(spec.groups, taps, strict=True):
        for src, weights in offsets:
            for step in range(-(-group.channels // together)):
                count = min(together, group.channels - step * together)
                elements, apart = lanes * together, spec.weights_vector_bytes or spec.types.weights_bytes * lanes
                at = [weights + step * spec.weights_row_bytes + j * apart for j in range(spec.vectors)]
                counts = [elements] * (spec.vectors - 1) + [elements // 2 if spec.half_last else elements]
                row = np.concatenate([memory["weights"].load(x, n) for x, n in zip(at, counts, strict=True)])
                row = np.resize(np.append(row, np.zeros(elements)), (spec.vectors * lanes, together))
                of_rows += row.sum(axis=1) * spec.row_sums
                first = 0 if step else group.first
                for p in group.pixels:
                    at = spec.src_pixel_bytes[p] + src + step * spec.src_channel_bytes
                    read = memory["src"].load(at + first * spec.types.src.size_bytes, count - first)
                    sums[p] += row[:, first:count] @ (read + shift)
    if spec.row_sums:
        memory["bias"].store(0, of_rows[: spec.channels])
    for p, pixel in enumerate(sums):
        for j, (at, count) in enumerate(pieces_of_dst(spec, lanes, p)):
            real = max(0, min(count, spec.channels - j * lanes))
            old = memory[dst_of(spec, j)].load(at, count) if OLD_DST in operands_read(spec.post_ops) else None
            read = [o for o in operands_read(spec.post_ops) if o is not OLD_DST]
            operands = {o: operand(o, p, j, real, count, memory) for o in read}
            result = functions.apply(spec.post_ops, pixel[j * lanes :][:count], old, operands)
            result[real:] = 0  # padding
            memory[dst_of(spec, j)].store(at, result)


def start(spec: ConvTileSpec, lanes: int, memory: Memory) -> Doubles:
    """The accumulators before the first tap: dst, bias, or zero; [pixels, vectors * lanes]."""
    sums = np.zeros((len(spec.src_pixel_bytes), spec.vectors * lanes))
    if spec.accumulate:
        for p, pixel in enumerate(sums):
            for j, (at, count) in enumerate(pieces_of_dst(spec, lanes, p)):
                pixel[j * lanes :][:count] = memory[dst_of(spec, j)].load(at, count)
    elif spec.starts:
        for p, at in enumerate(spec.starts):
            sums[p] = memory["bias"].load(at, spec.vectors * lanes)
    elif spec.bias:
        sums[:, : spec.channels] = memory["bias"].load(0, spec.channels)
    return sums


def dst_of(spec: ConvTileSpec, vector: int) -> str:
    """The argument that a vector is reached through."""
    return f"dst{vector}" if spec.dst_argument and vector else "dst"


def pieces_of_dst(spec: ConvTileSpec, lanes: int, p: int) -> list[tuple[int, int]]:
    """(byte offset, elements) of every channel vector of a pixel, as far as dst has them."""
    stored = spec.vectors * lanes if spec.whole_vectors else spec.channels
    return [
        (p * spec.dst_pixel_bytes + spec.place_in_dst(j)[1], min(lanes, stored - j * lanes))
        for j in range(spec.vectors)
        if stored > j * lanes
    ]


def starts_case(spec: StartsSpec, random: np.random.Generator, integers: bool) -> Case:
    """Rows of sums, some of them twice; any integers, and products of them modulo 2^32."""
    lanes, rows = LANES[spec.isa] * spec.vectors, [0, 3, 1, 3]
    memory = {name: elements(random, True, s32) for name in ("sums", "zero_point", "starts")}
    offsets = [row * 4 * lanes for row in rows]
    total = sum((memory["sums"].load(at, lanes) for at in offsets), np.zeros(lanes))
    zero_point = memory["zero_point"].load(0, 1)[0] if spec.has_zero_point else 0
    sign = 1 if spec.negated else -1
    memory["starts"].store(0, sign * (spec.shift + zero_point) * total)
    words = np.array([len(rows), *offsets], np.int64)
    return Case(spec, {**{n: buffer_of(x) for n, x in memory.items()}, "rows": constant_buffer(words)}, {}, words)


REFERENCES = {ConvTileSpec: Reference(conv_case, rounds=True), StartsSpec: Reference(starts_case, rounds=False)}
