"""Shuffle kernels against a loop over their spec: any tile, any number of pixels, nothing but what is claimed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmdnn.corpus.shuffle import ShuffleKernel, interleave, interleaved, of_pixels
from asmdnn.generators.move.rows import RowsSpec, cover
from asmdnn.generators.move.shuffle import ShuffleSpec
from asmdnn.generators.move.shuffle_body import Part, Tile
from asmdnn.generators.move.shuffle_elements import ElementsSpec
from asmdnn.generators.move.shuffle_network import ZERO, GatherUnits, Unpack, best, dword_steps, gather_cost
from asmdnn.generators.stretches import merged
from asmdnn.isa.assembler import Assembler
from asmdnn.jit.executable import ExecutableMemory
from asmdnn.jit.native import ffi
from tests.generators.references.shuffle import moved

REACH = 1 << 14  # bytes of src and dst


def execute(spec: ShuffleKernel, src: np.ndarray, dst: np.ndarray) -> None:
    asm = Assembler(spec.name)
    spec.generate(asm)
    memory = ExecutableMemory([asm.finish().data])
    frame = ffi.new("int64_t[]", [src.ctypes.data, dst.ctypes.data])
    ffi.cast("void (*)(const int64_t *)", memory.addresses[0])(frame)


def check(spec: ShuffleKernel) -> None:
    """Run it with src and dst aligned to 32 bytes, and not."""
    for shift in (0, 1):
        check_at(spec, shift)


def aligned(shift: int, random: np.random.Generator) -> np.ndarray:
    raw = random.integers(0, 256, REACH + 64, np.uint8)
    start = -raw.ctypes.data % 32 + shift
    return raw[start : start + REACH]


def check_at(spec: ShuffleKernel, shift: int) -> None:
    random = np.random.default_rng(7)
    src, dst = aligned(shift, random), aligned(shift, random)
    wanted = dst.copy()
    read, written = np.zeros(REACH, bool), np.zeros(REACH, bool)
    for s, d, size in moved(spec):
        wanted[d : d + size] = src[s : s + size] if s >= 0 else 0
        written[d : d + size] = True
        read[s : s + size] |= s >= 0
    execute(spec, src, dst)
    assert np.array_equal(dst, wanted)
    footprint = spec.footprint()
    claims = [np.zeros(REACH, bool) for _ in range(2)]
    for ranges, claim, argument in ((footprint.reads, claims[0], 0), (footprint.writes, claims[1], 1)):
        for r in ranges:
            assert r.argument == argument
            claim[r.begin_bytes : r.end_bytes] = True
    assert np.array_equal(claims[1], written)
    assert not (read & ~claims[0]).any()  # a window may hold more than is used


@st.composite
def shuffle_specs(draw: st.DrawFn) -> ShuffleSpec:
    element = draw(st.sampled_from((1, 2, 4)))
    unit = draw(st.sampled_from((16, 16, 8, 4)))
    unit = max(unit, 2 * element)
    parts, dst = [], 0
    for _ in range(draw(st.integers(1, 2))):
        windows = draw(st.lists(st.integers(0, 20), min_size=1, max_size=20))
        origins = st.sampled_from([ZERO, *range(0, unit * len(windows), element)])
        units = draw(st.integers(1, 9))
        lanes = tuple(tuple(draw(origins) for _ in range(unit // element)) for _ in range(units))
        count = draw(st.sampled_from((1, 1, 3)))
        tile = Tile(tuple(windows), tuple(unit * k for k in range(units)), lanes)
        parts.append(Part(tile, draw(st.integers(0, 9)), dst, count, draw(st.integers(0, 40)), unit * units))
        dst += unit * units * count
    pixels = draw(st.integers(1, 17))
    if unit < 16:  # pixels of a unit lie together, so there is but one
        lanes = (parts[0].tile.lanes[0],)
        tile = Tile(parts[0].tile.windows, (0,), lanes)
        return ShuffleSpec(
            isa="avx2", element_bytes=element, unit_bytes=unit, pixels=pixels, pixel_bytes=unit,
            parts=(Part(tile, 3, 5),),
        )  # fmt: skip
    return ShuffleSpec(
        isa="avx2", element_bytes=element, unit_bytes=unit, pixels=draw(st.integers(1, 4)),
        pixel_bytes=dst + draw(st.integers(0, 50)), parts=tuple(parts),
    )  # fmt: skip


@pytest.mark.isa("avx2")
@settings(max_examples=80, deadline=None, derandomize=True)
@given(shuffle_specs())
def test_any_tile(spec: ShuffleSpec) -> None:
    check(spec)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("element_bytes", (1, 2, 4))
@pytest.mark.parametrize("rows", (1, 2, 3, 4, 5, 6, 7, 8, 12, 28))  # 28 units are more than registers
def test_interleaves(rows: int, element_bytes: int) -> None:
    for pixels in (1, 2, 5):
        check(of_pixels(element_bytes, interleaved(rows, element_bytes), pixels))


@pytest.mark.isa("avx2")
def test_streaming_stores() -> None:
    for element_bytes in (1, 2, 4):
        tile = Tile((0, 64, 128), (0, 16, 32), interleave(3, element_bytes))
        whole = Tile((3,), (0,), (tuple(reversed(range(0, 16, element_bytes))),))
        for pixels in (1, 2, 7):
            check(of_pixels(element_bytes, tile, pixels, streaming=True))
            check(of_pixels(element_bytes, whole, pixels, streaming=True))
    check(
        ShuffleSpec(
            isa="avx2",
            element_bytes=1,
            unit_bytes=8,
            pixels=7,
            pixel_bytes=8,
            parts=(Part(Tile((3,), (0,), (tuple(range(7, -1, -1)),))),),
            streaming=True,
        )
    )
    for row_bytes in (32, 512, 544, 3136):
        check(
            RowsSpec(
                isa="avx2", rows=3, row_bytes=row_bytes, src_step=row_bytes + 7, dst_step=row_bytes + 32, streaming=True
            )
        )


def test_interleaves_of_powers_of_two_are_unpacked() -> None:
    """As many instructions a unit as there are levels; three rows of bytes are a gather, of six one level less."""
    for element_bytes in (1, 2, 4):
        for levels in (1, 2):
            network = best(interleave(2**levels, element_bytes), element_bytes)
            assert isinstance(network, Unpack)
            assert network.cost == levels * 2**levels
    assert best(interleave(8, 1), 1).cost == 3 * 8
    assert isinstance(best(interleave(3, 1), 1), GatherUnits)
    assert best(interleave(6, 1), 1).cost == 6 + 6 * gather_cost(interleave(3, 1)[0], 1, 16)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(range(0, 96, 4)), min_size=4, max_size=4))
def test_dword_steps_compute_the_unit(lanes: list[int]) -> None:
    def shufps(a: list[int], b: list[int], control: int) -> list[int]:
        return [(a, a, b, b)[k][control >> 2 * k & 3] for k in range(4)]

    results: list[list[int]] = []
    for step in dword_steps(tuple(lanes)):
        a, b = ([16 * op + 4 * i for i in range(4)] if op >= 0 else results[~op] for op in (step.a, step.b))
        results.append(shufps(a, b, step.control))
    assert results[-1] == lanes
    assert len(results) <= 3


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("zero", (False, True))
def test_rows(zero: bool) -> None:
    for row_bytes in (*range(1, 70), 511, 512, 513, 1024, 1025, 1500):
        check(
            RowsSpec(isa="avx2", rows=3, row_bytes=row_bytes, src_step=row_bytes + 7, dst_step=row_bytes + 2, zero=zero)
        )


def test_a_row_is_covered_and_not_left() -> None:
    for start in (0, 512):
        for count in range(1, 600):
            moves = list(cover(start, count))
            assert merged((at, at + size) for at, size in moves)[-1][1] == start + count
            assert min(at for at, _ in moves) >= 0
            assert set(range(start, start + count)) <= {b for at, size in moves for b in range(at, at + size)}


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("element_bytes", (1, 2, 4))
def test_elements(element_bytes: int) -> None:
    moves = tuple((element_bytes * (7 * k % 19), element_bytes * k) for k in range(19))
    for count in (1, 5):
        check(ElementsSpec(isa="avx2", element_bytes=element_bytes, count=count, step=20 * element_bytes, moves=moves))
