"""The assembler of functions with arguments: it knows where they arrive, and refuses what would run astray."""

from typing import Any, Final

from asmdnn.asm.prototype import WORD_BYTES, CArgument, Prototype
from asmdnn.errors import InvalidArguments
from asmdnn.isa.assembler import Assembler, Code, Pointer, Register, low32, mem, register, rsp
from asmdnn.isa.encoder import mnemonics
from asmdnn.isa.layout import Item, Jump, Piece
from asmdnn.isa.notes import Note
from asmdnn.isa.registers import CALLEE_SAVED, CALLER_SAVED, RegisterFile

_RDI: Final = 7
_RBP: Final = register("r64", 5)
_CHANGE_RBX: Final = ("CPUID", "LOCK_CMPXCHG8B", "LOCK_CMPXCHG16B", "CMPXCHG8B", "CMPXCHG16B")  # without naming it
_RBX: Final = 3
_LEAVES: Final = ("JMP", "RET", "UD2")


class FunctionAssembler(Assembler):
    """As Assembler, for `prototype`: `arguments` are 64-bit and vector registers that hold them, by name."""

    def __init__(self, prototype: Prototype, *, frame_pointer: bool = False) -> None:
        super().__init__(prototype.name, listing=True)
        self.prototype = prototype
        self._frame_pointer = frame_pointer
        numbers = [n for n in (*CALLER_SAVED, _RDI, *CALLEE_SAVED) if not (frame_pointer and n == _RBP.id)]
        self.gp = RegisterFile("general-purpose registers", (register("r64", n) for n in numbers))
        self._met = set()
        self._named: set[int] = set()  # callee-saved registers that an instruction names
        self._late: list[tuple[str, Register, int]] = []  # loads of what the caller left on the stack

    def arrive(self, argument: CArgument, vectors: RegisterFile) -> Register:
        """The register that holds an argument from now on."""
        if not argument.on_stack:
            file = vectors if argument.type.is_float else self.gp
            place = argument.register
            found: Register = file.claim(register(file.registers[0].kind, place.id), argument.name)
        else:
            found = (vectors if argument.type.is_float else self.gp).take(argument.name)
            load = {"float": "VMOVSS", "double": "VMOVSD"}.get(argument.type.text, "MOV")
            self._late.append((load, found.xmm if argument.type.is_float else found, argument.place))
        return found.xmm if argument.type.is_float else found

    def extend(self, argument: CArgument, held: Register) -> None:
        """A narrow integer as the whole register's: of what is above it the ABI says nothing."""
        if argument.type.is_float or argument.type.size_bytes == WORD_BYTES:
            return
        narrow = register({1: "r8", 2: "r16", 4: "r32"}[argument.type.size_bytes], held.id)
        if argument.type.size_bytes == WORD_BYTES // 2:
            self.MOVSXD(held, narrow) if argument.type.is_signed else self.MOV(narrow, narrow)
        elif argument.type.is_signed:
            self.MOVSX(held, narrow)
        else:
            self.MOVZX(low32(held), narrow)

    def stack(self, size_bytes: int) -> Pointer:
        """As of kernels, but aligned to 16 bytes: rsp is a multiple of 16 after the prologue."""
        self._calls = True
        return super().stack(size_bytes)

    def finish(self) -> Code:
        """As of kernels; raises InvalidArguments for code that runs past its end."""
        self._check_end()
        return super().finish()

    def __getattr__(self, mnemonic: str) -> Any:
        try:
            return super().__getattr__(mnemonic)
        except AttributeError:
            if not mnemonic.isupper():
                raise
            import difflib

            near = difflib.get_close_matches(mnemonic, mnemonics(), 3)
            hint = f": did you mean {' or '.join(near)}?" if near else "."
            raise AttributeError(f"{mnemonic} is no instruction that is known here{hint}") from None

    def _emitter(self, mnemonic: str) -> Any:
        emit = super()._emitter(mnemonic)
        if mnemonic not in _CHANGE_RBX or emit is None:
            return emit

        def with_rbx(*operands: Any) -> None:
            self._named.add(_RBX)
            emit(*operands)

        return with_rbx

    def _meet(self, mnemonic: str, operand: Register) -> None:
        """An operand for the first time."""
        if operand.kind in ("r64", "r32", "r16", "r8", "high8"):
            if operand.id == rsp.id:
                raise InvalidArguments(f"{mnemonic} names {operand}: take local memory by local() instead.")
            if self._frame_pointer and operand.id == _RBP.id:
                raise InvalidArguments(f"{mnemonic} names {operand}, the frame pointer of {self.name!r}.")
            self._named.add(operand.id)
        super()._meet(mnemonic, operand)

    def _saved(self) -> list[Register]:
        """Those taken, and those that code names without taking them."""
        used = {reg.id for reg in self.gp.ever_taken} | self._named
        first = [_RBP] if self._frame_pointer else []
        return first + [register("r64", n) for n in CALLEE_SAVED if n in used]

    def _arrivals(self, depth_bytes: int) -> list[tuple[Any, ...]]:
        above = depth_bytes + WORD_BYTES  # the return address
        saved_rbp = mem(rsp, depth_bytes - WORD_BYTES)
        chain: list[tuple[Any, ...]] = [("LEA", _RBP, saved_rbp)] if self._frame_pointer else []
        return chain + [(load, reg, mem(rsp, above + WORD_BYTES * word)) for load, reg, word in self._late]

    def _check_end(self) -> None:
        """The last instruction leaves, and no label stands after it."""
        filled = [i for i, item in enumerate(self._items) if not (isinstance(item, Piece) and self._is_empty(item))]
        last = filled[-1] if filled else 0
        item = self._items[last]
        if isinstance(item, Jump):
            leaves = item.note.mnemonic == "JMP"
        else:
            note = self._last_note(item)
            leaves = item in self._returns or (note is not None and note.mnemonic in _LEAVES)
        trailing = [label for label in self._labels if label.piece > last and self._is_target(label)]
        if trailing or not leaves:
            what = f"label {trailing[0].name!r} stands" if trailing else "code runs"
            note = self._last_note(item)
            where = f" ({note.source})" if note else ""
            raise InvalidArguments(f"{what} after the last instruction of {self.name!r}{where}: end it by ret().")

    def _last_note(self, item: Item) -> Note | None:
        if not isinstance(item, Piece):
            return item.note
        return self._notes.at(item.notes[-1]) if self._notes and item.notes else None

    def _is_empty(self, piece: Piece) -> bool:
        return not piece.data and piece not in self._returns

    def _is_target(self, label: object) -> bool:
        jumps = (item.target for item in self._items if isinstance(item, Jump))
        addressed = (at for item in self._items if isinstance(item, Piece) for *_, at in item.label_fixes)
        tables = (target for table in self._pool.tables for target in table.targets)
        return any(target is label for target in (*jumps, *tables, *addressed))
