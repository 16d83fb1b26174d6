"""The assembler that kernel generators write to.

    asm = Assembler("scale")
    count, ptr = asm.gp.take("count"), asm.gp.take("data")
    x = asm.vectors(32, 16).take("x")
    asm.MOV(ptr, mem(asm.frame))
    asm.MOV(count, mem(asm.frame, 8))
    with asm.loop(count, "vectors"):
        asm.VMULPS(x, x, mem(ptr))
        asm.ADD(ptr, 32)
    asm.ret()
    code = asm.finish().data

A kernel is `void kernel(const int64_t *frame)` under the System V AMD64 ABI.  An assembler belongs to one thread; any
number of threads may each use their own.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from asmdnn.errors import InvalidArguments, shown
from asmdnn.isa.code import Code, Line
from asmdnn.isa.encoder import OPERAND_TYPES, InstructionEncoder, branch_of, encoder_of, plain_operand
from asmdnn.isa.ends import ends_of, fill
from asmdnn.isa.label import Label
from asmdnn.isa.layout import Align, Item, Jump, Piece, check_alignment, lay_out
from asmdnn.isa.memory_operand import OPERAND_BYTES, Pointer, mem, pool_pointer
from asmdnn.isa.notes import Note, Notes
from asmdnn.isa.operands import Register, high8, low32, rd_sae, register, rn_sae, rsp, ru_sae, rz_sae, sae
from asmdnn.isa.peachpy_forms import require_peachpy
from asmdnn.isa.pool import Pool
from asmdnn.isa.registers import CALLEE_SAVED, OutOfRegisters, RegisterFile, scalar_files, vector_file
from asmdnn.isa.stretches import STRETCHES, StretchRecorder

__all__ = [
    "Assembler", "Code", "Label", "Line", "OutOfRegisters", "Pointer", "Register", "RegisterFile",
    "high8", "low32", "mem", "rd_sae", "register", "rn_sae", "rsp", "ru_sae", "rz_sae", "sae",
]  # fmt: skip

Known = dict[tuple[Any, ...], tuple[bytes, bool]]  # by operands: the bytes, and whether VZEROUPPER is due after them

_STACK_ALIGNMENT_BYTES: Final = 16


class Assembler:
    """Collects instructions; `finish()` returns the bytes.

    Every instruction is a method of the Intel manual's name: `asm.VADDPS(dst, a, mem(ptr, 64))`.  LOCK_ADD and the like
    carry the LOCK prefix, VPDPBUSD_VEX and its family are the AVX_VNNI encodings.  Operands are registers, `mem(...)`,
    integers, rounding modes, and labels of jumps.  Raises InvalidArguments for operands that no form takes, or that
    leave the size of memory open; AttributeError for an unknown mnemonic; Unimplemented when PeachPy is missing.

    frame: rdi, the argument.  gp, masks, tiles: register files; see also `vectors()`.
    """

    def __init__(self, name: str, listing: bool = False) -> None:
        require_peachpy()
        self.name = name
        self.frame = register("r64", 7)
        self.gp, self.masks, self.tiles = scalar_files()
        self._vectors: RegisterFile | None = None
        self._prologue = Piece()
        self._piece = Piece()
        self._items: list[Item] = [self._prologue, self._piece]
        self._returns: list[Piece] = []
        self._labels: set[Label] = set()
        self._pool = Pool()
        self._notes = Notes(self._register_files, {self.frame: "frame", rsp: "stack"}) if listing else None
        self._met: set[Register] | None = None  # those that instructions named, where somebody wants to know
        self._role = ""
        self._touches_upper = False
        self._calls = False
        self._stack_bytes = 0

    def __getattr__(self, mnemonic: str) -> Callable[..., None]:
        emit = self._emitter(mnemonic) if mnemonic.isupper() else None
        if emit is None:
            raise AttributeError(f"{mnemonic} is neither an instruction nor a member of Assembler")
        setattr(self, mnemonic, emit)  # from now on found without __getattr__
        return emit

    def vectors(self, vector_bytes: int, count: int) -> RegisterFile:
        """The vector registers 0 to count - 1, of 16, 32 or 64 bytes; `.xmm`, `.ymm`, `.zmm` are the other views.

        Raises InvalidArguments when asked again for other ones, since all views share the registers.
        """
        wanted = vector_file(vector_bytes, count)
        if self._vectors is None:
            self._vectors = wanted
            if self._notes:
                self._notes.forget_holders()
        if self._vectors.registers != wanted.registers:
            title = self._vectors.title
            raise InvalidArguments(f"vectors({vector_bytes}, {count}): this kernel already uses the {title}")
        return self._vectors

    def const(self, data: bytes, align: int = 64, *, size: int = 0, broadcast: int = 0) -> Pointer:
        """Memory operand of `data` in the pool after the code, aligned to `align` bytes; equal data is stored once."""
        check_alignment(align)
        return pool_pointer(self._pool.add(data, align), size, broadcast)

    def jump_table(self, labels: Sequence[Label]) -> Pointer:
        """Where the pool has, for each label, its distance from here in bytes, an int32."""
        for label in labels:
            self._check_own(label)
        return pool_pointer(self._pool.add_table(labels), 0, 0)

    def new_label(self, name: str) -> Label:
        """A place to jump to, not yet bound; the name is for messages and listings."""
        label = Label(name)
        self._labels.add(label)
        return label

    def bind(self, label: Label) -> None:
        """The label is here.  Raises InvalidArguments when it is bound already or another assembler's."""
        self._check_own(label)
        if label.piece >= 0:
            raise InvalidArguments(f"label {label.name!r} is bound twice")
        if self._piece.data:
            self._append(Piece())
        label.piece = len(self._items) - 1
        if self._notes:
            self._notes.forget_values()

    @contextmanager
    def loop(self, counter: Register | Pointer, name: str) -> Iterator[Label]:
        """The body runs `counter` > 0 times, and leaves 0 in it.  Yields the label of the body's start."""
        start = self.new_label(name)
        self.bind(start)
        yield start
        self.SUB(counter, 1)
        self.JNZ(start)

    @contextmanager
    def repeated(self, count: int, counter: str, name: str) -> Iterator[None]:
        """The body runs `count` > 0 times, which a register taken as `counter` counts down."""
        with self.gp.taken(counter) as left:
            self.MOV(left, count)
            with self.loop(left, name):
                yield

    def align(self, alignment: int) -> None:
        """NOPs up to the next multiple of `alignment` bytes, a power of two up to 64."""
        check_alignment(alignment)
        self._append(Align(alignment, self._note(0, "NOP", ())))

    def role(self, text: str) -> None:
        """What the following instructions are for, as the listing says it; no effect on the bytes."""
        self._role = text

    def call_it(self, operand: Register | Pointer, name: str) -> None:
        """What the value in `operand` is called in the listing until it is overwritten; no effect on the bytes."""
        if self._notes:
            self._notes.call(operand, name)

    def call(self, target: Register | Pointer) -> None:
        """CALL with rsp a multiple of 16, provided the kernel itself leaves rsp alone.  Saves no register."""
        self._calls = True
        self.CALL(target)

    def stack(self, size_bytes: int) -> Pointer:
        """Memory of the kernel's own, aligned to 8 bytes, that lives until it returns; rsp must stay where it is."""
        slot = mem(rsp, self._stack_bytes, size=size_bytes if size_bytes in OPERAND_BYTES else 0)
        self._stack_bytes += -(-size_bytes // _STACK_ALIGNMENT_BYTES) * _STACK_ALIGNMENT_BYTES
        return slot

    def ret(self) -> None:
        """Leaves the kernel: VZEROUPPER if ymm or zmm registers are used anywhere, restore, RET."""
        piece = Piece(notes=[self._notes.add(0, "RET", (), self._role)] if self._notes else [])
        self._returns.append(piece)
        self._append(piece)

    def stretch(self, key: Hashable, emit: Callable[[], None]) -> None:
        """What `emit` emits, copied if it was emitted before; see stretches.py.  It is straight code, and depends on
        `key`, on what registers are taken for, and on nothing else."""
        if self._notes:  # every instruction has its own line
            emit()
            return
        files, touched = self._register_files(), self._touches_upper
        where = (key, self._stack_bytes, *(frozenset(file.holders()) for file in files))
        known = STRETCHES.get(where)
        if known is None:
            recorder, self._touches_upper = StretchRecorder(self._piece, self._pool, files), False
            emit()
            made = recorder.finish(self._piece, self._register_files(), self._touches_upper)
            if made and where[1] == self._stack_bytes:
                STRETCHES.put(where, made)
        else:
            known.paste(self._piece, self._pool, files)
            self._touches_upper = known.touches_upper
        self._touches_upper |= touched

    def finish(self) -> Code:
        """The code.  Raises InvalidArguments for a label that is jumped to but not bound."""
        save, restore, depth = ends_of(self._saved(), self._stack_bytes, self._calls, self._touches_upper)
        fill(self._prologue, save + self._arrivals(depth), self._notes, "save")
        for piece in self._returns:
            fill(piece, [*restore, ("RET",)], self._notes, "return")
        return lay_out(self._items, self._pool, self._notes)

    def _saved(self) -> list[Register]:
        """The callee-saved registers that the code uses."""
        return [reg for reg in (register("r64", n) for n in CALLEE_SAVED) if reg in self.gp.ever_taken]

    def _arrivals(self, depth_bytes: int) -> list[tuple[Any, ...]]:
        """Instructions after those that save; the return address is `depth_bytes` above rsp.  A kernel has none."""
        return []

    def _emitter(self, mnemonic: str) -> Callable[..., None] | None:
        encoder = encoder_of(mnemonic)
        if encoder is None:
            return None
        notes = self._notes
        known: Known = {}  # what was emitted before: unrolled code repeats itself

        def emit(*operands: Any) -> None:
            try:
                made = known.get(operands)
            except TypeError:  # a list, which is no operand
                made = None
            piece = self._piece
            data = piece.data
            start = len(data)
            if made is not None and (not operands or type(operands[-1]) in OPERAND_TYPES):  # and not 1.0 for 1
                data += made[0]
                if made[1]:
                    self._touches_upper = True
            elif operands and type(operands[0]) is Label and branch_of(mnemonic):
                self._jump(mnemonic, operands[0])
                return
            else:
                operands = self._encode(encoder, operands, known)
            if notes:
                piece.notes.append(notes.add(start, mnemonic, operands, self._role))

        emit.__name__ = mnemonic
        return emit

    def _encode(self, encoder: InstructionEncoder, operands: tuple[Any, ...], known: Known) -> tuple[Any, ...]:
        """Adds an instruction that was not emitted before, or depends on its place; its plain operands."""
        if self._met is not None:
            for operand in operands:
                if type(operand) is Register and operand not in self._met:
                    self._meet(encoder.mnemonic, operand)
        try:
            choice = encoder.choose(operands)
        except AttributeError:  # an operand without signature: numpy's integer, or a mistake
            operands = tuple(map(plain_operand, operands))
            choice = encoder.choose(operands)
        code = choice.encode(operands)
        piece = self._piece
        piece.data += code
        if choice.touches_upper:
            self._touches_upper = True
        if choice.is_kept:
            known[operands] = code, choice.touches_upper
        if choice.trailing < 0:
            return operands
        end = len(piece.data)
        label = next(operand.form.label for operand in operands if type(operand) is Pointer)
        if label is not None:
            self._check_own(label)
        piece.add_fix(end - choice.trailing - 4, end, label)
        return operands

    def _meet(self, mnemonic: str, operand: Register) -> None:
        """An instruction names a register for the first time."""
        if self._met is not None:
            self._met.add(operand)

    def _jump(self, mnemonic: str, target: Label) -> None:
        self._check_own(target)
        encoders = branch_of(mnemonic)
        assert encoders is not None
        self._append(Jump(target, self._note(0, mnemonic, (target,)), *encoders))

    def _check_own(self, label: Label) -> None:
        if not isinstance(label, Label):
            raise InvalidArguments(f"{shown(label)} is no label: make one by label(name), or new_label(name)")
        if label not in self._labels:
            raise InvalidArguments(f"label {label.name!r} belongs to another assembler than {self.name!r}")

    def _append(self, item: Item) -> None:
        self._items.append(item)
        if not isinstance(item, Piece) or item in self._returns:
            self._piece = Piece()
            self._items.append(self._piece)
        else:
            self._piece = item

    def _register_files(self) -> list[RegisterFile]:
        return [file for file in (self._vectors, self.masks, self.tiles, self.gp) if file]

    def _note(self, start: int, mnemonic: str, operands: tuple[Any, ...]) -> Note:
        if self._notes:
            return self._notes.at(self._notes.add(start, mnemonic, operands, self._role))
        return Note(start, mnemonic, operands, self._role)
