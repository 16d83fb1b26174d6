"""What the body of a function writes to: instructions, structure, constants, memory of its own, results."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from asmdnn.asm.calls import CallTarget, emit_call
from asmdnn.asm.function_assembler import FunctionAssembler
from asmdnn.asm.levels import FunctionLevel
from asmdnn.asm.prototype import Prototype
from asmdnn.asm.structure import Structure
from asmdnn.errors import InvalidArguments
from asmdnn.isa.assembler import Label, Pointer, Register, RegisterFile, register
from asmdnn.isa.encoder import mnemonics
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of

INSTEAD: Final[Mapping[str, str]] = {
    **dict.fromkeys(("RET", "RETF", "RETFQ", "IRET", "IRETD", "IRETQ"), "ret(value), which restores what was changed"),
    "CALL": "call(name, ...), which passes arguments and keeps registers",
    "PUSH": "local(), since rsp stays where it is",
    "POP": "local(), since rsp stays where it is",
    "ENTER": "local(), since rsp stays where it is",
    "LEAVE": "local(), since rsp stays where it is",
    **dict.fromkeys(("PUSHF", "PUSHFW", "PUSHFQ", "POPF", "POPFW", "POPFQ"), "SETcc, since rsp stays where it is"),
}


class FunctionBuilder(Structure):
    """The `f` of `def dot(f, x, y, n)`.

    Every instruction is a method of the Intel manual's name: `f.ADD(x, 32)`, `f.VADDPS(dst, a, mem(x))`.
    isa: the ISA level, such as "avx2".  gp, masks, tiles: register files; `f.gp.take("purpose")` hands out a register.
    frame_pointer: rbp is not for the body, as it points to the caller's.
    Callee-saved registers are saved whether taken or named.  A wrong operand raises at the line that wrote it.
    """

    def __init__(
        self,
        prototype: Prototype,
        level: FunctionLevel,
        calls: Mapping[str, CallTarget],
        *,
        frame_pointer: bool = False,
    ) -> None:
        self.isa = level.name
        self.prototype = prototype
        self._calls = calls
        self._blocks = []
        self.asm = FunctionAssembler(prototype, frame_pointer=frame_pointer)
        self.gp, self.masks, self.tiles = self.asm.gp, self.asm.masks, self.asm.tiles
        self._vector = vector_of(level.base, self.asm)

    def arguments(self) -> list[Register]:
        """Their registers, as the body gets them: 64-bit ones, and vectors whose lowest lane is the number."""
        self.role("arguments")
        found = [self.asm.arrive(argument, self._vector.registers) for argument in self.prototype.arguments]
        for argument, held in zip(self.prototype.arguments, found, strict=True):
            self.asm.extend(argument, held)
        self.role("")
        return found

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name in INSTEAD:
            raise AttributeError(f"{name} is not for the body of a function: use {INSTEAD[name]}.")
        if not name.isupper():
            near = f": did you mean {name.upper()}?" if name.upper() in mnemonics() else "."
            raise AttributeError(f"{name} is neither an instruction nor a member of the function's builder{near}")
        emit: Callable[..., None] = self._jump if name == "JMP" else getattr(self.asm, name)
        setattr(self, name, emit)
        return emit

    def _jump(self, target: Label) -> None:
        if not isinstance(target, Label):
            raise InvalidArguments(f"JMP {target} goes anywhere: use switch(), which jumps by a table.")
        self.asm.JMP(target)

    def vector(self, element: str = "f32") -> Vector:
        """Vectors of the level's width: loads, stores, tails, sums; `v.lanes`, `v.bytes`, `v.registers`.

        Raises InvalidArguments for elements other than "f32": write their instructions on `v.registers`.
        """
        if element != "f32":
            raise InvalidArguments(
                f"vector({element!r}) is not known: vector('f32').registers hands out registers for any instruction."
            )
        return self._vector

    def vectors(self) -> RegisterFile:
        """The vector registers of the level, ymm or zmm; `.xmm`, `.ymm`, `.zmm` of one are its other views."""
        return self._vector.registers

    def label(self, name: str) -> Label:
        """A place to jump to, bound by `bind`."""
        return self.asm.new_label(name)

    def bind(self, label: Label) -> None:
        """The label is here."""
        self.asm.bind(label)

    def const(self, data: object, align: int = 64, *, size: int = 0, broadcast: int = 0) -> Pointer:
        """The operand of constants after the code: bytes, or any array; as `Assembler.const`."""
        return self.asm.const(memoryview(data).tobytes(), align, size=size, broadcast=broadcast)  # type: ignore[arg-type]

    def table(self, data: object, align: int = 64) -> Register:
        """A register that holds the address of constants, for operands with an index; free it after use."""
        at: Register = self.gp.take("table")
        self.asm.LEA(at, self.const(data, align))
        return at

    def local(self, size_bytes: int) -> Pointer:
        """Memory of one call, aligned to 16 bytes, that lives until the function returns."""
        if not 0 < size_bytes <= 1 << 20:
            raise InvalidArguments(f"local({size_bytes}) is not from 1 to 1048576 bytes.")
        return self.asm.stack(size_bytes)

    def align(self, alignment: int) -> None:
        """NOPs up to the next multiple of `alignment` bytes, a power of two up to 64."""
        self.asm.align(alignment)

    def role(self, text: str) -> None:
        """What the following instructions are for, as the listing says it."""
        self.asm.role(text)

    def call(self, name: str, *arguments: Register, keep: Sequence[Register] | None = None) -> Register | None:
        """Calls what `calls=` of the function says under `name`; the register of the result, None of a void one.

        keep: the registers that must live across the call; by default all that are taken.  All others are lost.
        Raises InvalidArguments for an unknown name, and for arguments that do not fit its type.
        """
        if name not in self._calls:
            known = ", ".join(map(repr, self._calls)) or "nothing"
            raise InvalidArguments(f"call({name!r}) is not stated: calls= of {self.prototype.name!r} has {known}.")
        return emit_call(self.asm, self._vector, self._calls[name], arguments, keep)

    def ret(self, value: Register | Pointer | int | None = None) -> None:
        """Leaves the function with this result: a register, an operand, or an integer.

        Raises InvalidArguments for a value of another kind than the prototype's result.
        """
        result = self.prototype.result
        if (value is None) != result.is_void:
            what = "a value" if value is not None else "no value"
            raise InvalidArguments(f"ret() has {what}, where {self.prototype.name!r} gives {result}.")
        if value is not None:
            self._give(value, result.text, result.is_float)
        self.asm.ret()

    def _give(self, value: Register | Pointer | int, text: str, is_float: bool) -> None:
        is_vector = isinstance(value, Register) and value.kind in ("xmm", "ymm", "zmm")
        if isinstance(value, Register) and is_vector != is_float:
            raise InvalidArguments(f"ret({value}) is not of the kind of {text}, which {self.prototype.name!r} gives.")
        if not is_float:
            to = register(value.kind, 0) if isinstance(value, Register) else register("r64", 0)
            if value != to:
                self.asm.MOV(to, value)
        elif isinstance(value, Register):
            if value.id:
                self.asm.VMOVAPS(register("xmm", 0), value.xmm)
        elif isinstance(value, Pointer):
            {"float": self.asm.VMOVSS, "double": self.asm.VMOVSD}[text](register("xmm", 0), value)
        else:
            raise InvalidArguments(f"ret({value}) is an integer, where {self.prototype.name!r} gives {text}.")
