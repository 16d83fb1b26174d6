import re

import numpy as np
import pytest

from asmdnn.errors import InvalidArguments
from asmdnn.isa.assembler import mem, register, rsp

RAX, RSI, EAX = register("r64", 0), register("r64", 6), register("r32", 0)
ZMM, K1 = register("zmm", 17), register("k", 1)


def test_text() -> None:
    assert str(mem(RAX)) == "[rax]"
    assert str(mem(RAX, -8, index=RSI, scale=4, size=8)) == "qword [rax+rsi*4-8]"
    assert str(mem(None, 16, index=RSI, scale=8)) == "[rsi*8+16]"
    assert str(mem(RAX, 4, size=4, broadcast=16)) == "dword [rax+4]{1to16}"
    assert str(mem(RAX, index=ZMM).masked(K1)) == "[rax+zmm17]{k1}"


def test_derived_operands() -> None:
    pointer = mem(RAX, 8, size=4)
    assert pointer.shifted(56) == mem(RAX, 64, size=4)
    assert pointer.broadcast_to(8) == mem(RAX, 8, size=4, broadcast=8)
    assert mem(RAX).broadcast_to(16) == mem(RAX, size=4, broadcast=16)
    assert mem(RAX, size=8).broadcast_to(8) == mem(RAX, size=8, broadcast=8)
    assert pointer.sized(2) == mem(RAX, 8, size=2)


def test_numpy_integers_are_displacements_and_floats_are_not() -> None:
    assert mem(RAX, np.int32(-8)) == mem(RAX, -8)
    with pytest.raises(TypeError):
        mem(RAX, 8.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("disp", [2**31, -(2**31) - 1])
def test_displacements_have_32_bits(disp: int) -> None:
    assert mem(RAX, 2**31 - 1).displacement == 2**31 - 1
    with pytest.raises(InvalidArguments, match=f"displacement {disp} does not fit 32 bits"):
        mem(RAX, disp)
    with pytest.raises(InvalidArguments, match="does not fit"):
        mem(RAX, 0).shifted(disp)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base": None}, "needs a base or an index"),
        ({"base": EAX}, "base eax is not a 64-bit"),
        ({"base": RAX, "index": rsp}, "index rsp is not"),
        ({"base": RAX, "index": EAX}, "index eax is not"),
        ({"base": RAX, "index": ZMM.masked(K1)}, "index zmm17{k1} is not"),
        ({"base": RAX, "index": RSI, "scale": 3}, "scale 3 is not 1, 2, 4 or 8"),
        ({"base": RAX, "size": 3}, "size 3 is not an operand size"),
        ({"base": RAX, "broadcast": 16}, "broadcast 16 with size 0"),
        ({"base": RAX, "size": 8, "broadcast": 16}, "broadcast 16 with size 8"),
        ({"base": RAX, "index": ZMM, "size": 4, "broadcast": 16}, "broadcast 16 with the vector index zmm17"),
    ],
)
def test_impossible_addresses(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArguments, match=re.escape(message)):
        mem(**arguments)  # type: ignore[arg-type]


def test_impossible_masks() -> None:
    with pytest.raises(InvalidArguments, match="cannot be masked with k0"):
        mem(RAX).masked(register("k", 0))
    with pytest.raises(InvalidArguments, match="is a broadcast source"):
        mem(RAX, size=4, broadcast=16).masked(K1)
