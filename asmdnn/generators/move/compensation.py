"""Compensation of int8 weights for activations that are shifted by 128, from s8 to u8:

    compensation[o] = -factor * sum over taps t, r < repeats, k < dense of src[t + o * src_step + r * repeat_step + k]

because sum of (a + 128) * w is sum of a * w, plus 128 * sum of w.  The factor is 128, or 1 where what activations are
shifted by is known only when they come.

| argument     | dtype[shape]  | what it is |
|---|---|---|
| src          | s8            | what the formula reads from each tap's place, no other byte |
| compensation | s32[outputs]  | dst_step bytes apart; no other byte is written |
| taps         | int64[1 + n]  | n, then as many byte offsets of src |

Sums are modulo 2^32.  Taps are data, so that one kernel serves weights of all sizes.  Rows of single bytes are added up
as words (column_sums.py).  Elsewhere VPMADDUBSW with ones adds pairs
of bytes to words, which cannot overflow, and VPMADDWD pairs of words to dwords.  Needs AVX2, which every supported
level has.
"""

from itertools import product
from typing import Any

from asmdnn.generators.contract import Footprint, Range, TapList
from asmdnn.generators.move.column_sums import COLUMNS, MOST_ROWS, SUMS, ColumnSums
from asmdnn.generators.move.pieces import StridedPlace, load_elements, store_elements
from asmdnn.generators.stepping import unless_zero
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.dense import dense_of
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass, replace
from asmdnn.types import s32

ARGUMENTS = ("src", "compensation", "taps")
SRC, COMPENSATION, TAPS = range(3)
S32_BYTES, WORD_BYTES = s32.size_bytes, 8
GROUPS = (2, 4)  # elements of an output side by side that a multiplication adds up in its lane
LANES, VECTOR_BYTES = 8, 32
MOST_SUMS = 8  # registers with sums
GATHERED = 4  # registers whose sums are put together
UNROLLED = 4  # vectors of a dense row; longer ones are looped over
FACTOR = 128  # a power of two


@dataclass(frozen=True, slots=True, kw_only=True)
class CompensationSpec:
    """One call of the formula above, steps in bytes.

    Outputs of 1, 2 or 4 dense bytes that follow one another have a lane each and are at most 64; so are single bytes at
    any step.  Others have a register each, and are at most 8.  Rows longer than UNROLLED vectors are not repeated.
    """

    isa: str
    outputs: int
    dense: int
    src_step: int
    repeats: int = 1
    repeat_step: int = 0
    dst_step: int = S32_BYTES
    factor: int = FACTOR
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        repeats = f"_r{self.repeats}by{self.repeat_step}".replace("-", "m") if self.repeats > 1 else ""
        repeats += "" if self.factor == FACTOR else f"_times{self.factor}"
        steps = f"s{self.src_step}{repeats}_d{self.dst_step}"
        return f"compensation_s8_{self.outputs}x{self.dense}_{steps}__{self.isa}"

    @property
    def sums_columns(self) -> bool:
        """Whether rows of single bytes are added up as words."""
        return self.dense == self.src_step == 1 and 1 < self.repeats <= MOST_ROWS and self.outputs % COLUMNS == 0

    @property
    def looped_vectors(self) -> int:
        """How many vectors of a dense row the loop does, so many a turn that its overhead does not matter."""
        is_long = self.dense > UNROLLED * VECTOR_BYTES
        return self.dense // VECTOR_BYTES // self.vectors_a_turn * self.vectors_a_turn if is_long else 0

    @property
    def vectors_a_turn(self) -> int:
        return max(1, MOST_SUMS // self.outputs)

    @property
    def cycles_a_tap(self) -> int:
        """One for each addition to a register, measured on a Zen 3; bytes that lie apart are loaded one by one."""
        if self.sums_columns:
            return self.outputs // COLUMNS * (2 * self.repeats + SUMS)
        if not has_lanes(self.dense, self.src_step):
            return self.repeats * self.outputs * -(-self.dense // VECTOR_BYTES)
        return self.repeats * -(-self.outputs // LANES) * (1 if self.src_step == self.dense else LANES)

    def at(self, repeat: int, output: int) -> int:
        return repeat * self.repeat_step + output * self.src_step

    def footprint(self) -> Footprint:
        outputs, size = range(self.outputs), self.dense
        if self.src_step == self.dense:
            outputs, size = range(1), self.outputs * self.dense
        starts = [self.at(r, o) for r in range(self.repeats) for o in outputs]
        read = tuple(Range(SRC, start, start + size) for start in starts)
        places = [o * self.dst_step for o in range(self.outputs)]
        writes = tuple(Range(COMPENSATION, place, place + S32_BYTES) for place in places)
        return Footprint((), writes, TapList(TAPS, (SRC,), (read,)))

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        registers = v.registers
        by_lanes = has_lanes(self.dense, self.src_step)
        count = -(-self.outputs // LANES) if by_lanes else GATHERED * (-(-self.outputs // GATHERED))
        sums, (x, spare) = registers.take("sums", count), registers.take("data", 2)
        src, taps, left, tap = (asm.gp.take(name) for name in ("src", "taps", "taps left", "tap's src"))
        asm.role("start")
        adder = ColumnSums(v, x, spare) if self.sums_columns else Adder(v, x, spare, registers.take("ones", 2))
        for total in sums:
            asm.VPXOR(total, total, total)
        asm.MOV(src, mem(asm.frame, WORD_BYTES * SRC))
        asm.MOV(taps, mem(asm.frame, WORD_BYTES * TAPS))
        asm.MOV(left, mem(taps))
        asm.ADD(taps, WORD_BYTES)
        with unless_zero(asm, left, "taps_done"), asm.loop(left, "taps"):
            asm.role("next tap")
            asm.MOV(tap, mem(taps))
            asm.ADD(taps, WORD_BYTES)
            asm.ADD(tap, src)
            if isinstance(adder, ColumnSums):
                self.add_columns(adder, tap, sums)
            else:
                (self.add_lanes if by_lanes else self.add_rows)(adder, tap, sums)
        if isinstance(adder, ColumnSums):
            asm.role("columns in order")
            for i in range(0, len(sums), SUMS):
                adder.in_order(sums[i : i + SUMS])
        if not by_lanes:
            asm.role("a lane for each output")
            sums = [gathered(asm, sums, spare)]
        self.store(adder, sums)
        asm.ret()

    def add_columns(self, adder: ColumnSums, tap: Any, sums: list[Any]) -> None:
        """What one tap adds to 32 outputs in four registers."""
        for i in range(self.outputs // COLUMNS):
            adder.asm.role(f"outputs from {i * COLUMNS} on")
            rows = [mem(tap, self.at(r, i * COLUMNS), size=COLUMNS) for r in range(self.repeats)]
            adder.add(sums[SUMS * i : SUMS * (i + 1)], rows)

    def add_lanes(self, adder: "Adder", tap: Any, sums: list[Any]) -> None:
        """What one tap adds to 8 outputs a register."""
        for r in range(self.repeats):
            for i, total in enumerate(sums):
                adder.asm.role(f"repeat {r}, outputs from {i * LANES} on")
                place = StridedPlace(tap, self.at(r, i * LANES), self.src_step)
                adder.add_lanes(total, place, min(LANES, self.outputs - i * LANES), self.dense)

    def add_rows(self, adder: "Adder", tap: Any, sums: list[Any]) -> None:
        """What one tap adds to an output a register; the pointer to it moves along."""
        asm, outputs = adder.asm, range(self.outputs)
        if self.looped_vectors:
            with asm.repeated(self.looped_vectors // self.vectors_a_turn, "vectors left", "vectors"):
                for vector, o in product(range(self.vectors_a_turn), outputs):
                    asm.role(f"output {o}, vector {vector} of a turn")
                    adder.add_bytes(sums[o], StridedPlace(tap, self.at(0, o) + vector * VECTOR_BYTES, 1), VECTOR_BYTES)
                asm.ADD(tap, self.vectors_a_turn * VECTOR_BYTES)
        rest = self.dense - self.looped_vectors * VECTOR_BYTES
        for r, o, at in product(range(self.repeats), outputs, range(0, rest, VECTOR_BYTES)):
            asm.role(f"repeat {r}, output {o}")
            adder.add_bytes(sums[o], StridedPlace(tap, self.at(r, o) + at, 1), min(VECTOR_BYTES, rest - at))

    def store(self, adder: "Adder | ColumnSums", sums: list[Any]) -> None:
        """-factor times the sums."""
        asm, x = adder.asm, adder.x
        dst = asm.gp.take("compensation")
        asm.MOV(dst, mem(asm.frame, WORD_BYTES * COMPENSATION))
        for i, total in enumerate(sums):
            asm.role(f"outputs from {i * LANES} on")
            if self.factor > 1:
                asm.VPSLLD(total, total, self.factor.bit_length() - 1)
            asm.VPXOR(x, x, x)
            asm.VPSUBD(x, x, total)
            place = StridedPlace(dst, i * LANES * self.dst_step, self.dst_step)
            store_elements(adder.dense, place, x, min(LANES, self.outputs - i * LANES), S32_BYTES)


class Adder:
    """Emits additions of bytes to registers of dwords."""

    def __init__(self, v: Vector, x: Any, spare: Any, ones: list[Any]) -> None:
        self.asm, self.x, self.dense = v.asm, x, dense_of(v, spare)
        self.bytes_of_one, self.words_of_one = ones
        for register, one in zip(ones, (b"\1", b"\1\0"), strict=True):
            self.asm.VMOVDQU(
                register, self.asm.const(one * (VECTOR_BYTES // len(one)), VECTOR_BYTES, size=VECTOR_BYTES)
            )

    def loaded(self, place: StridedPlace, count: int, size: int) -> Any:
        """`count` dense elements where an instruction can take them from memory, else in x with zeros after them."""
        if count * size in (VECTOR_BYTES // 2, VECTOR_BYTES) and place.step == size:
            return place.at(0, count * size)
        load_elements(self.dense, self.x, place, count, size)
        return self.x.xmm if count * size <= VECTOR_BYTES // 2 else self.x

    def add_lanes(self, total: Any, place: StridedPlace, count: int, dense: int) -> None:
        """`count` <= 8 groups of `dense` bytes, a lane each."""
        asm, x = self.asm, self.x
        if dense == 1:
            whole = count == LANES and place.step == 1
            asm.VPMOVSXBD(x, place.at(0, LANES) if whole else self.loaded(place, count, 1))
        elif dense == 2:
            asm.VPMADDUBSW(x.xmm, self.bytes_of_one.xmm, self.loaded(place, count, 2))
            asm.VPMOVSXWD(x, x.xmm)
        else:
            self.add_bytes(total, place, count * dense)
            return
        asm.VPADDD(total, total, x)

    def add_bytes(self, total: Any, place: StridedPlace, count: int) -> None:
        """`count` <= 32 dense bytes, four a lane."""
        asm, source = self.asm, self.loaded(replace(place, step=1), count, 1)
        x, ones, words = self.x, self.bytes_of_one, self.words_of_one
        if count <= VECTOR_BYTES // 2:
            x, ones, words = x.xmm, ones.xmm, words.xmm  # the upper half becomes zero
        asm.VPMADDUBSW(x, ones, source)
        asm.VPMADDWD(x, x, words)
        asm.VPADDD(total, total, self.x)


def gathered(asm: Assembler, sums: list[Any], spare: Any) -> Any:
    """The sums of all lanes of 4 or 8 registers as lanes of one."""
    for _ in range(2):  # in each half: pairs, then fours
        for i in range(0, len(sums), 2):
            asm.VPHADDD(sums[i], sums[i], sums[i + 1])
        sums = sums[::2]
    low, high = sums[0], sums[-1]
    if low is high:
        asm.VEXTRACTI128(spare.xmm, low, 1)
    else:
        asm.VPERM2I128(spare, low, high, 0x20)
        asm.VPERM2I128(low, low, high, 0x31)
    asm.VPADDD(low, low, spare)
    return low


def has_lanes(dense: int, src_step: int) -> bool:
    """Whether outputs are a lane each."""
    return dense == 1 or dense == src_step in GROUPS
