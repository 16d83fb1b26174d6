"""Jumps, alignment and constants: where things end up in the bytes, read back by an independent decoder."""

from random import Random

import pytest
from iced_x86 import Decoder, FlowControl, Instruction

from asmdnn.errors import InvalidArguments
from asmdnn.isa.assembler import Assembler, Code, Label, mem, register
from asmdnn.isa.layout import Jump, Note
from asmdnn.isa.peachpy_forms import branch_encoders

RCX = register("r64", 1)


def decode_all(code: Code) -> dict[int, Instruction]:
    """Every instruction of a listed kernel by its offset; the bytes after them are constants."""
    assert code.listing is not None
    end = code.listing[-1].offset + len(code.listing[-1].data)
    return {instruction.ip: instruction for instruction in Decoder(64, code.data[:end])}


def nops(asm: Assembler, count: int) -> None:
    for _ in range(count):
        asm.NOP()


@pytest.mark.parametrize(("between", "length"), [(0, 2), (127, 2), (128, 5)])
def test_a_forward_jump_is_short_up_to_127_bytes(between: int, length: int) -> None:
    asm = Assembler("forward")
    label = asm.new_label("end")
    asm.JMP(label)
    nops(asm, between)
    asm.bind(label)
    asm.RET()
    code = asm.finish().data
    assert len(code) == length + between + 1
    assert Decoder(64, code).decode().near_branch_target == length + between


@pytest.mark.parametrize(("between", "length"), [(126, 2), (127, 6)])
def test_a_backward_jump_is_short_up_to_128_bytes(between: int, length: int) -> None:
    asm = Assembler("backward")
    label = asm.new_label("start")
    asm.bind(label)
    nops(asm, between)
    asm.JNZ(label)
    code = asm.finish().data
    assert len(code) == between + length
    assert Decoder(64, code[between:], ip=between).decode().near_branch_target == 0


def test_one_growing_jump_can_push_another_over_the_limit() -> None:
    asm = Assembler("cascade")
    far, near = asm.new_label("far"), asm.new_label("near")
    asm.JZ(near)  # 127 bytes while the jump below is short
    asm.JMP(far)
    nops(asm, 125)
    asm.bind(near)
    nops(asm, 3)
    asm.bind(far)
    asm.RET()
    assert len(asm.finish().data) == 6 + 5 + 125 + 3 + 1


@pytest.mark.parametrize("is_short", [True, False])
def test_a_distance_that_the_bytes_do_not_hold_is_refused(is_short: bool) -> None:
    """Of which PeachPy's encoders keep the low bits."""
    encoders = branch_encoders("JMP")
    assert encoders is not None
    jump = Jump(Label("far"), Note(0, "jmp", "", ""), *encoders)
    jump.is_short = is_short
    reach = 1 << (7 if is_short else 31)
    for displacement in -reach, reach - 1:
        assert Decoder(64, jump.encode(displacement)).decode().near_branch_target == (
            (jump.length + displacement) % (1 << 64)
        )
    for displacement in -reach - 1, reach:
        with pytest.raises(InvalidArguments, match=f"jmp far is out of reach: it is {displacement} bytes away"):
            jump.encode(displacement)


def test_a_jump_without_near_form_must_reach_its_target() -> None:
    asm = Assembler("short only")
    label = asm.new_label("end")
    asm.JRCXZ(label)
    nops(asm, 127)
    asm.bind(label)
    assert asm.finish().data[:2] == bytes.fromhex("e37f")
    far = asm.new_label("too far")
    asm.JRCXZ(far)
    nops(asm, 128)
    asm.bind(far)
    with pytest.raises(InvalidArguments, match="jrcxz too far is out of reach"):
        asm.finish()


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_jump_where_they_say(seed: int) -> None:
    random = Random(seed)
    asm = Assembler("random", listing=True)
    labels = [asm.new_label(f"label{number}") for number in range(random.randrange(1, 12))]
    unbound = list(labels)
    targets: list[Label] = []
    for _ in range(random.randrange(5, 60)):
        action = random.randrange(4)
        if action == 0 and unbound:
            bind_marked(asm, labels, unbound.pop(random.randrange(len(unbound))))
        elif action == 1:
            targets.append(random.choice(labels))
            getattr(asm, random.choice(("JMP", "JNZ", "JL", "CALL")))(targets[-1])
        elif action == 2:
            asm.align(random.choice((4, 16, 64)))
        else:
            nops(asm, random.randrange(60))
    for label in unbound:
        bind_marked(asm, labels, label)
    instructions = decode_all(asm.finish())
    branches = [i for i in instructions.values() if i.flow_control not in (FlowControl.NEXT, FlowControl.RETURN)]
    assert len(branches) == len(targets)
    for branch, target in zip(branches, targets, strict=True):
        assert instructions[branch.near_branch_target].immediate(1) == labels.index(target)


def bind_marked(asm: Assembler, labels: list[Label], label: Label) -> None:
    """Binds a label to an instruction that tells which label it is."""
    asm.bind(label)
    asm.MOV(register("r32", 1), labels.index(label))


@pytest.mark.parametrize("alignment", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("before", [0, 1, 7, 31, 33])
def test_alignment_is_filled_with_long_nops(alignment: int, before: int) -> None:
    asm = Assembler("align", listing=True)
    nops(asm, before)
    asm.align(alignment)
    asm.RET()
    code = asm.finish()
    instructions = decode_all(code)
    ret = len(code.data) - 1
    assert ret % alignment == 0 and ret - before < alignment
    filling = [instruction for offset, instruction in instructions.items() if before <= offset < ret]
    assert all(f"{instruction}".startswith("nop") or instruction.len == 2 for instruction in filling)
    assert len(filling) == -(-(ret - before) // 9)


@pytest.mark.parametrize("alignment", [0, 3, 128])
def test_impossible_alignment(alignment: int) -> None:
    asm = Assembler("align")
    with pytest.raises(InvalidArguments, match=f"alignment {alignment} is not a power of two"):
        asm.align(alignment)
    with pytest.raises(InvalidArguments, match=f"alignment {alignment} is not a power of two"):
        asm.const(b"", alignment)


def test_labels_must_be_bound_once_and_by_their_assembler() -> None:
    asm, other = Assembler("one"), Assembler("other")
    label = asm.new_label("loop")
    asm.JMP(label)
    with pytest.raises(InvalidArguments, match="label 'loop' is jumped to but never bound"):
        asm.finish()
    with pytest.raises(InvalidArguments, match="label 'loop' belongs to another assembler than 'other'"):
        other.JMP(label)
    asm.bind(label)
    with pytest.raises(InvalidArguments, match="label 'loop' is bound twice"):
        asm.bind(label)


def constant_read_by(code: bytes, instruction: Instruction, count: int) -> bytes:
    """The `count` bytes at an instruction's rip-relative operand."""
    assert instruction.is_ip_rel_memory_operand
    return code[instruction.ip_rel_memory_address :][:count]


def test_constants_are_found_after_the_code_whatever_follows_their_displacement() -> None:
    asm = Assembler("pool", listing=True)
    ymm1, xmm1, ecx = register("ymm", 1), register("xmm", 1), register("r32", 1)
    first, second, third = bytes(range(32)), bytes(range(100, 104)), bytes(range(50, 58))
    asm.VADDPS(ymm1, ymm1, asm.const(first, 32))
    asm.VPERMILPS(ymm1, asm.const(first, 32), 0x1B)  # one byte of immediate
    asm.IMUL(ecx, asm.const(second, 4), 0)  # one byte, all zero
    asm.IMUL(ecx, asm.const(second, 4), 0x01020304)  # four bytes
    asm.CMP(asm.const(third, 8, size=8), 0x7FFFFFFF)
    asm.VMOVSS(xmm1, asm.const(second, 4))
    asm.VADDPS(register("zmm", 1), register("zmm", 2), asm.const(second, 4, size=4, broadcast=16))
    asm.VFMADD231PS(register("zmm", 31), register("zmm", 2), asm.const(bytes(64)))
    asm.ret()
    code = asm.finish()
    wanted = [first, first, second, second, third, second, second, bytes(64)]
    reading = [i for i in decode_all(code).values() if i.is_ip_rel_memory_operand]
    assert [constant_read_by(code.data, i, len(data)) for i, data in zip(reading, wanted, strict=True)] == wanted


def test_equal_constants_are_stored_once_and_aligned() -> None:
    asm = Assembler("pool", listing=True)
    zmm = register("zmm", 0)
    asm.VMOVSS(zmm.xmm, asm.const(b"abcd", 4))
    asm.VMOVAPS(zmm, asm.const(b"x" * 64, 64))
    asm.VMOVAPS(zmm, asm.const(bytes(b"x" * 64), 64))
    asm.VMOVSS(zmm.xmm, asm.const(b"abcd", 4))
    code = asm.finish()
    instructions = list(decode_all(code).values())
    assert [instruction.ip_rel_memory_address for instruction in instructions] == [64, 128, 128, 64]
    assert len(code.data) == 192
    assert set(code.data[instructions[-1].next_ip : 64]) == {0xCC}  # int3: never reached


def test_without_constants_nothing_follows_the_code() -> None:
    asm = Assembler("bare")
    asm.MOV(RCX, mem(asm.frame))
    asm.ret()
    assert asm.finish().data == bytes.fromhex("488b0fc3")
