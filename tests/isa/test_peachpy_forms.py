"""PeachPy is loaded late, left as it is, and missed politely."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from asmdnn.errors import Unimplemented
from asmdnn.isa import peachpy_forms
from asmdnn.isa.assembler import Assembler, mem, register
from tests.support.python import python


def test_importing_isa_loads_no_peachpy() -> None:
    program = (
        "import sys, asmdnn.isa.assembler, asmdnn.isa.cpu, asmdnn.isa.levels\n"
        "asmdnn.isa.cpu.cpu_features(), asmdnn.isa.assembler.mem(asmdnn.isa.assembler.rsp, 8)\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'peachpy'])"
    )
    assert python(program) == "[]"


def test_status_here() -> None:
    assert peachpy_forms.peachpy_status() == (True, "PeachPy 0.2.0")


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """PeachPy is not yet looked for."""
    peachpy_forms._library.cache_clear()
    return monkeypatch


@pytest.mark.parametrize("missing", ["peachpy", "six"])
def test_a_missing_package_is_named_with_the_command(missing: str, fresh: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    fresh.setattr(importlib.util, "find_spec", lambda name: None if name == missing else found(name))
    with pytest.raises(Unimplemented, match=f"(?i){missing}.*: run  .*(asmdnn setup|pip install six)$"):
        Assembler("none")


def test_another_version_is_refused(fresh: pytest.MonkeyPatch) -> None:
    other = ModuleType("peachpy")
    other.__version__ = "0.3.0"  # type: ignore[attr-defined]
    load = importlib.import_module
    fresh.setattr(importlib, "import_module", lambda name: other if name == "peachpy" else load(name))
    with pytest.raises(Unimplemented, match=r"PeachPy 0\.3\.0 is installed but 0\.2\.0 is needed"):
        Assembler("none")


@pytest.mark.parametrize("on_the_path", [True, False])
def test_the_command_is_short_where_the_path_has_it(on_the_path: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = Path(sys.executable).parent if on_the_path else Path("/elsewhere")
    monkeypatch.setattr("shutil.which", lambda name: str(directory / name))
    assert peachpy_forms.setup_command() == ("asmdnn setup" if on_the_path else f"{sys.executable} -m asmdnn setup")


def test_another_user_of_peachpy_is_not_disturbed() -> None:
    """An active stream of PeachPy's gets none of our instructions, and PeachPy's own encodings stay what they were."""
    from peachpy.stream import InstructionStream
    from peachpy.x86_64 import VADDPS, dword, rax, zmm1

    before = bytes(VADDPS(zmm1, zmm1, dword.to16[rax + 64]).encode())
    with InstructionStream() as stream:
        asm = Assembler("apart")
        asm.VSUBPS(register("zmm", 1), register("zmm", 2), mem(register("r64", 0), 64).broadcast_to(16))
        asm.SUB(register("r64", 0), 77)
        asm.ret()
        asm.finish()
    assert len(stream) == 0
    assert bytes(VADDPS(zmm1, zmm1, dword.to16[rax + 64]).encode()) == before
