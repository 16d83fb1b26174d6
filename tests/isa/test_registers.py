import pytest

from asmdnn.errors import AsmdnnError, InvalidArguments
from asmdnn.isa.assembler import Assembler, OutOfRegisters, low32, register


def test_general_purpose_registers_come_caller_saved_first_and_without_frame_and_stack() -> None:
    gp = Assembler("order").gp
    names = [str(reg) for reg in gp.take("all", 14)]
    assert names == ["rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "rbx", "rbp", "r12", "r13", "r14", "r15"]


def test_shapes() -> None:
    vectors = Assembler("shapes").vectors(32, 16)
    assert str(vectors.take("one")) == "ymm0"
    assert list(map(str, vectors.take("row", 3))) == ["ymm1", "ymm2", "ymm3"]
    assert [list(map(str, row)) for row in vectors.take("block", 2, 3)] == [
        ["ymm4", "ymm5", "ymm6"], ["ymm7", "ymm8", "ymm9"]]  # fmt: skip
    assert vectors.take("nothing", 0, 4) == []
    assert vectors.available == 6


def test_freed_registers_are_handed_out_again_in_order() -> None:
    gp = Assembler("free").gp
    first, second, third = gp.take("a"), gp.take("b"), gp.take("c")
    gp.free(third, first)
    assert gp.take("d", 2) == [first, third]
    gp.free(second)
    assert gp.take("e") is second


def test_what_was_taken_as_a_shape_is_freed_as_one() -> None:
    vectors = Assembler("block").vectors(32, 16)
    block, row, one = vectors.take("block", 2, 3), vectors.take("row", 2), vectors.take("one")
    vectors.free([block[0], tuple(block[1])], row[1:], one)
    assert vectors.holders() == [(row[0], "row[0]")]
    for wrong in ("ymm7", None, 7):
        with pytest.raises(InvalidArguments, match=f"^{wrong!r} is no register, nor a list of them$"):
            vectors.free(wrong)  # type: ignore[arg-type]


def test_running_out_names_the_budget_and_what_took_it() -> None:
    vectors = Assembler("out").vectors(32, 16)
    vectors.take("acc", 4, 3)
    vectors.take("weights", 3)
    with pytest.raises(OutOfRegisters) as caught:
        vectors.take("factor", 2)
    assert str(caught.value) == "'factor' needs 2 of the 16 ymm registers, 1 are left; taken: acc 12, weights 3"
    assert isinstance(caught.value, AsmdnnError)
    assert str(vectors.take("factor")) == "ymm15"


def test_a_register_can_be_claimed_by_name() -> None:
    gp = Assembler("claim").gp
    rcx = register("r64", 1)
    assert gp.claim(rcx, "shift count") is rcx
    assert str(gp.take("next", 2)) == "[rax, rdx]"
    with pytest.raises(OutOfRegisters, match="rcx for 'other' is taken by 'shift count'"):
        gp.claim(rcx, "other")
    with pytest.raises(InvalidArguments, match="rdi for 'any' is not one of the general-purpose registers"):
        gp.claim(register("r64", 7), "any")


def test_only_taken_registers_can_be_freed() -> None:
    asm = Assembler("free")
    reg = asm.gp.take("x")
    asm.gp.free(reg)
    with pytest.raises(InvalidArguments, match="rax cannot be freed"):
        asm.gp.free(reg)
    with pytest.raises(InvalidArguments, match="k1 cannot be freed"):
        asm.gp.free(asm.masks.take("tail"))


def test_files_of_masks_and_tiles() -> None:
    asm = Assembler("files")
    assert list(map(str, asm.masks.take("m", 7))) == [f"k{n}" for n in range(1, 8)]
    assert list(map(str, asm.tiles.take("t", 8))) == [f"tmm{n}" for n in range(8)]


def test_vector_registers_of_one_kernel_have_one_width() -> None:
    asm = Assembler("width")
    assert asm.vectors(64, 32) is asm.vectors(64, 32)
    with pytest.raises(InvalidArguments, match=r"vectors\(32, 16\): this kernel already uses the zmm registers"):
        asm.vectors(32, 16)
    with pytest.raises(InvalidArguments, match=r"vectors\(48, 16\)"):
        asm.vectors(48, 16)


def test_equal_registers_are_the_same_object() -> None:
    assert register("zmm", 3).masked(register("k", 1)) is register("zmm", 3, 1)
    assert register("zmm", 3).ymm.xmm is register("xmm", 3)
    assert low32(register("r64", 9)) is register("r32", 9)


@pytest.mark.parametrize(
    ("kind", "number", "name"),
    [("r64", 0, "rax"), ("r64", 12, "r12"), ("r32", 5, "ebp"), ("r32", 9, "r9d"), ("r16", 2, "dx"), ("r16", 8, "r8w"),
     ("r8", 1, "cl"), ("r8", 6, "sil"), ("r8", 15, "r15b"), ("zmm", 31, "zmm31"), ("k", 7, "k7"), ("tmm", 0, "tmm0")],
)  # fmt: skip
def test_names(kind: str, number: int, name: str) -> None:
    assert str(register(kind, number)) == name


def test_impossible_registers() -> None:
    zmm, k1, k0, rax = register("zmm", 1), register("k", 1), register("k", 0), register("r64", 0)
    assert str(zmm.zeroed(k1)) == "zmm1{k1}{z}"
    with pytest.raises(InvalidArguments, match="zmm1 cannot be masked with k0"):
        zmm.masked(k0)
    with pytest.raises(InvalidArguments, match="k1 takes no zeroing mask"):
        k1.zeroed(k1)
    with pytest.raises(InvalidArguments, match="rax takes no write mask"):
        rax.masked(k1)
    with pytest.raises(InvalidArguments, match="rax has no xmm view"):
        _ = rax.xmm
    with pytest.raises(InvalidArguments, match=r"low32\(zmm1\)"):
        low32(zmm)
    for kind, number in ("k", 8), ("zmm", 32), ("r64", 16), ("r64", -1), ("st", 0):
        with pytest.raises(InvalidArguments, match="does not exist"):
            register(kind, number)
