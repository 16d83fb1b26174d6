"""The windows of a row of output pixels as dense rows of a matrix (im2col), for kernels that read rows of whole lines.

    dst[p, r * piece_bytes : r * piece_bytes + run_bytes] = src[p * src_step + offsets[r] : ... + run_bytes]

| argument | dtype[shape] | what it is |
|---|---|---|
| src | bytes | runs of each window, which may overlap those of others; only read |
| dst | bytes[pixels, dst_step] | the lines that runs reach; only written, with zeros between runs and after them |

A line of dst is made in a register: its first run by a load that zeroes all else, others by loads under a mask.  So
nothing beyond a run is read, and stores are whole lines, which loads of tiles find at once.  Few pixels go abreast, as
many lines have masks of their own.
"""

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range, joined
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.dense import view_of
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

SRC, DST = range(2)
ABREAST = 4  # pixels
MASKS_KEPT = 6  # of seven; the last one is of all others
MOST_LINES = 64  # of a row of dst

Segment = tuple[int, int, int]  # of a line: its bytes from here, to there, and where in src the line would begin


@dataclass(frozen=True, slots=True, kw_only=True)
class Im2colSpec:
    """See above.  offsets: of a window's runs in src; 0 < run_bytes <= piece_bytes.  dst_step: whole lines."""

    isa: str
    pixels: int
    offsets: tuple[int, ...]
    run_bytes: int
    piece_bytes: int
    src_step: int
    dst_step: int

    @property
    def name(self) -> str:
        windows = f"{self.pixels}x{len(self.offsets)}x{self.run_bytes}"
        return f"im2col_{windows}_s{self.src_step}_{checksum(self)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ("src", "dst")

    @property
    def lines(self) -> int:
        """Of a row of dst, that are written."""
        return lines_of(len(self.offsets), self.piece_bytes)

    def segments(self, line: int) -> list[Segment]:
        """What a line of dst has of the runs."""
        begin, found = line * LINE_BYTES, []
        for r, offset in enumerate(self.offsets):
            first = r * self.piece_bytes - begin
            low, high = max(0, first), min(LINE_BYTES, first + self.run_bytes)
            if low < high:
                found.append((low, high, offset - first))
        return found

    def footprint(self) -> Footprint:
        pixels = range(self.pixels)
        runs = ((p * self.src_step + offset) for p in pixels for offset in self.offsets)
        rows = (p * self.dst_step for p in pixels)
        return Footprint(
            joined(Range(SRC, at, at + self.run_bytes) for at in runs),
            joined(Range(DST, at, at + self.lines * LINE_BYTES) for at in rows),
        )

    def generate(self, asm: Assembler) -> None:
        code = Im2colCode(self, asm)
        whole, rest = divmod(self.pixels, ABREAST)
        if whole:
            with asm.repeated(whole, "pixels left", "pixels"):
                code.rows(ABREAST)
        if rest:
            code.rows(rest)
        asm.ret()


class Im2colCode:
    """The emission; pointers go along."""

    def __init__(self, spec: Im2colSpec, asm: Assembler) -> None:
        self.spec, self.asm = spec, asm
        self.src, self.dst, self.bits = (asm.gp.take(name) for name in ("src", "dst", "bits of a mask"))
        asm.MOV(self.src, mem(asm.frame, 8 * SRC))
        asm.MOV(self.dst, mem(asm.frame, 8 * DST))
        self.lines = vector_of(spec.isa, asm).registers.take("lines", ABREAST)
        self.masks: dict[tuple[int, int], Register] = {}
        self.other = asm.masks.take("other masks")
        for low, high in self.most_used():
            self.masks[low, high] = self.set(asm.masks.take(f"bytes {low} to {high}"), low, high)

    def most_used(self) -> list[tuple[int, int]]:
        """The parts of lines whose masks stay in registers."""
        every = [s[:2] for line in range(self.spec.lines) for s in self.spec.segments(line)]
        partial = dict.fromkeys(part for part in every if part != (0, LINE_BYTES))
        return sorted(partial, key=every.count, reverse=True)[:MASKS_KEPT]

    def set(self, mask: Register, low: int, high: int) -> Register:
        self.asm.MOV(self.bits, signed((1 << high) - (1 << low)))
        self.asm.KMOVQ(mask, self.bits)
        return mask

    def rows(self, pixels: int) -> None:
        """So many rows of dst, and on to the next ones."""
        asm, spec = self.asm, self.spec
        for line in range(spec.lines):
            asm.role(f"line {line}")
            for number, segment in enumerate(spec.segments(line)):
                self.load(segment, pixels, first=number == 0)
            for p, x in enumerate(self.lines[:pixels]):
                asm.VMOVDQU64(mem(self.dst, p * spec.dst_step + line * LINE_BYTES, size=LINE_BYTES), x)
        asm.ADD(self.src, pixels * spec.src_step)
        asm.ADD(self.dst, pixels * spec.dst_step)

    def load(self, segment: Segment, pixels: int, first: bool) -> None:
        """A part of a line of each pixel; the first one clears the rest of it."""
        low, high, at = segment
        part, is_whole = (low, high), (low, high) == (0, LINE_BYTES)
        mask = None if is_whole else self.masks.get(part) or self.set(self.other, *part)
        for p, x in enumerate(self.lines[:pixels]):
            view = view_of(x, high) if first else x  # a narrow load lies in two lines less often
            place = mem(self.src, p * self.spec.src_step + at, size=view.size_bytes)
            if mask is None:
                self.asm.VMOVDQU64(view, place)
            else:
                self.asm.VMOVDQU8(view.zeroed(mask) if first else view.masked(mask), place)


def lines_of(pieces: int, piece_bytes: int) -> int:
    return -(-pieces * piece_bytes // LINE_BYTES)


def signed(bits: int) -> int:
    """64 bits as an immediate."""
    return bits - (1 << 64) if bits >> 63 else bits
