"""Elements of every type in vectors of both widths, on an emulated CPU: the values, and each byte that is read."""

from collections.abc import Callable

import numpy as np
import pytest

from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.elements import WIDENED, Elements, load_bytes, low_part, store_bytes, widen
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.types import DATA_TYPES
from tests.emulator import Machine, Region
from tests.support.arena import Bytes, decode

LEVELS = ("avx2", "avx512_core")
FRAME, SRC, DST, CODE = 0x10_0000, 0x20_0000, 0x30_0000, 0x7F00_0000_0000


def run(isa: str, src: Bytes, emit: Callable[[Vector, object, object], None]) -> tuple[Bytes, Bytes]:
    """What is left in dst, one vector, and which bytes of src were read; `emit` gets pointers to both."""
    asm = Assembler("elements")
    v = vector_of(isa, asm)
    pointers = [asm.gp.take(name) for name in ("src", "dst")]
    for i, pointer in enumerate(pointers):
        asm.MOV(pointer, mem(asm.frame, 8 * i))
    emit(v, *pointers)
    asm.ret()
    dst, frame = np.zeros(64, np.uint8), np.array([SRC, DST], np.int64).view(np.uint8)
    regions = [Region("src", SRC, src), Region("dst", DST, dst, True, True), Region("frame", FRAME, frame)]
    machine = Machine(regions, record=True)
    machine.call(asm.finish().data, CODE, FRAME)
    assert machine.footprints is not None
    return dst[: v.bytes], machine.footprints["src"].read


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
        Elements(v).broadcast_bytes(x, mem(source, size=4), count)  # type: ignore[arg-type]
        v.store(mem(target, size=v.bytes), x)  # type: ignore[arg-type]

    dst, read = run(isa, src, emit)
    assert dst.tolist() == [*src.tolist(), *[0] * (4 - count)] * lanes_of(isa)
    assert read.all()


@pytest.mark.parametrize("from_memory", [True, False], ids=["memory", "register"])
@pytest.mark.parametrize("kind", WIDENED)
@pytest.mark.parametrize("isa", LEVELS)
def test_as_f32(isa: str, kind: str, from_memory: bool) -> None:
    lanes, dtype = lanes_of(isa), DATA_TYPES[kind]
    src = octets(lanes * dtype.size_bytes)
    wanted = decode(src, dtype).astype(np.float32)

    def emit(v: Vector, source: object, target: object) -> None:
        x = v.registers.take("x")
        at = mem(source, size=len(src))  # type: ignore[arg-type]
        if from_memory:
            widen(v.asm, x, at, kind)
        else:
            low = low_part(x, dtype.size_bytes)
            v.asm.VMOVUPS(low, at.sized(0)) if low.size_bytes == len(src) else v.asm.VMOVQ(low, at)
            widen(v.asm, x, low, kind)
        v.store(mem(target, size=v.bytes), x)  # type: ignore[arg-type]

    dst, read = run(isa, src, emit)
    assert np.array_equal(dst.view(np.float32), wanted, equal_nan=True)
    assert read.all()


@pytest.mark.parametrize("kind", ["f32", "b32"])
def test_what_has_4_bytes_already_stays(kind: str) -> None:
    asm = Assembler("nothing")
    widen(asm, vector_of("avx2", asm).registers.take("x"), mem(asm.frame), kind)
    assert asm.finish().data == b""


@pytest.mark.parametrize("count", range(1, 17))
def test_few_bytes(count: int) -> None:
    src = octets(count)

    def emit(v: Vector, source: object, target: object) -> None:
        x = v.registers.take("x").xmm
        load_bytes(v.asm, x, mem(source), count)  # type: ignore[arg-type]
        store_bytes(v.asm, mem(target), x, count)  # type: ignore[arg-type]
        v.asm.VMOVDQU(mem(target, 16, size=16), x)  # type: ignore[arg-type]

    dst, read = run("avx2", src, emit)
    nothing = [0] * (16 - count)
    assert dst.tolist() == [*src.tolist(), *nothing] * 2
    assert read.all()
