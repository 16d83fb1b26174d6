"""Matrix-vector products that read whole rows of a row-major matrix, at the speed of memory.

    dst[c] = sum over k of src[k] * weights[k, c]

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | types.src[depth]     | groups of k are src_depth_bytes apart, dense within |
| weights | types.weights[depth, columns] | row k at k * weights_row_bytes, dense; nothing past the columns is read |
| dst     | types.sums[columns]  | dense; only written; holds partial sums between passes |

A pass takes some rows and goes through all columns, so that each row is a stream that the hardware prefetches; a tile
that takes all rows of a few columns would touch another page with every step.  Rows of a group are interleaved in
registers, so that plain weights of all types are read once, in place.  The shift that a dot adds to src is not undone
here."""

from collections.abc import Sequence
from functools import partial

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.dot.operands import (
    DST,
    OPERANDS,
    WEIGHTS,
    in_chunks,
    load_operands,
    partial_sums,
    passes_of,
    src_of,
)
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.dot import F32, GROUP_BYTES, Dot, Types, dot_class, dot_of
from asmdnn.isa.vectors import vector_class, vector_of
from asmdnn.isa.weight_rows import weight_rows
from asmdnn.records import dataclass

GROUPS = 8  # of rows of weights in a pass: with groups of one element so many streams, and registers that hold src
STREAMS = 16  # the most, of groups of several
CHUNK = 4  # vectors of columns in a step, to hide the latency of a multiply
OTHERS = 13  # registers that a step needs beside src: sums, rows and what they become, an order, a mask, 128s


@dataclass(frozen=True, slots=True, kw_only=True)
class GemvSpec:
    """Everything that the bytes of the kernel depend on; depth > 0, in elements."""

    isa: str
    columns: int
    depth: int
    src_depth_bytes: int
    weights_row_bytes: int
    types: Types = F32
    frame = OPERANDS

    @property
    def name(self) -> str:
        return f"gemv_{self.types}_{self.columns}x{self.depth}_{checksum(self)}__{self.isa}"

    @property
    def pass_groups(self) -> int:
        """Groups of k in a pass: as many as registers hold of src."""
        if self.types.group == 1:
            return GROUPS
        free = vector_class(self.isa).count - OTHERS
        return min(STREAMS // self.types.group, free // dot_class(self.types, self.isa).copy_registers)

    @property
    def passes(self) -> int:
        return passes_of(self.types, self.depth, self.pass_groups)

    def footprint(self) -> Footprint:
        types = self.types
        src = src_of(1, 0, self.src_depth_bytes, types.groups_of(self.depth))
        row = types.weights.size_bytes * self.columns
        rows = [k * self.weights_row_bytes for k in range(self.depth)]
        weights = [Range(WEIGHTS, at, at + row) for at in rows]
        dst = Range(DST, 0, types.sums.size_bytes * self.columns)
        return Footprint((*src, *weights), (dst,), rereads=self.passes > 1)

    def generate(self, asm: Assembler) -> None:
        dot = dot_of(self.types, self.isa, vector_of(self.isa, asm))
        code = GemvCode(self, dot)
        (whole, cut), most = divmod(self.depth, self.types.group), self.pass_groups
        rest = (whole - 1) % most + 1 if whole else 0
        with dot.ready():
            if rest:
                code.one_pass([GROUP_BYTES] * rest, first=True)
            passes = (whole - rest) // most
            if passes:
                with asm.repeated(passes, "passes left", "passes"):
                    code.advance(rest)
                    code.one_pass([GROUP_BYTES] * most, first=False)
                    if rest != most:
                        code.advance(most - rest)
            if cut:
                if rest:
                    code.advance(rest)
                code.one_pass([cut * self.types.src.size_bytes], first=not rest)
        asm.ret()


class GemvCode:
    """The code of the passes; pointers stay in registers."""

    def __init__(self, spec: GemvSpec, dot: Dot) -> None:
        self.spec, self.dot, self.v, self.asm = spec, dot, dot.v, dot.asm
        self.src, self.weights, self.dst = load_operands(dot.asm)
        self.rows = weight_rows(dot)

    def advance(self, groups: int) -> None:
        """Advance to further rows of weights."""
        self.asm.ADD(self.src, groups * self.spec.src_depth_bytes)
        self.asm.ADD(self.weights, groups * self.spec.types.group * self.spec.weights_row_bytes)

    def one_pass(self, groups: Sequence[int], first: bool) -> None:
        """dst = or += the products of groups of so many bytes of src; the pointers are left as they were."""
        v, dot = self.v, self.dot
        registers, each = v.registers.take("src", len(groups) * dot.copy_registers), dot.copy_registers
        copies = [registers[k * each : (k + 1) * each] for k in range(len(groups))]
        for k, (copy, group_bytes) in enumerate(zip(copies, groups, strict=True)):
            dot.keep(copy, mem(self.src, k * self.spec.src_depth_bytes, size=GROUP_BYTES), group_bytes)
        held = groups[-1] // self.spec.types.src.size_bytes + (len(groups) - 1) * self.spec.types.group
        chunk = CHUNK * v.lanes
        steps = (self.weights, self.spec.types.weights.size_bytes * chunk), (self.dst, CHUNK * v.bytes)
        step = partial(self.step, copies=copies, held=held, first=first)
        in_chunks(self.asm, self.spec.columns, chunk, steps, step, f"{held} rows")
        v.registers.free(*registers)

    def step(self, columns: int, copies: Sequence[Sequence[Register]], held: int, first: bool) -> None:
        """`held` rows of weights, a copy of src for each group of them."""
        v, group, row_bytes = self.v, self.spec.types.group, self.spec.weights_row_bytes
        vectors = -(-columns // v.lanes)
        acc = v.registers.take("sums", vectors)
        with self.rows.ready(), partial_sums(v, [acc], self.dst, columns, first=first) as parts:
            if first:
                v.zeros(acc)
            for k, copy in enumerate(copies):
                places = [mem(self.weights, i * row_bytes) for i in range(k * group, min(held, (k + 1) * group))]
                for j, found in self.rows.vectors(places, parts, columns):
                    for x, row in zip(acc[j:], found, strict=False):
                        self.dot.accumulate(x, copy, row, self.rows.spare)
        v.registers.free(acc)
