"""Functions are read back from disk where all that they depend on is the same, and are written anew where it is not."""

import subprocess
import sys
from pathlib import Path

import pytest

from asmdnn import asm
from asmdnn.errors import InvalidArguments

ROOT = Path(__file__).parents[2]
MODULE = """
import sys
from asmdnn import asm

@asm.function("int64_t plus(int64_t x)", isa={isa!r}, cache={cache})
def plus(f, x):
    print("written", end=" ")
    f.ADD(x, {number})
    f.ret(x)

print(plus(1), end=" ")
print(plus(2))
"""


def run(folder: Path, number: object = "7", cache: object = "()", isa: str = "avx2", **environment: str) -> str:
    (folder / "own.py").write_text(MODULE.format(number=number, cache=cache, isa=isa))
    variables = {"PATH": "", "PYTHONPATH": str(ROOT), "ASMDNN_CACHE_DIR": str(folder / "kept"), **environment}
    done = subprocess.run(
        [sys.executable, "own.py", "9"], cwd=folder, env=variables, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.isa("avx2")
def test_once(tmp_path: Path) -> None:
    assert run(tmp_path) == "written 8 9"
    assert run(tmp_path) == "8 9"
    assert run(tmp_path, ASMDNN_CACHE="0") == "written 8 9"
    assert run(tmp_path, number=6) == "written 7 8"  # another file
    assert run(tmp_path, number="int(sys.argv[1])", cache="(sys.argv[1],)") == "written 10 11"
    assert run(tmp_path, number="int(sys.argv[1])", cache="(sys.argv[1],)") == "10 11"
    assert run(tmp_path, number="int(sys.argv[1])", cache="(sys.argv[1], 1)") == "written 10 11"  # other values
    (kept,) = [path for path in (tmp_path / "kept").glob("*.kernel") if path.stat().st_mtime_ns][:1]
    for path in (tmp_path / "kept").glob("*.kernel"):  # a damaged file counts as absent
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    assert kept.exists() and run(tmp_path) == "written 8 9"


@pytest.mark.isa("avx2")
def test_what_is_asked_of_it_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing, proof and bytes come from the body, and agree with what lies in memory."""
    monkeypatch.setenv("ASMDNN_CACHE_DIR", str(tmp_path / "kept"))

    def made() -> asm.CFunction:
        @asm.function("int64_t twice(int64_t x)", cache=())
        def twice(f: asm.FunctionBuilder, x: asm.Register) -> None:
            f.ADD(x, x)
            f.ret(x)

        return twice

    assert made()(4) == 8
    second = made()
    assert second(5) == 10 and not second._made  # nothing was written for the call
    assert second._loaded.code == second.code == made().code
    assert second.prove().name == "twice"


STEP = 1


@pytest.mark.isa("avx2")
def test_bodies_of_one_name_and_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a factory, and with a number of the file that changes: each has code of its own."""
    monkeypatch.setenv("ASMDNN_CACHE_DIR", str(tmp_path / "kept"))

    def made(number: int) -> asm.CFunction:
        @asm.function("int64_t plus(int64_t x)", cache=())
        def plus(f: asm.FunctionBuilder, x: asm.Register) -> None:
            f.ADD(x, number)
            f.ADD(x, STEP)
            f.ret(x)

        return plus

    assert [made(number)(1) for number in (5, 6, 5)] == [7, 8, 7]
    monkeypatch.setattr(sys.modules[__name__], "STEP", 3)
    assert made(5)(1) == 9
    assert len(list((tmp_path / "kept").glob("*.kernel"))) == 3
    with pytest.raises(InvalidArguments, match=r"cache of 'plus': it reads number, which is \[5\]"):
        made([5])(1)  # type: ignore[arg-type]


@pytest.mark.isa("avx2")
def test_false_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASMDNN_CACHE_DIR", str(tmp_path / "kept"))
    for cache in (None, False):
        twice = asm.function("int64_t twice(int64_t x)", cache=cache)(lambda f, x: f.ret(x))
        assert twice(7) == 7
    assert not (tmp_path / "kept").exists()


def test_mistakes() -> None:
    with pytest.raises(InvalidArguments, match=r"cache of 'f' has .*: give numbers, texts, and tuples"):
        asm.function("void f(void)", cache=([1],))
    with pytest.raises(InvalidArguments, match="cache of 'f': it calls addresses"):
        asm.function("double f(double x)", calls={"sqrt": "double(double)"}, cache=())
    namespace: dict[str, asm.CFunction] = {}
    source = "@asm.function('void f(void)', cache=())\ndef f(f):\n    f.ret()\n"
    exec(source, {"asm": asm}, namespace)
    if namespace["f"].runs_here:
        with pytest.raises(InvalidArguments, match="its body is in no file"):
            namespace["f"]()
