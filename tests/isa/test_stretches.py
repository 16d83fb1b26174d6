"""Stretches of code that are copied: the bytes that would be emitted, wherever they are pasted."""

from collections.abc import Callable
from itertools import islice

import pytest

from asmdnn.corpus.families import specs_of
from asmdnn.corpus.few_inputs import inputs_of
from asmdnn.corpus.grouped import whole
from asmdnn.dump.kernel import listed
from asmdnn.isa import assembler, stretches
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.stretches import Stretches
from asmdnn.records import replace
from asmdnn.runtime.kernels import generate


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Stretches:
    """None yet, for what this test assembles."""
    found = Stretches()
    monkeypatch.setattr(assembler, "STRETCHES", found)
    return found


def code(body: Callable[[Assembler], None], *, listing: bool = False) -> bytes:
    asm = Assembler("stretch", listing)
    body(asm)
    asm.ret()
    return asm.finish().data


@pytest.mark.parametrize("file", ["conv", "grouped", "few_inputs", "depthwise", "typed_conv", "rounded_pairs"])
def test_kernels_have_the_bytes_that_are_emitted_one_by_one(file: str, known: Stretches) -> None:
    """A listing is emitted, not copied."""
    specs = list(islice(specs_of(file), 0, None, 5))
    for spec in (*specs, *reversed(specs)):
        assert generate(spec) == listed(spec).data, spec.name
    assert known.count or file == "depthwise"


def test_a_row_is_copied_to_kernels_of_other_segments(known: Stretches) -> None:
    """What it reads of the image's words lies at the same place in all of them."""
    one, counted = whole(4), replace(whole(4), times=3, is_counted=True)
    kernels = [inputs_of("avx2", 3, *segments) for segments in ((one,), (counted,), (one, one), (one, counted, one))]
    for spec in (*kernels, *reversed(kernels)):
        assert generate(spec) == listed(spec).data, spec.name
    assert known.count


def test_constants_lie_where_the_new_pool_has_them(known: Stretches) -> None:
    def body(asm: Assembler, first: bytes, *, copies: int = 2) -> None:
        x = asm.vectors(32, 16).take("x")
        asm.VADDPS(x, x, asm.const(first, 32))
        for _ in range(copies):
            asm.stretch("sum", lambda: asm.VMULPS(x, x, asm.const(bytes(31) + b"\1", 32)))

    for first in (bytes(32), bytes(64), bytes(31) + b"\1", bytes(32)):
        assert code(lambda asm, first=first: body(asm, first)) == code(  # type: ignore[misc]
            lambda asm, first=first: body(asm, first),
            listing=True,  # type: ignore[misc]
        )
    assert known.count == 1


def test_a_part_of_a_constant_is_found(known: Stretches) -> None:
    def body(asm: Assembler, first: int) -> None:
        x = asm.vectors(32, 16).take("x")
        asm.VADDPS(x, x, asm.const(bytes(first), 32))
        table = asm.const(bytes(range(64)), 64)  # asked for outside
        asm.stretch("part", lambda: asm.VMULPS(x, x, table.shifted(32)))

    for first in (32, 96):
        bodies = [code(lambda asm, first=first: body(asm, first), listing=listing) for listing in (False, True)]  # type: ignore[misc]
        assert bodies[0] == bodies[1]
    assert known.count == 1


def test_what_a_copy_overwrites_is_saved(known: Stretches) -> None:
    def body(asm: Assembler) -> None:
        asm.gp.take("caller-saved", 8)

        def inner() -> None:
            with asm.gp.taken("rbx") as register:
                asm.MOV(register, 1)

        asm.stretch("overwrites", inner)

    def upper(asm: Assembler) -> None:
        asm.vectors(32, 16)
        asm.stretch("upper", lambda: asm.VMOVUPS(asm.vectors(32, 16).registers[0], mem(asm.frame)))

    for one in (body, upper):
        first, again = code(one), code(one)
        assert first == again == code(one, listing=True)
    assert known.count == 2


def test_what_registers_are_taken_for_is_part_of_the_key(known: Stretches) -> None:
    def body(asm: Assembler, order: tuple[str, ...]) -> None:
        taken = {name: asm.gp.take(name) for name in order}
        asm.stretch("move", lambda: asm.MOV(taken["a"], taken["b"]))

    assert code(lambda asm: body(asm, ("a", "b"))) != code(lambda asm: body(asm, ("b", "a")))
    assert known.count == 2


def test_jumps_registers_that_stay_taken_and_stack_are_not_kept(known: Stretches) -> None:
    def loops(asm: Assembler) -> None:
        count = asm.gp.take("count")

        def inner() -> None:
            with asm.loop(count, "loop"):
                asm.NOP()

        asm.stretch("loop", inner)

    def takes(asm: Assembler) -> None:
        asm.stretch("takes", lambda: asm.MOV(asm.gp.take("stays"), 1))

    def pushes(asm: Assembler) -> None:
        asm.stretch("stack", lambda: asm.MOV(asm.stack(8), asm.frame))

    for body in (loops, takes, pushes):
        assert code(body) == code(body) == code(body, listing=True)
    assert known.count == 0


def test_an_error_in_between_is_the_callers(known: Stretches) -> None:
    asm = Assembler("fails")
    with pytest.raises(ZeroDivisionError):
        asm.stretch("fails", lambda: [1 // 0])
    assert known.count == 0


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch, known: Stretches) -> None:
    monkeypatch.setattr(stretches, "LIMIT_BYTES", 10 * stretches.ENTRY_BYTES)

    def body(asm: Assembler, key: int) -> None:
        asm.stretch(key, lambda: asm.NOP())

    for key in range(50):
        code(lambda asm, key=key: body(asm, key))  # type: ignore[misc]
        assert 0 < known.count <= 10
    known.clear()
    assert known.count == 0


def test_upper_halves_are_cleared_where_a_stretch_touches_them(known: Stretches) -> None:
    """Also if what it emits was emitted before by the kernel that it is known from."""

    def stretch(asm: Assembler) -> None:
        ymm = asm.vectors(32, 16).registers[0]
        asm.stretch("sum", lambda: asm.VADDPS(ymm, ymm, ymm))

    def before(asm: Assembler) -> None:
        ymm = asm.vectors(32, 16).registers[0]
        asm.VADDPS(ymm, ymm, ymm)
        stretch(asm)

    first, second = code(before), code(stretch)
    assert known.count == 1
    assert first.endswith(second) and second.hex() == "c5fc58c0" + "c5f877" + "c3"
