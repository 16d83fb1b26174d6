"""The rule "tiles", and the footprint of tiles' rows: what is right is proved, each wrong thing is told."""

from collections.abc import Callable, Sequence

import pytest

from asmdnn.corpus.amx import tile
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.dot.amx import AmxTileSpec
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.dot import BF16, S8S8, U8S8
from asmdnn.isa.levels import isa_of
from asmdnn.isa.tiles import Shape, palette
from asmdnn.proof.contracts import kernel_of
from asmdnn.proof.kernel import Contract, Kernel
from asmdnn.proof.prove import prove
from tests.proof.mutants import find, violation_of, with_bytes

FULL: list[Shape] = [(16, 64)] * 8
SPEC = tile(U8S8, 33, 40, 5 * 64 + 3)
NOP5 = bytes.fromhex("0f1f440000")


def kernel(emit: Callable[[Assembler], None], footprint: Footprint | None = None) -> Kernel:
    asm = Assembler("tiles", listing=True)
    emit(asm)
    asm.ret()
    return Kernel("tiles", Contract(isa_of("avx512_core_amx"), 2, footprint or Footprint((), ())), asm.finish())


def configure(asm: Assembler, shapes: Sequence[Shape] = FULL) -> None:
    asm.LDTILECFG(asm.const(palette(shapes), 64, size=64))


def copy(rows: int, stride: int, at: int = 0) -> Kernel:
    """Five rows of 12 bytes, 20 bytes apart, from argument 0 to argument 1; what is claimed are `rows`."""

    def emit(asm: Assembler) -> None:
        src, dst, step = (asm.gp.take(name) for name in ("src", "dst", "step"))
        asm.MOV(src, mem(asm.frame))
        asm.MOV(dst, mem(asm.frame, 8))
        asm.MOV(step, stride)
        configure(asm, [(5, 12), *FULL[1:]])
        asm.TILELOADD(asm.tiles.registers[0], mem(src, at, index=step))
        asm.TILESTORED(mem(dst, 0, index=step, scale=1), asm.tiles.registers[0])
        asm.TILERELEASE()

    spans = [(20 * row, 20 * row + 12) for row in range(rows)]
    return kernel(emit, Footprint(tuple(Range(0, *x) for x in spans), tuple(Range(1, *x) for x in spans)))


def test_rows_at_a_stride_are_the_footprint() -> None:
    assert prove(copy(5, 20)) == 0


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (lambda: copy(4, 20), "reads bytes [80, 92) of argument 0"),
        (lambda: copy(6, 20), "bytes [100, 112) of argument 1 are not all written"),
        (lambda: copy(5, 21), "reads bytes [21, 33) of argument 0"),
        (lambda: copy(5, 20, 4), "reads bytes [4, 16) of argument 0"),
    ],
)
def test_other_rows_are_told(made: Callable[[], Kernel], reason: str) -> None:
    found = violation_of(made())
    assert found is not None and found.rule == "footprint" and reason in found.reason


def release_on_one_path(asm: Assembler) -> None:
    configure(asm)
    skip = asm.new_label("skip")
    asm.TEST(asm.frame, asm.frame)
    asm.JZ(skip)
    asm.TILERELEASE()
    asm.bind(skip)


def other_on_one_path(asm: Assembler) -> None:
    configure(asm)
    skip = asm.new_label("skip")
    asm.TEST(asm.frame, asm.frame)
    asm.JZ(skip)
    configure(asm, [(8, 64), *FULL[1:]])
    asm.bind(skip)
    asm.TILEZERO(asm.tiles.registers[0])
    asm.TILERELEASE()


def with_config(config: bytes) -> Callable[[Assembler], None]:
    def emit(asm: Assembler) -> None:
        asm.LDTILECFG(asm.const(config, 64, size=64))
        asm.TILERELEASE()

    return emit


def from_memory(asm: Assembler) -> None:
    pointer = asm.gp.take("config")
    asm.MOV(pointer, mem(asm.frame))
    asm.LDTILECFG(mem(pointer, size=64))
    asm.TILERELEASE()


def product(shapes: Sequence[Shape]) -> Callable[[Assembler], None]:
    def emit(asm: Assembler) -> None:
        configure(asm, shapes)
        asm.TDPBUSD(*asm.tiles.registers[:3])
        asm.TILERELEASE()

    return emit


WRONG: dict[str, tuple[Callable[[Assembler], None], str]] = {
    "released on one path": (release_on_one_path, "no TILERELEASE has followed"),
    "another configuration on one path": (other_on_one_path, "on another path"),
    "never configured": (lambda asm: asm.TILEZERO(asm.tiles.registers[3]), "none may be configured"),
    "of another palette": (with_config(bytes((2, *palette(FULL)[1:]))), "not of palette 1"),
    "reserved bytes": (with_config(palette(FULL)[:63] + b"\1"), "reserved bytes"),
    "too many rows": (with_config(palette([(17, 64), *FULL[1:]])), "17 rows"),
    "rows without bytes": (with_config(palette([*FULL[:7], (3, 0)])), "tmm7 is configured with 3 rows of 0 bytes"),
    "a configuration that is data": (from_memory, "no constant"),
    "a product of 15 groups": (product([(16, 64), (16, 60), *FULL[2:]]), "no product of tiles"),
    "a product of a tile without rows": (product([*FULL[:2], (0, 0), *FULL[3:]]), "tmm2 has no rows"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_told(name: str) -> None:
    emit, reason = WRONG[name]
    found = violation_of(kernel(emit))
    assert found is not None
    assert (found.rule, reason in found.reason) == ("tiles", True), found


@pytest.mark.parametrize("types", (BF16, U8S8, S8S8), ids=str)
def test_a_kernel_is_proved(types: object) -> None:
    assert prove(kernel_of(tile(types, 33, 40, 131))) == 0  # type: ignore[arg-type]


def test_a_kernel_of_one_row_is_proved() -> None:
    assert prove(kernel_of(tile(BF16, 1, 16, 3))) == 0


def without(*starts: str, last: bool = False) -> Kernel:
    """The kernel without one instruction."""
    line = find(SPEC, *starts, last=last)
    nops = {5: NOP5, 6: b"\x66" + NOP5, 7: b"\x0f\x1f\x80" + bytes(4), 8: b"\x0f\x1f\x84" + bytes(5)}
    return with_bytes(SPEC, line.offset, nops[len(line.data)] if len(line.data) in nops else b"\x90" * len(line.data))


def farther(spec: AmxTileSpec) -> Kernel:
    """One more byte from row to row of src."""
    line = find(spec, f"mov rdx, {spec.tile.src_row_bytes}")
    changed = bytearray(line.data)
    changed[-4:] = (spec.tile.src_row_bytes + 1).to_bytes(4, "little")
    return with_bytes(spec, line.offset, bytes(changed))


@pytest.mark.parametrize(
    ("make", "rule", "reason"),
    [
        (lambda: without("tilerelease"), "tiles", "TILERELEASE"),
        (lambda: without("ldtilecfg"), "tiles", "none may be configured"),
        (lambda: farther(SPEC), "footprint", "of argument 0"),
        (lambda: without("add r9", last=True), "footprint", "not all written"),
    ],
)
def test_mutants_of_a_kernel_are_told(make: Callable[[], Kernel], rule: str, reason: str) -> None:
    found = violation_of(make())
    assert found is not None
    assert (found.rule, reason in found.reason) == (rule, True), found
