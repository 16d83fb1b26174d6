"""What the semantics see of an instruction: its operands as views and closures, bound once when it is decoded."""

from collections.abc import Callable
from typing import NoReturn

import numpy as np
from iced_x86 import Instruction, MemorySizeExt, OpKind, Register, RegisterExt, RoundingControl

from asmdnn.emulator.cpu import Cpu, mask_array
from asmdnn.emulator.memory import BITS64, Array
from asmdnn.records import dataclass

Step = Callable[[], int | None]  # only the last step of a block returns something: the offset to go on at
Fill = Callable[[Array], object]  # computes a result into the array it is given, which may be one of its sources


class Unsupported(Exception):
    """This form is not implemented; it becomes an EmulationFault if it is ever executed."""


@dataclass(slots=True)
class Operands:
    """One decoded instruction of a code of `code_size` bytes; its `ip` is the offset in the code."""

    cpu: Cpu
    ins: Instruction
    name: str
    code_size: int

    def is_memory(self, i: int) -> bool:
        return bool(self.ins.op_kind(i) == OpKind.MEMORY)

    def is_register(self, i: int) -> bool:
        return bool(self.ins.op_kind(i) == OpKind.REGISTER)

    def number(self, i: int) -> int:
        full = RegisterExt.full_register(self.ins.op_register(i))  # because sil has number 10 among 8-bit registers
        return int(RegisterExt.number(full))

    def size(self, i: int) -> int:
        """Bytes of a register, or of what is accessed of the memory operand: an element when it is broadcast."""
        if self.is_register(i):
            return int(RegisterExt.size(self.ins.op_register(i)))
        return int(self.memory_size)

    @property
    def memory_size(self) -> int:
        return int(MemorySizeExt.size(self.ins.memory_size))

    @property
    def vector_size(self) -> int:
        """Bytes of the widest vector register among the operands: the vector length."""
        registers = [self.ins.op_register(i) for i in range(self.ins.op_count) if self.is_register(i)]
        sizes = [RegisterExt.size(r) for r in registers if RegisterExt.is_vector_register(r)]
        return int(max(sizes))

    def immediate(self, size: int = 1) -> int:
        """The last operand's value, `size` bytes of it."""
        return int(self.ins.immediate(self.ins.op_count - 1)) & ((1 << 8 * size) - 1)

    def unsupported(self, what: str) -> NoReturn:
        raise Unsupported(what)

    def only_default_rounding(self) -> None:
        if self.ins.rounding_control not in (RoundingControl.NONE, RoundingControl.ROUND_TO_NEAREST):
            self.unsupported("embedded rounding other than to nearest")

    # -- addresses ------------------------------------------------------------------------------------------------

    def address(self) -> Callable[[], int]:
        """A closure that computes the memory operand's effective address."""
        ins, gpr, cpu = self.ins, self.cpu.gpr, self.cpu
        if ins.segment_prefix != Register.NONE:
            self.unsupported("a segment prefix")
        displacement = int(ins.memory_displacement)
        if ins.is_ip_rel_memory_operand:  # decoded at ip = offset, so this is relative to the code's start
            return lambda: (cpu.code_base + displacement) & BITS64
        if displacement >> 63:
            displacement -= 1 << 64
        base, index, scale = ins.memory_base, ins.memory_index, ins.memory_index_scale
        if RegisterExt.is_vector_register(index):
            index = Register.NONE  # a gather: the caller adds the indices
        for register in (base, index):
            if register != Register.NONE and not RegisterExt.is_gpr64(register):
                self.unsupported("an address of 32 bits")
        b, x = RegisterExt.number(base), RegisterExt.number(index)
        if base == Register.NONE:
            if index == Register.NONE:
                return lambda: displacement & BITS64
            return lambda: (gpr[x] * scale + displacement) & BITS64
        if index == Register.NONE:
            return lambda: (gpr[b] + displacement) & BITS64
        return lambda: (gpr[b] + gpr[x] * scale + displacement) & BITS64

    # -- integers -------------------------------------------------------------------------------------------------

    def read_int(self, i: int) -> Callable[[], int]:
        """A closure for operand i as an unsigned integer of its own size (immediates: sign-extended to 64 bits)."""
        if self.is_memory(i):
            address, size, load_int = self.address(), self.size(i), self.cpu.memory.load_int
            return lambda: load_int(address(), size)
        if not self.is_register(i):
            value = int(self.ins.immediate(i))
            return lambda: value
        gpr, n, size = self.cpu.gpr, self.number(i), self._gpr_size(i)
        if self._is_high_byte(i):
            return lambda: gpr[n] >> 8 & 0xFF
        if size == 8:
            return lambda: gpr[n]
        low = (1 << 8 * size) - 1
        return lambda: gpr[n] & low

    def write_int(self, i: int) -> Callable[[int], None]:
        """A closure that stores the low bits of a value in operand i; a 32-bit register's upper half becomes zero."""
        size = self.size(i)
        low = (1 << 8 * size) - 1
        if self.is_memory(i):
            address, store_int = self.address(), self.cpu.memory.store_int
            return lambda value: store_int(address(), size, value)
        gpr, n = self.cpu.gpr, self.number(i)
        if self._is_high_byte(i):

            def write_high(value: int) -> None:
                gpr[n] = gpr[n] & ~0xFF00 | (value & 0xFF) << 8

            return write_high
        keep = BITS64 ^ low if self._gpr_size(i) < 4 else 0

        def write(value: int) -> None:
            gpr[n] = gpr[n] & keep | value & low

        return write

    def _gpr_size(self, i: int) -> int:
        register = self.ins.op_register(i)
        if not RegisterExt.is_gpr(register):
            self.unsupported("this kind of register")
        return int(RegisterExt.size(register))

    def _is_high_byte(self, i: int) -> bool:
        return self.ins.op_register(i) in (Register.AH, Register.BH, Register.CH, Register.DH)

    # -- vectors --------------------------------------------------------------------------------------------------

    def vector(self, i: int, dtype: type, size: int | None = None) -> Array:
        """Register operand i as `dtype` lanes: all of it, or the low `size` bytes."""
        itemsize = np.dtype(dtype).itemsize
        return self.cpu.vector(self.number(i), dtype, (self.size(i) if size is None else size) // itemsize)

    def active(self, lanes: int) -> Callable[[], Array] | None:
        """A closure for the write mask as booleans; None when every lane is written."""
        if self.ins.op_mask == Register.NONE:
            return None
        k, n = self.cpu.k, RegisterExt.number(self.ins.op_mask)
        return lambda: mask_array(k[n], lanes)

    def source(self, i: int, dtype: type, size: int, *, masked: bool = True) -> Callable[[], Array]:
        """A closure for `size` bytes of operand i: a register, or memory, which is broadcast if the form says so.

        Memory that the write mask switches off is not accessed, unless the instruction has no such rule (`masked`).
        """
        if self.is_register(i):
            view = self.vector(i, dtype, size)
            return lambda: view
        itemsize = np.dtype(dtype).itemsize
        count = size // itemsize
        active = self.active(count) if masked else None
        if self.ins.is_broadcast:
            return self._broadcast(dtype, count, active)
        address, load, load_masked = self.address(), self.cpu.memory.load, self.cpu.memory.load_masked
        if active is None:
            return lambda: load(address(), size, dtype, count)
        out: Array = np.empty(count, dtype)

        def read() -> Array:
            load_masked(address(), active(), out)
            return out

        return read

    def _broadcast(self, dtype: type, count: int, active: Callable[[], Array] | None) -> Callable[[], Array]:
        address, load = self.address(), self.cpu.memory.load
        out: Array = np.empty(count, dtype)
        itemsize = out.itemsize

        def read() -> Array:
            if active is None or active().any():
                out[:] = load(address(), itemsize, dtype, 1)
            return out

        return read

    def define(self, dtype: type, fill: Fill, size: int | None = None) -> Step:
        """The step that sets operand 0 to what `fill` computes: merged or zeroed under the mask, zero above `size`."""
        if self.is_memory(0):
            return self._define_memory(dtype, fill)
        cpu, number = self.cpu, self.number(0)
        size = self.size(0) if size is None else size
        out = self.vector(0, dtype, size)
        width, settle, active = cpu.width, cpu.settle, self.active(len(out))
        if active is None:

            def step() -> None:
                fill(out)
                if width[number] != size:
                    settle(number, size)

            return step
        result, zeroing = np.empty_like(out), self.ins.zeroing_masking

        def masked_step() -> None:
            fill(result)
            lanes = active()
            if zeroing:
                out[~lanes] = 0
            np.copyto(out, result, where=lanes)
            settle(number, size)

        return masked_step

    def define_low(self, bits: type, lane: Callable[[], Array]) -> Step:
        """The step that sets lane 0 of operand 0, if the mask says so; the others of 128 bits are operand 1's."""
        cpu, number, whole, out = self.cpu, self.number(0), self.vector(1, bits, 16), self.vector(0, bits, 16)
        active, zeroing = self.active(1), self.ins.zeroing_masking

        def step() -> None:
            low: Array = lane().view(bits).copy()
            if active is not None and not active()[0]:
                low = np.zeros(1, bits) if zeroing else out[:1].copy()
            out[:] = whole
            out[:1] = low
            cpu.settle(number, 16)

        return step

    def _define_memory(self, dtype: type, fill: Fill) -> Step:
        size, itemsize = self.memory_size, np.dtype(dtype).itemsize
        address, store, store_masked = self.address(), self.cpu.memory.store, self.cpu.memory.store_masked
        result: Array = np.empty(size // itemsize, dtype)
        active = self.active(len(result))

        def step() -> None:
            fill(result)
            store(address(), size, dtype, len(result))[:] = result

        def masked_step() -> None:
            fill(result)
            store_masked(address(), active(), result)  # type: ignore[misc]

        return step if active is None else masked_step
