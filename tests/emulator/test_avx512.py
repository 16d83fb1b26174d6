"""AVX-512 instructions against their definitions in the Intel manual, written here lane by lane."""

from collections.abc import Callable

import numpy as np
import pytest

from asmdnn.emulator.cpu import mask_value
from asmdnn.emulator.memory import Array
from tests.emulator.assembling import Mem, ins
from tests.emulator.single import State, after, random_state

SIZES = {"X": 16, "Y": 32, "Z": 64}
WIDTHS = pytest.mark.parametrize("width", ["X", "Y", "Z"])
SEEDS = pytest.mark.parametrize("seed", range(3))


def run(seed: int, code: str, *operands: str | int | Mem, mask: str = "", zeroing: bool = False,
        change: Callable[[State], None] = lambda state: None) -> tuple[State, State]:  # fmt: skip
    """The state before, random and then changed, and after."""
    state = random_state(np.random.default_rng(seed))
    change(state)
    return state, after(ins(code, *operands, mask=mask, zeroing=zeroing), state)


def registers(width: str) -> list[str]:
    return [f"{width.lower()}mm{i}" for i in (17, 5, 30)]


def lanes(state: State, width: str, dtype: type = np.uint32) -> list[Array]:
    return [state.vectors[i, : SIZES[width]].view(dtype) for i in (17, 5, 30)]


@WIDTHS
@SEEDS
@pytest.mark.parametrize(("kind", "dtype"), [("PS", np.uint32), ("PD", np.uint64), ("D", np.uint32), ("Q", np.uint64)])
def test_permute_of_two_tables(kind: str, dtype: type, width: str, seed: int) -> None:
    form = f"{width}MM_K1Z_{width}MM_{width}MMM{SIZES[width] * 8}B{np.dtype(dtype).itemsize * 8}"
    for letter in "IT":
        before, got = run(seed, f"EVEX_VPERM{letter}2{kind}_{form}", *registers(width))
        first, second, third = (x.tolist() for x in lanes(before, width, dtype))
        index, table = (first, second + third) if letter == "I" else (second, first + third)
        assert lanes(got, width, dtype)[0].tolist() == [table[i % len(table)] for i in index]


@SEEDS
@pytest.mark.parametrize(("name", "dtype"), [("VPERMPS", np.uint32), ("VPERMD", np.uint32), ("VPERMPD", np.uint64),
                                             ("VPERMQ", np.uint64)])  # fmt: skip
def test_permute(name: str, dtype: type, seed: int) -> None:
    bits = np.dtype(dtype).itemsize * 8
    before, got = run(seed, f"EVEX_{name}_ZMM_K1Z_ZMM_ZMMM512B{bits}", *registers("Z"))
    _, index, table = lanes(before, "Z", dtype)
    assert lanes(got, "Z", dtype)[0].tolist() == [table[i % len(table)] for i in index.tolist()]
    if bits == 64:
        before, got = run(seed, f"EVEX_{name}_ZMM_K1Z_ZMMM512B64_IMM8", "zmm17", "zmm5", 0b11_00_01_10)
        want = lanes(before, "Z", dtype)[1].reshape(2, 4)[:, [2, 1, 0, 3]].ravel()
        assert np.array_equal(lanes(got, "Z", dtype)[0], want)


@pytest.mark.parametrize("imm", [0, 0b01_11_10_00, 0b00_01_10_11, 255])
@pytest.mark.parametrize(("name", "bits"), [("VSHUFF32X4", 32), ("VSHUFI32X4", 32), ("VSHUFF64X2", 64),
                                            ("VSHUFI64X2", 64)])  # fmt: skip
def test_shuffle_of_128_bit_pieces(name: str, bits: int, imm: int) -> None:
    before, got = run(1, f"EVEX_{name}_ZMM_K1Z_ZMM_ZMMM512B{bits}_IMM8", *registers("Z"), imm)
    _, a, b = (x.reshape(4, 4) for x in lanes(before, "Z"))
    want = [a[imm & 3], a[imm >> 2 & 3], b[imm >> 4 & 3], b[imm >> 6]]
    assert np.array_equal(lanes(got, "Z")[0].reshape(4, 4), want)
    before, got = run(1, f"EVEX_{name}_YMM_K1Z_YMM_YMMM256B{bits}_IMM8", *registers("Y"), imm)
    _, a, b = (x.reshape(2, 4) for x in lanes(before, "Y"))
    assert np.array_equal(lanes(got, "Y")[0].reshape(2, 4), [a[imm & 1], b[imm >> 1 & 1]])


@pytest.mark.parametrize("imm", range(4))
@pytest.mark.parametrize("kind", ["F32X4", "I32X4", "F64X2", "I64X2", "F32X8", "I32X8", "F64X4", "I64X4"])
def test_insert_and_extract(kind: str, imm: int) -> None:
    size = int(kind[1:3]) // 8 * int(kind[4])
    part, memory = {16: ("xmm", "XMMM128"), 32: ("ymm", "YMMM256")}[size]
    at = imm % (64 // size) * size
    before, got = run(2, f"EVEX_VINSERT{kind}_ZMM_K1Z_ZMM_{memory}_IMM8", "zmm17", "zmm5", f"{part}30", imm)
    want = before.vectors[5].copy()
    want[at : at + size] = before.vectors[30, :size]
    assert np.array_equal(got.vectors[17], want)
    before, got = run(2, f"EVEX_VEXTRACT{kind}_{memory}_K1Z_ZMM_IMM8", f"{part}5", "zmm5", imm)
    assert got.vectors[5].tolist() == [*before.vectors[5, at : at + size], *[0] * (64 - size)]


@WIDTHS
@pytest.mark.parametrize("imm", [0, 1, 7, 200])
def test_align(width: str, imm: int) -> None:
    form = f"EVEX_VALIGND_{width}MM_K1Z_{width}MM_{width}MMM{SIZES[width] * 8}B32_IMM8"
    before, got = run(3, form, *registers(width), imm)
    _, high, low = (x.tolist() for x in lanes(before, width))
    first = imm % len(low)
    assert lanes(got, width)[0].tolist() == (low + high)[first : first + len(low)]


@pytest.mark.parametrize(("kind", "size"), [("F32X4", 16), ("I32X4", 16), ("F64X2", 16), ("F32X8", 32), ("I32X8", 32),
                                            ("F64X4", 32), ("I64X4", 32)])  # fmt: skip
def test_broadcast_of_pieces(kind: str, size: int) -> None:
    before, got = run(4, f"EVEX_VBROADCAST{kind}_ZMM_K1Z_M{size * 8}", "zmm17", Mem("rcx", 40))
    assert np.array_equal(got.vectors[17], np.tile(before.memory[40 : 40 + size], 64 // size))


@pytest.mark.parametrize(("letter", "size"), [("B", 1), ("W", 2), ("D", 4), ("Q", 8)])
def test_broadcast_of_general_registers(letter: str, size: int) -> None:
    register = "r9" if size == 8 else "r9d"
    before, got = run(5, f"EVEX_VPBROADCAST{letter}_ZMM_K1Z_R{64 if size == 8 else 32}", "zmm17", register)
    assert got.vectors[17].tobytes() == before.gpr[9].to_bytes(8, "little")[:size] * (64 // size)


@SEEDS
@pytest.mark.parametrize("predicate", range(32))
def test_float_compare(predicate: int, seed: int) -> None:
    """The table of the manual: for each predicate the answer to greater, less, equal, unordered."""
    answers = ("001", "010", "011", "000u", "110u", "101u", "100u", "111",
               "001u", "010u", "011u", "000", "110", "101", "100", "111u")[predicate % 16]  # fmt: skip

    def collide(state: State) -> None:
        state.lanes(30, np.uint32)[::3] = state.lanes(5, np.uint32)[::3]

    before, got = run(seed, "EVEX_VCMPPS_KR_K1_ZMM_ZMMM512B32_IMM8_SAE", "k2", "zmm5", "zmm30", predicate, mask="k6",
                      change=collide)  # fmt: skip
    want = 0
    for i, (a, b) in enumerate(zip(before.lanes(5, np.float32).tolist(), before.lanes(30, np.float32).tolist(),
                                   strict=True)):  # fmt: skip
        yes = "u" in answers if a != a or b != b else answers[0 if a > b else 1 if a < b else 2] == "1"
        want |= (yes and before.k[6] >> i & 1) << i
    assert got.k[2] == want


@pytest.mark.parametrize("predicate", range(8))
def test_integer_compare(predicate: int) -> None:
    relation = [lambda a, b: a == b, lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: False,
                lambda a, b: a != b, lambda a, b: a >= b, lambda a, b: a > b, lambda a, b: True][predicate]  # fmt: skip
    for name, dtype in (("VPCMPD", np.int32), ("VPCMPUD", np.uint32)):
        form = f"EVEX_{name}_KR_K1_ZMM_ZMMM512B32_IMM8"
        before, got = run(6, form, "k1", "zmm5", Mem("rcx", 64, broadcast=True), predicate)
        element = before.memory.view(dtype)[16].item()
        want = [relation(a, element) for a in before.lanes(5, dtype).tolist()]
        assert got.k[1] == mask_value(np.array(want))


def test_mask_tests() -> None:
    for name, sense in (("VPTESTMD", True), ("VPTESTNMD", False)):
        before, got = run(7, f"EVEX_{name}_KR_K1_ZMM_ZMMM512B32", "k3", "zmm5", "zmm30")
        both = before.lanes(5, np.uint32) & before.lanes(30, np.uint32)
        assert got.k[3] == mask_value((both != 0) == sense)


@pytest.mark.parametrize("zeroing", [False, True])
def test_blend(zeroing: bool) -> None:
    for name in ("VBLENDMPS", "VPBLENDMD"):
        form = f"EVEX_{name}_ZMM_K1Z_ZMM_ZMMM512B32"
        before, got = run(8, form, *registers("Z"), mask="k4", zeroing=zeroing)
        _, a, b = lanes(before, "Z")
        want = [y if before.k[4] >> i & 1 else 0 if zeroing else x for i, (x, y) in enumerate(zip(a, b, strict=True))]
        assert lanes(got, "Z")[0].tolist() == want


@pytest.mark.parametrize("table", [0x00, 0xFF, 0x96, 0xCA, 0xE8, 0x1B])
def test_ternary_logic(table: int) -> None:
    before, got = run(9, "EVEX_VPTERNLOGD_ZMM_K1Z_ZMM_ZMMM512B32_IMM8", *registers("Z"), table)
    a, b, c = (np.unpackbits(x.view(np.uint8)).astype(int) for x in lanes(before, "Z"))
    want = table >> (4 * a + 2 * b + c) & 1
    assert np.array_equal(np.unpackbits(got.vectors[17]), want)


@pytest.mark.parametrize("pair", ["DB", "DW", "WB", "QD", "QW", "QB"])
@pytest.mark.parametrize("kind", ["", "S", "US"])
def test_narrowing(kind: str, pair: str) -> None:
    bits = {"B": 8, "W": 16, "D": 32, "Q": 64}
    wide, narrow = bits[pair[0]], bits[pair[1]]
    size = 512 // wide * narrow
    operand = {64: "XMMM64", 128: "XMMM128", 256: "YMMM256"}[size]

    def shrink(state: State) -> None:  # so that some values fit
        state.lanes(5, np.dtype(f"i{wide // 8}").type)[::2] //= 1 << wide - narrow + 2

    form = f"EVEX_VPMOV{kind}{pair}_{operand}_K1Z_ZMM"
    before, got = run(10, form, f"{operand[0].lower()}mm17", "zmm5", change=shrink)
    signed = "u" if kind == "US" else "i"
    low, high = {"": (None, None), "S": (-(1 << narrow - 1), (1 << narrow - 1) - 1), "US": (0, (1 << narrow) - 1)}[kind]
    values = before.lanes(5, np.dtype(f"{signed}{wide // 8}").type).tolist()
    want = [(v if low is None else min(max(v, low), high)) & (1 << narrow) - 1 for v in values]
    count = len(values)
    assert got.lanes(17, np.dtype(f"u{narrow // 8}").type)[:count].tolist() == want
    assert not got.vectors[17, size // 8 :].any()


@pytest.mark.parametrize("pair", ["BW", "BD", "BQ", "WD", "WQ", "DQ"])
def test_widening(pair: str) -> None:
    bits = {"B": 8, "W": 16, "D": 32, "Q": 64}
    narrow, wide = (bits[letter] for letter in pair)
    operand = {64: "XMMM64", 128: "XMMM128", 256: "YMMM256"}[512 // wide * narrow]
    for kind, signed in (("Z", "u"), ("S", "i")):
        before, got = run(11, f"EVEX_VPMOV{kind}X{pair}_ZMM_K1Z_{operand}", "zmm17", f"{operand[0].lower()}mm5")
        source = before.lanes(5, np.dtype(f"{signed}{narrow // 8}").type)[: 512 // wide]
        assert got.lanes(17, np.dtype(f"{signed}{wide // 8}").type).tolist() == source.tolist()


def test_float_conversions_at_512_bits() -> None:
    before, got = run(12, "EVEX_VCVTPH2PS_ZMM_K1Z_YMMM256_SAE", "zmm17", "ymm5")
    want = before.lanes(5, np.float16)[:16].astype(np.float32)
    assert np.array_equal(got.lanes(17, np.float32), want, equal_nan=True)
    before, got = run(12, "EVEX_VCVTPS2PH_YMMM256_K1Z_ZMM_IMM8_SAE", "ymm17", "zmm5", 4)
    with np.errstate(over="ignore"):
        half = before.lanes(5, np.float32).astype(np.float16)
    assert np.array_equal(got.lanes(17, np.float16)[:16], half, equal_nan=True)
    before, got = run(12, "EVEX_VCVTPS2PD_ZMM_K1Z_YMMM256B32_SAE", "zmm17", "ymm5")
    double = before.lanes(5, np.float32)[:8].astype(np.float64)
    assert np.array_equal(got.lanes(17, np.float64), double, equal_nan=True)
