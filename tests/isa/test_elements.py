"""Elements of every type in vectors of both widths, on an emulated CPU: the values, and each byte that is touched."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from asmdnn.emulator import Emulator, MemoryRegion
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.element import SPARE, Element
from asmdnn.isa.elements import NUMBERS, element_of, native_element
from asmdnn.isa.pieces import broadcast_bytes, load_bytes, low_part, store_bytes
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.types import DATA_TYPES, DataType
from tests.primitives.reorder_numbers import bits, decoded, encoded, telling
from tests.support.arena import Bytes, decode

LEVELS = ("avx2", "avx512_core")
FRAME, SRC, DST, CODE = 0x10_0000, 0x20_0000, 0x30_0000, 0x7F00_0000_0000
PARTS = [(isa, count) for isa in LEVELS for count in (1, 3, 4, 7, 8, 15, 16) if count <= lanes_of(isa)]
Numbers = npt.NDArray[Any]


def run(isa: str, src: Bytes, emit: Callable[[Vector, object, object], None]) -> tuple[Bytes, Bytes, Bytes]:
    """What is left in dst, one vector, and which bytes of src were read, of dst written; `emit` gets their pointers."""
    asm = Assembler("elements")
    v = vector_of(isa, asm)
    pointers = [asm.gp.take(name) for name in ("src", "dst")]
    for i, pointer in enumerate(pointers):
        asm.MOV(pointer, mem(asm.frame, 8 * i))
    emit(v, *pointers)
    asm.ret()
    dst, frame = np.zeros(64, np.uint8), np.array([SRC, DST], np.int64).view(np.uint8)
    operands = [MemoryRegion("src", SRC, src), MemoryRegion("dst", DST, dst, True, True)]
    machine = Emulator([*operands, MemoryRegion("frame", FRAME, frame)], record=True)
    machine.call(asm.finish().data, CODE, FRAME)
    assert machine.footprints is not None
    return dst[: v.bytes], machine.footprints["src"].read, machine.footprints["dst"].written


def octets(count: int) -> Bytes:
    return np.random.default_rng(count).integers(0, 256, count).astype(np.uint8)


@pytest.mark.parametrize("number", [0, -1], ids=["first", "last"])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("isa", LEVELS)
def test_broadcast_of_bytes(isa: str, count: int, number: int) -> None:
    """Into a register of either end of the file: AVX-512 has some that other encodings do not reach."""
    src = octets(count)

    def emit(v: Vector, source: object, target: object) -> None:
        x = v.registers.take("all", v.registers.available)[number]
        broadcast_bytes(v, x, mem(source, size=4), count)  # type: ignore[arg-type]
        v.store(mem(target, size=v.bytes), x)  # type: ignore[arg-type]

    dst, read, _ = run(isa, src, emit)
    assert dst.tolist() == [*src.tolist(), *[0] * (4 - count)] * lanes_of(isa)
    assert read.all()


@pytest.mark.parametrize("from_memory", [True, False], ids=["memory", "register"])
@pytest.mark.parametrize("kind", [kind for kind in NUMBERS if kind != "f32"])
@pytest.mark.parametrize("isa", LEVELS)
def test_as_f32(isa: str, kind: str, from_memory: bool) -> None:
    lanes, dtype = lanes_of(isa), DATA_TYPES[kind]
    src = octets(lanes * dtype.size_bytes)
    wanted = decode(src, dtype).astype(np.float32)

    def emit(v: Vector, source: object, target: object) -> None:
        x, *spare = v.registers.take("x", 1 + SPARE)
        at = mem(source, size=len(src))  # type: ignore[arg-type]
        if from_memory:
            element_of(kind).widen(v, x, at, spare)
        else:
            low = low_part(x, dtype.size_bytes)
            v.asm.VMOVUPS(low, at.sized(0)) if low.size_bytes == len(src) else v.asm.VMOVQ(low, at)
            element_of(kind).widen(v, x, low, spare)
        v.store(mem(target, size=v.bytes), x)  # type: ignore[arg-type]

    dst, read, _ = run(isa, src, emit)
    assert np.array_equal(dst.view(np.float32), wanted, equal_nan=True)
    assert read.all()


@pytest.mark.parametrize("kind", ["f32", "b32", "b16", "b8"])
def test_what_stays_takes_no_code(kind: str) -> None:
    asm = Assembler("nothing")
    v = vector_of("avx2", asm)
    x, *spare = v.registers.take("x", 1 + SPARE)
    element_of(kind).widen(v, x, mem(asm.frame), spare)
    element_of(kind).narrow(v, x, spare)
    assert asm.finish().data == b""


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize(("isa", "count"), PARTS)
def test_f32_in_memory_as_elements_and_back(isa: str, count: int, kind: str) -> None:
    """Vectors and tails, of which halves may be shorter registers: rounded once, and no other byte is touched."""
    dtype = DATA_TYPES[kind]
    some = np.random.default_rng(count).choice(decoded(telling(DATA_TYPES["f32"]), DATA_TYPES["f32"]), count)
    wanted = encoded(some, dtype)
    for halves in (False, True):
        assert_equal(moved(isa, some, ("f32", kind), halves), wanted, dtype)
        assert_equal(moved(isa, wanted, (kind, "f32"), halves), bits(decoded(wanted, dtype)), DATA_TYPES["f32"])


@pytest.mark.parametrize("count", [16, 5])
def test_bf16_in_one_instruction(count: int) -> None:
    """As AVX512_BF16 has it: denormals are zeros, everything else as elsewhere."""
    some = np.random.default_rng(count).choice(decoded(telling(DATA_TYPES["f32"]), DATA_TYPES["f32"]), count)
    some[0] = 1e-40
    native = native_element("bf16", "avx512_core_fp16")
    assert native is not element_of("bf16") is native_element("bf16", "avx512_core")
    stored = moved("avx512_core", some, ("f32", "bf16"), False, native)
    flushed = np.where(np.abs(some) < np.finfo(np.float32).tiny, np.copysign(0, some), some)
    assert_equal(stored, encoded(flushed, DATA_TYPES["bf16"]), DATA_TYPES["bf16"])


@pytest.mark.parametrize("kind", ["s8", "u8"])
@pytest.mark.parametrize("count", [16, 5])
def test_bytes_by_saturating_moves(kind: str, count: int) -> None:
    """What f32 has beyond s32, infinities and NaN as well: as everywhere."""
    native, dtype = native_element(kind, "avx512_core"), DATA_TYPES[kind]
    assert native is not element_of(kind) is native_element(kind, "avx2_vnni")
    least, most = native.limits or (0, 0)
    near = [least - 0.51, least - 0.49, least, most + 0.49, most + 0.51, 0.5, 1.5, -0.0]
    far = [np.inf, -np.inf, np.nan, 2.0**31, -(2.0**31) - 256, 1e30, -1e30, 2147483520.0]
    some = np.float32([*near, *far])
    for first in range(0, 16, count):
        part = np.resize(np.roll(some, -first), count)
        stored = moved("avx512_core", part, ("f32", kind), False, native)
        assert_equal(stored, encoded(part, dtype), dtype)


def moved(
    isa: str,
    src: Numbers,
    kinds: tuple[str, str],
    halves: bool,
    to: Element | None = None,
) -> Bytes:
    """The bytes of dst, where a vector or a tail of src is stored as the other type."""
    loaded, stored = element_of(kinds[0]), to or element_of(kinds[1])

    def emit(v: Vector, source: object, target: object) -> None:
        with v.parts(1, len(src), halves) as (part,):
            x, *spare = v.registers.take("x", 1 + SPARE)
            places = (mem(pointer, size=v.bytes) for pointer in (source, target))  # type: ignore[arg-type]
            at_src, at_dst = places
            loaded.load(v, x, at_src, part, spare)
            stored.store(v, at_dst, x, part, spare)

    dst, read, written = run(isa, src.view(np.uint8), emit)
    size = len(src) * stored.size_bytes
    assert read.all()
    assert written[:size].all() and not written[size:].any()
    return dst[:size]


def assert_equal(found: Bytes, wanted: Numbers, dtype: DataType) -> None:
    """The same bits, or NaN on both sides."""
    numbers = [decoded(x.view(wanted.dtype), dtype) for x in (found, wanted)]
    same = (found.view(wanted.dtype) == wanted) | np.isnan(numbers).all(axis=0)
    assert same.all(), numbers


@pytest.mark.parametrize("kind", NUMBERS)
def test_codes_of_numbers(kind: str) -> None:
    """What planners compute, too."""
    dtype = DATA_TYPES[kind]
    some = decoded(telling(DATA_TYPES["f32"])[-400:], DATA_TYPES["f32"])
    wanted = encoded(some, dtype)
    assert_equal(np.array([element_of(kind).code(float(x)) for x in some], wanted.dtype).view(np.uint8), wanted, dtype)


@pytest.mark.parametrize("count", range(1, 17))
def test_few_bytes(count: int) -> None:
    src = octets(count)

    def emit(v: Vector, source: object, target: object) -> None:
        x = v.registers.take("x").xmm
        load_bytes(v.asm, x, mem(source), count)  # type: ignore[arg-type]
        store_bytes(v.asm, mem(target), x, count)  # type: ignore[arg-type]
        v.asm.VMOVDQU(mem(target, 16, size=16), x)  # type: ignore[arg-type]

    dst, read, _ = run("avx2", src, emit)
    nothing = [0] * (16 - count)
    assert dst.tolist() == [*src.tolist(), *nothing] * 2
    assert read.all()
