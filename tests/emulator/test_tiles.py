"""Tiles of AMX against the Intel manual: configurations, rows at a stride, products, in exact arithmetic."""

from collections.abc import Callable
from struct import pack
from typing import Any

import numpy as np
import pytest

from asmdnn.emulator import EmulationFault, Emulator, MemoryRegion
from asmdnn.emulator.memory import Array
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.tiles import palette
from tests.emulator.test_dots import as_bf16, as_f32, cancelling, denormal, ordinary, pair_of_products, small

FRAME, DATA, CODE = 0x1000, 0x100000, 0x10_0000_0000
SEEDS = pytest.mark.parametrize("seed", range(3))
FULL = [(16, 64)] * 8


def run(emit: Callable[[Assembler, Any, Any], None], data: Array, config: bytes = palette(FULL)) -> Array:
    """`emit` with tiles configured, a pointer to data and a stride of 64; what data is then."""
    asm = Assembler("tiles")
    pointer, stride = asm.gp.take("data"), asm.gp.take("stride")
    asm.MOV(pointer, mem(asm.frame))
    asm.MOV(stride, 64)
    asm.LDTILECFG(asm.const(config, 64, size=64))
    emit(asm, pointer, stride)
    asm.TILERELEASE()
    asm.ret()
    frame = np.frombuffer(DATA.to_bytes(8, "little"), np.uint8)
    after = data.copy()
    emulator = Emulator([MemoryRegion("frame", FRAME, frame), MemoryRegion("data", DATA, after, True, True)])
    emulator.call(asm.finish().data, CODE, FRAME)
    assert {"amx_tile"} <= emulator.features
    return after


def multiplied(mnemonic: str, sums: Array, a: Array, b: Array) -> Array:
    """One product of whole tiles, 1024 bytes each."""

    def emit(asm: Assembler, pointer: Any, stride: Any) -> None:
        for i in range(3):
            asm.TILELOADD(asm.tiles.registers[i], mem(pointer, 1024 * i, index=stride))
        getattr(asm, mnemonic)(*asm.tiles.registers[:3])
        asm.TILESTORED(mem(pointer, 0, index=stride), asm.tiles.registers[0])

    data = np.concatenate([np.ascontiguousarray(x).view(np.uint8).ravel() for x in (sums, a, b)])
    return run(emit, data)[:1024].view(sums.dtype).reshape(16, 16)


@SEEDS
@pytest.mark.parametrize(
    ("mnemonic", "of_a", "of_b"),
    [("TDPBUSD", np.uint8, np.int8), ("TDPBSSD", np.int8, np.int8), ("TDPBSUD", np.int8, np.uint8),
     ("TDPBUUD", np.uint8, np.uint8)],
)  # fmt: skip
def test_bytes(mnemonic: str, of_a: type, of_b: type, seed: int) -> None:
    """Sums are modulo 2^32, also those of the ends of the ranges."""
    rng = np.random.default_rng(seed)
    sums = rng.integers(-(2**31), 2**31, (16, 16)).astype(np.int32)
    a, b = (rng.integers(0, 256, (16, 64)).astype(np.uint8) for _ in range(2))
    a[0], b[:, :4] = 255, 128
    left = a.view(of_a).astype(np.int64)
    right = b.view(of_b).reshape(16, 16, 4).astype(np.int64).transpose(0, 2, 1).reshape(64, 16)
    want = (sums + left @ right).astype(np.uint32).view(np.int32)
    assert np.array_equal(multiplied(mnemonic, sums, a, b), want)


@SEEDS
@pytest.mark.parametrize("of_sums", [ordinary, small, denormal], ids=lambda make: make.__name__)
@pytest.mark.parametrize("of_factors", [ordinary, cancelling, small], ids=lambda make: make.__name__)
def test_bf16(of_factors: Callable[..., Array], of_sums: Callable[..., Array], seed: int) -> None:
    """A chain over the even k and one over the odd k, their sum, and that and what was there; rounded each time."""
    rng = np.random.default_rng(seed)
    sums = of_sums(rng, 256).reshape(16, 16)
    a, b = (as_bf16(of_factors(rng, 512)).reshape(16, 32) for _ in range(2))
    got = multiplied("TDPBF16PS", sums, a, b)
    x, y = as_f32(a), as_f32(b).reshape(16, 16, 2)
    for m, n in ((0, 0), (3, 15), (15, 7)):
        chains = []
        for odd in range(2):
            chain = 0.0
            for k in range(16):
                factors = [[float(x[m, 2 * k + odd]), 0.0], [float(y[k, n, odd]), 0.0]]
                chain = float(pair_of_products(chain, *factors))
            chains.append(chain)
        both = float(pair_of_products(chains[0], [chains[1], 0.0], [1.0, 0.0]))
        want = pair_of_products(float(sums[m, n]), [both, 0.0], [1.0, 0.0])
        assert float(got[m, n]) == float(want), (m, n)


def test_denormal_factors_are_zero() -> None:
    sums = np.zeros((16, 16), np.float32)
    a, b = np.full((16, 32), 1, np.uint16), np.full((16, 32), as_bf16(np.float32([1e30]))[0], np.uint16)
    assert not multiplied("TDPBF16PS", sums, a, b).any()


def test_a_part_of_a_tile_is_loaded_and_stored() -> None:
    """Five rows of 12 bytes: nothing is touched besides, and what the tile has besides is zero."""
    config = palette([(5, 12), (16, 64), *[(0, 0)] * 6])

    def emit(asm: Assembler, pointer: Any, stride: Any) -> None:
        asm.TILELOADDT1(asm.tiles.registers[0], mem(pointer, 8, index=stride))
        asm.TILESTORED(mem(pointer, 512, index=stride), asm.tiles.registers[0])

    data = np.arange(1024, dtype=np.int64).astype(np.uint8)
    want = data.copy()
    for row in range(5):
        want[512 + 64 * row :][:12] = data[8 + 64 * row :][:12]
    assert np.array_equal(run(emit, data, config), want)


def test_a_configuration_is_stored_as_it_was_loaded_and_zeroes_the_tiles() -> None:
    config = palette([(3, 8), *FULL[:7]])

    def emit(asm: Assembler, pointer: Any, stride: Any) -> None:
        asm.STTILECFG(mem(pointer, 0, size=64))
        asm.TILELOADD(asm.tiles.registers[1], mem(pointer, 1024, index=stride))
        asm.LDTILECFG(mem(pointer, 0, size=64))
        asm.TILESTORED(mem(pointer, 1024, index=stride), asm.tiles.registers[1])

    after = run(emit, np.full(2048, 7, np.uint8), config)
    assert after[:64].tobytes() == config
    assert not after[1024:].any()


def test_tiles_that_are_released_have_a_configuration_of_zeros() -> None:
    def emit(asm: Assembler, pointer: Any, stride: Any) -> None:
        asm.TILERELEASE()
        asm.STTILECFG(mem(pointer, 0, size=64))

    assert not run(emit, np.full(64, 7, np.uint8)).any()


def _changed(at: int, value: int) -> bytes:
    config = bytearray(palette(FULL))
    config[at] = value
    return bytes(config)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (_changed(0, 2), "palette 2"),
        (_changed(5, 1), "reserved bytes"),
        (_changed(33, 1), "reserved bytes"),
        (_changed(56, 1), "reserved bytes"),
        (palette([(17, 64), *FULL[1:]]), "tmm0 of 17 rows"),
        (palette([(16, 65), *FULL[1:]]), "tmm0 of 16 rows of 65 bytes"),
        (palette([*FULL[:7], (16, 0)]), "tmm7 of 16 rows of 0 bytes"),
    ],
)
def test_a_bad_configuration_is_told(config: bytes, reason: str) -> None:
    with pytest.raises(EmulationFault, match=rf"{reason}.*#GP"):
        run(lambda asm, pointer, stride: None, np.zeros(64, np.uint8), config)


def _product(a: int, b: int, c: int) -> Callable[[Assembler, Any, Any], None]:
    return lambda asm, pointer, stride: asm.TDPBUSD(*(asm.tiles.registers[i] for i in (a, b, c)))


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        ([(16, 64), (16, 60), (16, 64)], "16x64, 16x60 and 16x64"),
        ([(16, 64), (8, 64), (16, 64)], "do not fit"),
        ([(16, 32), (16, 64), (16, 64)], "do not fit"),
        ([(16, 6), (16, 64), (16, 6)], "do not fit"),
        ([(16, 64), (16, 64), (0, 0)], "tmm2, which has no rows"),
    ],
)
def test_products_that_do_not_fit_are_told(shapes: list[tuple[int, int]], reason: str) -> None:
    with pytest.raises(EmulationFault, match=reason):
        run(_product(0, 1, 2), np.zeros(64, np.uint8), palette([*shapes, *FULL[:5]]))


def test_tiles_without_a_configuration_are_told() -> None:
    def emit(asm: Assembler, pointer: Any, stride: Any) -> None:
        asm.TILERELEASE()
        asm.TILEZERO(asm.tiles.registers[0])

    with pytest.raises(EmulationFault, match="not configured"):
        run(emit, np.zeros(64, np.uint8))


def test_rows_after_the_buffer_are_told() -> None:
    def emit(asm: Assembler, pointer: Any, stride: Any) -> None:
        asm.TILELOADD(asm.tiles.registers[0], mem(pointer, 1, index=stride))

    with pytest.raises(EmulationFault, match="past the end"):
        run(emit, np.zeros(1024, np.uint8))


def test_tiles_left_configured_are_told() -> None:
    asm = Assembler("left")
    asm.LDTILECFG(asm.const(palette(FULL), 64, size=64))
    asm.ret()
    with pytest.raises(EmulationFault, match="no TILERELEASE"):
        Emulator([]).call(asm.finish().data, CODE, FRAME)


def test_the_bytes_of_a_palette() -> None:
    """Palette, start row, 14 reserved; bytes of rows, 16 words, of which 8 count; rows, 16 bytes."""
    found = palette([(i + 1, 4 * i + 4) for i in range(8)])
    words, rows = [4 * i + 4 for i in range(8)], [i + 1 for i in range(8)]
    assert found == pack("<16B16H16B", 1, *[0] * 15, *words, *[0] * 8, *rows, *[0] * 8)
