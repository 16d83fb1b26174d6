"""The functions of examples/asm, emulated at every level, give what Python gives, whatever this CPU has."""

import base64
import hashlib
import zlib
from typing import Any

import numpy as np
import pytest

pytest.importorskip("iced_x86", reason="the emulator decodes with it: pip install iced-x86")

from asmdnn.asm import CFunction
from examples.asm import (
    base64_text,
    crc32,
    fft16,
    gemm,
    histogram,
    interpreter,
    memory,
    prefix_sum,
    sha256,
    sort16,
    utf8,
)
from examples.asm import transpose as transposing

TAILS = (0, 1, 2, 3, 7, 31, 32, 33, 47, 48, 49, 100, 131, 300)


def bytes_of(n: int) -> Any:
    return np.random.default_rng(n).integers(0, 256, n, np.uint8)


@pytest.mark.parametrize("n", TAILS)
def test_memory(n: int) -> None:
    src, dst = bytes_of(n), np.zeros(n, np.uint8)
    memory.copy.emulate(dst, src, n)
    assert (dst == src).all()
    text = np.maximum(src, 1)
    assert memory.length.emulate(text, n).result == n
    if n:
        text[2 * n // 3] = 0
        assert memory.length.emulate(text, n).result == 2 * n // 3


@pytest.mark.parametrize("encode", [base64_text.by_products, base64_text.by_bytes], ids=["avx2", "avx512"])
@pytest.mark.parametrize("n", TAILS)
def test_base64(encode: CFunction, n: int) -> None:
    data, text = bytes_of(n), np.zeros((n + 2) // 3 * 4, np.uint8)
    call = encode.emulate(data, n, text)
    assert text.tobytes() == base64.b64encode(data.tobytes())
    assert call.touched["text"] == (0, text.size)


@pytest.mark.parametrize("crc", [crc32.by_16, crc32.by_64], ids=["avx2", "avx512"])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 63, 64, 65, 255, 256, 257, 700])
def test_crc32(crc: CFunction, n: int) -> None:
    data = bytes_of(n)
    assert crc.emulate(0, data, n).result == zlib.crc32(data)
    assert crc.emulate(0xDEAD_BEEF, data, n).result == zlib.crc32(data, 0xDEAD_BEEF)


def test_sha256() -> None:
    data = b"abc" + b"\x80" + bytes(52) + (24).to_bytes(8, "big")
    state = sha256.START.copy()
    sha256.compress.emulate(state, np.frombuffer(data, np.uint8), 1)
    assert state.astype(">u4").tobytes() == hashlib.sha256(b"abc").digest()


@pytest.mark.parametrize("sort", [sort16.in_one, sort16.in_two], ids=["avx512", "avx2"])
def test_sort(sort: CFunction) -> None:
    """All patterns of zeros and ones would prove a network; here some of them, and numbers with equal ones."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.integers(0, 2, (20, 16)), rng.integers(-9, 9, (5, 16))]).astype(np.float32)
    found = rows.copy()
    sort.emulate(found.ravel(), len(rows))
    assert (found == np.sort(rows, axis=1)).all()


@pytest.mark.parametrize(
    "text", ["", "plain", "é" * 40, "a" * 63 + "€", "😀" * 30, "x" * 31 + "é" + "y" * 31], ids=range(6)
)
def test_utf8(text: str) -> None:
    data = np.frombuffer(text.encode(), np.uint8)
    assert utf8.valid.emulate(data, data.size).result == 1
    if data.size > len(text):  # without its last byte a letter is too short
        assert utf8.valid.emulate(data[:-1], data.size - 1).result == (text[-1] == "y")


WRONG = (b"\xc0\x80", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80",
         b"\xf5\x80\x80\x80", b"\x80", b"\xe2\x28\xa1", b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98")  # fmt: skip


@pytest.mark.parametrize("before", [0, 1, 30, 31, 32, 61, 62, 63, 64, 95])
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_utf8(wrong: bytes, before: int) -> None:
    """Overlong forms, surrogates, too large, too short, lone bytes: at every place of a block, and followed by more."""
    for behind in (0, 1, 40):
        data = np.frombuffer(b"a" * before + wrong + b"b" * behind, np.uint8)
        assert utf8.valid(data, data.size) == 0, behind


def test_every_letter_is_utf8() -> None:
    letters = "".join(chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000).encode()
    assert utf8.valid(np.frombuffer(letters, np.uint8), len(letters)) == 1


def test_prefix_sum() -> None:
    for n in (0, 1, 8, 9, 40):
        x, sums = np.arange(n, dtype=np.int32) * 3 - 20, np.zeros(n, np.int32)
        prefix_sum.prefix.emulate(x, sums, n)
        assert (sums == np.cumsum(x)).all()


def test_transpose() -> None:
    x, y = np.arange(16 * 24, dtype=np.float32), np.zeros(16 * 24, np.float32)
    transposing.transpose.emulate(x, y, 2, 3)
    assert (y.reshape(24, 16) == x.reshape(16, 24).T).all()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_fft(n: int) -> None:
    """Of a pulse: every result has magnitude one, and the bound of fft16's comparison."""
    x, y = np.zeros(32 * n, np.float32), np.zeros(32 * n, np.float32)
    x.reshape(n, 32)[:, 2] = 1  # x[1] = 1
    fft16.fft16.emulate(x, y, n)
    wanted = np.exp(-2j * np.pi / 16 * np.arange(16))
    assert np.abs(y.view(np.complex64).reshape(n, 16) - wanted).max() < 6 * 2**-24


def test_histogram() -> None:
    data, counts = bytes_of(100), np.ones(1024, np.uint32)
    histogram.histogram.emulate(data, 100, counts)
    assert (counts[:256] == np.bincount(data, minlength=256)).all()


def test_interpreter() -> None:
    program, cells = np.array(interpreter.SQUARES, np.int64), np.zeros(interpreter.CELLS, np.int64)
    cells[0] = 5
    assert interpreter.run.emulate(program, program.size, cells, 1000).result == 55


@pytest.mark.parametrize(("title", "tile"), gemm.STEPS, ids=range(2, 8))
def test_gemm_of_no_depth_and_more(title: str, tile: gemm.Tile) -> None:
    function = gemm.tiled(tile)
    if function.runs_here:
        gemm.check(function, tile)
    a, b, c = np.ones(96, np.float32), np.arange(96, dtype=np.float32), np.zeros(96 * 96, np.float32)
    function.emulate(a, b, c, 1)
    assert (c.reshape(96, 96) == b).all()
