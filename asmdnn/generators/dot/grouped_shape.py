"""What kernels of rows have in common: what their code depends on, its name, and the bytes that it touches."""

from collections.abc import Iterator
from typing import ClassVar, TypeVar

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, KernelWords, Range, joined
from asmdnn.generators.dot.epilogue_shape import WithEpilogue
from asmdnn.generators.dot.row_cuts import Band, Segment
from asmdnn.generators.dot.row_numbers import RowNumbers
from asmdnn.generators.functions.chain import chain_words, names_of_operands, operands_read
from asmdnn.generators.functions.postops import OLD_DST, Operand, PostOp
from asmdnn.isa.assembler import Assembler, Pointer, Register
from asmdnn.isa.dot import F32, Types
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import lanes_of, vector_class
from asmdnn.records import altered, dataclass, replace
from asmdnn.types import DataType, f32

SRC, WEIGHTS, BIAS, DST, SHAPE = range(5)
ARGUMENTS = ("src", "weights", "bias", "dst", "shape")
OTHER_REGISTERS = 4  # that are no output pixels at least: the others are enough multiplies under way, in small code
TAIL_REGISTERS = {32: 1, 64: 0}  # that a mask takes, by bytes of a vector
LEAST_PIXELS = 8  # of a segment: their multiplies are under way together
MOST_MULTIPLIES = 640  # of a segment's kernel row, all inputs of a group: code of 4 KiB
MOST_HELD, HELD = 9, 4  # weights of a kernel row in registers: all of them, or of a longer row some at a time
IN_WORDS = ("overlap", "src_plane_bytes", "weights_plane_bytes", "src_row_bytes", "src_tap_bytes", "dst_row_bytes")
AnyRows = TypeVar("AnyRows", bound="GroupedRows")
Uses = dict[int, list[tuple[int, int]]]  # of a column: (pixel, kernel position) pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedRows(RowNumbers, WithEpilogue):
    """Everything that the bytes of rows depend on, of a grouped convolution (grouped.py) or of one with few inputs
    (few_inputs.py), which say how a lane finds its inputs; sizes in bytes where they say so.

    A group has `group` input channels and as many output channels, `group` being a power of two up to the lanes.
    """

    family: ClassVar[str]
    FIXED = ARGUMENTS

    isa: str
    vectors: int  # of channels
    abreast: int  # of them at a time, a divisor
    channels: int  # real ones of a vector: of one alone it may be fewer than lanes
    group: int
    kernel: int  # positions in a row of it
    stride: int  # pixels of src from window to window
    dilation: int  # pixels of src from a position to the next one
    padding: int  # columns in front of the image that the first window has
    bands: tuple[Band, ...]
    segments: tuple[Segment, ...]
    src_pixel_bytes: int
    src_row_bytes: int  # from an output row's window to the next one's
    src_tap_bytes: int  # from a kernel row to the next one
    dst_pixel_bytes: int
    dst_row_bytes: int
    weights_row_bytes: int
    weights_input_bytes: int  # from an input channel of a group to the next one
    weights_vector_bytes: int
    src_whole: bool  # src has room, zero padding, for all lanes
    dst_whole: bool
    bias: bool = False
    post_ops: tuple[PostOp, ...] = ()
    planes: int = 1  # of the kernel: with three axes rows of it are in several, or in none that is inside
    src_plane_bytes: int = 0
    weights_plane_bytes: int = 0
    weights_position_bytes: int = 0  # from a kernel position to the next one, unless they are dense
    streaming: bool = False  # past the caches, where dst is aligned to a vector when called, as its distances must be
    rows_ahead: int = 0  # of src below a window, that are prefetched as the window's lines of dst are; 0: neither
    src_type: DataType = f32
    weights_type: DataType = f32
    dst_type: DataType = f32
    operand_types: tuple[DataType, ...] = ()  # of what post-ops read, argument by argument; () if all are f32
    overlap: int = 0  # pixels of the first segment that the second one computes again, to the same bits

    @property
    def code_spec(self) -> "GroupedRows":
        """What the bytes depend on: the same without what is in the words of an image."""
        return without_image(self)

    def words(self) -> tuple[int, ...]:
        """The numbers that the code reads, in the order of row_words.py; none if all are in it."""
        raise NotImplementedError

    @property
    def src_vector_bytes(self) -> int:
        """From what a vector of channels reads of a pixel to what the next one does."""
        raise NotImplementedError

    @property
    def position_bytes(self) -> int:
        """From the weights of a kernel position to those of the next one."""
        return self.weights_position_bytes or self.weights_vector_size_bytes

    @property
    def weights_vector_size_bytes(self) -> int:
        """Of the weights of a kernel position that are multiplied at once."""
        return self.weights_type.size_bytes * lanes_of(self.isa)

    @property
    def parts(self) -> int:
        """In which the inputs of a group are multiplied, one after the other."""
        return self.group

    @property
    def input_step_bytes(self) -> int | None:
        """From an input of a group to the next one in src, where that is a word of the image."""
        return None

    def cut_rows(self, band: Band) -> int | None:
        """How many kernel rows of a band have less in a lane than others; None where none can have."""
        return None

    @property
    def own_registers(self) -> int:
        """That are taken all the time, beside a tail's."""
        return 0

    @property
    def types(self) -> Types:
        """What is multiplied: src and weights become f32 as they are loaded."""
        return F32

    @property
    def may_compute_again(self) -> bool:
        """Whether to compute a pixel twice changes nothing: nobody reads what was written, or what lies beside it, and
        it stays in the caches."""
        operands = operands_read(self.post_ops)
        return not self.streaming and not any(operand is OLD_DST or operand.row_bytes for operand in operands)

    @property
    def may_be_abreast(self) -> bool:
        """Whether several vectors of channels can be computed at a time."""
        return True

    @property
    def position_cycles(self) -> float:
        """Expected of a kernel position of a pixel, for a vector of channels."""
        return self.parts / 2

    @property
    def together(self) -> int:
        """Output rows computed at a time."""
        return 1

    def most_pixels(self, channels: int, width: int) -> int:
        """Of a segment of rows of `width` pixels, for a vector with so many channels.

        As many as code allows; but where equal shares of a row would have fewer than hide the latency of a multiply,
        and registers have room for one segment less, more: a row of 14 in one segment, not in 7 and 7, runs 1.13 to
        1.26 times as fast on Zen 5, with 16 inputs a group and AVX-512.
        """
        v = vector_class(self.isa)
        tail = TAIL_REGISTERS[v.bytes] * (channels < lanes_of(self.isa))
        room = v.count - max(OTHER_REGISTERS, tail + self.held + 1) - self.own_registers
        pixels = min(room, max(LEAST_PIXELS, MOST_MULTIPLIES // max(1, self.kernel * self.parts)))
        segments = -(-width // pixels)
        longer = -(-width // (segments - 1)) if segments > 1 else width
        return longer if width < LEAST_PIXELS * segments and pixels < longer <= room else pixels

    @property
    def held(self) -> int:
        """Positions of a kernel row whose weights are in registers at a time."""
        raise NotImplementedError

    def src_ranges(self, places: set[int]) -> list[Range]:
        """What is read of the pixels that begin there, in order."""
        raise NotImplementedError

    def load_source(self, v: Vector, loads: Lanes, source: Register, at: Pointer, part: int) -> None:
        """Load input `part` for all lanes of the vector at `at`, of which `loads` may be read."""
        raise NotImplementedError

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel."""
        raise NotImplementedError

    def is_operand(self, loads_whole: bool) -> bool:
        """Whether a source vector in memory can be the operand of a multiply; loads_whole: all lanes may be read."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        """Output pixels of a row."""
        return sum(segment.pixels * segment.times for segment in self.segments) - self.overlap

    @property
    def rows(self) -> int:
        return sum(band.rows for band in self.bands)

    @property
    def name(self) -> str:
        words = [f"{self.kernel}s{self.stride}", f"{self.sizes}x{self.channels * self.vectors}"]
        words += ["bias"] * self.bias + list(chain_words(self.chain)) + ["streaming"] * self.streaming
        words += [checksum(self.code_spec)]
        words = [f"{self.planes}of"] * (self.planes != 1) + words
        types = "f32" if self.src_type == self.weights_type == f32 else f"{self.src_type}{self.weights_type}"
        return f"{self.family}{self.group}_{types}_{'_'.join(words)}__{self.isa}"

    @property
    def sizes(self) -> str:
        """Of segments, for the name."""
        return ".".join(f"{segment.pixels}" for segment in self.segments)

    @property
    def frame(self) -> tuple[str, ...]:
        return (*ARGUMENTS, *names_of_operands(self.post_ops))

    def of_kernel_row(self) -> "GroupedRows":
        """The same without what the products of a kernel row do not depend on."""
        return replace(self.code_spec, segments=(), vectors=self.abreast, bias=False, post_ops=(), operand_types=())

    def uses(self, segment: Segment) -> Uses:
        """For every column of a segment that is read, the (pixel, kernel position) pairs that multiply it."""
        found: Uses = {}
        for pixel in range(segment.pixels):
            for k in range(self.kernel):
                column = pixel * self.stride + k * self.dilation
                if segment.low <= column < segment.high:
                    found.setdefault(column, []).append((pixel, k))
        return dict(sorted(found.items()))

    def footprint(self) -> Footprint:
        """The bytes that a call touches."""
        lanes = lanes_of(self.isa)
        dst_width = self.width_bytes(self.dst_whole, self.dst_type)
        columns = sorted(self.columns()) if self.planes else []
        pixels = [(y, x) for y in range(self.rows) for x in range(self.width)]
        dst = [y * self.dst_row_bytes + x * self.dst_pixel_bytes for y, x in pixels]
        writes = joined(Range(DST, at, at + dst_width) for at in dst)
        operands = operands_read(self.post_ops)
        bias = self.bias_ranges()
        others = [r for operand in operands if operand is not OLD_DST for r in self.operand_ranges(operand, lanes)]
        old = list(writes) * (OLD_DST in operands)
        src, values = self.src_ranges(self.places(columns)), self.words()
        words = self.ranges_of_words(SHAPE, values)
        reads = (*joined(src), *self.weights_ranges(columns), *bias, *others, *old, *words)
        return Footprint(reads, writes, words=KernelWords(SHAPE, values) if values else None)

    def bias_ranges(self) -> list[Range]:
        """Of the real channels."""
        return [Range(BIAS, 0, self.width_bytes(False, f32))] * self.bias

    def width_bytes(self, is_whole: bool, dtype: DataType) -> int:
        """Of a pixel in a tensor that has room, zero padding, for whole vectors of channels, or that has not."""
        last = lanes_of(self.isa) if is_whole else self.channels
        return dtype.size_bytes * ((self.vectors - 1) * lanes_of(self.isa) + last)

    def columns(self) -> set[int]:
        """Of a row of src, the pixels that are read, counted from the image's first."""
        found, first = set(), -self.padding
        for number, segment in enumerate(self.segments):
            first -= self.overlap * self.stride * (number == 1)
            for _ in range(segment.times):
                found |= {first + column for column in self.uses(segment)}
                first += segment.pixels * self.stride
        return found

    def places(self, columns: list[int]) -> set[int]:
        """Where the pixels begin that are read, from src."""
        rows, y = set(), 0
        for band in self.bands:
            taps = range(band.first, band.first + band.count)
            rows |= {(y + r) * self.src_row_bytes + k * self.src_tap_bytes for r in range(band.rows) for k in taps}
            y += band.rows
        planes = [plane * self.src_plane_bytes for plane in range(self.planes)]
        return {plane + row + column * self.src_pixel_bytes for plane in planes for row in rows for column in columns}

    def weights_ranges(self, columns: list[int]) -> tuple[Range, ...]:
        """Kernel rows that no band reaches, and positions that no pixel uses, are not read; whole rows are."""
        if not columns:
            return ()
        rows = {k for band in self.bands for k in range(band.first, band.first + band.count)}
        starts = [
            v * self.weights_vector_bytes + i * self.weights_input_bytes + k * self.weights_row_bytes + plane
            for plane in (self.weights_plane_bytes * number for number in range(self.planes))
            for v in range(self.vectors)
            for i in range(self.parts)
            for k in rows
        ]
        places = {start + k * self.position_bytes for start in starts for k in range(self.kernel)}
        return joined(Range(WEIGHTS, at, at + self.weights_vector_size_bytes) for at in places)

    def operand_ranges(self, operand: Operand, lanes: int) -> Iterator[Range]:
        """What post-ops read of a tensor, whose pixels are a row after the other at one distance."""
        found, size = set(), self.epilogue_types.of(operand).size_bytes
        for pixel in range(self.rows * self.width if operand.row_bytes else 1):
            for j in range(self.vectors):
                begin = pixel * operand.row_bytes + j * operand.vector_bytes
                found.add((begin, begin + size * (1 if operand.element else self.channels)))
        yield from joined(Range(operand.argument, *place) for place in found)


def without_image(spec: AnyRows) -> AnyRows:
    """The same without what is in the words of an image."""
    segments = tuple(replace(x, times=0) if x.is_counted else x for x in spec.segments)
    found: AnyRows = altered(spec, bands=(), segments=segments, post_ops=spec.chain, **dict.fromkeys(IN_WORDS, 0))
    return found
