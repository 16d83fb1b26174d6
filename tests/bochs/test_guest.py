"""The emulated CPU itself: what it computes, and what it does not let pass."""

import numpy as np
import pytest

from asmdnn.jit.executable import ExecutableMemory

pytest.importorskip("bochscpu", reason="bochscpu-python is not installed, or needs a newer libc", exc_type=ImportError)

from tests.bochs.guest import GuestFault, guest

# vmovups zmm0, [rdi]; vaddps zmm0, zmm0, zmm0; vmovups [rdi], zmm0; ret
DOUBLE = bytes.fromhex("62f17c481007 62f17c4858c0 62f17c481107 c3")


_kept: list[ExecutableMemory] = []  # Bochs keeps what it has decoded by address


def call(code: bytes, argument: int) -> None:
    memory = ExecutableMemory([code])
    _kept.append(memory)
    guest().call(memory.addresses[0], argument)


def test_it_works_on_the_memory_of_this_process() -> None:
    for _ in range(3):
        values = np.arange(16, dtype=np.float32)
        call(DOUBLE, values.ctypes.data)
        assert (values == 2 * np.arange(16)).all()


def test_memory_that_is_mapped_later_is_there_too() -> None:
    large = np.zeros(3 << 28, np.float32)[-16:]  # beyond every GiB that has been there
    large[:] = 4
    call(DOUBLE, large.ctypes.data)
    assert (large == 8).all()


def test_an_access_to_what_is_not_mapped() -> None:
    values = np.ones(16, np.float32)
    with pytest.raises(GuestFault, match=r"nothing is mapped|exception 14"):
        call(DOUBLE, 0x10_0000_0000)
    call(DOUBLE, values.ctypes.data)
    assert (values == 2).all()  # it goes on


@pytest.mark.parametrize(
    "code, message",
    [("bb01000000 c3", "another rbx"), ("6a00 c3", "exception"), ("0f0b", "exception 6")],
    ids=["a register is lost", "the stack is not what it was", "no instruction"],
)
def test_rules_of_the_abi(code: str, message: str) -> None:
    with pytest.raises(GuestFault, match=message):
        call(bytes.fromhex(code), 0)
