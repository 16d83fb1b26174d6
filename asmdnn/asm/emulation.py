"""`f.emulate(x, y, n, isa="avx512_core")`: a call that no CPU executes, of any level, which sees every access.

Arrays lie alone in an address space: an access beyond what `reads` and `writes` state is a fault, with its instruction.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from asmdnn.asm.converters import Converters
from asmdnn.asm.footprint import Reach, Reaches
from asmdnn.asm.machine import MachineCode
from asmdnn.asm.prototype import INTEGER_REGISTERS, CArgument, CType, Prototype
from asmdnn.emulator import EmulationFault, Emulator, MemoryRegion, Observer, PassedArguments, ReturnRegisters
from asmdnn.errors import InvalidArguments, shown
from asmdnn.isa.operands import register
from asmdnn.jit.native import ffi
from asmdnn.records import dataclass

CODE: Final = 0x7F00_0000_0000
FIRST: Final = 0x1000_0000_0000  # of an argument's bytes; arguments are so far from one another
MISALIGNED_BYTES: Final = 48  # elements are aligned, vectors of more than 16 bytes are not
WORD: Final = (1 << 64) - 1
FLOAT_FORMAT: Final = {"float": "<f", "double": "<d"}

__all__ = ["EmulatedCall", "EmulationFault", "emulate"]


@dataclass(frozen=True)
class EmulatedCall:
    """What a call did.  result: as the call itself gives it; instructions: how many were executed; touched: by pointer
    argument how many of its bytes were read, and written; features: the CPUID features of what was executed."""

    result: Any
    instructions: int
    touched: Mapping[str, tuple[int, int]]
    features: frozenset[str]


class CallObserver(Observer, Protocol):
    """Is told what is passed, too: registers by name, and of each array the one that points to it."""

    def begin(self, emulator: Emulator, passed: Mapping[str, bytes], pointers: Mapping[str, str]) -> None: ...


def emulate(
    prototype: Prototype,
    machine: MachineCode,
    extents: Reaches,
    given: Sequence[Any],
    most_instructions: int,
    observer: CallObserver | None = None,
) -> EmulatedCall:
    """Raises EmulationFault for an access outside what is stated, for what breaks the ABI, and for an instruction that
    the emulator does not know; InvalidArguments as a call does."""
    made = Converters(prototype, *extents)(given)
    sizes = [value for value, argument in zip(made, prototype.arguments, strict=True) if argument.type.is_integer]
    regions = [
        _region(argument, FIRST * (i + 1), value, extents, sizes)
        for i, (argument, value) in enumerate(zip(prototype.arguments, made, strict=True))
        if argument.type.is_pointer
    ]
    places = {region.name: region.address for region in regions}
    word = "most_instructions" if observer is None else "most_steps"
    if not isinstance(most_instructions, int) or most_instructions < 1:
        raise InvalidArguments(f"{word} must be an integer from 1 on, not {shown(most_instructions)}.")
    limit: dict[str, Any] = {"max_instructions": most_instructions, "limit_name": word}
    emulator = Emulator(regions, record=True, observer=observer, **limit)
    passed = _passed(prototype, [places.get(a.name, value) for a, value in zip(prototype.arguments, made, strict=True)])
    if observer is not None:
        observer.begin(emulator, *_entry(prototype, passed))
    left = emulator.call_function(machine.code.data, CODE, passed)
    footprints = emulator.footprints or {}
    touched = {name: (int(f.read.sum()), int(f.written.sum())) for name, f in footprints.items() if name in places}
    result = _result(prototype.result, left, regions)
    return EmulatedCall(result, emulator.instructions, touched, frozenset(emulator.features))


def _region(argument: CArgument, start: int, buffer: Any, extents: Reaches, sizes: Sequence[int]) -> MemoryRegion:
    """The bytes that a pointer may touch, and no more."""
    name = argument.name
    stated: list[Reach] = [side[name] for side in extents if name in side]
    size = max(extent.size(*sizes) for extent in stated)
    data = np.frombuffer(ffi.buffer(buffer), np.uint8)[: max(size, 0)]
    reads, writes = (name in side for side in extents)
    return MemoryRegion(name, start + MISALIGNED_BYTES, data, reads, writes)


def _passed(prototype: Prototype, values: Sequence[Any]) -> PassedArguments:
    """Registers and stack as System V says; what narrow values leave unspecified is garbage."""
    integers: list[int] = []
    floats: list[bytes] = []
    stack: list[int] = []
    for argument, value in zip(prototype.arguments, values, strict=True):
        ctype = argument.type
        if ctype.is_float:
            low = struct.pack(FLOAT_FORMAT[ctype.text], value)
            word = int.from_bytes(low, "little")
        else:
            bits = 64 if ctype.is_pointer else 8 * ctype.size_bytes
            word = (int(value) & (1 << bits) - 1 | 0xDEAD_BEEF_DEAD_BEEF << bits) & WORD
        if argument.on_stack:
            stack.append(word)
        elif ctype.is_float:
            floats.append(low)
        else:
            integers.append(word)
    return PassedArguments(tuple(integers), tuple(floats), tuple(stack))


def _entry(prototype: Prototype, passed: PassedArguments) -> tuple[dict[str, bytes], dict[str, str]]:
    """Registers that arguments are in, and which of them points to which array."""
    integers = zip(INTEGER_REGISTERS, passed.integers, strict=False)
    held = {str(register("r64", n)): value.to_bytes(8, "little") for n, value in integers}
    held |= {f"v{n}": low for n, low in enumerate(passed.floats)}
    pointers = {a.name: str(a.register) for a in prototype.arguments if a.type.is_pointer and not a.on_stack}
    return held, pointers


def _result(ctype: CType, left: ReturnRegisters, regions: Sequence[MemoryRegion]) -> Any:
    if ctype.is_void:
        return None
    if ctype.is_float:
        return struct.unpack_from(FLOAT_FORMAT[ctype.text], left.xmm0)[0]
    if ctype.is_pointer:
        return ffi.cast(ctype.ctype, _at_hand(left.rax, regions))
    value = left.rax & (1 << 8 * ctype.size_bytes) - 1
    return value - (1 << 8 * ctype.size_bytes) if value > ctype.range[1] else value


def _at_hand(pointer: int, regions: Sequence[MemoryRegion]) -> int:
    """Where an emulated pointer into an argument, or just after it, points to in this process."""
    for region in regions:
        if 0 <= pointer - region.address <= region.array.size:
            return int(region.array.ctypes.data) + pointer - region.address
    return pointer
