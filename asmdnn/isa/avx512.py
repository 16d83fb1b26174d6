"""f32 vectors of AVX-512 (F, VL, DQ, BW); see vector.py."""

from collections.abc import Callable, Sequence
from functools import partial
from struct import pack
from types import MappingProxyType

from asmdnn.isa.across import Combine, Source, ordered, spread_in_four
from asmdnn.isa.assembler import Label, Pointer, Register, low32
from asmdnn.isa.vector import Row, TailLanes, Vector


class Avx512(Vector):
    """zmm0-31; a tail is a mask register; a multiply can broadcast its own memory operand."""

    bytes, count = 64, 32
    splat_bytes = 4
    most_pixels = MappingProxyType({1: 24, 2: 14, 3: 9, 4: 6})

    def zero(self, dst: Register) -> None:
        self.asm.VPXORD(dst, dst, dst)

    def chosen(self, lanes: int) -> TailLanes:
        return Avx512Tail(self, lanes)

    def first_lanes(self, count: Register) -> TailLanes:
        return Avx512First(self, count)

    def lanes_said(self, count: Pointer) -> TailLanes:
        with self.asm.gp.taken("count of the first lanes") as number:
            self.asm.MOV(number, count)
            return self.first_lanes(number)

    def short_tail(self, count: int) -> TailLanes:
        return ShortTail(self, (1 << count) - 1) if count in (4, 8) else self.tail(count)

    def splat(self, bits: int) -> Pointer:
        return self.asm.const(pack("<I", bits), 4, size=4, broadcast=self.lanes)

    def splat_at(self, place: Pointer) -> Pointer:
        return place.sized(4).broadcast_to(self.lanes)

    def round(self, dst: Register, src: Register | Pointer, mode: int) -> None:
        self.asm.VRNDSCALEPS(dst, src, mode)

    def evens(self, x: Register, y: Register, spare: Register) -> None:
        lanes = range(0, 2 * self.lanes, 2)
        self.load(spare, self.asm.const(pack(f"<{self.lanes}i", *lanes), self.bytes, size=self.bytes))
        self.asm.VPERMT2PS(x, spare, y)

    def condition(self, take: Callable[[], Register]) -> Register:
        mask: Register = self.asm.masks.take("condition")
        return mask

    def select(self, dst: Register, condition: Register, then: Register | Pointer, otherwise: Register) -> None:
        self.asm.VBLENDMPS(dst.masked(condition), otherwise, then)

    def keep(self, dst: Register, condition: Register, then: Register | Pointer) -> None:
        self.asm.VBLENDMPS(dst.zeroed(condition), dst, then)

    def keep_last(self, x: Register, count: int) -> None:
        lanes = [0] * (self.lanes - count) + [-1] * count
        self.asm.VPANDD(x, x, self.asm.const(pack(f"<{self.lanes}i", *lanes), self.bytes, size=self.bytes))

    def swap_quarters(self, x: Register, spare: Register, combine: Combine) -> None:
        for order in (0b01001110, 0b10110001):
            self.asm.VSHUFF32X4(spare, x, x, order)
            combine(x, x, spare)

    def quarters(self) -> Sequence[tuple[Combine, Combine]]:
        shuffle = self.asm.VSHUFF32X4
        orders = ((0b01000100, 0b11101110), (0b10001000, 0b11011101))
        return [(ordered(shuffle, low), ordered(shuffle, high)) for low, high in orders]

    def run_quarters(self, x: Register, spare: Register, combine: Combine, neutral: Register | None) -> None:
        nothing = neutral or self.registers.take("0")
        if neutral is None:
            self.zero(nothing)
        for quarters in (1, 2):
            self.asm.VPERMILPS(spare, x, 0xFF)
            self.asm.VALIGND(spare, spare, nothing, 16 - 4 * quarters)
            combine(x, x, spare)
        if neutral is None:
            self.registers.free(nothing)

    def last_of(self, dst: Register, x: Register) -> None:
        self.asm.VPERMILPS(dst, x, 0xFF)
        self.asm.VSHUFF32X4(dst, dst, dst, 0xFF)

    def end_condition(self, condition: Register) -> bool:
        self.asm.masks.free(condition)
        return True

    def broadcast_byte(self, dst: Register, number: int) -> None:
        self.broadcast(dst, self.asm.const(pack("<4B", *[number] * 4), 4, size=4))

    def compare_elements(self, condition: Register, wanted: Register, source: Register | Pointer, size: int) -> None:
        if size == 4:
            self.asm.VPCMPEQD(condition, wanted, source)
        else:
            self.asm.VPCMPEQB(condition, wanted.xmm, source if isinstance(source, Pointer) else source.xmm)

    def add_where(self, total: Register, condition: Register, x: Register | Pointer) -> None:
        self.asm.VADDPS(total.masked(condition), total, x)

    def nowhere(self, condition: Register) -> None:
        self.asm.KXORW(condition, condition, condition)

    def unite(self, condition: Register, other: Register) -> None:
        self.asm.KORW(condition, condition, other)

    def jump_unless_any(self, condition: Register, target: Label) -> None:
        self.asm.KORTESTW(condition, condition)
        self.asm.JZ(target)

    def collect_several(
        self, x: Register, chosen: Sequence[int], order: Register, vector: Source, spare: Sequence[Register]
    ) -> None:
        """The first two at once, by the lowest five bits of a lane's number; then lanes of one more beside x's own."""
        other, own = spare
        first = vector(0, x)
        if isinstance(first, Pointer):
            self.load(x, first)
        self.asm.VPERMT2PS(x, order, vector(1, other))
        lanes = self.lanes
        for number in range(2, max(chosen) // lanes + 1):
            merged = [lanes + lane % lanes if lane // lanes == number else j for j, lane in enumerate(chosen)]
            self.load(own, self.asm.const(pack(f"<{lanes}i", *merged), self.bytes, size=self.bytes))
            self.asm.VPERMT2PS(x, own, vector(number, other))

    def spread(self, dst: Register, src: Register | Pointer, group: int, part: int) -> None:
        self.asm.VPERMILPS(dst, src, spread_in_four(min(group, 4), part % 4))
        if group == 8:  # the quarter with the element, of either half
            first, second = part // 4, 2 + part // 4
            self.asm.VSHUFF32X4(dst, dst, dst, first | first << 2 | second << 4 | second << 6)

    def broadcast(self, dst: Register, src: Pointer) -> None:
        """VBROADCASTSS into zmm takes a multiplier's port on Zen 4: before each VDPBF16PS, 1.33 cycles, not 1."""
        self.asm.VPBROADCASTD(dst, src)

    def outer_product(self, acc: Sequence[Row], row: Row, column: Sequence[Pointer], spare: Row) -> None:
        """As above; with one factor an element is used once, and the multiply broadcasts it itself."""
        if len(row) > 1:
            super().outer_product(acc, row, column, spare)
            return
        for i, element in enumerate(column):
            copies = element.sized(4).broadcast_to(self.lanes)
            self.fma(acc[i][0], row[0], copies)


class Avx512Masked(TailLanes):
    """Lanes whose bits are set in `mask`."""

    mask: Register

    def load(self, dst: Register, src: Pointer) -> None:
        self.vector.asm.VMOVUPS(dst.zeroed(self.mask), src)

    def store(self, dst: Pointer, src: Register) -> None:
        self.vector.asm.VMOVUPS(dst.masked(self.mask), src)

    def clear_rest(self, x: Register) -> None:
        self.vector.asm.VMOVAPS(x.zeroed(self.mask), x)

    def fill_rest(self, x: Register, filler: Register) -> None:
        self.vector.asm.VBLENDMPS(x.masked(self.mask), filler, x)

    def release(self) -> None:
        self.vector.asm.masks.free(self.mask)


class Avx512Tail(Avx512Masked):
    def __init__(self, vector: Avx512, lanes: int) -> None:
        super().__init__(vector, lanes)
        self.mask = vector.asm.masks.take("tail mask")
        bits = vector.asm.gp.take("tail mask bits")
        vector.asm.MOV(bits, lanes)
        vector.asm.KMOVQ(self.mask, bits)
        vector.asm.gp.free(bits)


class Avx512First(Avx512Masked):
    """The mask is as many ones as the count says."""

    def __init__(self, vector: Avx512, count: Register) -> None:
        super().__init__(vector, 0)
        asm = vector.asm
        self.mask = asm.masks.take("mask of the first lanes")
        with asm.gp.taken("ones") as ones:
            asm.MOV(low32(ones), -1)
            asm.BZHI(low32(ones), low32(ones), low32(count))
            asm.KMOVW(self.mask, low32(ones))


class ShortTail(TailLanes):
    """The first half or quarter, as a ymm or xmm register: a masked zmm register would reach into the next line of
    memory half of the time, and stores with masks are not forwarded to loads."""

    def __init__(self, vector: Avx512, lanes: int) -> None:
        super().__init__(vector, lanes)
        self.masked = partial(Avx512Tail, vector, lanes)

    def view(self, x: Register) -> Register:
        return {4: x.xmm, 8: x.ymm}[self.lanes.bit_length()]

    def load(self, dst: Register, src: Pointer) -> None:
        self.vector.asm.VMOVUPS(self.view(dst), src.sized(4 * self.lanes.bit_length()))

    def store(self, dst: Pointer, src: Register) -> None:
        self.vector.asm.VMOVUPS(dst.sized(4 * self.lanes.bit_length()), self.view(src))

    def clear_rest(self, x: Register) -> None:
        self.vector.asm.VMOVAPS(self.view(x), self.view(x))

    def fill_rest(self, x: Register, filler: Register) -> None:
        masked = self.masked()
        masked.fill_rest(x, filler)
        masked.release()

    def release(self) -> None:
        """It occupies nothing."""
