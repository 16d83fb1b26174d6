"""The only file that touches PeachPy: its instruction classes, asked which encoders fit given operands.

Nothing of PeachPy is modified.  An instruction class is instantiated with its constructor bound to a private namespace:
a copy of its module's globals in which

- prefix and ModRM helpers are those of `encoding.py`, so the encoder lambdas run on this package's operands;
  with those operands PeachPy's wrong displacements of broadcasts and its self-masked k destinations cannot arise;
- `peachpy.stream.active_stream` is None and the debug level 0, whatever another user of PeachPy in this process does.

Hence generation shares no state with PeachPy and any number of threads may generate at once.
"""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from functools import cache
from types import FunctionType, SimpleNamespace
from typing import Any, Final

from asmdnn.errors import Unimplemented
from asmdnn.forking import importing
from asmdnn.isa import encoding
from asmdnn.isa.memory_operand import Encode, Operand, Pointer
from asmdnn.isa.operands import EmbeddedRounding, Register, register
from asmdnn.isa.peachpy_version import PEACHPY_VERSION

_ACCUMULATOR: Final = {0x01: 0, 0x02: 1}  # encoder flag -> operand that must be al, ax, eax or rax
_LABEL_SHORT: Final = 0x04
_PEACHPY_KINDS: Final = {
    "r8": "GeneralPurposeRegister8", "r16": "GeneralPurposeRegister16", "r32": "GeneralPurposeRegister32",
    "r64": "GeneralPurposeRegister64", "mm": "MMXRegister", "k": "KRegister",
    "xmm": "XMMRegister", "ymm": "YMMRegister", "zmm": "ZMMRegister",
}  # fmt: skip


def peachpy_status() -> tuple[bool, str]:
    """(usable, one line): whether PeachPy can be imported in the right version, else the command that installs it."""
    if importlib.util.find_spec("peachpy") is None:
        return False, f"PeachPy is not installed, and generating a kernel needs it: run  {setup_command()}"
    if importlib.util.find_spec("six") is None:
        return False, f"six is not installed, and PeachPy needs it: run  {sys.executable} -m pip install six"
    found = importlib.import_module("peachpy").__version__
    if found != PEACHPY_VERSION:
        return False, f"PeachPy {found} is installed but {PEACHPY_VERSION} is needed: run  {setup_command()}"
    return True, f"PeachPy {PEACHPY_VERSION}"


def setup_command() -> str:
    """The command that gets PeachPy for this Python; the package index has no usable one."""
    with importing():
        import shutil
        from pathlib import Path

    found = shutil.which("asmdnn")
    is_ours = found is not None and Path(found).parent == Path(sys.executable).parent
    return "asmdnn setup" if is_ours else f"{sys.executable} -m asmdnn setup"


def require_peachpy() -> None:
    """Raises Unimplemented with the way out when kernels cannot be generated here."""
    _library()


@cache
def _library() -> Any:
    with importing():
        usable, text = peachpy_status()
        if not usable:
            raise Unimplemented(text)
        names = ("operand", "registers", "pseudo")
        modules = {name: importlib.import_module(f"peachpy.x86_64.{name}") for name in names}
        return SimpleNamespace(table=vars(importlib.import_module("peachpy.x86_64")), **modules)


def is_known(mnemonic: str) -> bool:
    """Whether PeachPy has an instruction of that name."""
    return inspect.isclass(_library().table.get(mnemonic)) and hasattr(_library().table[mnemonic], "encode")


@cache
def known_names() -> tuple[str, ...]:
    """Every instruction of PeachPy."""
    return tuple(name for name in _library().table if name.isupper() and is_known(name))


def forms_of(mnemonic: str) -> list[str]:
    """The operand forms PeachPy documents, e.g. ["ADD(r32, r32/m32)", ...]."""
    text = inspect.getdoc(_library().table[mnemonic].__init__) or ""
    return [line[2:].strip() for line in map(str.strip, text.splitlines()) if line.startswith("* ")]


def encoders_of(mnemonic: str, operands: Sequence[Operand]) -> tuple[Encode, ...]:
    """Every encoder that PeachPy offers for these operands; none when there is no such form.

    Each one is valid for all operands of equal `signature` (and immediates of the same class, see `encoder.py`).
    """
    try:
        candidates = _instantiate(mnemonic, [_native(operand) for operand in operands])
    except (SyntaxError, ValueError, TypeError, AssertionError, AttributeError):
        return ()
    return tuple(encode for flags, encode in candidates if _accumulator_fits(flags, operands))


@cache
def branch_encoders(mnemonic: str) -> tuple[Callable[[int], bytes] | None, Callable[[int], bytes] | None] | None:
    """(short, near) encoders of a jump to a label, each taking the displacement; None when it takes no label."""
    if not is_known(mnemonic):
        return None
    try:
        candidates = _instantiate(mnemonic, [_library().pseudo.Label("target")])
    except SyntaxError:
        return None
    short = [encode for flags, encode in candidates if flags & _LABEL_SHORT]
    near = [encode for flags, encode in candidates if not flags & _LABEL_SHORT]
    return (short[0] if short else None), (near[0] if near else None)


def _accumulator_fits(flags: int, operands: Sequence[Operand]) -> bool:
    needed = [operands[position] for flag, position in _ACCUMULATOR.items() if flags & flag]
    return all(isinstance(operand, Register) and operand.id == 0 for operand in needed)


def _instantiate(mnemonic: str, operands: Sequence[Any]) -> list[tuple[int, Any]]:
    cls, construct = _constructor(mnemonic)
    instruction = cls.__new__(cls)
    construct(instruction, *operands)
    return list(instruction.encodings)


@cache
def _constructor(mnemonic: str) -> tuple[Any, FunctionType]:
    cls = _library().table[mnemonic]
    init = cls.__init__
    return cls, FunctionType(init.__code__, _namespace(cls.__module__), "__init__", None, init.__closure__)


@cache
def _namespace(module: str) -> dict[str, Any]:
    names = dict(vars(sys.modules[module]))
    helpers = ("optional_rex", "rex", "vex2", "vex3", "evex", "modrm_sib_disp", "is_r8rex")
    names.update({name: getattr(encoding, name) for name in helpers})
    names["check_operand"], names["format_operand_type"] = _unchanged, _no_text
    options = SimpleNamespace(get_debug_level=lambda: 0)
    isa = sys.modules["peachpy.x86_64.isa"]
    quiet = SimpleNamespace(
        stream=SimpleNamespace(active_stream=None),
        x86_64=SimpleNamespace(options=options, isa=isa, registers=_library().registers),
    )
    names["peachpy"] = quiet
    return names


def _no_text(operand: Any) -> str:
    return ""


def _unchanged(operand: Any) -> Any:
    return operand


def _native(operand: Operand) -> Any:
    if isinstance(operand, Register):
        return _native_register(operand)
    if isinstance(operand, Pointer):
        return _native_memory(operand)
    if isinstance(operand, EmbeddedRounding):
        return vars(_library().operand)[operand.name.replace("-", "_")]
    return operand


@cache
def _native_register(reg: Register) -> Any:
    registers = _library().registers
    if reg.kind == "high8":
        return registers.GeneralPurposeRegister8(reg.id, is_high=True)
    if reg.kind not in _PEACHPY_KINDS:
        raise TypeError(f"PeachPy has no {reg.kind} registers")
    plain = getattr(registers, _PEACHPY_KINDS[reg.kind])(reg.id)
    return registers.MaskedRegister(plain, _native_mask(reg.mask, reg.zeroing)) if reg.mask else plain


def _native_mask(number: int, zeroing: bool) -> Any:
    registers = _library().registers
    return registers.RegisterMask(registers.KRegister(number), zeroing)


def _native_memory(pointer: Pointer) -> Any:
    operand, form = _library().operand, pointer.form
    if form.in_pool or form.label:
        address = operand.RIPRelativeOffset(0)
        address.index = None  # read by predicates that know only register addresses
    else:
        given = (form.base or (None if form.index else register("r64", 0)), form.index)  # fs:[8] as any address
        base, index = (None if reg is None else _native_register(reg) for reg in given)
        address = operand.MemoryAddress(base, index, form.scale if form.index else None, pointer.displacement)
    mask = _native_mask(form.mask, False) if form.mask else None
    return operand.MemoryOperand(address, form.size or None, mask, form.broadcast or None)
