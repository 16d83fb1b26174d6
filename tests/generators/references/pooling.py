"""What pooling kernels compute, as loops written from the tables in the generators' docstrings, and data for them."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np

from asmdnn.generators.functions.postops import OLD_DST, PostOp
from asmdnn.generators.pooling.indices import PoolIndicesSpec
from asmdnn.generators.pooling.maxima_gradient import MaximaGradientSpec
from asmdnn.generators.pooling.pixels import PoolPixelsSpec
from asmdnn.generators.pooling.planes import PoolPlanesSpec
from asmdnn.generators.pooling.rows import PoolRowsSpec
from asmdnn.generators.pooling.window import PixelLoop, Taps
from asmdnn.types import DATA_TYPES, DataType, f32, s8, s32, u8
from tests.generators.case import MOST_SLOPE, UNIT_ROUNDOFF, Case, Reference
from tests.generators.references.softmax import ROUNDOFF
from tests.support import functions
from tests.support.arena import REACH_BYTES, Doubles, Elements, buffer_of, constant_buffer, elements

FIRST, FIRST_SMALL = 12345, 240  # of places that fit into s32, and u8
Memory = dict[str, Elements]


def case_of(spec: PoolPixelsSpec | PoolRowsSpec | PoolPlanesSpec, memory: Memory) -> Case:
    """Maxima are exact; means within roundings of their sums, which post-ops may magnify."""
    dst = buffer_of(memory["dst"])
    assert dst is not None
    roundings = MOST_SLOPE if spec.chain else 128
    size = np.abs(dst.wanted)
    rounded = roundings * UNIT_ROUNDOFF * (1 + size) + ROUNDOFF.get(dst.kind.name, 0.0) * size
    tolerance = rounded if spec.alg == "avg" or spec.chain else 0.0
    words = list(spec.words.values()) if isinstance(spec, PoolPixelsSpec) else []
    numbers = {"words": constant_buffer(np.array(words, np.int64))} if words else {}
    return Case(spec, {"src": buffer_of(memory["src"]), "dst": dst, **numbers}, {"dst": tolerance})


def finished(chain: tuple[PostOp, ...], result: Doubles, memory: Memory, at: int) -> Doubles:
    reads = any(operand is OLD_DST for op in chain for operand in op.operands)
    old = memory["dst"].load(at, len(result)) if reads else None
    return functions.apply(chain, result, old, {})


def steps(loops: Sequence[PixelLoop]) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """(indices, byte offset in src, in dst) of every step."""
    for at in product(*(range(loop.times) for loop in loops)):
        pairs = list(zip(at, loops, strict=True))
        yield at, sum(i * x.src_bytes for i, x in pairs), sum(i * x.dst_bytes for i, x in pairs)


def positions(window: Sequence[Taps]) -> Iterator[tuple[tuple[int, ...], int]]:
    for at in product(*(range(taps.positions) for taps in window)):
        yield at, sum(i * taps.bytes for i, taps in zip(at, window, strict=True))


def reduced(alg: str, found: Sequence[Doubles], count: int = 1) -> Doubles:
    """Of nothing: 0, or -infinity."""
    if not len(found):
        return np.full(count, 0.0 if alg == "avg" else -np.inf)
    whole = np.array(found)
    return np.asarray(whole.sum(0) if alg == "avg" else whole.max(0), np.float64)


def pixels_case(spec: PoolPixelsSpec, random: np.random.Generator, integers: bool) -> Case:
    kind = {"max_s8": s8, "max_u8": u8}.get(spec.alg, DATA_TYPES[spec.kind])
    memory = {name: elements(random, integers or kind != f32, kind) for name in ("src", "dst")}
    count = spec.elements * (4 if spec.alg.startswith("max_") else 1)
    for _, src, dst in steps(spec.loops):
        found = [memory["src"].load(src + at, count) for _, at in positions(spec.window)]
        result = reduced(spec.alg, found, count) / spec.divisor
        result = as_bytes(result, kind)
        memory["dst"].store(dst, finished(spec.chain, result, memory, dst))
    return case_of(spec, memory)


def as_bytes(result: Doubles, kind: DataType) -> Doubles:
    """Rounded and clipped, if bytes are made of it."""
    if kind not in (s8, u8):
        return result
    limits = np.iinfo(kind.numpy)
    return np.rint(result).clip(limits.min, limits.max)


def indices_case(spec: PoolIndicesSpec, random: np.random.Generator, integers: bool) -> Case:
    """The first of equal maxima counts."""
    memory = {name: elements(random, integers) for name in ("src", "dst")}
    kinds = {"indices": DATA_TYPES[spec.places], "carried": s32}
    memory |= {name: elements(random, True, kinds[name]) for name in ("indices", "carried")[: 1 + spec.carries]}
    start = FIRST if spec.places == "s32" else FIRST_SMALL
    for step, src, dst in steps(spec.loops):
        found = [memory["src"].load(src + at, spec.elements) for _, at in positions(spec.window)]
        number = start + sum(i * n for i, n in zip(step, spec.loop_numbers, strict=True))
        numbers = [np.full(spec.elements, number + np.dot(at, spec.window_numbers)) for at, _ in positions(spec.window)]
        if spec.carries:
            numbers = [memory["carried"].load(src + at, spec.elements) for _, at in positions(spec.window)]
        memory["dst"].store(dst, np.max(found, 0))
        memory["indices"].store(
            dst // spec.smaller, np.take_along_axis(np.array(numbers), np.argmax(found, 0)[None], 0)[0]
        )
    buffers = {name: buffer_of(memory[name]) for name in memory}
    if spec.carries:
        return Case(spec, buffers, {})
    return Case(spec, {**buffers, "first": constant_buffer(np.array([start], np.int64))}, {})


def rows_case(spec: PoolRowsSpec, random: np.random.Generator, integers: bool) -> Case:
    """Columns outside of a row count as nothing."""
    kind = DATA_TYPES[spec.kind]
    memory = {name: elements(random, integers or kind != f32, kind) for name in spec.frame}
    divisors = np.repeat(*np.array(spec.divisors or ((1, spec.results),)).T).astype(np.float64)
    for _, src, dst in steps(spec.loops):
        lines = np.array([memory["src"].load(src + at, spec.width) for _, at in positions(spec.rows)])
        lines = lines.reshape(-1, spec.width)
        result = np.empty(spec.results)
        for x in range(spec.results):
            columns = x * spec.stride - spec.before + spec.dilation * np.arange(spec.columns)
            inside = columns[(columns >= 0) & (columns < spec.width)]
            result[x] = reduced(spec.alg, [*lines[:, inside].ravel()]).item()
        result = as_bytes(result / divisors, kind)
        memory["dst"].store(dst, finished(spec.chain, result, memory, dst))
    return case_of(spec, memory)


def planes_case(spec: PoolPlanesSpec, random: np.random.Generator, integers: bool) -> Case:
    kind = DATA_TYPES[spec.kind]
    memory = {name: elements(random, integers or kind != f32, kind) for name in spec.frame}
    for i in range(spec.planes):
        plane, dst = memory["src"].load(i * spec.src_plane_bytes, spec.elements), i * spec.dst_step_bytes
        result = as_bytes(np.array([reduced(spec.alg, [*plane])]) / spec.divisor, kind)
        memory["dst"].store(dst, finished(spec.chain, result, memory, dst))
    return case_of(spec, memory)


def maxima_gradient_case(spec: MaximaGradientSpec, random: np.random.Generator, integers: bool) -> Case:
    """Places are those of this or that position, so that some are wanted and some are not."""
    dst, diff, kind = (DATA_TYPES[name] for name in spec.kinds)
    memory = {"dst": elements(random, integers, dst), "diff": elements(random, integers, diff)}
    wanted = [place.number for pixel in spec.pixels for place in pixel.positions] or [0]
    memory["places"] = Elements(random.choice([*wanted, 77], 2 * REACH_BYTES // kind.size_bytes).astype(float), kind)
    if spec.counts_pixels:
        memory["numbers"] = Elements(random.choice([*wanted, 78], REACH_BYTES // 2).astype(float), s32)
    if spec.accumulates:
        memory["before"] = elements(random, integers)
    for i, pixel in product(range(spec.cells), spec.pixels):
        at = i * spec.cell_of("f32") + f32.size_bytes * pixel.at
        total = memory["before"].load(at, spec.elements) if spec.accumulates else np.zeros(spec.elements)
        at = f32.size_bytes * (i * spec.numbered + pixel.number)
        number = memory["numbers"].load(at, 1) if spec.counts_pixels else None
        for place in pixel.positions:
            start = i * spec.step + place.at
            x = memory["diff"].load(diff.size_bytes * start, spec.elements)
            found = memory["places"].load(kind.size_bytes * start, spec.elements)
            total = total + np.where(found == (place.number if number is None else number), x, 0)
        memory["dst"].store(i * spec.cell_bytes + dst.size_bytes * pixel.at, total)
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {})


CASES: dict[type, Callable[..., Case]] = {
    PoolPixelsSpec: pixels_case, PoolIndicesSpec: indices_case, PoolRowsSpec: rows_case, PoolPlanesSpec: planes_case,
    MaximaGradientSpec: maxima_gradient_case,
}  # fmt: skip
REFERENCES = {
    kind: Reference(make, rounds=kind not in (PoolIndicesSpec, MaximaGradientSpec)) for kind, make in CASES.items()
}
