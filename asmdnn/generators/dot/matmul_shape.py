"""The spec of a matrix tile: everything that its code depends on, and the bytes that it touches.

The arguments and the formula are in matmul.py, which has the code.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from asmdnn.generators.contract import Footprint, Range, TouchedArguments
from asmdnn.generators.dot.epilogue_shape import WithEpilogue, operand_ranges
from asmdnn.generators.dot.operands import src_spans
from asmdnn.generators.functions.chain import names_of_operands, operands_read
from asmdnn.generators.functions.postops import OLD_DST, PostOp, has_floats
from asmdnn.isa.dot import F32, GROUP_BYTES, Types
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import lanes_of
from asmdnn.records import dataclass
from asmdnn.types import FLOATS, DataType, f32, s8, s32, u8

SRC, WEIGHTS, BIAS, DST, PREFETCHED, SCALE, PACKED = range(7)
RESULTS = (*FLOATS, s32, s8, u8)  # types of dst, and of the operands of post-ops
ARGUMENTS = ("src", "weights", "bias", "dst", "prefetched", "scale", "packed")


@dataclass(frozen=True, slots=True)
class Bias:
    """bias[r, c] is at r * row_bytes, and c elements on if the `columns` differ."""

    row_bytes: int
    columns: bool


@dataclass(frozen=True, slots=True)
class Items:
    """The number of tiles that one call computes, and the distances between their arguments.

    joined: rows of src that lie between items are multiplied, too, so that tiles of AMX have rows of several.
    operand_bytes: of what post-ops read, argument by argument; () if all stay, as they must but for tiles of AMX.
    """

    count: int
    src_bytes: int
    weights_bytes: int
    bias_bytes: int
    dst_bytes: int
    joined: bool = False
    operand_bytes: tuple[int, ...] = ()

    def operand_step(self, argument: int) -> int:
        """Bytes from an item's operand of a post-op to the next one's."""
        return self.operand_bytes[argument - len(ARGUMENTS)] if self.operand_bytes else 0


ONE_ITEM = Items(1, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class PieceLoop:
    """So many parts of k, and how far apart they are in src and weights."""

    count: int
    src_bytes: int
    weights_bytes: int


@dataclass(frozen=True, slots=True)
class MatmulTile(WithEpilogue):
    """Everything that the code of a tile kernel depends on; sizes are elements unless they end in _bytes.

    src_depth_bytes and weights_row_bytes are the distances of groups of k, which are elements in f32 only.
    """

    FIXED = ARGUMENTS
    isa: str
    rows: int
    columns: int
    depth: int  # elements of k
    src_row_bytes: int
    src_depth_bytes: int
    weights_row_bytes: int
    panel_vectors: int
    panel_bytes: int
    padded: bool  # weights have room for all lanes; padding is zero
    dst_row_bytes: int
    bias: Bias | None = None
    accumulate: bool = False  # start from dst; if scaled, add dst as it is
    scaled: bool = False
    beta: bool = False  # if scaled: add beta * dst
    post_ops: tuple[PostOp, ...] = ()
    prefetch_lines: int = 0  # cache lines to prefetch for every UNROLL steps
    prefetch_step_bytes: int = 0  # from one of them to the next; 0: they lie side by side
    stream_bytes: int = 0  # prefetch the weights themselves so far ahead of their use
    src_ahead_bytes: int = 0  # prefetch rows of src so far ahead of their use
    prefetches_dst: bool = False  # ask for its lines before the sums are there
    streams: bool = False  # its whole vectors go past the caches if it begins with one; rows are whole vectors apart
    packs: bool = False
    near_row_bytes: int = 0  # between rows of the copy of src that the tile makes, and multiplies from; 0: none
    sums: int = 1  # independent ones that steps of k take in turn, a divisor of UNROLL; of one item, without runs
    items: Items = ONE_ITEM
    pieces: tuple["PieceLoop", ...] = ()  # over parts of k of equal size; outermost first
    types: Types = F32
    dst: DataType | None = None  # that of the sums, or f32 where something is computed from them
    operand_types: tuple[DataType, ...] = ()  # of what post-ops read, argument by argument; () if all are f32

    @property
    def steps(self) -> int:
        """Groups of k, the last of which need not be whole."""
        return -(-self.depth // self.types.group)

    @property
    def piece_depth(self) -> int:
        """Elements of k that src has side by side."""
        return self.depth // prod(loop.count for loop in self.pieces)

    @property
    def pitch(self) -> int:
        """Rows of src from item to item, of which `rows` are the item's, if items are joined."""
        return self.items.src_bytes // self.src_row_bytes if self.items.joined else 0

    @property
    def rows_of_src(self) -> int:
        """That are multiplied as one matrix."""
        return (self.items.count - 1) * self.pitch + self.rows

    @property
    def piece_steps(self) -> int:
        """Groups of k of a piece."""
        return -(-self.piece_depth // self.types.group)

    @property
    def last_group_bytes(self) -> int:
        """The bytes that src has of the last group."""
        return ((self.depth - 1) % self.types.group + 1) * self.types.src.size_bytes

    @property
    def works_in_f32(self) -> bool:
        """Whether something is computed from the sums: scales, post-ops and other types of dst take f32."""
        return self.scaled or has_floats(self.post_ops) or self.dst not in (None, self.types.sums)

    @property
    def dst_type(self) -> DataType:
        return self.dst or (f32 if self.works_in_f32 else self.types.sums)

    @property
    def line_step_bytes(self) -> int:
        """From a line that is prefetched to the next one."""
        return self.prefetch_step_bytes or LINE_BYTES

    @property
    def vectors(self) -> int:
        return self.panel_vectors if self.packs else -(-self.columns // lanes_of(self.isa))

    def reads_dst(self) -> bool:
        return self.accumulate or self.beta or OLD_DST in operands_read(self.post_ops)

    def weights_vector(self, j: int, vector_bytes: int) -> int:
        """Where vector j of a row of weights starts."""
        panel, within = divmod(j, self.panel_vectors)
        return panel * self.panel_bytes + within * vector_bytes

    def footprint(self) -> Footprint:
        """The bytes that a call touches."""
        reads = [*self._ranges(SRC), *self._ranges(WEIGHTS)]
        dst = tuple(self._ranges(DST))
        if self.bias:
            reads += self._ranges(BIAS)
        if self.scaled:
            reads.append(Range(SCALE, 0, (2 if self.beta else 1) * f32.size_bytes))
        lanes, types = lanes_of(self.isa), self.epilogue_types
        for operand in operands_read(self.post_ops):
            if operand is not OLD_DST:
                found = operand_ranges(operand, self.rows, self.columns, lanes, types.of(operand))
                reads += self._of_items(found, self.items.operand_step(operand.argument))
        writes = [*dst, *self._packed_ranges(lanes)]
        return Footprint((*reads, *dst * self.reads_dst()), tuple(writes), rereads=bool(self.near_row_bytes))

    def touched_arguments(self) -> TouchedArguments:
        """The arguments of its footprint, which has a range for every step where they lie apart."""
        read = {x.argument for x in operands_read(self.post_ops) if x is not OLD_DST}
        read |= {SRC} if self.steps and self.rows_of_src else set()
        read |= {WEIGHTS} if self.steps and self.vectors else set()
        read |= {BIAS} if self.bias else set()
        read |= {SCALE} if self.scaled else set()
        read |= {DST} if self.reads_dst() else set()
        written = {DST, PACKED} if self.packs or self.near_row_bytes else {DST}
        return TouchedArguments(frozenset(read), frozenset(), frozenset(written))

    def _packed_ranges(self, lanes: int) -> Iterator[Range]:
        """The copy that the tile makes: of its weights, or of its rows of src."""
        if self.packs:
            yield Range(PACKED, 0, self.steps * self.vectors * self.types.weights_bytes * lanes)
        for row in range(self.rows if self.near_row_bytes else 0):
            begin = row * self.near_row_bytes
            yield Range(PACKED, begin, begin + self.steps * GROUP_BYTES)

    def _of_items(self, ranges: Sequence[Range], step: int) -> Iterator[Range]:
        """Ranges of the first item, and those of others."""
        for item in range(self.items.count if step else 1):
            yield from (Range(x.argument, x.begin_bytes + item * step, x.end_bytes + item * step) for x in ranges)

    def _ranges(self, argument: int) -> Iterator[Range]:
        """The bytes of an argument that all items touch."""
        steps = {
            SRC: 0 if self.items.joined else self.items.src_bytes,
            WEIGHTS: self.items.weights_bytes,
            BIAS: self.items.bias_bytes,
            DST: self.items.dst_bytes,
        }
        spans = {SRC: self._src_spans, WEIGHTS: self._weights_spans, BIAS: self._bias_spans, DST: self._dst_spans}
        for item in range(self.items.count if steps[argument] else 1):
            for begin, size in spans[argument]():
                yield Range(argument, item * steps[argument] + begin, item * steps[argument] + begin + size)

    def _src_spans(self) -> Iterator[tuple[int, int]]:
        groups = self.types.groups_of(self.piece_depth)
        spans = tuple(src_spans(self.rows_of_src, self.src_row_bytes, self.src_depth_bytes, groups))
        return ((at + begin, size) for at, _ in self.piece_places() for begin, size in spans)

    def piece_places(self) -> Iterator[tuple[int, int]]:
        """Where the pieces of k lie in src and in weights."""
        for numbers in product(*(range(loop.count) for loop in self.pieces)):
            each = tuple(zip(numbers, self.pieces, strict=True))
            yield sum(n * loop.src_bytes for n, loop in each), sum(n * loop.weights_bytes for n, loop in each)

    def _weights_spans(self) -> Iterator[tuple[int, int]]:
        vector_bytes = self.types.weights_bytes * lanes_of(self.isa)
        row_bytes = self.vectors * vector_bytes if self.padded else self.types.weights_bytes * self.columns
        for first in range(0, self.vectors, self.panel_vectors):
            start = self.weights_vector(first, vector_bytes)
            width = min(self.panel_vectors * vector_bytes, row_bytes - first * vector_bytes)
            if width == self.weights_row_bytes:
                spans = [(0, width * self.piece_steps)] * bool(self.steps)
            else:
                spans = [(k * self.weights_row_bytes, width) for k in range(self.piece_steps)]
            yield from ((start + at + begin, size) for _, at in self.piece_places() for begin, size in spans)

    def _bias_spans(self) -> Iterator[tuple[int, int]]:
        assert self.bias
        width = self.types.sums.size_bytes * (self.columns if self.bias.columns else 1)
        rows = self.rows if self.bias.row_bytes else 1
        yield from ((r * self.bias.row_bytes, width) for r in range(rows))

    def _dst_spans(self) -> Iterator[tuple[int, int]]:
        width = self.dst_type.size_bytes * self.columns
        yield from ((r * self.dst_row_bytes, width) for r in range(self.rows))


class TileKernel:
    """What specs of kernels of one tile have in common."""

    __slots__ = ()
    tile: MatmulTile

    @property
    def isa(self) -> str:
        return self.tile.isa

    @property
    def frame(self) -> tuple[str, ...]:
        """The names of the frame's pointers, in order."""
        return (*ARGUMENTS, *names_of_operands(self.tile.post_ops))

    def footprint(self) -> Footprint:
        """The bytes that a call touches."""
        return self.tile.footprint()

    def touched_arguments(self) -> TouchedArguments:
        """Its arguments."""
        return self.tile.touched_arguments()
