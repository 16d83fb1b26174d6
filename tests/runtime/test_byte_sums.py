"""Sums of bytes: the products that they are made of, by numpy, at every level; and what changes them."""

from hashlib import sha256

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.dot.byte_sums import BLOCK_BYTES, COLUMNS, ROW_BYTES, ROW_WORDS, ByteSumsSpec
from asmdnn.isa.levels import LEVELS
from asmdnn.proof.contracts import kernel_of
from asmdnn.proof.prove import prove
from asmdnn.runtime.byte_sums import byte_sum, matrix, products

DATA = np.random.default_rng(30).integers(0, 256, 2 * BLOCK_BYTES + 1000).astype(np.uint8)
EVERY_LEVEL = [pytest.param(isa.name, marks=pytest.mark.isa(isa.name)) for isa in LEVELS]


def defined(data: np.ndarray) -> bytes:
    """In integers of 64 bits, of which the lower half counts."""
    whole = len(data) // BLOCK_BYTES * BLOCK_BYTES
    weights = matrix().view(np.int8).reshape(-1, COLUMNS, 2).swapaxes(1, 2).reshape(ROW_WORDS, COLUMNS)
    words = data[:whole].view(np.int16).reshape(-1, ROW_WORDS)
    sums = words.astype(np.int64) @ weights.astype(np.int64) & 0xFFFF_FFFF
    parts = (len(data).to_bytes(8, "little"), sums.astype(np.uint32).tobytes(), data[whole:].tobytes())
    return sha256(b"".join(parts)).digest()


@pytest.mark.parametrize("size", [0, 1, 1000, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, len(DATA)])
def test_the_definition(size: int) -> None:
    assert byte_sum(DATA[:size]) == defined(DATA[:size])


@pytest.mark.parametrize("isa", EVERY_LEVEL)
def test_levels_have_equal_sums(isa: str) -> None:
    with dnn.max_cpu_isa(isa):  # type: ignore[arg-type]
        assert byte_sum(DATA) == defined(DATA)


@pytest.mark.parametrize("word", [-0x8000, 0x7FFF, -1])
def test_large_sums_are_cut(word: int) -> None:
    full = np.full(BLOCK_BYTES // 2, word, np.int16).view(np.uint8)
    assert byte_sum(full) == defined(full)


def test_where_bytes_lie_does_not_matter() -> None:
    shifted = np.empty(len(DATA) + 3, np.uint8)[3:]
    shifted[:] = DATA
    frozen = DATA.tobytes()
    assert {byte_sum(x) for x in (DATA, shifted, frozen, memoryview(frozen), DATA.reshape(-1, 8))} == {byte_sum(DATA)}


def test_what_changes_a_sum() -> None:
    sums = [byte_sum(DATA), byte_sum(DATA[:-1]), byte_sum(np.append(DATA, np.uint8(0)))]
    for at in (0, ROW_BYTES - 1, ROW_BYTES, BLOCK_BYTES - 1, BLOCK_BYTES, 2 * BLOCK_BYTES, len(DATA) - 1):
        for bit in range(8):
            changed = DATA.copy()
            changed[at] ^= 1 << bit
            sums.append(byte_sum(changed))
    rows = DATA[: 2 * BLOCK_BYTES].reshape(-1, ROW_BYTES)
    sums += [byte_sum(rows), byte_sum(rows[::-1].copy()), byte_sum(np.roll(rows, 1, axis=1))]
    assert len(set(sums)) == len(sums)


def test_nearly_all_columns_see_a_byte() -> None:
    """The numbers of a row of the matrix are as random ones: no byte has few columns that depend on it."""
    dependent = np.count_nonzero(matrix().reshape(-1, COLUMNS, 2), axis=1)
    assert dependent.min() >= COLUMNS - 4


def test_a_call_reads_a_block() -> None:
    of = ByteSumsSpec().footprint()
    ends = [(r.argument, r.begin_bytes, r.end_bytes) for r in of.reads]
    assert max(end for argument, _, end in ends if argument == 0) == BLOCK_BYTES
    assert min(begin for _, begin, _ in ends) == 0
    assert max(end for argument, _, end in ends if argument == 1) == matrix().nbytes
    assert max(r.end_bytes for r in of.writes) == BLOCK_BYTES // ROW_BYTES * COLUMNS * 4


def test_products_of_no_block() -> None:
    assert products(DATA[:0]).shape == (0, COLUMNS)


def test_the_kernel_is_proved() -> None:
    assert prove(kernel_of(ByteSumsSpec())) == 0
