"""Products of a few rows that read whole rows of row-major weights, at the speed of memory.

    dst[r, c] = sum over k of src[r, k] * weights[k, c]

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | types.src[rows, depth]    | row r at r * src_row_bytes, groups of k src_depth_bytes apart, dense within |
| weights | types.weights[depth, columns] | row k at k * weights_row_bytes, dense; nothing past the columns is read |
| dst     | types.sums[rows, columns] | rows dst_row_bytes apart; partial sums lie there between passes, best in L1 |

A pass takes STEPS rows of weights through all columns, so that each is a stream that the hardware prefetches, and every
weight that is loaded is multiplied by all rows of src; a tile that takes all rows of a few columns would touch another
page with every step.  Rows of a group are interleaved in registers, as in gemv.py.  The shift that a dot adds to src is
not undone here.
"""

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
from asmdnn.isa.assembler import Assembler, Pointer, mem
from asmdnn.isa.dot import F32, GROUP_BYTES, Dot, Types, dot_class, dot_of
from asmdnn.isa.vectors import vector_class, vector_of
from asmdnn.isa.weight_rows import weight_rows
from asmdnn.records import dataclass

STEPS = 8  # groups of rows of weights in a pass: with groups of one element so many streams
STREAMS = 16  # the most, of groups of several
MOST_VECTORS = 4  # of columns at a time, which hide the latency of a multiply
SPARE = 2  # registers: an element of src, and the mask of a tail
OTHERS = 9  # that rows of several elements need: rows and what they become, an order, a mask, 128s


@dataclass(frozen=True, slots=True, kw_only=True)
class SkinnySpec:
    """Everything that the bytes of the kernel depend on; 1 < rows, depth > 0, in elements; fits(types, isa, rows)."""

    isa: str
    rows: int
    columns: int
    depth: int
    src_row_bytes: int
    src_depth_bytes: int
    weights_row_bytes: int
    dst_row_bytes: int
    types: Types = F32
    frame = OPERANDS

    @property
    def name(self) -> str:
        return f"skinny_{self.types}_{self.rows}x{self.columns}x{self.depth}_{checksum(self)}__{self.isa}"

    @property
    def pass_groups(self) -> int:
        """Groups of k in a pass."""
        return min(STEPS, STREAMS // self.types.group)

    @property
    def passes(self) -> int:
        return passes_of(self.types, self.depth, self.pass_groups)

    def footprint(self) -> Footprint:
        types = self.types
        src = src_of(self.rows, self.src_row_bytes, self.src_depth_bytes, types.groups_of(self.depth))
        dst = (r * self.dst_row_bytes for r in range(self.rows))
        weights = (k * self.weights_row_bytes for k in range(self.depth))
        read, written = types.weights.size_bytes * self.columns, types.sums.size_bytes * self.columns
        return Footprint(
            (*src, *(Range(WEIGHTS, at, at + read) for at in weights)),
            tuple(Range(DST, at, at + written) for at in dst),
            rereads=self.passes > 1,
        )

    def generate(self, asm: Assembler) -> None:
        dot = dot_of(self.types, self.isa, vector_of(self.isa, asm))
        code = SkinnyCode(self, dot)
        (whole, cut), most = divmod(self.depth, self.types.group), self.pass_groups
        rest = (whole - 1) % most + 1 if whole else 0
        with dot.ready():
            if rest:
                code.one_pass([GROUP_BYTES] * rest, first=True)
            passes = (whole - rest) // most
            if passes or (rest and cut):
                code.advance(rest)
            if passes:
                with asm.repeated(passes, "passes left", "passes"):
                    code.one_pass([GROUP_BYTES] * most, first=False)
                    code.advance(most)
            if cut:
                code.one_pass([cut * self.types.src.size_bytes], first=not rest)
        asm.ret()


def vectors_at_once(types: Types, isa: str, rows: int) -> int:
    """The vectors of columns in a chunk: their sums fit the registers; with groups of several elements, as many as the
    interleaved rows become."""
    count, dot = vector_class(isa).count, dot_class(types, isa)
    if types.group == 1:
        return min(MOST_VECTORS, (count - SPARE - dot.product_registers) // (rows + dot.row_registers))
    vectors = min(MOST_VECTORS, (count - OTHERS - dot.copy_registers) // rows)
    return vectors // types.group * types.group


class SkinnyCode:
    """The code of the passes; pointers stay in registers."""

    def __init__(self, spec: SkinnySpec, dot: Dot) -> None:
        self.spec, self.dot, self.asm, self.v = spec, dot, dot.asm, dot.v
        self.most_vectors = vectors_at_once(spec.types, spec.isa, spec.rows)
        self.src, self.weights, self.dst = load_operands(dot.asm)
        self.rows = weight_rows(dot)

    def advance(self, groups: int) -> None:
        """Advance to the next rows of weights."""
        self.asm.ADD(self.src, groups * self.spec.src_depth_bytes)
        self.asm.ADD(self.weights, groups * self.spec.types.group * self.spec.weights_row_bytes)

    def one_pass(self, groups: Sequence[int], first: bool) -> None:
        """dst = or += the products of groups of so many bytes of src; the pointers are left as they were."""
        chunk, types = self.most_vectors * self.v.lanes, self.spec.types
        steps = (self.weights, types.weights.size_bytes * chunk), (self.dst, types.sums.size_bytes * chunk)
        some, rows = partial(self.chunk, groups=groups, first=first), len(groups) * types.group
        in_chunks(self.asm, self.spec.columns, chunk, steps, some, f"{rows} rows")

    def chunk(self, columns: int, groups: Sequence[int], first: bool) -> None:
        """Some vectors of all rows of dst."""
        spec, v, dot, vectors = self.spec, self.v, self.dot, -(-columns // self.v.lanes)
        acc = v.registers.take("sums", spec.rows, vectors)
        with self.rows.ready(held=vectors):
            copy = v.registers.take("src, broadcast", dot.copy_registers)
            with partial_sums(v, acc, self.dst, columns, spec.dst_row_bytes, first=first) as parts:
                for k, group_bytes in enumerate(groups):
                    for j, found in self.rows.vectors(self.places(k, group_bytes), parts, columns):
                        for r, sums in enumerate(acc):
                            at = r * spec.src_row_bytes + k * spec.src_depth_bytes
                            dot.keep(copy, mem(self.src, at, size=GROUP_BYTES), group_bytes)
                            update = dot.accumulate_first if first and k == 0 else dot.accumulate
                            for x, row in zip(sums[j:], found, strict=False):
                                update(x, copy, row, self.rows.spare)
            v.registers.free(*copy)
        v.registers.free(acc)

    def places(self, k: int, group_bytes: int) -> list[Pointer]:
        """Of the rows of a group."""
        first = k * self.spec.types.group
        there = range(first, first + group_bytes // self.spec.types.src.size_bytes)
        return [mem(self.weights, row * self.spec.weights_row_bytes) for row in there]
