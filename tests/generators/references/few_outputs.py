"""What tiles of few output channels compute, as loops written from the generator's docstring, and data for them."""

from dataclasses import replace

import numpy as np

from asmdnn.bench.typed import narrowed
from asmdnn.generators.dot.few_outputs import FewTileSpec
from asmdnn.generators.dot.few_outputs_shape import ARGUMENTS
from asmdnn.generators.functions.chain import operands_read
from asmdnn.generators.functions.postops import OLD_DST, SumOp
from asmdnn.types import DataType, f32, s32
from tests.generators.case import MOST_SLOPE, UNIT_ROUNDOFF, Case, Reference
from tests.generators.reference import LANES, Memory, keeps_integers
from tests.support import functions
from tests.support.arena import Doubles, buffer_of, constant_buffer, elements, magnitudes

TAPS_OF_GROUP = (2, 1, 3, 0)  # how many taps the groups of a kernel get, in turn
SPREAD_BYTES = 4096  # sources of taps begin within so many bytes of the pointer, on either side

Taps = list[list[tuple[int, int]]]  # for each group, (src, weights) byte offsets


def few_case(spec: FewTileSpec, random: np.random.Generator, integers: bool) -> Case:
    """Sums within the bound of Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1."""
    taps = make_taps(spec, random)
    kinds = kinds_of_few(spec)
    memory = {name: elements(random, integers, kinds[name]) for name in spec.frame if name != "taps"}
    clear_padding(spec, taps, memory)
    few_tile(spec, taps, memory)
    words = np.array([word for group in taps for word in (len(group), *(x for tap in group for x in tap))], np.int64)
    buffers = {name: buffer_of(memory[name]) for name in memory}
    tolerance: Doubles | float = 0.0
    is_exact = keeps_integers(spec.post_ops)
    of_integers = spec.dst_type == s32 and not spec.works_in_f32
    if not of_integers and not (integers and is_exact):
        sizes = magnitudes(memory)
        few_tile(spec if is_exact else replace(spec, post_ops=(SumOp(1.0),)), taps, sizes)
        channels = sum(g.channels * len(t) for g, t in zip(spec.groups, taps, strict=True))
        terms = (channels + 1 + 2 * len(spec.post_ops)) * UNIT_ROUNDOFF
        size, dst = buffer_of(sizes["dst"]), buffers["dst"]
        assert size is not None and dst is not None
        tolerance = size.wanted * terms / (1 - terms)
        if not is_exact:
            tolerance = MOST_SLOPE * (np.max(tolerance) + UNIT_ROUNDOFF * np.abs(dst.wanted))
    dst = buffers["dst"]
    if dst is not None and dst.kind != f32 and not of_integers:
        wanted, tolerance = narrowed(dst.wanted, np.asarray(tolerance), dst.kind)
        buffers["dst"] = replace(dst, wanted=wanted)
    tap_list = constant_buffer(words) if len(words) else None
    return Case(spec, {**buffers, "taps": tap_list}, {"dst": tolerance}, words)


def kinds_of_few(spec: FewTileSpec) -> dict[str, DataType]:
    """The element types of arguments."""
    operands = dict.fromkeys((name for name in spec.frame if name.startswith("operand")), f32)
    operands |= {f"operand{len(ARGUMENTS) + i}": kind for i, kind in enumerate(spec.operand_types)}
    return {"src": spec.src_type, "weights": spec.types.weights, "bias": f32, "dst": spec.dst_type, **operands}


def make_taps(spec: FewTileSpec, random: np.random.Generator) -> Taps:
    """Tap lists of several lengths."""

    def offsets(count: int) -> list[tuple[int, int]]:
        src = 4 * random.integers(-SPREAD_BYTES // 4, SPREAD_BYTES // 4, count)
        weights = spec.types.weights_bytes * LANES[spec.isa] * spec.outputs * random.integers(0, 3, count)
        return list(zip(src.tolist(), weights.tolist(), strict=True))

    return [offsets(TAPS_OF_GROUP[g % len(TAPS_OF_GROUP)]) for g in range(len(spec.groups))]


def clear_padding(spec: FewTileSpec, taps: Taps, memory: Memory) -> None:
    """Zeros in the weights' lanes after the last channel."""
    lanes, size = LANES[spec.isa] * spec.types.group, spec.types.weights.size_bytes
    for group, offsets in zip(spec.groups, taps, strict=True):
        full, rest = divmod(group.channels, lanes)
        for _, weights in offsets if rest else ():
            for o in range(spec.outputs):
                at = weights + full * spec.weights_vector_bytes + size * (o * lanes + rest)
                memory["weights"].clear(at, lanes - rest)


def few_tile(spec: FewTileSpec, taps: Taps, memory: Memory) -> None:
    """Pixel by pixel and output by output."""
    sums = np.zeros((spec.outputs, len(spec.src_pixel_bytes)))
    if spec.bias:
        sums += memory["bias"].load(0, spec.outputs)[:, None]
    for group, offsets in zip(spec.groups, taps, strict=True):
        for src, weights in offsets:
            for p in group.pixels:
                at = spec.src_pixel_bytes[p] + src
                sums[:, p] += products(spec, memory, group.channels, at, weights)
    for o, row in enumerate(sums):
        finish(spec, memory, o, row)


def products(spec: FewTileSpec, memory: Memory, channels: int, src: int, weights: int) -> Doubles:
    """What a tap adds to the outputs of a pixel."""
    total, lanes = np.zeros(spec.outputs), LANES[spec.isa] * spec.types.group
    for j, first in enumerate(range(0, channels, lanes)):
        count = min(lanes, channels - first)
        rows = memory["weights"].load(weights + j * spec.weights_vector_bytes, spec.outputs * lanes)
        total += rows.reshape(-1, lanes)[:, :count] @ memory["src"].load(src + j * spec.src_vector_bytes, count)
    return total


def finish(spec: FewTileSpec, memory: Memory, o: int, sums: Doubles) -> None:
    """Post-ops and the store of an output's pixels."""
    at, read = o * spec.dst_output_bytes, operands_read(spec.post_ops)
    old = memory["dst"].load(at, len(sums)) if OLD_DST in read else None
    others = {}
    for x in read:
        if x is not OLD_DST:
            found = memory[f"operand{x.argument}"].load(o * x.row_bytes, 1 if x.element else len(sums))
            others[x] = np.broadcast_to(found, sums.shape)
    memory["dst"].store(at, functions.apply(spec.post_ops, sums, old, others))


REFERENCES = {FewTileSpec: Reference(few_case, rounds=True)}
