"""Rule "definite assignment": a read of each kind of register that nothing has written, and what is no such read."""

from typing import Any

import pytest

from asmdnn import asm
from asmdnn.corpus.conv import blocked
from asmdnn.generators.contract import Spec
from asmdnn.generators.executor import ExecutorSpec
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.generators.move.transpose import TransposeSpec
from asmdnn.isa.assembler import Assembler, mem, register, rsp
from asmdnn.isa.levels import isa_of
from asmdnn.isa.tiles import palette
from asmdnn.proof.contracts import kernel_of
from asmdnn.proof.decoder import fact_at
from asmdnn.proof.kernel import BrokenRule, Contract, Kernel
from asmdnn.proof.register_parts import ALL_FLAGS, gp, vector
from tests.proof.mutants import Edit, violation_of, with_bytes

COPY = RowsSpec(isa="avx2", rows=3, row_bytes=52, src_step=64, dst_step=64)
CONV = blocked("avx512_core", 3, 2)
RAX, RCX, RBX, RSI = (register("r64", number) for number in (0, 1, 3, 6))
EAX, ECX = register("r32", 0), register("r32", 1)
CX, CL = register("r16", 1), register("r8", 1)


def x(number: int, kind: str = "zmm") -> Any:
    return register(kind, number)


def k(number: int) -> Any:
    return register("k", number)


def code(edit: Edit) -> Kernel:
    """Nothing but these instructions, at the highest level."""
    made = Assembler("alone", listing=True)
    made.VPXORD(x(31), x(31), x(31))  # so that there is a VZEROUPPER before each RET
    edit(made)
    made.ret()
    return Kernel("alone", Contract(isa_of("avx512_core_amx"), 1, None), made.finish())


def lines(*instructions: tuple[Any, ...]) -> Edit:
    def edit(asm: Assembler) -> None:
        for mnemonic, *operands in instructions:
            getattr(asm, mnemonic)(*operands)

    return edit


def on_one_path(asm: Assembler) -> None:
    skip = asm.new_label("skip")
    asm.MOV(RCX, mem(asm.frame, size=8))
    asm.TEST(RCX, RCX)
    asm.JZ(skip)
    asm.VPXORD(x(1), x(1), x(1))
    asm.bind(skip)
    asm.VPADDD(x(0), x(1), x(1))


def in_a_later_round(asm: Assembler) -> None:
    """Written at the end of a round, read at its start."""
    asm.MOV(RCX, 3)
    with asm.loop(RCX, "rounds"):
        asm.ADD(RAX, RCX)
        asm.MOV(RAX, 0)


def flags_after_product(asm: Assembler) -> None:
    asm.MOV(RCX, 3)
    asm.IMUL(RCX, RCX)
    asm.CMOVZ(RCX, RCX)


def flags_after_shift(asm: Assembler) -> None:
    """By a count that may be 0, for which they stay as they were."""
    asm.MOV(RCX, mem(asm.frame, size=8))
    asm.SHL(RCX, CL)
    asm.CMOVZ(RCX, RCX)


def tile_without_rows(asm: Assembler, *, zeroed: bool = False) -> None:
    asm.LDTILECFG(asm.const(palette([(16, 64)] * 8), 64, size=64))
    for number in range(2 + zeroed):
        asm.TILEZERO(register("tmm", number))
    asm.TDPBSSD(register("tmm", 0), register("tmm", 1), register("tmm", 2))
    asm.TILERELEASE()


def tile_of_an_older_configuration(asm: Assembler) -> None:
    asm.LDTILECFG(asm.const(palette([(16, 64)] * 8), 64, size=64))
    asm.TILEZERO(register("tmm", 0))
    asm.LDTILECFG(asm.const(palette([(16, 64)] * 8), 64, size=64))
    asm.TILEZERO(register("tmm", 1))
    asm.TILEZERO(register("tmm", 2))
    asm.TDPBSSD(register("tmm", 0), register("tmm", 1), register("tmm", 2))
    asm.TILERELEASE()


def restored_and_read(asm: Assembler) -> None:
    asm.PUSH(RBX)
    asm.MOV(RBX, 1)
    asm.POP(RBX)
    asm.MOV(RAX, RBX)


READS: dict[str, tuple[Edit, str]] = {
    "a register": (lines(("ADD", RAX, 1)), "reads rax"),
    "an argument that kernels do not have": (lines(("MOV", RAX, RSI)), "reads rsi"),
    "the callers rbx": (lines(("LEA", RAX, mem(RBX, 8))), "reads rbx"),
    "a low byte": (lines(("MOVZX", EAX, CL)), "reads rcx"),
    "more than a byte": (lines(("MOV", CL, 1), ("MOV", EAX, ECX)), "the second byte of rcx"),
    "more than a word": (lines(("MOV", CX, 1), ("MOV", EAX, ECX)), "the upper part of rcx"),
    "what a move may have left": (
        lines(("MOV", RCX, 1), ("TEST", RCX, RCX), ("CMOVZ", RAX, RCX), ("ADD", RAX, 1)), "reads rax",
    ),
    "what pop restored": (restored_and_read, "reads rbx"),
    "a vector": (lines(("VADDPS", x(0), x(31), x(1))), "vector register 1"),
    "a vector that is stored": (lines(("VMOVUPS", mem(rsp, -64, size=64), x(2))), "vector register 2"),
    "a sum": (lines(("VFMADD231PS", x(3), x(31), x(31))), "vector register 3"),
    "lanes that a mask leaves": (
        lines(("KXNORW", k(1), k(1), k(1)), ("VADDPS", x(4).masked(k(1)), x(31), x(31))), "vector register 4",
    ),
    "a comparison of two": (lines(("VPCMPEQD", x(0, "ymm"), x(1, "ymm"), x(2, "ymm"))), "vector register 1"),
    "what a conversion merges with": (
        lines(("MOV", RAX, 0), ("VCVTSI2SD", x(0, "xmm"), x(5, "xmm"), RAX)), "vector register 5",
    ),
    "a table of one that is read": (lines(("VPTERNLOGD", x(0), x(31), x(31), 0xF0)), "vector register 0"),
    "a vector on one path": (on_one_path, "vector register 1"),
    "a mask": (lines(("KMOVW", EAX, k(1))), "k1"),
    "a mask that selects": (lines(("VMOVUPS", x(0).zeroed(k(2)), x(31))), "k2"),
    "a tile": (tile_without_rows, "tmm2"),
    "a tile of an older configuration": (tile_of_an_older_configuration, "tmm0"),
    "a later round": (in_a_later_round, "reads rax"),
    "flags": (lines(("MOV", RAX, 0), ("CMOVZ", RAX, RAX)), "the zero flag"),
    "the carry": (lines(("MOV", RAX, 0), ("ADC", RAX, RAX)), "the carry flag"),
    "a flag that INC leaves": (lines(("MOV", RAX, 0), ("INC", RAX), ("ADC", RAX, RAX)), "the carry flag"),
    "flags after a product": (flags_after_product, "the zero flag"),
    "flags after a shift by CL": (flags_after_shift, "the zero flag"),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_a_read_of_what_nothing_wrote(name: str) -> None:
    edit, reason = READS[name]
    found = violation_of(code(edit))
    assert found is not None and found.line is not None
    assert (found.rule, reason in found.reason) == ("definite assignment", True), found


def on_both_paths(asm: Assembler) -> None:
    other, end = asm.new_label("other"), asm.new_label("end")
    asm.MOV(RCX, mem(asm.frame, size=8))
    asm.TEST(RCX, RCX)
    asm.JZ(other)
    asm.VPXORD(x(1), x(1), x(1))
    asm.JMP(end)
    asm.bind(other)
    asm.VMOVAPS(x(1), x(31))
    asm.bind(end)
    asm.VPADDD(x(0), x(1), x(1))


NO_READS: dict[str, Edit] = {
    "zeros": lines(("XOR", EAX, EAX), ("SUB", RCX, RCX), ("ADD", RAX, RCX)),
    "zeros of vectors": lines(
        ("VPXORD", x(0), x(0), x(0)), ("VXORPS", *3 * [x(1, "ymm")]), ("VPADDD", x(0), x(1), x(0))
    ),
    "ones": lines(("VPCMPEQD", *3 * [x(2, "ymm")]), ("VPTERNLOGD", *3 * [x(3)], 0xFF), ("VPADDD", x(2), x(2), x(3))),
    "ones of any": lines(("VPTERNLOGD", x(0), x(1), x(2), 0xFF), ("VPADDD", x(0), x(0), x(0))),
    "a table that looks at the last alone": lines(("VPTERNLOGD", x(0), x(1), x(31), 0xAA)),
    "masks": lines(("KXNORW", *3 * [k(1)]), ("KXORW", *3 * [k(2)]), ("KORW", k(3), k(1), k(2))),
    "zeros where a mask is": lines(("KXNORW", *3 * [k(1)]), ("VADDPS", x(4).zeroed(k(1)), x(31), x(31))),
    "a blend with zeros": lines(("KXNORW", *3 * [k(1)]), ("VBLENDMPS", x(4).zeroed(k(1)), x(4), x(31))),
    "a conversion of one": lines(("MOV", RAX, 0), ("VCVTSI2SD", x(0, "xmm"), x(0, "xmm"), RAX)),
    "the carry in all bits": lines(("MOV", RAX, 1), ("CMP", RAX, 1), ("SBB", RCX, RCX), ("ADD", RCX, RAX)),
    "a byte of what a byte was written to": lines(("MOV", CL, 1), ("MOVZX", EAX, CL)),
    "saved": lines(("PUSH", RBX), ("MOV", RBX, 1), ("POP", RBX)),
    "saved by rsp": lines(("MOV", mem(rsp, -8, size=8), RBX), ("MOV", RBX, mem(rsp, -8, size=8))),
    "both paths": on_both_paths,
    "tiles": lambda asm: tile_without_rows(asm, zeroed=True),
}


@pytest.mark.parametrize("name", NO_READS)
def test_what_is_no_read(name: str) -> None:
    assert violation_of(code(NO_READS[name])) is None


@pytest.mark.parametrize(("data", "whole"), [("0f28c8", False), ("c5f828c8", True)])
def test_an_instruction_without_vex_leaves_the_upper_part(data: str, whole: bool) -> None:
    """MOVAPS xmm1, xmm0 and VMOVAPS xmm1, xmm0."""
    fact = fact_at(bytes.fromhex(data), 0)
    assert fact is not None
    assert (fact.use.writes == vector(1, 32)) is whole
    assert fact.use.reads == vector(0)


def test_a_call_leaves_what_the_abi_says() -> None:
    """The pointer that the executor reads after the barrier, in a register that it would have to keep."""
    made = Assembler("calls", listing=True)
    made.MOV(RCX, 1)
    made.call(mem(made.frame, size=8))
    made.ADD(RAX, RCX)
    made.ret()
    found = violation_of(Kernel("calls", Contract(isa_of("avx2"), None, None, calls=True), made.finish()))
    assert found is not None and "reads rcx" in found.reason


@pytest.mark.parametrize("spec", [COPY, CONV, ExecutorSpec(arguments=2)], ids=lambda spec: spec.name)
def test_an_instruction_less_is_found(spec: Spec) -> None:
    """Of a real kernel, each instruction left out in turn that is the first to write a register."""
    kernel, lost, known = kernel_of(spec), 0, gp(4) | gp(7)
    assert violation_of(kernel) is None
    for step in kernel.steps.values():
        writes, new = step.fact.use.writes, step.fact.use.writes & ~known
        if step.fact.flow == "next" and new and not new & ALL_FLAGS:
            found = violation_of(with_bytes(spec, step.offset, b"\x90" * step.fact.length))
            assert found is not None, step
            lost += found.rule == "definite assignment"
        known |= writes | gp(0) * (step.fact.flow == "indirect call")  # rax has its result
    assert lost >= 2


def test_rows_that_are_missing_are_not_read() -> None:
    """A transpose of fewer rows than its tile has interleaves those that are there with themselves."""
    for rows, unit in ((1, 1), (9, 1), (15, 1), (1, 4), (3, 2), (1, 8)):
        spec = TransposeSpec(
            isa="avx2", unit_bytes=unit, rows=rows, columns=17, src_row_bytes=64, dst_row_bytes=rows * unit
        )
        assert violation_of(kernel_of(spec)) is None


def test_a_function_gives_a_result_that_it_wrote() -> None:
    @asm.function("int64_t none(double x)")
    def none(f: Any, x: Any) -> None:
        f.ret(f.gp.claim(RAX, "a number that nobody has computed"))

    with pytest.raises(BrokenRule, match="reads rax, which no instruction before it writes"):
        none.prove()


def test_a_function_has_its_arguments() -> None:
    @asm.function("void two(double x, double y, int64_t n, int64_t m)")
    def two(f: Any, *_: Any) -> None:
        f.VADDSD(register("xmm", 0), register("xmm", 0), register("xmm", 1))
        f.ADD(register("r64", 7), RSI)
        f.ret()

    @asm.function("void one(double x, int64_t n)")
    def one(f: Any, *_: Any) -> None:
        f.VADDSD(register("xmm", 0), register("xmm", 0), register("xmm", 1))
        f.ret()

    two.prove()
    with pytest.raises(BrokenRule, match="reads vector register 1"):
        one.prove()
