"""From a spec to a call of its kernel: data, tap lists, and what must come out."""

from dataclasses import dataclass, replace
from functools import cache
from zlib import crc32

import numpy as np

from asmdnn.corpus.families import KernelSpec, ProductSpec
from asmdnn.generators.dot import conv_shape
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.matmul import MatmulTileSpec
from asmdnn.generators.functions import quotient
from asmdnn.generators.functions.chain import operands_of
from asmdnn.generators.functions.elementwise import ElementwiseSpec
from asmdnn.generators.functions.postops import (
    OLD_DST,
    BinaryOp,
    EltwiseOp,
    GradientOp,
    PostOp,
    ReluOp,
    SumOp,
)
from asmdnn.generators.functions.quotient import QuotientSpec
from asmdnn.generators.move import compensation, convert_block
from asmdnn.generators.move.compensation import CompensationSpec
from asmdnn.generators.move.shuffle import ShuffleSpec
from asmdnn.generators.move.shuffle_rows import ElementsSpec
from asmdnn.planning.phase import Int64
from asmdnn.types import DataType, f32, s32
from tests.generators.matmul_reference import arguments_of as arguments_of_matmul
from tests.generators.matmul_reference import compute, matmul_memory, tolerance_of
from tests.generators.reference import LANES, Memory, Taps, conv_tile, mapped, operand_name
from tests.generators.reorders import ReorderSpec, compensate, memory_of, reorder
from tests.generators.shuffles import shuffle
from tests.support.arena import REACH_BYTES, Buffer, Bytes, Doubles, buffer_of, constant_buffer, elements, magnitudes
from tests.support.octets import Octets

UNIT_ROUNDOFF = 2.0**-24
MOST_SLOPE = 512  # no chain of the corpus magnifies an error more: operands are up to 16, two factors in a row
ONLY_POSITIVE = ("log", "sqrt", "pow", "div")
TAPS_OF_GROUP = (2, 1, 7, 0, 3)  # how many taps the groups of a kernel get, in turn
TAP_SPREAD_BYTES = 4096  # sources of taps begin within so many bytes of the pointer, on either side


@dataclass(frozen=True, eq=False)
class Case:
    """A call: a buffer for each argument that it touches, None for the others; tolerances as in `Buffer.check`."""

    spec: KernelSpec
    buffers: dict[str, Buffer | None]
    tolerances: dict[str, Doubles | float]
    taps: Int64 | None = None

    def check(self, after: dict[str, Bytes]) -> None:
        for name, buffer in self.buffers.items():
            if buffer is not None:
                buffer.check(after[name], self.tolerances.get(name, 0.0), name)


@cache
def case_of(spec: KernelSpec, integers: bool = True) -> Case:
    """Data and expectation; the seed is the name's, so that a failing case is the same case again."""
    random = np.random.default_rng(crc32(spec.name.encode()))
    if isinstance(spec, ProductSpec):
        return matmul_case(spec, random, integers)
    if isinstance(spec, ElementwiseSpec):
        return map_case(spec, random, integers)
    if isinstance(spec, ShuffleSpec | ElementsSpec):
        return shuffle_case(spec, random)
    return conv_case(spec, random, integers) if isinstance(spec, ConvTileSpec) else reorder_case(spec, random)


def keeps_integers(chain: tuple[PostOp, ...]) -> bool:
    """Whether all steps are exact on small integers, so that nothing but equality will do."""
    return all(isinstance(op, SumOp | ReluOp) for op in chain)


def matmul_case(spec: ProductSpec, random: np.random.Generator, integers: bool) -> Case:
    memory = matmul_memory(spec, random, integers)
    compute(spec, memory)
    tolerance: Doubles | float = 0.0
    is_exact = not isinstance(spec, MatmulTileSpec) or keeps_integers(spec.post_ops)
    of_integers = isinstance(spec, MatmulTileSpec) and spec.dst_type == s32
    if not of_integers and not (integers and is_exact):
        tolerance = tolerance_of(spec if is_exact else replace(spec, post_ops=(SumOp(1.0),)), memory)
    if not is_exact:
        dst = buffer_of(memory["dst"])
        assert dst is not None
        tolerance = MOST_SLOPE * (np.resize(tolerance, dst.wanted.shape).max() + UNIT_ROUNDOFF * np.abs(dst.wanted))
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {"dst": tolerance})


def shuffle_case(spec: ShuffleSpec | ElementsSpec, random: np.random.Generator) -> Case:
    memory = {name: Octets(random.integers(0, 256, 2 * REACH_BYTES, np.uint8)) for name in ("src", "dst")}
    shuffle(spec, memory)
    return Case(spec, {name: octets.buffer() for name, octets in memory.items()}, {})


def reorder_case(spec: ReorderSpec, random: np.random.Generator) -> Case:
    memory = memory_of(spec, random)
    if isinstance(spec, CompensationSpec):
        return compensation_case(spec, memory, random)
    reorder(spec, memory)
    return Case(spec, {name: octets.buffer() for name, octets in memory.items()}, {})


def compensation_case(spec: CompensationSpec, memory: dict[str, Octets], random: np.random.Generator) -> Case:
    """Between no tap and seven of them; sources on both sides of the pointer, also twice the same bytes."""
    taps = random.integers(-TAP_SPREAD_BYTES, TAP_SPREAD_BYTES, crc32(spec.name.encode()) % 8)
    compensate(spec, memory, taps)
    words = np.array([len(taps), *taps], np.int64)
    buffers = {name: octets.buffer() for name, octets in memory.items()}
    return Case(spec, {**buffers, "taps": constant_buffer(words)}, {}, words)


def map_case(spec: ElementwiseSpec, random: np.random.Generator, integers: bool) -> Case:
    """Within some roundings of the result and of what it is a sum of; tests of accuracy are elsewhere."""
    memory = {name: elements(random, integers) for name in arguments_of(spec)}
    for name, of_positive in (("src", EltwiseOp), ("operand 2", GradientOp | BinaryOp)):
        if any(isinstance(op, of_positive) and op.alg in ONLY_POSITIVE for op in spec.chain):  # type: ignore[arg-type]
            memory[name].initial[:] = memory[name].values[:] = np.abs(memory[name].values) + 1
    mapped(spec, memory)
    buffers = {name: buffer_of(memory[name]) for name in memory}
    tolerances = {}
    for name in spec.frame[1 : 1 + len(spec.results)]:
        dst = buffers[name]
        assert dst is not None
        tolerances[name] = MOST_SLOPE * UNIT_ROUNDOFF * (1 + np.abs(dst.wanted))
    return Case(spec, buffers, tolerances)


def conv_case(spec: ConvTileSpec, random: np.random.Generator, integers: bool) -> Case:
    """Sums within the bound of Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1."""
    taps = make_taps(spec, random)
    others = [name for name in arguments_of(spec) if name not in ("taps", "ahead")]
    kinds = kinds_of_conv(spec)
    memory = {name: elements(random, integers, *kinds.get(name, ())) for name in others}
    zero_padding(spec, taps, memory)
    conv_tile(spec, taps, memory)
    words = np.array([word for group in taps for word in (len(group), *(x for tap in group for x in tap))], np.int64)
    buffers = {name: buffer_of(memory[name]) for name in memory}
    tap_list = constant_buffer(words) if len(words) else None
    tolerance: Doubles | float = 0.0
    is_exact = keeps_integers(spec.post_ops)
    if spec.dst_type != s32 and not (integers and is_exact):
        sizes = magnitudes(memory)
        conv_tile(spec if is_exact else replace(spec, post_ops=(SumOp(1.0),)), taps, sizes)
        terms = sum(g.channels * len(t) for g, t in zip(spec.groups, taps, strict=True)) + 1 + 2 * len(spec.post_ops)
        size = buffer_of(sizes["dst"])
        assert size is not None
        tolerance = size.wanted * terms * UNIT_ROUNDOFF / (1 - terms * UNIT_ROUNDOFF)
        if not is_exact:
            dst = buffers["dst"]
            assert dst is not None
            tolerance = MOST_SLOPE * (np.resize(tolerance, dst.wanted.shape).max() + UNIT_ROUNDOFF * np.abs(dst.wanted))
    return Case(spec, {**buffers, "taps": tap_list, "ahead": None}, {"dst": tolerance}, words)


def kinds_of_conv(spec: ConvTileSpec) -> dict[str, tuple[DataType, ...]]:
    """The element types of arguments that need not be f32; of dst what a start from it takes, and what is left."""
    types, result = spec.types, f32 if spec.post_ops else spec.types.sums
    dst = (types.sums if spec.accumulate else result, result)
    return {"src": (types.src,), "weights": (types.weights,), "bias": (types.sums,), "dst": dst}


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
    """Zeros in the lanes behind the last channel: of every weights row, and of dst where it has room for them.

    And behind the last input channel, where weights hold several side by side.
    """
    lanes, together, size = LANES[spec.isa], spec.types.group, spec.types.weights.size_bytes
    padding = spec.vectors * lanes - spec.channels
    for group, offsets in zip(spec.groups, taps, strict=True):
        for _, weights in offsets:
            for step in range(-(-group.channels // together)):
                row, count = weights + step * spec.weights_row_bytes, min(together, group.channels - step * together)
                memory["weights"].clear(row + 4 * spec.channels, padding * together)
                for c in range(spec.channels if count < together else 0):
                    memory["weights"].clear(row + 4 * c + count * size, together - count)
    for at_bytes in padding_of_dst(spec):
        memory["dst"].clear(at_bytes, 1)


def padding_of_dst(spec: ConvTileSpec) -> list[int]:
    """Where dst has elements for lanes behind the last channel, in bytes from its pointer."""
    lanes = LANES[spec.isa]
    behind = range(spec.channels, spec.vectors * lanes if spec.whole_vectors else spec.channels)
    return [
        p * spec.dst_pixel_bytes + lane // lanes * spec.dst_vector_bytes + 4 * (lane % lanes)
        for p in range(len(spec.src_pixel_bytes))
        for lane in behind
    ]


def arguments_of(spec: KernelSpec) -> tuple[str, ...]:
    """The names of a kernel's arguments, in the frame's order."""
    if isinstance(spec, ProductSpec):
        return arguments_of_matmul(spec)
    if isinstance(spec, ElementwiseSpec):
        return (*spec.frame[: 1 + len(spec.results)], *names_of_operands(spec.together))
    if isinstance(spec, ConvTileSpec):
        return (*conv_shape.ARGUMENTS, *names_of_operands(spec.post_ops))
    if isinstance(spec, QuotientSpec):
        return quotient.ARGUMENTS
    if isinstance(spec, CompensationSpec):
        return compensation.ARGUMENTS
    return convert_block.ARGUMENTS if isinstance(spec, convert_block.Block) else ("src", "dst")


def names_of_operands(chain: tuple[PostOp, ...]) -> tuple[str, ...]:
    """In the order of their numbers, which leave none out."""
    return tuple(operand_name(a) for a in sorted({o.argument for o in operands_of(chain) if o is not OLD_DST}))
