"""How a reorder cuts each box of loops into blocks for kernels: the roles of its loops, and what stays in L1.

rows        a loop is dense in src and dst: rows of bytes are copied, or converted 8 elements at a time
transpose   one loop is dense in src, another in dst: through registers
elements    neither: elements are moved or converted one by one
"""

from collections.abc import Iterator

from asmdnn.generators.move.spread import STEPS
from asmdnn.generators.move.transpose import UNITS, across_of
from asmdnn.isa.dense import QUARTER_BYTES
from asmdnn.isa.elements import element_of
from asmdnn.isa.lines import LINE_BYTES, MAX_OFFSET
from asmdnn.planning.loops import Box, Loop, cut_in_few_sizes, cut_loop
from asmdnn.primitives.reorder.block_kernels import SCALE_BYTES, WIDE_COLUMNS, WORD_BYTES, BlockKernels
from asmdnn.primitives.reorder.shape import NO_ZEROS, SINGLE, Shape, Zeros, most_groups, whole_vectors
from asmdnn.records import dataclass, replace

FEW_ROWS = 4  # that touch in dst, are short, and are converted


@dataclass(frozen=True, slots=True)
class Blocks(BlockKernels):
    """Turns boxes into blocks for kernels.  Loops step in bytes here."""

    def in_bytes(self, box: Box) -> Box:
        return box.in_bytes((*self.sizes, SCALE_BYTES)[: len(box.starts)])

    def shape(self, box: Box, zeros: Zeros = NO_ZEROS) -> Shape:
        """The roles of the loops; zeros: of padding that follows, which then belongs to this box."""
        src, dst = self.sizes
        inner = next((x for x in box.loops if x.dst == dst and (box.padding or x.src == src)), SINGLE)
        others = [x for x in box.loops if x is not inner]
        if not box.padding and (inner is SINGLE or (self.conversion.is_copy and inner.extent * dst in UNITS)):
            columns = next((x for x in others if x.src == inner.extent * src), SINGLE)
            single = Loop(1, (0, inner.extent * dst)) if zeros.rows else SINGLE  # one row, and zeros after it
            rows = next((x for x in others if x.dst == inner.extent * dst), single)
            if rows is not SINGLE and rows is not columns:
                groups = self.groups([x for x in others if x is not rows], columns) if not zeros.rows else SINGLE
                transpose = Shape(True, rows, columns, inner, zeros, groups)
                mixed = transpose.interleaved(others, dst) if self.conversion.is_copy else None
                if self.is_near(transpose) and (mixed or columns is not SINGLE):
                    return mixed or transpose
        if inner is SINGLE and not box.padding:
            # Nothing is dense on both sides: what is nearest to it makes the columns.
            near = [x for x in others if 2 * max(x.src, x.dst) <= MAX_OFFSET]
            inner = min(near, key=lambda x: (max(x.src // src, x.dst // dst), x.dst), default=SINGLE)
            others = [x for x in others if x is not inner]
        near = [x for x in others if min(x.extent, self.tuning.unrolled_rows) * max(x.src, x.dst) <= MAX_OFFSET]
        if zeros.ends:  # rows that touch in src: in none, one row, if others were cut away
            steps = inner.extent * src, self.spread_to(inner, zeros)
            return Shape(False, next((x for x in near if (x.src, x.dst) == steps), SINGLE), inner, zeros=zeros)
        # Rows that touch in dst before longer loops: a long row that was cut stays in one piece.  Not two blocks of 8
        # channels that become one of 16, as f32 to bf16: a call for each pixel took 2.3 times as long.
        few = 0 if self.conversion.is_copy or inner.extent >= WIDE_COLUMNS else FEW_ROWS
        rows = max(near, key=lambda x: (x.dst == inner.extent * inner.dst and x.extent > few, x.extent), default=SINGLE)
        return Shape(False, rows, inner)

    def ends(self, box: Box) -> int:
        """How many elements of zeros short rows that touch in src need after each, so that one is a row of dst; 0 of
        other rows."""
        shape, size = self.shape(box), self.sizes[1]
        row, dense = shape.columns.extent * size, (shape.columns.src, shape.columns.dst) == self.sizes
        if shape.transposes or not (dense and self.conversion.is_copy):
            return 0
        return next(((x.dst - row) // size for x in box.loops if row == x.src < x.dst in STEPS), 0)

    def groups(self, loops: list[Loop], columns: Loop) -> Loop:
        """The loop that goes on in src after the end of a short row, such as of 3x3 weights; not of bytes."""
        row = columns.extent * columns.src
        if not self.conversion.is_copy or columns.src < WORD_BYTES or row >= LINE_BYTES or self.style.few_sizes:
            return SINGLE
        return next((x for x in loops if x.src == row and LINE_BYTES * x.dst <= MAX_OFFSET), SINGLE)

    def is_near(self, shape: Shape) -> bool:
        """Whether displacements reach all unrolled rows and columns."""
        return LINE_BYTES * max(shape.rows.src, shape.columns.dst) <= MAX_OFFSET

    def limits(self, shape: Shape) -> dict[str, int]:
        """The most steps of the loops inside a kernel."""
        (src, dst), tuning = self.sizes, self.tuning
        if not shape.transposes:
            columns = min(shape.columns.extent, tuning.row_bytes // max(src, dst))
            columns = min(columns, MAX_OFFSET // max(shape.columns.src, shape.columns.dst, 1))
            row_bytes = columns * max(src, dst)
            # Rows that share lines of dst with other records are long runs of src; the lines wait in L2.  Calls that
            # stream are as long: each once ended with a fence, which the executor has now for a phase; untimed since.
            apart = (shape.rows.dst > row_bytes and not shape.zeros.ends) or self.style.streams
            most = tuning.strided_bytes if apart else tuning.record_bytes
            return {"columns": columns, "rows": max(2, most // max(row_bytes, min(LINE_BYTES, shape.rows.dst)))}
        unit = max(src, dst) * shape.inner.extent
        if shape.interleaves:
            columns = min(shape.most_columns(dst), shape.columns.extent)
            return {"columns": columns, "steps": max(1, tuning.record_bytes // (shape.columns.dst * columns))}
        across = across_of(unit, tuning.least_across) if self.conversion.is_copy else tuning.convert_rows
        along = whole_vectors(max(across, tuning.record_bytes // (min(across, shape.columns.extent) * unit)))
        if shape.columns.extent <= across:
            return {"columns": across, "rows": along, "groups": most_groups(shape.columns.extent * unit)}
        if self.is_whole(shape, unit):
            across = shape.rows.extent  # dst is written in order
        elif self.is_far(shape, across):
            return {"columns": across, "rows": tuning.page_lines * across}  # lines of a page while it is at hand
        elif not self.conversion.is_copy:
            across = max(across, min(tuning.near_convert_bytes // dst, shape.rows.extent))
        return {"columns": whole_vectors(max(1, tuning.record_bytes // (across * unit))), "rows": across}

    def is_whole(self, shape: Shape, unit: int) -> bool:
        """Whether a transpose writes whole rows of dst: short ones that follow one another.  Copies that stay in the
        caches are faster by lines, and so is what reads more rows than L1 holds lines of."""
        tuning, row = self.tuning, (shape.rows.extent + shape.zeros.rows) * unit
        by_lines = self.conversion.is_copy and unit >= WORD_BYTES and not self.style.streams
        most = tuning.near_row_bytes if by_lines else tuning.most_row_bytes
        return row == shape.columns.dst and row <= most and not self.conflict(shape.rows.extent, shape.rows.src)

    def is_far(self, shape: Shape, across: int) -> bool:
        """Whether rows of dst are so far apart that only some lines of each are written at a time: a page; or less, if
        lines of dst conflict in L1, and those of src that are read with them do not.  A line that is written half at a
        time and is lost in between costs more than lines of src, which are read once."""
        tuning, step = self.tuning, shape.columns.dst
        written = across * shape.inner.extent * self.sizes[1]
        conflicts = step >= tuning.conflict_bytes and self.conflict(shape.columns.extent, step)
        if 2 * written == LINE_BYTES:
            return step >= tuning.page_bytes or conflicts
        stays = written >= LINE_BYTES and not self.conflict(tuning.page_lines * across, shape.rows.src)
        return step >= tuning.page_bytes or (conflicts and stays)

    def cut(self, box: Box, zeros: Zeros) -> Iterator[tuple[Box, Shape]]:
        """The same box with loops inside a kernel no longer than they may be, remainders in boxes of their own."""
        shape = self.shape(box, zeros)
        limits = self.style.limited(self.limits(shape), shape, box.padding)
        for role, limit in limits.items():
            loop = getattr(shape, role)
            if loop.extent > limit:
                for part, _ in cut_loop(box, loop, limit):
                    yield from self.cut(part, zeros)
                return
        if shape.transposes or self.style.streams or shape.rows is SINGLE:
            yield box, shape
        else:
            yield from (
                (part, replace(shape, rows=some)) for part, some in cut_in_few_sizes(box, shape.rows, limits["rows"])
            )

    def most_zeros(self, shape: Shape) -> int:
        """How many rows of zeros a transpose can write after its own."""
        unit, rows = shape.rows.dst, shape.rows.extent
        if not shape.transposes:
            return 0
        if self.conversion.is_copy:
            return across_of(unit, self.tuning.least_across) - rows
        narrows = element_of(self.conversion.dst).packs_lanes and not self.conversion.sum
        fits = unit == self.sizes[1] and rows < shape.columns.extent and shape.inner is SINGLE
        return min(QUARTER_BYTES // unit, self.tuning.convert_rows) - rows if narrows and fits else 0
