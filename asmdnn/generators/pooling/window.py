"""What kernels of pooling share: the loops over windows and over what a window covers, and the two ways to reduce it.

The largest number of a window is found by MAXPS with the new number first, which returns the second where either is
NaN: so NaN is passed over, as oneDNN does it, and a window of NaN alone gives -infinity.
"""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Final, NamedTuple

from asmdnn.generators.contract import Range
from asmdnn.generators.functions.chain import operands_of
from asmdnn.generators.functions.postops import OLD_DST, PostOp
from asmdnn.generators.stretches import touched
from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.elements import element_of
from asmdnn.isa.formula import bits_of
from asmdnn.isa.vector import Lanes, Vector

ARGUMENTS: Final = ("src", "dst")
SRC, DST = range(2)
MAXIMA: Final = {  # of f32, or of four bytes a lane: the instruction, and the least number
    "max": ("VMAXPS", b"\x00\x00\x80\xff"),
    "max_s8": ("VPMAXSB", b"\x80\x80\x80\x80"),
    "max_u8": ("VPMAXUB", bytes(4)),
}
STAGED: Final = 2  # registers in turn for what is loaded


class PixelLoop(NamedTuple):
    """`times` results, whose windows begin src_bytes, and which lie dst_bytes, from one to the next."""

    times: int
    src_bytes: int
    dst_bytes: int


class Taps(NamedTuple):
    """`positions` of a window along one axis, bytes from one to the next."""

    positions: int
    bytes: int


class Pooled:
    """What specs of pooling have in common: src and dst, and post-ops."""

    __slots__ = ()

    @property
    def chain(self) -> tuple[PostOp, ...]:
        raise NotImplementedError

    @property
    def frame(self) -> tuple[str, ...]:
        return ARGUMENTS

    @property
    def reads_dst(self) -> bool:
        return OLD_DST in operands_of(self.chain)


def offsets(axes: Iterable[Taps]) -> list[int]:
    """The byte offset of every position of a window, in the order of the axes."""
    return [sum(at) for at in product(*(range(0, n * step, step) if step else [0] * n for n, step in axes))]


def pixels_touched(
    loops: Sequence[PixelLoop], window: Sequence[Taps], size_bytes: int
) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """What is read of src, and written of dst, of so many bytes for each position and result."""
    *outer, row = loops
    *rows, columns = window
    src_rows = offsets((*(Taps(x.times, x.src_bytes) for x in outer), *rows))
    along = touched(offsets((Taps(row.times, row.src_bytes), columns)), size_bytes)
    reads = {(at + begin, at + end) for at in src_rows for begin, end in along}
    writes = touched(offsets(Taps(x.times, x.dst_bytes) for x in loops), size_bytes)
    src = tuple(Range(SRC, begin, end) for begin, end in sorted(reads))
    return src, tuple(Range(DST, begin, end) for begin, end in writes)


class Reduction:
    """One of MAXIMA, or avg, of what is loaded, on registers of `v`; as f32, if `kind` is another type in memory."""

    def __init__(self, v: Vector, alg: str, kind: str = "f32") -> None:
        self.v, self.is_max, self.element = v, alg in MAXIMA, element_of(kind)
        self.staged: Sequence[Register] = v.registers.take("loaded", STAGED)
        self.turn = 0
        if self.is_max:
            instruction, least = MAXIMA[alg]
            self.largest = getattr(v.asm, instruction)
            self.low = v.registers.take("the least number")
            v.load(self.low, v.asm.const(least * v.lanes, v.bytes, size=v.bytes))

    def take_in(self, acc: Register, at: Pointer, part: Lanes, first: bool) -> None:
        """acc = the reduction of acc and memory; of memory alone if it comes first."""
        if self.is_max:
            loaded = self.load(at, part)
            self.largest(acc, loaded, self.low if first else acc)
        elif first:
            self.bring(acc, at, part)
        elif part is self.v:
            self.v.add(acc, acc, at)
        else:
            self.v.add(acc, acc, self.load(at, part))

    def load(self, at: Pointer, part: Lanes) -> Register:
        """What memory holds, in a register until the next but one is loaded."""
        self.turn = (self.turn + 1) % len(self.staged)
        self.bring(self.staged[self.turn], at, part)
        return self.staged[self.turn]

    def bring(self, x: Register, at: Pointer, part: Lanes) -> None:
        """x = what memory holds, as f32."""
        part.load(x, at)
        self.element.to_f32(self.v, x)

    def join(self, acc: Register, other: Register | Pointer) -> None:
        """acc = the reduction of it and another one."""
        (self.largest if self.is_max else self.v.asm.VADDPS)(acc, acc, other)

    def start(self, acc: Register) -> None:
        """acc = the reduction of nothing."""
        if self.is_max:
            self.v.move(acc, self.low)
        else:
            self.v.zero(acc)

    def fill(self, x: Register, part: Lanes) -> None:
        """Lanes of x that are none of the part's, and zero, become the reduction of nothing."""
        if self.is_max:
            part.fill_rest(x, self.low)

    def divide(self, acc: Register, divisor: int) -> None:
        """A sum becomes a mean, rounded once: multiplied where the reciprocal is exact, else divided."""
        if self.is_max or divisor == 1:
            return
        if divisor & (divisor - 1):
            self.v.asm.VDIVPS(acc, acc, self.v.splat(bits_of(divisor)))
        else:
            self.v.mul(acc, acc, self.v.splat(bits_of(1 / divisor)))
