"""`asmdnn dump`: its words, what it writes for problems and for the corpus, and one line for every mistake."""

import json
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import asmdnn as dnn
from asmdnn.bench import descriptors
from asmdnn.cli import progress
from asmdnn.cli.main import main
from asmdnn.corpus.families import corpus
from asmdnn.isa.levels import ANY_CPU, LEVELS
from asmdnn.planning.host import host, supported_isas
from asmdnn.runtime.kernels import generate

PROBLEM = "mb1ic8ih6oc20kh3ph1"
WHOLE = "mb1ic8ih6oc32kh3ph1"  # channels of dst fill vectors of every level: no machine takes narrower ones
LATER = ("--alg=wino", "mb1ic8ih6oc20kh3sh2ph1")


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return found


@pytest.mark.parametrize("isa", [level.name for level in LEVELS])
def test_a_problem_of_any_level(isa: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also of those that this machine lacks; levels without kernels of their own get those of a lower one."""
    out = tmp_path / "new" / "folder"
    assert main(["dump", "--conv", f"--isa={isa}", f"--output={out}", "--attr-post-ops=relu", WHOLE]) == 0
    level = "avx512_core" if isa.startswith("avx512") else "avx2"
    (problem,) = manifest(out)["problems"]
    assert problem["implementation"] == f"direct:{level}"
    assert problem["engine"]["isa"] == isa
    kernels = {kernel["name"]: kernel for kernel in manifest(out)["kernels"]}
    used = {name for phase in problem["phases"] for name in phase["records_of_kernel"]}
    assert kernels.keys() == {*used, problem["executor"]}
    assert {kernel["isa"] for kernel in kernels.values()} == {level, "x86_64"}
    files = {file for kernel in kernels.values() for file in kernel["files"]}
    assert {path.name for path in out.iterdir()} == {"manifest.json", *files}
    assert files == {f"{name}.{suffix}" for name in kernels for suffix in ("bin", "s", "o", "h")}
    for name, kernel in kernels.items():
        data = (out / f"{name}.bin").read_bytes()
        assert (kernel["sha256"], kernel["size_bytes"]) == (sha256(data).hexdigest(), len(data))
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.startswith(f"{len(kernels)} kernels of --conv --attr-post-ops=relu --isa={isa} mb1ic8")
    assert next(iter(kernels.values()))["disassemble"] in shown.out


def test_the_manifest_is_the_plan(tmp_path: Path) -> None:
    assert main(["dump", "--isa=avx512_core", "--dir=FWD_I", f"--output={tmp_path}", "--format=h", PROBLEM]) == 0
    src, weights, dst = (dnn.MemoryDesc(d, dnn.f32, "any") for d in ((1, 8, 6, 6), (20, 8, 3, 3), (1, 20, 6, 6)))
    desc = dnn.ConvolutionForward(
        src, weights, dst=dst, padding_l=(1, 1), padding_r=(1, 1), prop_kind=dnn.PropKind.forward_inference
    )
    plan = dnn.primitive_desc(desc, engine=descriptors.planning_engine("avx512_core")).plan
    (problem,) = manifest(tmp_path)["problems"]
    assert problem["tensors"] == {name: str(tensor) for name, tensor in plan.tensors.items()}
    assert [phase["records"] for phase in problem["phases"]] == [len(phase.records) for phase in plan.phases]
    assert [phase["cycles"] for phase in problem["phases"]] == [int(phase.cycles.sum()) for phase in plan.phases]
    assert sum(n for phase in problem["phases"] for n in phase["records_of_kernel"].values()) == sum(
        len(phase.records) for phase in plan.phases
    )
    specs = {kernel["name"]: kernel["spec"] for kernel in manifest(tmp_path)["kernels"]}
    assert all(specs[spec.name] == repr(spec) for spec in plan.specs)


def test_a_kernel_that_is_called_with_several_numbers(tmp_path: Path) -> None:
    """Specs that differ in nothing but the words that their code reads are one; its header says which words."""
    problem = ["--pool", "--isa=avx2", "--tag=axb", "mb1ic64ih56oh56kh3ph1"]
    assert main(["dump", f"--output={tmp_path}", "--format=h", *problem]) == 0
    (phase,) = manifest(tmp_path)["problems"][0]["phases"]
    assert sum(phase["records_of_kernel"].values()) == phase["records"]
    names = [kernel["name"] for kernel in manifest(tmp_path)["kernels"]]
    assert len(names) == len({*names})
    (inside,) = [name for name in phase["records_of_kernel"] if name.startswith("maxpool_f32_3x3")]
    assert phase["records_of_kernel"][inside] > 1
    assert "all ranges here are of these numbers: " in (tmp_path / f"{inside}.h").read_text()


def test_a_problem_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kernels that problems share are there once; what has no implementation is told, and the rest is dumped."""
    words = ["dump", f"--output={tmp_path}", "--isa=avx2", "--format=bin"]
    assert main([*words, "--batch=resnet_50"]) == 0
    names = [kernel["name"] for kernel in manifest(tmp_path)["kernels"]]
    assert len(names) == len(set(names)) > 20
    assert len(manifest(tmp_path)["problems"]) == 20
    assert f"{len(names)} kernels of 20 problems in {tmp_path}: bin" in capsys.readouterr().out
    assert main([*words, PROBLEM, *LATER]) == 1
    shown = capsys.readouterr()
    assert "kernels of 1 of 2 problems in" in shown.out
    assert shown.err.startswith("asmdnn: not dumped: ")
    assert manifest(tmp_path)["problems"][1]["refused"].startswith("--alg=wino: is for 3x3 kernels")


@pytest.mark.parametrize(
    "isa", ["avx512_core_bf16", *(pytest.param(isa, marks=pytest.mark.slow) for isa in ("", "avx2", "avx512_core"))]
)
def test_the_corpus(isa: str, tmp_path: Path) -> None:
    words = ["dump", "--all-specs", "--format=bin", f"--output={tmp_path}", *[f"--isa={isa}"] * bool(isa)]
    assert main(words) == 0
    wanted = [spec for spec in corpus() if spec.isa in (isa, ANY_CPU) or not isa]
    assert [kernel["name"] for kernel in manifest(tmp_path)["kernels"]] == [spec.name for spec in wanted]
    for spec in wanted[::100]:
        assert (tmp_path / f"{spec.name}.bin").read_bytes() == generate(spec)


@pytest.mark.slow
def test_the_corpus_in_all_formats(tmp_path: Path) -> None:
    assert main(["dump", "--all-specs", f"--output={tmp_path}"]) == 0
    assert len(list(tmp_path.iterdir())) == 4 * len({spec.name for spec in corpus()}) + 1


def test_l2_is_that_of_the_machine_or_of_one_with_the_level(tmp_path: Path) -> None:
    lacking = [level.name for level in LEVELS if level not in supported_isas()]
    for name, size in (("avx512_core", 1 << 20), ("avx512_core_amx", 2 << 20)):
        wanted = size if name in lacking else host().caches.l2_bytes
        assert descriptors.planning_engine(name).l2_bytes == wanted
    assert descriptors.planning_engine("avx2").l2_bytes == dnn.Engine(isa="avx2").l2_bytes
    assert main(["dump", "--l2-bytes=300000", "--isa=avx2", "--format=h", f"--output={tmp_path}", PROBLEM]) == 0
    assert manifest(tmp_path)["problems"][0]["engine"] == {"isa": "avx2", "l2_bytes": 300000}


def test_dumps_do_not_depend_on_what_is_there(tmp_path: Path) -> None:
    """A second dump into the same folder leaves the same bytes, and no temporary file."""
    for _ in range(2):
        assert main(["dump", "--isa=avx2", f"--output={tmp_path}", PROBLEM]) == 0
        found = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert all(not name.startswith(".") for name in found)
    again = tmp_path / "again"
    assert main(["dump", "--isa=avx2", f"--output={again}", PROBLEM]) == 0
    assert {path.name: path.read_bytes() for path in again.iterdir()} == found


def test_a_bar_on_a_terminal_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(progress, "columns_of", lambda stream: 100)
    monkeypatch.setattr("sys.stderr", terminal)
    assert main(["dump", "--isa=avx2", f"--output={tmp_path}", PROBLEM]) == 0
    assert "] 0/" in terminal.getvalue()


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", "--help"]) == 0
    assert capsys.readouterr().out.startswith("asmdnn dump --output=DIR")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((PROBLEM,), "dump: no output directory is given: say --output=DIR"),
        (("--output=", PROBLEM), "no output directory is given"),
        (("--output=OUT",), "dump: no problem is given: name one, a set with --batch=resnet_50, or --all-specs"),
        (("--output=OUT", "ic3oc4"), "problem 'ic3oc4': a spatial size is missing"),
        (("--output=OUT", "nonsense"), "problem 'nonsense'"),
        (("--output=OUT", "--batch=resnet_51"), "--batch=resnet_51: no such file, and no problem set either"),
        (("--output=OUT", "--isa=pentium", PROBLEM), "isa 'pentium' is not one of avx2, "),
        (("--output=OUT", "--all-specs", "--isa=pentium"), "isa 'pentium' is not one of avx2, "),
        (("--output=OUT", "--all-specs", PROBLEM), f"dump: {PROBLEM} with --all-specs: that takes --isa, "),
        (("--output=OUT", "--all-specs", "--dir=FWD_I"), "dump: --dir=FWD_I with --all-specs"),
        (("--output=OUT", "--format=elf", PROBLEM), "dump: --format=elf: 'elf' is not one of bin, s, o, h"),
        (("--output=OUT", "--format=", PROBLEM), "'' is not one of bin, s, o, h"),
        (("--output=OUT", "--l2-bytes=1M", PROBLEM), "--l2-bytes=1M: must be a number of bytes"),
        (("--output=OUT", "--l2-bytes=0", PROBLEM), "--l2-bytes=0: must be a number of bytes"),
        (("--output=OUT", "--json=x", PROBLEM), "dump: --json=x is not an option here"),
        (("--output=OUT", "--colour=x", PROBLEM), "--colour=x: no such option"),
        (("--output=OUT", "--stag=nchwx", PROBLEM), "nchwx"),
        (("--output=OUT", "--dt=f4_e3m0", PROBLEM), "f4_e3m0 is not built yet, only f32"),
        (("--output=FILE", PROBLEM), "cannot be written: File exists"),
        (("--output=FILE/sub", "--all-specs"), "/file/sub cannot be written: Not a directory"),
        (("--output=/proc/nothing", PROBLEM), "--output=/proc/nothing cannot be written: No such file or directory"),
    ],
)
def test_mistakes_are_one_line_and_status_2(
    words: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    placed = [word.replace("OUT", str(tmp_path / "out")).replace("FILE", str(tmp_path / "file")) for word in words]
    assert main(["dump", *placed]) == 2
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert output.err.startswith("asmdnn: ")
    assert says in output.err
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_way_of_a_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, free, taken = ["dump", "--isa=avx2", PROBLEM], tmp_path / "free", tmp_path / "taken"
    assert main([*words, f"--output={free}"]) == 0
    header = max(free.glob("*.h"))
    (taken / header.name).mkdir(parents=True)
    capsys.readouterr()
    assert main([*words, f"--output={taken}"]) == 2
    assert capsys.readouterr().err == f"asmdnn: --output={taken} cannot be written: Is a directory\n"
    assert not list(taken.glob(".*"))


def test_kernels_whose_names_match(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", "--specs=executor_[12]__*", "--format=bin", f"--output={tmp_path}"]) == 0
    assert [kernel["name"] for kernel in manifest(tmp_path)["kernels"]] == ["executor_1__x86_64", "executor_2__x86_64"]
    assert main(["dump", "--specs=executor_1__*", "--all-specs", f"--output={tmp_path}"]) == 2
    assert "--specs=executor_1__* with others" in capsys.readouterr().err
