"""A function at one ISA level: what its body writes, and where that lies."""

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from asmdnn.asm.builder import FunctionBuilder
from asmdnn.asm.calls import CallTarget
from asmdnn.asm.levels import FunctionLevel, check_features
from asmdnn.asm.prototype import Prototype
from asmdnn.errors import Unimplemented
from asmdnn.isa.code import Code

if TYPE_CHECKING:
    from asmdnn.jit.kernels import LoadedKernel

Body = Callable[..., None]


class MachineCode:
    """A function at one ISA level: its code, and, on a CPU that has the level, its address."""

    def __init__(self, prototype: Prototype, level: FunctionLevel, code: Code, keep_alive: object) -> None:
        self.prototype, self.level, self.code, self.keep_alive = prototype, level, code, keep_alive
        self._lock = threading.Lock()
        self._loaded: LoadedKernel | None = None

    def load(self) -> "LoadedKernel":
        """In executable memory; profilers are told.  Raises Unimplemented on a CPU that lacks the level."""
        with self._lock:
            if self._loaded is None:
                self._loaded = load_code(self.prototype, self.level, self.code.data, "generated")
            return self._loaded


def load_code(prototype: Prototype, level: FunctionLevel, data: bytes, origin: str) -> "LoadedKernel":
    """The bytes in executable memory; profilers are told.  Raises Unimplemented on a CPU that lacks the level."""
    from asmdnn.jit.frames import announce_frames  # not before a function runs: a listing needs no memory
    from asmdnn.jit.kernels import Fetched, mapped

    if missing := ", ".join(level.missing()):
        what = f"{prototype.name} at {level.name} needs {missing}"
        raise Unimplemented(f"{what}, which this CPU lacks: prove it, or read its listing.")
    (loaded,) = mapped([Fetched(prototype.name, data, origin)])
    announce_frames(data, loaded.address, loaded.keep_alive)
    return loaded


def written(
    body: Body,
    prototype: Prototype,
    level: FunctionLevel,
    calls: Mapping[str, CallTarget],
    *,
    frame_pointer: bool = False,
) -> MachineCode:
    """The code that `body` writes.  Raises what it raises, and InvalidArguments for code that cannot be right."""
    builder = FunctionBuilder(prototype, level, calls, frame_pointer=frame_pointer)
    body(builder, *builder.arguments())
    builder.check_blocks()
    code = builder.asm.finish()
    check_features(prototype.name, level, code)
    return MachineCode(prototype, level, code, [target.keep_alive for target in calls.values()])
