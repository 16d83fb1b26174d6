"""Runs of bytes of any length in vectors: what AVX2 does in pieces, AVX-512 does under a mask of bytes.

A register consists of *quarters* of 16 bytes, of which one of AVX2 has two.
"""

from typing import Final

from asmdnn.isa.assembler import Pointer, Register, mem, rsp
from asmdnn.isa.avx2 import Avx2
from asmdnn.isa.avx512 import Avx512
from asmdnn.isa.pieces import HALF_BYTES, load_bytes, store_bytes
from asmdnn.isa.vector import Lanes, Vector

QUARTER_BYTES: Final = HALF_BYTES
MASKS_KEPT = 6  # the seventh mask register is set anew for every other count


class Dense:
    """Emits loads and stores of bytes that lie together, none besides.

    spare: a vector register that may be overwritten, another one when assigned.  streaming: whole vectors and their
    lower halves go past the caches; they are aligned then.
    """

    def __init__(self, v: Vector, spare: Register) -> None:
        self.v, self.asm, self.spare, self.streaming = v, v.asm, spare, False

    def zero(self, x: Register) -> None:
        raise NotImplementedError

    def load_vector(self, x: Register, source: Pointer) -> None:
        raise NotImplementedError

    def load(self, x: Register, source: Pointer, count: int, quarter: int = 0) -> None:
        """`count` <= 16 bytes into a quarter, with zeros after them; with number 0 the others become zero."""
        raise NotImplementedError

    def load_run(self, x: Register, source: Pointer, count: int) -> None:
        """`count` bytes, at most a vector, with zeros after them."""
        if count == self.v.bytes:
            self.load_vector(x, source)
            return
        for quarter, at in enumerate(range(0, count, QUARTER_BYTES)):
            self.load(x, source.shifted(at), min(QUARTER_BYTES, count - at), quarter)

    def insert(self, x: Register, y: Register, quarter: int) -> None:
        """The first quarter of y as that one of x."""
        raise NotImplementedError

    def extract(self, target: Pointer | Register, x: Register, quarter: int) -> None:
        """A quarter other than the first, into memory or an xmm register."""
        raise NotImplementedError

    def unite(self, x: Register, y: Register) -> None:
        """x |= y."""
        raise NotImplementedError

    def store(self, target: Pointer, x: Register, count: int, quarter: int = 0) -> None:
        """`count` bytes from that quarter on, at most to the end of x."""
        raise NotImplementedError

    def store_run(self, target: Pointer, x: Register, count: int) -> None:
        """`count` bytes, at most a vector; x stays."""
        raise NotImplementedError

    def forget(self) -> None:
        """What follows can be reached without what was emitted so far."""


class Avx2Dense(Dense):
    """Pieces of 16, 8, 4, 2 and 1 bytes; a partial store of the upper half overwrites x."""

    def zero(self, x: Register) -> None:
        self.asm.VPXOR(x, x, x)

    def load_vector(self, x: Register, source: Pointer) -> None:
        self.asm.VMOVDQU(x, source.sized(self.v.bytes))

    def load(self, x: Register, source: Pointer, count: int, quarter: int = 0) -> None:
        if not quarter:
            load_bytes(self.asm, x.xmm, source, count)
        elif count == QUARTER_BYTES:
            self.asm.VINSERTI128(x, x, source.sized(QUARTER_BYTES), quarter)
        elif x is self.spare:
            self.load_upper_spare(x, source, count)
        else:
            load_bytes(self.asm, self.spare.xmm, source, count)
            self.insert(x, self.spare, quarter)

    def insert(self, x: Register, y: Register, quarter: int) -> None:
        self.asm.VINSERTI128(x, x, y.xmm, quarter)

    def extract(self, target: Pointer | Register, x: Register, quarter: int) -> None:
        self.asm.VEXTRACTI128(target, x, quarter)

    def unite(self, x: Register, y: Register) -> None:
        self.asm.VPOR(x, x, y)

    def load_upper_spare(self, x: Register, source: Pointer, count: int) -> None:
        """With no register left for a part: the lower half waits in the red zone."""
        low, high = (mem(rsp, at, size=QUARTER_BYTES) for at in (-2 * QUARTER_BYTES, -QUARTER_BYTES))
        self.asm.VMOVDQU(low, x.xmm)
        load_bytes(self.asm, x.xmm, source, count)
        self.asm.VMOVDQU(high, x.xmm)
        self.asm.VMOVDQU(x, low.sized(self.v.bytes))

    def store(self, target: Pointer, x: Register, count: int, quarter: int = 0) -> None:
        if count == self.v.bytes or (self.streaming and 2 * count == self.v.bytes and not quarter):
            (self.asm.VMOVNTDQ if self.streaming else self.asm.VMOVDQU)(target.sized(count), view_of(x, count))
            return
        if not quarter:
            store_bytes(self.asm, target, x.xmm, min(count, QUARTER_BYTES))
            target, count = target.shifted(QUARTER_BYTES), count - QUARTER_BYTES
        if count == QUARTER_BYTES:
            self.asm.VEXTRACTI128(target.sized(QUARTER_BYTES), x, 1)
        elif count > 0:
            self.asm.VEXTRACTI128(x.xmm, x, 1)
            store_bytes(self.asm, target, x.xmm, count)

    def store_run(self, target: Pointer, x: Register, count: int) -> None:
        if QUARTER_BYTES < count < self.v.bytes:
            store_bytes(self.asm, target, x.xmm, QUARTER_BYTES)
            self.extract(self.spare.xmm, x, 1)
            store_bytes(self.asm, target.shifted(QUARTER_BYTES), self.spare.xmm, count - QUARTER_BYTES)
        else:
            self.store(target, x, count)


class Avx512Dense(Dense):
    """A mask for every count that no register has the size of; masks stay in registers, as far as there are any."""

    def __init__(self, v: Vector, spare: Register) -> None:
        super().__init__(v, spare)
        self.masks: dict[int, Register] = {}
        self.other: Register | None = None

    def zero(self, x: Register) -> None:
        self.asm.VPXORD(x, x, x)

    def load_vector(self, x: Register, source: Pointer) -> None:
        self.asm.VMOVUPS(x, source.sized(x.size_bytes))

    def load(self, x: Register, source: Pointer, count: int, quarter: int = 0) -> None:
        if quarter and count == QUARTER_BYTES:
            self.asm.VINSERTI32X4(x, x, source.sized(QUARTER_BYTES), quarter)
        elif quarter:
            self.load(self.spare, source, count)
            self.insert(x, self.spare, quarter)
        elif count in (4, 8):
            (self.asm.VMOVD if count == 4 else self.asm.VMOVQ)(x.xmm, source.sized(count))
        elif count == QUARTER_BYTES:
            self.load_vector(x.xmm, source)
        else:
            self.load_run(x, source, count)

    def load_run(self, x: Register, source: Pointer, count: int) -> None:
        view = view_of(x, count)
        if count == view.size_bytes:
            self.load_vector(view, source)
        else:
            self.asm.VMOVDQU8(view.zeroed(self.mask(count)), source.sized(view.size_bytes))

    def insert(self, x: Register, y: Register, quarter: int) -> None:
        self.asm.VINSERTI32X4(x, x, y.xmm, quarter)

    def extract(self, target: Pointer | Register, x: Register, quarter: int) -> None:
        self.asm.VEXTRACTI32X4(target, x, quarter)

    def unite(self, x: Register, y: Register) -> None:
        self.asm.VPORD(x, x, y)

    def store(self, target: Pointer, x: Register, count: int, quarter: int = 0) -> None:
        asm = self.asm
        if quarter:
            by_halves = count > QUARTER_BYTES
            extract = asm.VEXTRACTI64X4 if by_halves else asm.VEXTRACTI32X4
            number = quarter // 2 if by_halves else quarter
            if count in (QUARTER_BYTES, 2 * QUARTER_BYTES):
                extract(target.sized(count), x, number)
                return
            extract(self.spare.ymm if by_halves else self.spare.xmm, x, number)
            x = self.spare
        view = view_of(x, count)
        if self.streaming and count in (self.v.bytes, self.v.bytes // 2):
            asm.VMOVNTDQ(target.sized(count), view)
        elif count == view.size_bytes:
            asm.VMOVUPS(target.sized(count), view)
        elif count in (4, 8):
            (asm.VMOVD if count == 4 else asm.VMOVQ)(target.sized(count), view)
        else:
            asm.VMOVDQU8(target.sized(view.size_bytes).masked(self.mask(count)), view)

    def store_run(self, target: Pointer, x: Register, count: int) -> None:
        self.store(target, x, count)

    def mask(self, count: int) -> Register:
        """The register whose first `count` bits are set."""
        if count in self.masks:
            return self.masks[count]
        mask: Register
        if len(self.masks) < MASKS_KEPT:
            self.masks[count] = mask = self.asm.masks.take(f"{count} bytes")
        else:
            mask = self.other = self.other or self.asm.masks.take("other counts")
        bits = self.asm.gp.take("mask bits")
        self.asm.MOV(bits, (1 << count) - 1)
        self.asm.KMOVQ(mask, bits)
        self.asm.gp.free(bits)
        return mask

    def forget(self) -> None:
        self.asm.masks.free(*self.masks.values())
        self.masks.clear()


class Run(Lanes):
    """The first `count` bytes of a vector, with zeros after them; to be loaded."""

    def __init__(self, dense: Dense, count: int) -> None:
        self.dense, self.count = dense, count

    def load(self, dst: Register, src: Pointer) -> None:
        self.dense.load_run(dst, src, self.count)


def view_of(x: Register, count: int) -> Register:
    """The smallest part of x that holds so many bytes."""
    return next(each for each in (x.xmm, x.ymm, x.zmm) if each.size_bytes >= count)


def dense_of(v: Vector, spare: Register) -> Dense:
    """For the vectors of an ISA level."""
    return _BY_WIDTH[v.bytes](v, spare)


_BY_WIDTH: Final[dict[int, type[Dense]]] = {Avx2.bytes: Avx2Dense, Avx512.bytes: Avx512Dense}
