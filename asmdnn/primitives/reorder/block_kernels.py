"""Which kernel moves a block: the part of a box of loops that `Blocks` has cut."""

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
from asmdnn.generators.move.spread import SpreadSpec
from asmdnn.generators.move.transpose import TransposeSpec
from asmdnn.generators.move.triples import (
    PLANES,
    TriplesBlock,
    TriplesDeinterleaveSpec,
    TriplesInterleaveSpec,
    fewest,
    moves_triples,
)
from asmdnn.generators.move.words import WIDENED, WordsSpec
from asmdnn.isa.elements import element_of, narrowing_level
from asmdnn.isa.lines import lines_that_stay
from asmdnn.isa.vectors import NARROWEST, f32_level, f32_widths, vector_bytes
from asmdnn.planning.loops import Box, Loop
from asmdnn.planning.move_tuning import MoveTuning
from asmdnn.primitives.reorder.shape import SINGLE, Shape, Zeros
from asmdnn.primitives.reorder.style import MoveStyle
from asmdnn.records import dataclass, replace
from asmdnn.types import f32

SCALE, SCALE_BYTES = 2, f32.size_bytes  # the tensor of scales
WORD_BYTES = 4
WIDE_COLUMNS = 16  # of a row that is converted with wide vectors: fewer would not fill one
BYTES = Conversion("u8", "u8")  # each stays what it is, on its way through f32

Copy = TypeVar("Copy", RowsSpec, TransposeSpec)
Counted = TypeVar("Counted", RowsSpec, TransposeSpec, ConvertTransposeSpec, InterleaveSpec)
Triples = TriplesInterleaveSpec | TriplesDeinterleaveSpec
Pixels = ConvertInterleaveSpec | ConvertDeinterleaveSpec | Triples
Copies = RowsSpec | TransposeSpec | InterleaveSpec | SpreadSpec
ReorderSpec = Copies | WordsSpec | ConvertSpec | ConvertTransposeSpec | ConvertNarrowSpec | Pixels


@dataclass(frozen=True, slots=True)
class BlockKernels:
    """Chooses kernels.  Loops step in bytes.  isa: the level that they may need."""

    isa: str
    conversion: Conversion
    style: MoveStyle
    tuning: MoveTuning

    @property
    def sizes(self) -> tuple[int, int]:
        return self.conversion.sizes

    def kernel(self, box: Box, shape: Shape) -> ReorderSpec:
        """The kernel for a box that `cut` made."""
        (src, dst), (rows, columns) = self.sizes, (shape.rows, shape.columns)
        if shape.interleaves:
            return self.interleaving(shape)
        if shape.zeros.ends:
            row, step = columns.extent * dst, self.spread_to(columns, shape.zeros)
            return SpreadSpec(isa=NARROWEST, rows=rows.extent, row_bytes=row, dst_step=step)
        pixels = self.pixels(shape)
        if shape.transposes and self.conversion.is_copy and not pixels:
            return self.transposing(shape)
        if columns is SINGLE:
            columns = Loop(1, (src, dst))
        if box.padding or (self.conversion.is_copy and (columns.src, columns.dst) == (src, dst)):
            copied = RowsSpec(
                isa=NARROWEST, rows=rows.extent, row_bytes=columns.extent * dst, src_step=rows.src, dst_step=rows.dst,
                zero=box.padding, unrolled_bytes=self.tuning.unrolled_bytes,
            )  # fmt: skip
            return self.cheapest(copied)
        block: dict[str, Any] = {
            "rows": rows.extent, "columns": columns.extent, "src_steps": (rows.src, columns.src),
            "dst_steps": (rows.dst, columns.dst), "scale_steps": (scale_of(rows), scale_of(columns)),
        }  # fmt: skip
        if pixels:
            conversion = self.conversion
            if conversion.is_copy:
                conversion = conversion.as_bits() if issubclass(pixels, TriplesBlock) else BYTES
            return pixels(isa=NARROWEST, conversion=conversion, **block)
        if shape.transposes and element_of(self.conversion.dst).packs_lanes and not self.conversion.sum:
            block |= {"zero_rows": shape.zeros.rows}
            return ConvertNarrowSpec(isa=f32_level(self.isa), conversion=self.conversion, **block)
        if shape.transposes:
            return self.fewest(ConvertTransposeSpec(isa=NARROWEST, conversion=self.conversion, **block))
        if self.conversion in WIDENED and (columns.src, columns.dst) == (src, dst):
            return WordsSpec(isa=NARROWEST, conversion=self.conversion, **block)
        conversion = self.conversion.as_bits() if self.conversion.is_copy else self.conversion
        ahead = self.tuning.convert_ahead_bytes
        converted = ConvertSpec(isa=NARROWEST, conversion=conversion, ahead_bytes=ahead, **block)
        wide = replace(converted, isa=narrowing_level(conversion.dst, self.isa))
        if wide.fits_joined and not self.conversion.is_copy:
            return replace(wide, joins=True)
        converted, wide = (replace(x, streaming=self.style.streams and x.fits_streaming) for x in (converted, wide))
        fits = columns.extent >= WIDE_COLUMNS and wide.streaming >= converted.streaming
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

    def conflict(self, lines: int, step: int) -> bool:
        """Whether so many lines, `step` bytes apart, are more than the sets of L1 hold that they fall into."""
        return lines > lines_that_stay(step, self.tuning.set_lines)

    def spread_to(self, row: Loop, zeros: Zeros) -> int:
        """Bytes of a row of elements with the zeros after them."""
        return (row.extent + zeros.ends) * self.sizes[1]

    def pixels(self, shape: Shape) -> type[Pixels] | None:
        """The kernel of a transpose from or to pixels of few channels, None if it is another one."""
        (src, dst), rows, columns = self.sizes, shape.rows, shape.columns
        if not shape.transposes or self.conversion.sum or shape.zeros.rows or shape.inner is not SINGLE:
            return None
        if moves_triples(self.conversion):
            least = fewest(self.conversion)
            if rows.extent == PLANES and columns.dst == PLANES * dst and columns.extent >= least:
                return TriplesInterleaveSpec
            if columns.extent == PLANES and rows.src == PLANES * src and rows.extent >= least:
                return TriplesDeinterleaveSpec
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
        if spec.vector_bytes == vector_bytes(NARROWEST):
            return spec.operations
        in_parts = isinstance(spec, TransposeSpec) and spec.stores_parts
        return spec.operations * (self.tuning.wide_parts_cost if in_parts else self.tuning.wide_cost)

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
