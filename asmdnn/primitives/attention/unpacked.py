"""Attention of some rows, such as the newest tokens': values are read where they lie, and keys where they can be.

Packing moves each element twice, and for so few rows a product reads it once or some times.  Where those of other heads
lie between two rows, each row is on a page of its own, and only one or two tiles of rows may read them.  Keys that
follow one another in memory are read by tiles, as values are; those whose own elements do, by dots, if a few rows read
them.  All else is as in schedule.py.
"""

from collections.abc import Iterator, Mapping, Sequence

from asmdnn.isa.dot import Types, blocks_of, dot_level, multiplied
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.planning.steps import StepRecords, steps_of
from asmdnn.primitives.attention.counted import counted_product
from asmdnn.primitives.attention.description import AttentionForward
from asmdnn.primitives.attention.forward import beside_tiles
from asmdnn.primitives.attention.schedule import KEYS, VALUES, AttentionPlan, RowBlock
from asmdnn.primitives.attention.tensors import passed_of, stride, types_of
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, implementation, try_all
from asmdnn.primitives.products import matmul_tiles
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.types import f32

NAME = "unpacked_attention"
PACKING = "pack"  # how the names of products begin that copy weights


def plans(desc: AttentionForward, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """Of some rows, unless tiles of AMX multiply them in less time, packing included."""
    yield from beside_tiles(plan(desc, attr, engine), desc, attr, engine)


@implementation(NAME, f32_level)
def plan(desc: AttentionForward, attr: Attr, engine: Engine) -> Plan:
    """Plan an attention of some rows.  Raises Refused."""
    passed = passed_of(desc, attr)
    shared = desc.query.dims[1] // desc.value.dims[1] if 0 not in desc.dst.dims else 0
    types = types_where_they_lie(passed, engine)
    few = most_rows(passed["value"], types, engine)
    if not 1 <= shared * desc.query.dims[2] <= few:
        words = f"{shared * desc.query.dims[2]} rows of queries read a key"
        raise Refused(f"{words}, keys and values are read where they lie for 1 to {few}")
    if engine.any_batch:
        raise Refused("deterministic='batch' asks for the sums of many rows, whose keys and values are packed")
    if any(passed[name].dtype != types.weights or passed[name].inner_blocks for name in ("key", "value")):
        raise Refused(f"keys and values are no plain {types.weights}, as products multiply them")
    return UnpackedAttention.of(desc, passed, types, engine)


def types_where_they_lie(passed: Mapping[str, MemoryDesc], engine: Engine) -> Types:
    """What both products multiply: pairs of bf16, or f32 by what keys and values are, which is widened in registers."""
    pairs, kinds = types_of(passed, engine)[0], {passed[name].dtype for name in ("key", "value")}
    if pairs.src != f32 or len(kinds) > 1:
        return pairs
    return multiplied(f32, *kinds, engine.isa)


def most_rows(value: MemoryDesc, types: Types, engine: Engine) -> int:
    """That read keys and values where they lie, faster than packed ones."""
    tuning = engine.tuning.attention
    if not value.inner_blocks and value.strides[2] == value.dims[3]:
        return tuning.few_rows
    return tuning.far_tiles * blocks_of(types, dot_level(types, engine.isa))[2]


class UnpackedAttention(AttentionPlan):
    """A plan as it comes together.  weights_at: the buffers that products take as weights."""

    name = NAME

    def __init__(self, desc: AttentionForward, tensors: Mapping[str, MemoryDesc], types: Types, engine: Engine) -> None:
        super().__init__(desc, tensors, types, engine)
        key = tensors["key"]
        self.plain_keys = MemoryDesc((self.depth, self.keys), key.dtype, strides=(key.strides[3], key.strides[2]))
        reads_keys = key.strides[2] == 1 or self.has_dots()
        self.weights_at = {KEYS: "key" if reads_keys else KEYS, VALUES: "value"}

    def has_dots(self) -> bool:
        try:
            self.scores(RowBlock(0, self.rows, self.keys), self.plain_keys)
        except Refused:  # such as short ones
            return False
        return True

    def rows_of_block(self) -> int:
        return self.rows

    def packed(self) -> dict[str, MemoryDesc]:
        """How matrices of a head are read."""
        value = self.tensors["value"]
        keys = super().packed()[KEYS] if self.weights_at[KEYS] == KEYS else self.plain_keys
        return {KEYS: keys, VALUES: MemoryDesc((self.keys, self.width), value.dtype, strides=value.strides[2:])}

    def pack(self, name: str, buffer: str, packed: MemoryDesc, order: Sequence[int]) -> None:
        if self.weights_at[buffer] == buffer:
            super().pack(name, buffer, packed, order)

    def tiles(self, desc: MatMul, attr: Attr = NO_ATTR) -> Plan:
        """The fastest plan of one thread that copies no weights."""
        answers = try_all((matmul_tiles.plan,), desc, attr, self.of_one_thread)
        plans = [x for x in answers if isinstance(x, Plan) and not x.implementation.startswith(PACKING)]
        if not plans:
            raise Refused(f"no product reads weights where they lie: {desc}")
        return min(plans, key=lambda x: x.cycles)

    def product(self, plan: Plan, places: Mapping[str, str]) -> Sequence[StepRecords]:
        scratch = self.assembly.scratch
        scratch |= {name: max(size, scratch.get(name, 0)) for name, size in plan.scratch_bytes.items()}
        self.assembly.per_part = tuple(dict.fromkeys((*self.assembly.per_part, *plan.scratch_bytes)))
        self.assembly.constants |= plan.constants
        steps = steps_of(plan, {**places, "weights": self.weights_at[places["weights"]]})
        return [counted_product(step, self.numbers, fills_vectors=False) for step in steps]

    def starts(self, block: RowBlock) -> dict[str, int]:
        read = {name: tensor for name in self.weights_at.values() if (tensor := self.tensors.get(name))}
        return super().starts(block) | {name: t.dtype.size_bytes * t.offset0 for name, t in read.items()}

    def matrices(self) -> dict[str, tuple[int, int]]:
        found = {}
        for name in self.weights_at.values():
            if tensor := self.tensors.get(name):
                found[name] = (tensor.dtype.size_bytes * stride(tensor, 0), tensor.dtype.size_bytes * stride(tensor, 1))
            else:
                found[name] = self.packed_matrices(name)
        return found
