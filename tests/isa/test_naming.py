"""What a listing says that instructions do: formulas on the names that generators give."""

import pytest

from asmdnn.isa.assembler import Assembler, Line, mem
from asmdnn.isa.effects import effect_of, effect_of_jump


@pytest.mark.parametrize(
    ("mnemonic", "sources", "formula"),
    [
        ("VFMADD231PS", ("a", "b"), "d += a * b"),
        ("VFNMADD231PD", ("a", "b"), "d -= a * b"),
        ("VFMADD213PS", ("a", "b"), "d = a * old + b"),
        ("VFMADD132SS", ("a", "b"), "d = old * b + a"),
        ("VFMSUB213PS", ("a", "b"), "d = a * old - b"),
        ("VFNMSUB231PS", ("a", "b"), "d = -a * b - old"),
        ("VADDPS", ("a", "b"), "d = a + b"),
        ("VADDPS", ("d", "b"), "d += b"),
        ("VPSUBD", ("a", "b"), "d = a - b"),
        ("VXORPS", ("d", "d"), "d = 0"),
        ("VPXORD", ("a", "b"), "d = a ^ b"),
        ("VMAXPS", ("0", "x"), "d = max(0, x)"),
        ("VPMINSB", ("a", "b"), "d = min(a, b)"),
        ("VMOVUPS", ("a",), "d = a"),
        ("MOVSXD", ("a",), "d = a"),
        ("VBROADCASTSS", ("a",), "d = a, in every lane"),
        ("VMASKMOVPS", ("m", "a"), "d = a where m"),
        ("VSHUFPS", ("a", "b", "68"), "d = vshufps(a, b, 68)"),
        ("VPADDUSB", ("a", "b"), "d = vpaddusb(a, b)"),
        ("ADD", ("8",), "d += 8"),
        ("XOR", ("old",), "d = 0"),
        ("IMUL", ("a", "3"), "d = imul(a, 3)"),
        ("LEA", ("[a + 8]",), "d = address of [a + 8]"),
        ("TEST", ("old",), "compare old with 0"),
        ("CMP", ("a",), "compare old with a"),
        ("PREFETCHT1", (), "prefetch d into L2"),
        ("PUSH", (), "save d"),
        ("INC", (), "d += 1"),
        ("VZEROUPPER", (), "clear the upper halves of all vector registers"),
    ],
)
def test_formulas(mnemonic: str, sources: tuple[str, ...], formula: str) -> None:
    assert effect_of(mnemonic, "d", sources, "old") == formula


def test_jumps() -> None:
    assert effect_of_jump("JNZ", "rows") == "to rows unless zero"
    assert effect_of_jump("JMP", "end") == "to end"


def listing(asm: Assembler) -> list[Line]:
    found = asm.finish().listing
    assert found is not None
    return list(found)


def effects(asm: Assembler) -> list[str]:
    return [line.detail.effect for line in listing(asm)]


def test_places_and_values() -> None:
    """Written registers are called by place, read ones by what was copied into them; all views are one register."""
    asm = Assembler("named", listing=True)
    pointer, x = asm.gp.take("pointer"), asm.vectors(32, 16).take("x", 2, 2)
    asm.MOV(pointer, mem(asm.frame, 16))
    asm.call_it(mem(pointer, 4, size=4), "src[1]")
    asm.VBROADCASTSS(x[0][1], mem(pointer, 4, size=4))
    asm.VFMADD231PS(x[1][0], x[0][1], mem(pointer, 32, size=32))
    asm.VMOVAPS(x[1][1].xmm, x[0][1].xmm)
    asm.VADDPS(x[0][1], x[0][1], x[1][1])
    asm.VADDPS(x[0][0], x[0][1], x[0][1])
    assert effects(asm) == [
        "pointer = frame[2]",
        "x[0][1] = src[1], in every lane",
        "x[1][0] += src[1] * [pointer + 32]",
        "x[1][1] = src[1]",
        "x[0][1] = src[1] + src[1]",
        "x[0][0] = x[0][1] + x[0][1]",
    ]


def test_names_end_where_they_must() -> None:
    """A value ends with a write, with another use of the register and at a label; memory's name with its address."""
    asm = Assembler("forgetful", listing=True)
    a, b = asm.gp.take("a"), asm.gp.take("b")
    asm.call_it(mem(a), "first")
    asm.MOV(b, mem(a))
    asm.ADD(a, 8)
    asm.MOV(b, mem(a))
    asm.call_it(b, "value")
    asm.MOV(a, b)
    asm.gp.free(b)
    c = asm.gp.take("c")
    assert c is b
    asm.MOV(a, c)
    asm.call_it(c, "again")
    asm.bind(asm.new_label("here"))
    asm.MOV(a, c)
    assert effects(asm) == ["b = first", "a += 8", "b = [a]", "a = value", "a = c", "a = c"]


def test_masks_memory_and_unnamed_registers() -> None:
    asm = Assembler("masked", listing=True)
    x, k = asm.vectors(64, 32).take("x", 2), asm.masks.take("tail")
    pointer = asm.gp.take("pointer")
    asm.call_it(mem(pointer, 4, size=4), "element")
    asm.VFMADD231PS(x[0], x[1], mem(pointer, 4, size=4, broadcast=16))
    asm.VMOVUPS(x[1].zeroed(k), mem(pointer, size=64))
    asm.VMOVUPS(mem(pointer, index=pointer, scale=4).masked(k), x[1])
    asm.VADDPS(x[0].masked(k), x[0], asm.const(bytes(64)))
    asm.gp.free(pointer)
    asm.MOV(pointer, 7)
    assert effects(asm) == [
        "x[0] += x[1] * element",
        "x[1] = [pointer] where k1, else 0",
        "[pointer + 4 * pointer] = x[1] where k1",
        "x[0] += constant where k1",
        "rax = 7",
    ]


def test_holders_and_paths() -> None:
    asm = Assembler("held", listing=True)
    a, rows = asm.gp.take("a"), asm.gp.take("row", 2)
    asm.MOV(a, rows[1])
    asm.gp.free(a)
    asm.MOV(rows[0], rows[1])
    first, second = listing(asm)
    assert [(str(reg), name) for reg, name in first.detail.holders if reg.kind != "ymm"][2:] == [
        ("rax", "a"), ("rcx", "row[0]"), ("rdx", "row[1]"),
    ]  # fmt: skip
    assert "a" not in dict(second.detail.holders).values()
    assert first.detail.path == __file__


def test_no_listing_no_names() -> None:
    asm = Assembler("plain")
    asm.call_it(asm.gp.take("a"), "name")
    asm.ret()
    assert asm.finish().listing is None


def test_names_are_those_of_the_time_of_writing() -> None:
    """A listing is written when it is asked for, after all registers were given back and taken for something else."""
    asm = Assembler("later", listing=True)
    a = asm.gp.take("first")
    asm.MOV(a, 1)
    asm.gp.free(a)
    assert asm.gp.take("second") is a
    asm.ADD(a, 2)
    x = asm.vectors(32, 16).take("x")
    asm.VADDPS(x, x, x)
    code = asm.finish()
    asm.gp.free(a)
    written = code.lines.cache_info  # type: ignore[union-attr]
    assert written().misses == 0
    assert code.listing is not None and [line.detail.effect for line in code.listing] == [
        "first = 1",
        "second += 2",
        "x += x",
    ]
    assert code.listing is code.listing and written().misses == 1
    assert {line.detail.path for line in code.listing} == {__file__}
    assert [dict(line.detail.holders).get(a) for line in code.listing] == ["first", "second", "second"]
