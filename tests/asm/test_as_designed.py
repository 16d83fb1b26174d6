"""The program that this package was designed from, run as it was written then, and every line of it checked."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asmdnn.asm.levels import level_of

PROGRAM = """
import numpy as np
from asmdnn import asm
from asmdnn.asm import low32, mem

@asm.function("float dot(const float *x, const float *y, size_t n)", isa=("avx2", "avx512_core"),
              reads={"x": "4*n", "y": "4*n"})               # footprint in bytes of the integer arguments
def dot(f, x, y, n):                                        # arguments: registers, named as in C
    v = f.vector("f32"); acc, t = v.registers.take("acc", 8), v.registers.take("x")
    for a in acc: v.zero(a)
    with f.steps(n, 8 * v.lanes, "blocks"):                 # while n >= step: body; n -= step.  0 rounds are fine
        for j, a in enumerate(acc):
            v.load(t, mem(x, j * v.bytes)); v.fma(a, t, mem(y, j * v.bytes))
        f.ADD(x, 8 * v.bytes); f.ADD(y, 8 * v.bytes)
    with f.steps(n, v.lanes, "vectors"):
        v.load(t, mem(x)); v.fma(acc[0], t, mem(y)); f.ADD(x, v.bytes); f.ADD(y, v.bytes)
    with v.first(n) as lanes, v.registers.taken("y") as u:  # a tail at run time: a k mask, or AVX2's mask from a table
        lanes.load(t, mem(x)); lanes.load(u, mem(y)); v.fma(acc[0], t, u)
    f.ret(v.sum(acc))

@asm.function("int64_t step(int64_t op, int64_t a, int64_t b)")
def step(f, op, a, b):
    with f.switch(op, range(3)) as case:                    # bounds check, jump table in the pool
        with case(0): f.ADD(a, b)
        with case(1): f.SUB(a, b)
        with case(2): f.MOV(a, mem(f.table(np.arange(64)), index=b, scale=8))
        with case.other: f.XOR(low32(a), low32(a))
    f.ret(a)

@asm.function("double hyp(double a, double b)", calls={"sqrt": "double(double)"})   # libc's name, an address, a Python callable
def hyp(f, a, b):
    f.VMULSD(a, a, a); f.VFMADD231SD(a, b, b); f.ret(f.call("sqrt", a))             # keep=[...]: what must live across it
"""  # noqa: E501
USES = """
dot(x, y, len(x)); dot.raw(px, py, n); dot.address; dot.prototype; dot.code; dot.at("avx2")
dot.prove(n=range(0, 300)); dot.emulate(x, y, 37, isa="avx512_core"); dot.trace(x, y, 5).page("t.html")
dot.bench(x, y, 4096); dot.compare(np.dot, cases=1000, tolerance=asm.ulp(8)); dot.explain(); dot.save("dot.o", "dot.h", "dot.s")
"""  # noqa: E501


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The names of the program, and what its uses name."""
    path = tmp_path_factory.mktemp("program") / "as_written.py"
    path.write_text(PROGRAM)
    names: dict[str, Any] = {"__name__": "as_written", "__file__": str(path)}
    exec(compile(PROGRAM, str(path), "exec"), names)
    x, y = np.random.default_rng(31).integers(-9, 9, (2, 4096)).astype(np.float32)
    return names | {"x": x, "y": y, "px": x.ctypes.data, "py": y.ctypes.data, "n": len(x)}


@pytest.mark.skipif(bool(level_of("avx2").missing()), reason="calls need AVX2")
def test_every_use_runs_as_written(program: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    uses = [use.strip() for use in USES.replace("\n", ";").split(";") if use.strip()]
    found = {use: eval(use, dict(program)) for use in uses}
    exact = float(program["x"].astype(int) @ program["y"].astype(int))
    assert found["dot(x, y, len(x))"] == found["dot.raw(px, py, n)"] == exact
    assert found["dot.prototype"] == "float dot(const float *x, const float *y, size_t n)"
    assert found["dot.prove(n=range(0, 300))"].cases == 300
    emulated = found['dot.emulate(x, y, 37, isa="avx512_core")']
    assert emulated.result == float(program["x"][:37].astype(int) @ program["y"][:37].astype(int))
    assert emulated.touched == {"x": (148, 0), "y": (148, 0)}
    assert found["dot.bench(x, y, 4096)"].ns > 0
    assert "1000 random cases agree" in str(found["dot.compare(np.dot, cases=1000, tolerance=asm.ulp(8))"])
    assert re.search(r"vfmadd231ps .* as_written.py:13 ", found["dot.explain()"])
    assert {path.name for path in tmp_path.iterdir()} == {"t.html", "dot.o", "dot.h", "dot.s"}


@pytest.mark.skipif(bool(level_of("avx2").missing()), reason="calls need AVX2")
def test_its_other_functions(program: dict[str, Any]) -> None:
    step, hyp = program["step"], program["hyp"]
    assert [step(op, 7, 5) for op in (-1, 0, 1, 2, 3)] == [0, 12, 2, 5, 0]
    assert [step.raw(op, 7, 5) for op in (-1, 0, 1, 2, 3)] == [0, 12, 2, 5, 0]
    assert hyp(3, 4) == hyp.raw(3.0, 4.0) == math.hypot(3, 4)
