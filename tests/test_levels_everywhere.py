"""Every ISA level, wherever one is mapped to something: the default of a new CPU must not fail where others work."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import asmdnn as dnn
from asmdnn.analyze import mca
from asmdnn.bench.descriptors import planning_engine
from asmdnn.bench.peers.mkl_library import Mkl
from asmdnn.bench.peers.onednn_library import MAX_CPU_ISA
from asmdnn.cli.dump import run as dump
from asmdnn.cli.explain import run as explain
from asmdnn.cli.prove import run as prove
from asmdnn.isa.levels import LEVELS, isa_of
from asmdnn.isa.vectors import F32_LEVELS, f32_level
from asmdnn.jit import packs
from asmdnn.planning.machine import typical_machine
from asmdnn.primitives.core import implementation
from asmdnn.primitives.core.implementation import plans
from asmdnn.primitives.core.packing import write_pack

NAMES = {level.name for level in LEVELS}
CONV = "mb1ic16ih8oc16oh8kh3ph1"
every_level = pytest.mark.parametrize("isa", [level.name for level in LEVELS])


def tables() -> Iterator[tuple[str, set[str]]]:
    """Where a dictionary is keyed by level names, and which."""
    for path in sorted(Path(dnn.__file__).parent.rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if any(name in text for name in NAMES) else ():
            keys = {key.value for key in getattr(node, "keys", ()) if isinstance(key, ast.Constant)}
            if NAMES & keys:
                yield f"{path.name}:{node.lineno}", keys


def test_a_table_has_all_levels_or_those_that_have_f32_kernels() -> None:
    """The latter is asked for f32_level(isa), which is one of them."""
    found, of_kernels = dict(tables()), {level.name for level in F32_LEVELS}
    assert len(found) >= 6
    assert {where: keys for where, keys in found.items() if keys not in (NAMES, of_kernels)} == {}


@every_level
def test_the_level_of_kernels(isa: str) -> None:
    assert f32_level(isa) == ("avx512_core" if isa.startswith("avx512") else "avx2")


@every_level
def test_peers_and_models(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = []

    class Library:
        def MKL_Set_Threading_Layer(self, code: int) -> None: ...

        def MKL_Enable_Instructions(self, code: int) -> None:
            allowed.append(code)

    mkl = Mkl(Library())
    mkl.cap_isa(isa)
    mkl.cap_isa(f32_level(isa))
    assert allowed == [4 if isa.startswith("avx512") else 2]
    with pytest.raises(dnn.InvalidArguments, match="final within a process"):
        mkl.cap_isa("avx2" if isa.startswith("avx512") else "avx512_core_amx")
    assert isa in MAX_CPU_ISA
    assert mca.model_for(isa, executable=False)
    assert isa_of(isa) in typical_machine(isa).isas


def f32(*dims: int) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, "any")


@every_level
def test_plans(isa: str) -> None:
    """Those of the level's kernels, with another engine."""
    rows = dnn.MemoryDesc((64, 48), dnn.f32, "ab")
    descs = (
        dnn.ConvolutionForward(f32(1, 16, 8, 8), f32(16, 16, 3, 3), f32(1, 16, 6, 6)),
        dnn.MatMul(rows, f32(48, 40), f32(64, 40)),
        dnn.InnerProductForward(f32(8, 48), f32(40, 48), f32(8, 40)),
        dnn.Reorder(rows, dnn.MemoryDesc((64, 48), dnn.f32, "ba")),
        dnn.EltwiseForward(dnn.PropKind.forward_inference, "relu", rows, rows),
    )
    engine, plain = (dnn.Engine(isa=name, threads=1, machine="sapphire_rapids") for name in (isa, f32_level(isa)))
    for desc in descs:
        pd = dnn.primitive_desc(desc, engine=engine)
        pd.plan.check()
        assert pd.plan.specs == dnn.primitive_desc(desc, engine=plain).plan.specs
    assert dnn.gemm_pack_get_size("B", 5, 40, 48, engine=engine) == dnn.gemm_pack_get_size("B", 5, 40, 48, engine=plain)


@every_level
def test_commands(isa: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planning_engine(isa).isa == isa
    for command, more in ((explain, []), (prove, ["--jobs=1"]), (dump, [f"--output={tmp_path}"])):
        assert command([*more, f"--isa={isa}", "--conv", CONV]) == 0
    assert f"__{f32_level(isa)}" in capsys.readouterr().out


@every_level
def test_a_pack_for_a_lower_level_serves_a_higher_one(
    isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where both have the same vectors: a pack for avx512_core is one for every CPU with AVX-512."""
    desc = dnn.ConvolutionForward(f32(1, 16, 8, 8), f32(16, 16, 3, 3), f32(1, 16, 6, 6))
    lower, higher = (dnn.Engine(isa=name, threads=1, machine="zen5") for name in (f32_level(isa), isa))
    write_pack(tmp_path / "a.pack", [dnn.primitive_desc(desc, engine=lower)])
    monkeypatch.setattr(packs, "_loaded", [])
    plans.clear()
    dnn.load_pack(tmp_path / "a.pack")
    monkeypatch.setattr(implementation, "try_all", None)  # who plans anew fails
    assert dnn.primitive_desc(desc, engine=higher).plan.check() is None
    plans.clear()
