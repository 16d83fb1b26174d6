"""Calls of C functions and Python callables from the body of a function.

Whatever must live is stored to the function's own memory before, and loaded after; arguments go through memory, too,
so that no order of moves can overwrite one.  A call costs some cycles more than a compiler's; the callee much more.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from asmdnn.asm.function_assembler import FunctionAssembler
from asmdnn.asm.prototype import WORD_BYTES, CArgument, Prototype, parse_type
from asmdnn.errors import InvalidArguments, counted
from asmdnn.isa.assembler import Register, register
from asmdnn.isa.memory_operand import Pointer
from asmdnn.isa.operands import REGISTER_BYTES
from asmdnn.isa.registers import CALLEE_SAVED
from asmdnn.isa.vector import Vector
from asmdnn.jit.native import address, ffi, open_library
from asmdnn.records import dataclass, field

_RAX: Final = register("r64", 0)


@dataclass(frozen=True)
class CallTarget:
    """A function that may be called.  keep_alive: what its address needs to stay valid."""

    prototype: Prototype
    address: int
    keep_alive: Any = field(repr=False, compare=False)


def call_target(name: str, stated: object) -> CallTarget:
    """From an entry of calls=: a type for a function of libc or libm, or (type, address or Python callable).

    Raises InvalidArguments for a type that cannot be read, or a name that neither library exports.
    """
    text, where = stated if isinstance(stated, tuple) and len(stated) == 2 else (stated, None)
    if not isinstance(text, str):
        example = '"double(double)", or ("double(double)", callable)'
        raise InvalidArguments(f"calls[{name!r}] is {stated!r}: give a type such as {example}.")
    prototype = parse_type(text, name)
    if any(argument.on_stack for argument in prototype.arguments):
        raise InvalidArguments(f"calls[{name!r}] has arguments on the stack, which cannot be passed: at most 6 and 8.")
    if where is None:
        found = _exported(name, prototype)
        return CallTarget(prototype, address(found), found)
    if callable(where):
        made = _callback(prototype, where)
        return CallTarget(prototype, address(made), made)
    if isinstance(where, int) and where > 0:
        return CallTarget(prototype, where, None)
    raise InvalidArguments(f"calls[{name!r}] is at {where!r}, which is neither a callable nor an address.")


def emit_call(
    asm: FunctionAssembler, v: Vector, target: CallTarget, given: Sequence[Register], keep: Sequence[Register] | None
) -> Register | None:
    """The call, and the register that its result is in."""
    wanted = target.prototype.arguments
    if len(given) != len(wanted):
        raise InvalidArguments(f"call of {target.prototype} has {counted(len(given), 'argument')}.")
    for argument, reg in zip(wanted, given, strict=True):
        is_vector = isinstance(reg, Register) and reg.kind in ("xmm", "ymm", "zmm")
        if not isinstance(reg, Register) or is_vector != argument.type.is_float or reg.kind in ("k", "tmm"):
            raise InvalidArguments(f"argument {argument.name} of {target.prototype} cannot be {reg}.")
    taken = [reg for file in (asm.gp, v.registers, asm.masks) for reg, _ in file.holders()]
    kept = [(reg, _slot(asm, reg)) for reg in (taken if keep is None else keep) if not _survives(reg)]
    passed = [(a, _slot(asm, _view(reg)), _view(reg)) for a, reg in zip(wanted, given, strict=True)]
    for reg, slot in kept:
        _move(asm, slot, reg)
    for _, slot, reg in passed:
        _move(asm, slot, reg)
    asm.VZEROUPPER()  # the callee may be code for SSE, which dirty upper halves slow down
    for argument, slot, _ in passed:
        _move(asm, argument.register, slot)
    asm.MOV(_RAX, target.address)
    asm.call(_RAX)
    found = _result(asm, v, target.prototype)
    for reg, slot in kept:
        _move(asm, reg, slot)
    return found


def _result(asm: FunctionAssembler, v: Vector, prototype: Prototype) -> Register | None:
    if prototype.result.is_void:
        return None
    found: Register
    if prototype.result.is_float:
        found = v.registers.take(f"result of {prototype.name}")
        if found.id:
            asm.VMOVAPS(found.xmm, register("xmm", 0))
        return found.xmm
    found = asm.gp.take(f"result of {prototype.name}")
    if found is not _RAX:
        asm.MOV(found, _RAX)
    asm.extend(CArgument("result", prototype.result, 0, False), found)
    return found


def _survives(reg: Register) -> bool:
    return reg.kind == "r64" and reg.id in CALLEE_SAVED


def _view(reg: Register) -> Register:
    """As an argument is passed: 64 bits, or xmm."""
    if reg.kind in ("xmm", "ymm", "zmm"):
        return reg.xmm
    return register("r64", reg.id)


def _slot(asm: FunctionAssembler, reg: Register) -> Pointer:
    return asm.stack(max(REGISTER_BYTES[reg.kind], WORD_BYTES)).sized(max(REGISTER_BYTES[reg.kind], WORD_BYTES))


def _move(asm: FunctionAssembler, dst: Any, src: Any) -> None:
    reg = dst if isinstance(dst, Register) else src
    {"r64": asm.MOV, "k": asm.KMOVQ}.get(reg.kind, asm.VMOVUPS)(dst, src)


def _exported(name: str, prototype: Prototype) -> Any:
    for library in (None, "libm.so.6"):
        try:
            return open_library(library).load_function(prototype.pointer_type, name)
        except (AttributeError, OSError):
            continue
    raise InvalidArguments(f"calls[{name!r}] is in neither libc nor libm: give (type, address) or (type, callable).")


def _callback(prototype: Prototype, function: Callable[..., Any]) -> Any:
    """A C function that calls `function`; what that raises is kept for the outer call."""
    return ffi.callback(prototype.pointer_type, function, onerror=_keep_error)


def _keep_error(kind: type, error: BaseException, trace: object) -> None:
    _raised.error = error


def raise_pending() -> None:
    """Raises what a Python callable has raised in a call of this thread, which C cannot."""
    error = getattr(_raised, "error", None)
    if error is not None:
        _raised.error = None
        raise error


_raised = threading.local()
