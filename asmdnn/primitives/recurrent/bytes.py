"""Layers of bytes: what sums start from, scales of gates, a zero state, and phases from f32 to bytes and back.

A sum over bytes x, of zero point z, and weights w is that of (x - z) w if it starts z times the sum of w lower: of x W
and h R together, so the product of all steps has that start, and a step none.
"""

from collections.abc import Mapping

import numpy as np

from asmdnn.generators.dot.starts import ARGUMENTS, StartsSpec
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.summed import SummedDesc
from asmdnn.planning.assembly import Assembly, constant_words
from asmdnn.planning.cuts import balanced
from asmdnn.planning.phase import NOTHING, Int64, Phase, View, records_of
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import NO_ATTR
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise.eltwise import EltwiseForward, plan_forward
from asmdnn.primitives.recurrent.qparams import ROWS, Qparams
from asmdnn.primitives.reorder.copies import Reordering, add_reorder, copy_of
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.records import dataclass
from asmdnn.types import DataType, PropKind, f32, s32, u8

SUMMED = ("weights_layer", "weights_iter")
COLUMN_SUMS, STARTS, SCALES = "sums of columns", "starts of gates", "scales of gates"
MOST_VECTORS = 4  # of starts made by one call


def add_starts(assembly: Assembly, tensors: Mapping[str, MemoryDesc], packed: MemoryDesc, shift: int, isa: str) -> None:
    """The phases that compute what gates start from, in the format `packed`."""
    width, size_bytes = s32.size_bytes * lanes_of(isa), packed.size_bytes
    buffer, starts = assembly.room(COLUMN_SUMS, 2 * size_bytes), assembly.room(STARTS, size_bytes)
    for number, name in enumerate(SUMMED):
        target = MemoryDesc(packed.dims, s32, packed.tag, offset0=number * size_bytes // s32.size_bytes)
        add_sums_of(assembly, name, tensors[name], buffer, target)
    rows = assembly.constant("rows of sums", np.array([2, 0, size_bytes], np.int64))
    counts = balanced(size_bytes // width, MOST_VECTORS)
    kinds = sorted({*counts})
    first = width * np.cumsum([0, *counts[:-1]])
    specs = tuple(StartsSpec(isa=isa, vectors=n, shift=shift, has_zero_point=False, negated=True) for n in kinds)
    places = (View(buffer), View(rows), NOTHING, View(starts))
    records = records_of(ARGUMENTS, {"sums": first, "starts": first}, np.array([kinds.index(n) for n in counts]))
    cycles = np.array([assembly.tuning.phases.call_cycles + 2 * n for n in counts], np.int32)
    assembly.add([Phase(specs, places, records, cycles)])


def add_sums_of(assembly: Assembly, name: str, weights: MemoryDesc, buffer: str, target: MemoryDesc) -> None:
    """The phases that bring -1 times the sums of weights into a format."""
    assert isinstance(weights, SummedDesc)
    first = weights.begins[1] // s32.size_bytes
    plain = MemoryDesc(weights.sums.dims, s32, weights.sums.tag, offset0=first)
    add_reorder(assembly, Reordering(name, plain, buffer, target))


def scales_of(data: Qparams, weights: Qparams, gates: int, hidden: int) -> Int64:
    """f32[gates, hidden]: what 1 of a sum of products of bytes stands for."""
    factors = 1 / (np.float64(data[0]) * np.array(weights, np.float64))
    factors = factors.reshape(gates, hidden) if len(factors) > 1 else np.broadcast_to(factors, (gates, hidden))
    return constant_words(factors.astype(np.float32))


def zero_state(
    like: MemoryDesc, sequences: int, channels: int, shift: int, dtype: DataType = u8
) -> tuple[MemoryDesc, Int64]:
    """A state of zeros, one for all layers and directions."""
    desc = MemoryDesc((*like.dims[:2], sequences, channels), dtype, strides=(0, 0, channels, 1))
    return desc, constant_words(np.full(sequences * channels, shift, dtype.numpy))


@dataclass(frozen=True, slots=True, eq=False)
class BytesToFloats:
    """Between bytes and what they stand for."""

    data: Qparams
    engine: Engine

    def plan(self, dims: tuple[int, ...], src: DataType, dst: DataType) -> Plan:
        scale, shift = self.data
        alpha, beta = (scale, shift) if dst == u8 else (1 / scale, -shift / scale)
        x, y = (row_major(dims, MemoryDesc(dims, dtype, "any")) for dtype in (src, dst))
        desc = EltwiseForward(PropKind.forward_inference, "linear", x, y, alpha, beta)
        answer = plan_forward(desc, NO_ATTR, self.engine)
        assert isinstance(answer, Plan)
        return answer


def between_floats(plan: Plan, passed: Mapping[str, MemoryDesc], data: Qparams, engine: Engine) -> Plan:
    """`plan`, of bytes, for a caller who passes some rows as f32."""
    floats = {name: row_major(x.dims, x) for name, x in passed.items() if name in ROWS and x.dtype == f32}
    if not floats:
        return plan
    assembly, linear = Assembly(engine.tuning, engine.isa), BytesToFloats(data, engine)
    places = {name: View(copy_of(name)) for name in floats}
    for name, desc in floats.items():
        if name not in plan.outputs:
            assembly.add_plan(linear.plan(desc.dims, f32, u8), {"src": View(name), "dst": places[name]})
    assembly.add_plan(plan, places)
    for name, desc in floats.items():
        if name in plan.outputs:
            assembly.add_plan(linear.plan(desc.dims, u8, f32), {"src": places[name], "dst": View(name)})
    assembly.scratch |= {copy_of(name): plan.tensors[name].size_bytes for name in floats}
    return assembly.plan(plan.implementation, {**plan.tensors, **floats}, plan.outputs)
