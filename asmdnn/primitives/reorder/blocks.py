"""Which kernel moves each box of loops of a reorder: the roles of its loops, cut to what stays in L1.

rows        a loop is dense in src and dst: rows of bytes are copied, or converted 8 elements at a time
transpose   one loop is dense in src, another in dst: through registers
elements    neither: elements are moved or converted one by one
"""

from collections.abc import Iterator
from typing import Any, TypeVar

from asmdnn.generators.move.conversion import Conversion
from asmdnn.generators.move.convert import ConvertSpec
from asmdnn.generators.move.convert_narrow import ConvertNarrowSpec
from asmdnn.generators.move.convert_pixels import (
    FEWEST_PLANES,
    MOST_PLANES,
    ConvertDeinterleaveSpec,
    ConvertInterleaveSpec,
)
from asmdnn.generators.move.convert_transpose import ConvertTransposeSpec
from asmdnn.generators.move.interleave import InterleaveSpec
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.generators.move.transpose import UNITS, TransposeSpec, across_of
from asmdnn.generators.move.words import WIDENED, WordsSpec
from asmdnn.isa.dense import QUARTER_BYTES
from asmdnn.isa.elements import element_of, narrowing_level
from asmdnn.isa.lines import LINE_BYTES, MAX_OFFSET, lines_that_stay
from asmdnn.isa.vectors import NARROWEST, f32_level, f32_widths, vector_bytes
from asmdnn.planning.loops import Box, Loop, cut_in_few_sizes, cut_loop
from asmdnn.planning.move_tuning import MoveTuning
from asmdnn.primitives.reorder.shape import NO_ZEROS, SINGLE, Shape, Zeros, most_groups, whole_vectors
from asmdnn.primitives.reorder.style import MoveStyle
from asmdnn.records import dataclass, replace
from asmdnn.types import f32

SCALE, SCALE_BYTES = 2, f32.size_bytes  # the tensor of scales
WORD_BYTES = 4
FEW_ROWS = 4  # that touch in dst, are short, and are converted
WIDE_COLUMNS = 16  # of a row that is converted with wide vectors: fewer would not fill one
BYTES = Conversion("u8", "u8")  # each stays what it is, on its way through f32

Copy = TypeVar("Copy", RowsSpec, TransposeSpec)
Counted = TypeVar("Counted", RowsSpec, TransposeSpec, ConvertTransposeSpec, InterleaveSpec)
Pixels = ConvertInterleaveSpec | ConvertDeinterleaveSpec
Copies = RowsSpec | TransposeSpec | InterleaveSpec
ReorderSpec = Copies | WordsSpec | ConvertSpec | ConvertTransposeSpec | ConvertNarrowSpec | Pixels


@dataclass(frozen=True, slots=True)
class Blocks:
    """Turns boxes into kernels.  Loops step in bytes here.  isa: the level that kernels may need."""

    isa: str
    conversion: Conversion
    style: MoveStyle
    tuning: MoveTuning

    @property
    def sizes(self) -> tuple[int, int]:
        return self.conversion.sizes

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
        # Rows that touch in dst before longer loops: a long row that was cut stays in one piece.  Not two blocks of 8
        # channels that become one of 16, as f32 to bf16: a call for each pixel took 2.3 times as long.
        few = 0 if self.conversion.is_copy or inner.extent >= WIDE_COLUMNS else FEW_ROWS
        rows = max(near, key=lambda x: (x.dst == inner.extent * inner.dst and x.extent > few, x.extent), default=SINGLE)
        return Shape(False, rows, inner)

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
            apart = shape.rows.dst > row_bytes or self.style.streams
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
            across = max(across, min(tuning.near_convert_rows, shape.rows.extent))
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

    def conflict(self, lines: int, step: int) -> bool:
        """Whether so many lines, `step` bytes apart, are more than the sets of L1 hold that they fall into."""
        return lines > lines_that_stay(step, self.tuning.set_lines)

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

    def kernel(self, box: Box, shape: Shape) -> ReorderSpec:
        """The kernel for a box that `cut` made."""
        (src, dst), (rows, columns) = self.sizes, (shape.rows, shape.columns)
        if shape.interleaves:
            return self.interleaving(shape)
        pixels = self.pixels(shape)
        if shape.transposes and self.conversion.is_copy and not pixels:
            return self.transposing(shape)
        if columns is SINGLE:
            columns = Loop(1, (src, dst))
        if box.padding or (self.conversion.is_copy and (columns.src, columns.dst) == (src, dst)):
            copied = RowsSpec(
                isa=NARROWEST, rows=rows.extent, row_bytes=columns.extent * dst, src_step=rows.src, dst_step=rows.dst,
                zero=box.padding,
            )  # fmt: skip
            return self.cheapest(replace(copied, unrolled_bytes=self.tuning.unrolled_bytes))
        block: dict[str, Any] = {
            "rows": rows.extent, "columns": columns.extent, "src_steps": (rows.src, columns.src),
            "dst_steps": (rows.dst, columns.dst), "scale_steps": (scale_of(rows), scale_of(columns)),
        }  # fmt: skip
        if pixels:
            conversion = BYTES if self.conversion.is_copy else self.conversion
            return pixels(isa=NARROWEST, conversion=conversion, **block)
        if shape.transposes and element_of(self.conversion.dst).packs_lanes and not self.conversion.sum:
            block |= {"zero_rows": shape.zeros.rows}
            return ConvertNarrowSpec(isa=f32_level(self.isa), conversion=self.conversion, **block)
        if shape.transposes:
            return self.fewest(ConvertTransposeSpec(isa=NARROWEST, conversion=self.conversion, **block))
        if self.conversion in WIDENED and (columns.src, columns.dst) == (src, dst):
            return WordsSpec(isa=NARROWEST, conversion=self.conversion, **block)
        conversion = self.conversion.as_bits() if self.conversion.is_copy else self.conversion
        row_bytes = dst * columns.extent
        lines = (columns.dst, rows.dst) == (dst, row_bytes) and row_bytes % vector_bytes(NARROWEST) == 0
        whole = dst == f32.size_bytes  # elements are stored as registers hold them
        streaming = self.style.streams and whole and lines and not conversion.sum
        block |= {"streaming": streaming, "ahead_bytes": self.tuning.convert_ahead_bytes}
        converted = ConvertSpec(isa=NARROWEST, conversion=conversion, **block)
        wide = replace(converted, isa=narrowing_level(conversion.dst, self.isa))
        if wide.fits_joined and not self.conversion.is_copy:
            return replace(wide, joins=True, streaming=False)
        fits = columns.extent >= WIDE_COLUMNS and not (streaming and row_bytes % vector_bytes(wide.isa))
        return wide if fits and (columns.src, columns.dst) == (src, dst) else converted

    def transposing(self, shape: Shape) -> TransposeSpec:
        rows, columns, groups = shape.rows, shape.columns, shape.groups
        spec = TransposeSpec(
            isa=NARROWEST, unit_bytes=self.sizes[1] * shape.inner.extent, rows=rows.extent,
            columns=columns.extent * groups.extent, src_row_bytes=rows.src, dst_row_bytes=columns.dst,
            zero_rows=shape.zeros.rows,
        )  # fmt: skip
        if groups.extent > 1:
            spec = replace(spec, group=columns.extent, group_bytes=groups.dst)
        # Lines of dst wait half written meanwhile: 1.5x slower with 512 channels, where they conflict, too.
        by_lines = self.conflict(rows.extent, rows.src) and not self.conflict(2 * spec.across, columns.dst)
        found = self.cheapest(replace(spec, least_across=self.tuning.least_across))
        return replace(found, by_lines=by_lines and not found.streaming)

    def interleaving(self, shape: Shape) -> InterleaveSpec:
        rows, columns, unit = shape.rows, shape.columns, self.sizes[1] * shape.inner.extent
        spec = InterleaveSpec(
            isa=NARROWEST, unit_bytes=unit, rows=rows.extent, columns=columns.extent, src_row_bytes=rows.src,
            steps=shape.steps.extent, src_step_bytes=shape.steps.src, dst_step_bytes=shape.steps.dst,
            zero_rows=shape.zeros.rows, zero_columns=shape.zeros.columns,
        )  # fmt: skip
        return self.fewest(spec)

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

    def pixels(self, shape: Shape) -> type[Pixels] | None:
        """The kernel of a transpose from or to bytes of pixels of few channels, None if it is another one."""
        (src, dst), rows, columns = self.sizes, shape.rows, shape.columns
        if not shape.transposes or self.conversion.sum or shape.zeros.rows or shape.inner is not SINGLE:
            return None
        if dst == 1 and FEWEST_PLANES <= rows.extent <= MOST_PLANES and columns.dst == rows.extent:
            return ConvertInterleaveSpec
        if src == 1 and FEWEST_PLANES <= columns.extent <= MOST_PLANES and rows.src == columns.extent:
            return ConvertDeinterleaveSpec
        return None

    def cheapest(self, spec: Copy) -> Copy:
        """As `fewest`, but streaming goes first."""
        found = [self.streaming(each) for each in self.levels(spec)]
        return min(found, key=lambda x: (not x.streaming, self.cost(x)))

    def fewest(self, spec: Counted) -> Counted:
        """The same kernel for the level that takes fewest instructions, the lowest of several."""
        return min(self.levels(spec), key=self.cost)

    def levels(self, spec: Counted) -> list[Counted]:
        """The kernel for every size of vectors, narrow ones first."""
        return [spec if spec.isa == isa else replace(spec, isa=isa) for isa in f32_widths(self.isa)]

    def cost(self, spec: Counted) -> float:
        """In instructions on ymm registers."""
        return spec.operations * (self.tuning.wide_cost if spec.vector_bytes > vector_bytes(NARROWEST) else 1)

    def streaming(self, spec: Copy) -> Copy:
        """The kernel with streaming stores if its vectors follow one another.

        Lines here and there are slower so: 64 bytes at every 1 KiB 2.3 times, measured on a Zen 3.
        """
        if not self.style.streams:
            return spec
        if isinstance(spec, RowsSpec):
            width, step = spec.row_bytes, spec.dst_step
        else:
            width, step = spec.stored_rows * spec.unit_bytes, spec.dst_row_bytes
        apart = isinstance(spec, TransposeSpec) and spec.group > 0
        return replace(spec, streaming=width == step and width % spec.vector_bytes == 0 and not apart)


def scale_of(loop: Loop) -> int:
    """How far it moves in the scales."""
    return loop.strides[SCALE] if len(loop.strides) > SCALE else 0
