"""f32 vectors of AVX2 with FMA3; see vector.py."""

from collections.abc import Callable, Sequence
from struct import pack
from types import MappingProxyType

from asmdnn.isa.across import Combine, Source, ordered, spread_in_four
from asmdnn.isa.assembler import Label, Pointer, Register, low32, mem
from asmdnn.isa.vector import TailLanes, Vector


class Avx2(Vector):
    """ymm0-15; a tail is a vector register with the sign bits set."""

    bytes, count = 32, 16
    splat_bytes = 32
    most_pixels = MappingProxyType({1: 12, 2: 6, 3: 4})

    def zero(self, dst: Register) -> None:
        self.asm.VXORPS(dst, dst, dst)

    def chosen(self, lanes: int) -> TailLanes:
        return Avx2Tail(self, lanes)

    def first_lanes(self, count: Register) -> TailLanes:
        return Avx2First(self, count)

    def lanes_said(self, count: Pointer) -> TailLanes:
        return Avx2Said(self, count)

    def splat(self, bits: int) -> Pointer:
        return self.asm.const(pack("<I", bits) * self.lanes, self.bytes, size=self.bytes)

    def splat_at(self, place: Pointer) -> Pointer:
        return place.sized(self.bytes)

    def round(self, dst: Register, src: Register | Pointer, mode: int) -> None:
        self.asm.VROUNDPS(dst, src, mode)

    def evens(self, x: Register, y: Register, spare: Register) -> None:
        self.asm.VSHUFPS(x, x, y, 0x88)  # within the halves of 16 bytes
        self.asm.VPERMPD(x, x, 0xD8)

    def condition(self, take: Callable[[], Register]) -> Register:
        return take()

    def select(self, dst: Register, condition: Register, then: Register | Pointer, otherwise: Register) -> None:
        self.asm.VBLENDVPS(dst, otherwise, then, condition)

    def keep(self, dst: Register, condition: Register, then: Register | Pointer) -> None:
        self.asm.VANDPS(dst, condition, then)

    def keep_last(self, x: Register, count: int) -> None:
        lanes = [0] * (self.lanes - count) + [-1] * count
        self.asm.VANDPS(x, x, self.asm.const(pack(f"<{self.lanes}i", *lanes), self.bytes, size=self.bytes))

    def swap_quarters(self, x: Register, spare: Register, combine: Combine) -> None:
        self.asm.VPERM2F128(spare, x, x, 1)
        combine(x, x, spare)

    def quarters(self) -> Sequence[tuple[Combine, Combine]]:
        return [(ordered(self.asm.VPERM2F128, 0x20), ordered(self.asm.VPERM2F128, 0x31))]

    def run_quarters(self, x: Register, spare: Register, combine: Combine, neutral: Register | None) -> None:
        if neutral is None:
            self.asm.VPERM2F128(spare, x, x, 0x08)  # zeros, and the low half
        else:
            self.asm.VPERM2F128(spare, neutral, x, 0x20)
        self.asm.VPERMILPS(spare, spare, 0xFF)
        combine(x, x, spare)

    def last_of(self, dst: Register, x: Register) -> None:
        self.asm.VPERM2F128(dst, x, x, 0x11)
        self.asm.VPERMILPS(dst, dst, 0xFF)

    def end_condition(self, condition: Register) -> bool:
        return False

    def broadcast_byte(self, dst: Register, number: int) -> None:
        """In lanes, as bytes are widened."""
        self.broadcast(dst, self.asm.const(pack("<I", number), 4, size=4))

    def compare_elements(self, condition: Register, wanted: Register, source: Register | Pointer, size: int) -> None:
        if size == 1:
            self.asm.VPMOVZXBD(condition, source if isinstance(source, Pointer) else source.xmm)
            source = condition
        self.asm.VPCMPEQD(condition, wanted, source)

    def add_where(self, total: Register, condition: Register, x: Register | Pointer) -> None:
        self.asm.VANDPS(condition, condition, x)
        self.add(total, total, condition)

    def nowhere(self, condition: Register) -> None:
        self.zero(condition)

    def unite(self, condition: Register, other: Register) -> None:
        self.asm.VORPS(condition, condition, other)

    def jump_unless_any(self, condition: Register, target: Label) -> None:
        signs = self.asm.gp.take("lanes where it holds")
        self.asm.VMOVMSKPS(low32(signs), condition)
        self.asm.TEST(low32(signs), low32(signs))
        self.asm.JZ(target)
        self.asm.gp.free(signs)

    def collect_several(
        self, x: Register, chosen: Sequence[int], order: Register, vector: Source, spare: Sequence[Register]
    ) -> None:
        """A permutation looks at the lowest three bits of a lane's number."""
        self.asm.VPERMPS(x, order, vector(0, x))
        other, lanes = spare[0], self.lanes
        for number in range(1, max(chosen) // lanes + 1):
            self.asm.VPERMPS(other, order, vector(number, other))
            self.asm.VBLENDPS(x, x, other, sum(1 << j for j, lane in enumerate(chosen) if lane // lanes == number))

    def spread(self, dst: Register, src: Register | Pointer, group: int, part: int) -> None:
        self.asm.VPERMILPS(dst, src, spread_in_four(group, part))


class Avx2Masked(TailLanes):
    """Lanes whose sign bits are set in `mask`."""

    mask: Register

    def load(self, dst: Register, src: Pointer) -> None:
        self.vector.asm.VMASKMOVPS(dst, self.mask, src)

    def store(self, dst: Pointer, src: Register) -> None:
        self.vector.asm.VMASKMOVPS(dst, self.mask, src)

    def clear_rest(self, x: Register) -> None:
        self.vector.asm.VANDPS(x, x, self.mask)

    def fill_rest(self, x: Register, filler: Register) -> None:
        self.vector.asm.VBLENDVPS(x, filler, x, self.mask)

    def release(self) -> None:
        self.vector.registers.free(self.mask)


class Avx2First(Avx2Masked):
    """The mask is read from a row of ones and zeros, at a place that the count says."""

    def __init__(self, vector: Avx2, count: Register) -> None:
        super().__init__(vector, 0)
        asm, lanes = vector.asm, vector.lanes
        row = asm.const(pack(f"<{2 * lanes}i", *[-1] * lanes, *[0] * lanes), vector.bytes)
        self.mask = vector.registers.take("mask of the first lanes")
        with asm.gp.taken("where ones end") as ones, asm.gp.taken("lanes left out") as less:
            asm.MOV(low32(less), lanes)
            asm.SUB(less, count)
            asm.LEA(ones, row)
            asm.VMOVUPS(self.mask, mem(ones, index=less, scale=4, size=vector.bytes))


class Avx2Said(Avx2Masked):
    """The mask is where lanes are below a number in memory."""

    def __init__(self, vector: Avx2, count: Pointer) -> None:
        super().__init__(vector, 0)
        asm, lanes = vector.asm, vector.lanes
        self.mask = vector.registers.take("mask of the first lanes")
        asm.VMOVQ(self.mask.xmm, count)  # the whole int64, as footprints claim it
        asm.VPBROADCASTD(self.mask, self.mask.xmm)
        numbers = asm.const(pack(f"<{lanes}i", *range(lanes)), vector.bytes, size=vector.bytes)
        asm.VPCMPGTD(self.mask, self.mask, numbers)


class Avx2Tail(Avx2Masked):
    def __init__(self, vector: Avx2, lanes: int) -> None:
        super().__init__(vector, lanes)
        self.mask = vector.registers.take("tail mask")
        words = [-(lanes >> lane & 1) for lane in range(vector.lanes)]
        vector.asm.VMOVUPS(self.mask, vector.asm.const(pack(f"<{len(words)}i", *words), 32, size=32))

    def store_last(self, dst: Pointer, src: Register) -> None:
        """In pieces of 16, 8 and 4 bytes: a masked store takes some 20 cycles on Zen 3."""
        asm, count, done = self.vector.asm, self.lanes.bit_length(), 0
        for size in (4, 2, 1):
            if count & size:
                self.vector.store_first(dst.shifted(4 * done), src, size)
                done += size
                if done == 4 and done < count:
                    asm.VEXTRACTF128(src.xmm, src, 1)
                elif done < count:
                    asm.VUNPCKHPD(src.xmm, src.xmm, src.xmm)
