"""ASMDNN_DUMP: what a run generates or loads is also on disk, and a directory that cannot be used harms nothing."""

import json
import os
import subprocess
import sys
import warnings
from hashlib import sha256
from pathlib import Path

import pytest

from asmdnn.dump.run import MANIFEST, RunDump
from asmdnn.generators.move.rows import RowsSpec
from tests.generators.codes import code_of

ROOT = Path(__file__).parents[2]
SPEC, OTHER = (
    RowsSpec(isa="avx2", rows=3, row_bytes=20, src_step=20, dst_step=20),
    RowsSpec(isa="avx2", rows=3, row_bytes=24, src_step=24, dst_step=24),
)
CODE = code_of(SPEC).data

RUN = """
import numpy as np, sys
{before}
import asmdnn as dnn
x, w = np.ones((1, 8, 6, 6), np.float32), np.ones((8, 8, 3, 3), np.float32)
with dnn.max_cpu_isa("avx2"):
    assert (dnn.ops.conv2d(x, w) == 72).all()
    assert (dnn.ops.conv2d(x, w) == 72).all()
"""
NO_PEACHPY = "sys.modules['peachpy'] = None"


def run(folder: Path, cache: Path, before: str = "") -> str:
    """A process that computes a convolution, with its kernels on disk in `cache`; its stderr."""
    environment = os.environ | {"ASMDNN_DUMP": str(folder), "ASMDNN_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(before=before)],
        env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def entries(folder: Path) -> dict[str, dict[str, object]]:
    """By name; each once."""
    found = [json.loads(line) for line in (folder / MANIFEST).read_text().splitlines()]
    assert len({entry["name"] for entry in found}) == len(found)
    return {entry["name"]: entry for entry in found}


@pytest.mark.isa("avx2")
def test_a_run(tmp_path: Path) -> None:
    """Generated at first, then loaded from disk: the same files; and the bytes alone where PeachPy is missing."""
    folders = [tmp_path / name for name in ("generated", "loaded", "without")]
    for folder, before in zip(folders, ("", "", NO_PEACHPY), strict=True):
        assert run(folder, tmp_path / "cache", before) == ""
    generated, loaded, without = map(entries, folders)
    assert generated == loaded
    assert generated.keys() == without.keys()
    assert any(name.startswith("conv_f32_") for name in generated)
    assert any(name.startswith("executor_") for name in generated)
    for name, entry in generated.items():
        data = (folders[0] / f"{name}.bin").read_bytes()
        assert sha256(data).hexdigest() == entry["sha256"] == without[name]["sha256"]
        assert f"{name}.s" in entry["files"]  # type: ignore[operator]
        assert (folders[0] / f"{name}.s").read_text().startswith(f"# {name}\n")
        assert (folders[2] / f"{name}.bin").read_bytes() == data
        assert "PeachPy" in str(without[name]["no_assembly"])
    assert not list(folders[2].glob("*.s"))


@pytest.mark.isa("avx2")
def test_a_folder_that_cannot_be_made_costs_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    error = run(tmp_path / "file" / "sub", tmp_path / "cache")
    assert error.count("RuntimeWarning") == 1
    assert f"ASMDNN_DUMP={tmp_path}/file/sub cannot be written (Not a directory): kernels are not dumped" in error


def test_a_folder_that_vanishes_costs_one_warning(tmp_path: Path) -> None:
    dump = RunDump(str(tmp_path / "out"))
    dump.write(SPEC, CODE)
    (tmp_path / "out" / MANIFEST).unlink()
    (tmp_path / "out" / MANIFEST).mkdir()
    with pytest.warns(RuntimeWarning, match="Is a directory"):
        dump.write(OTHER, code_of(OTHER).data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dump.write(OTHER, code_of(OTHER).data)


def test_bytes_that_the_generators_do_not_make_have_no_assembly(tmp_path: Path) -> None:
    RunDump(str(tmp_path)).write(SPEC, CODE[:-1] + b"\x01")
    entry = entries(tmp_path)[SPEC.name]
    assert entry["no_assembly"] == "the bytes in use are not those that the generators make"
    assert {path.name for path in tmp_path.iterdir()} == {f"{SPEC.name}.bin", MANIFEST}
    assert (tmp_path / f"{SPEC.name}.bin").read_bytes() == CODE[:-1] + b"\x01"


def test_a_relative_folder_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dump = RunDump("out")
    monkeypatch.chdir("/")
    dump.write(SPEC, CODE)
    assert (tmp_path / "out" / f"{SPEC.name}.s").exists()
