"""ASMDNN_JIT_PROFILE: the files name the kernels that live, where they live; perf, gdb and readelf agree."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Makes two primitives, prints where their kernels are and what they are; tells the same of a fork()ed child.
SCRIPT = """
import gc, json, os, sys
import numpy as np
import asmdnn as dnn
from asmdnn.jit import profiling
from asmdnn.jit.native import ffi
from asmdnn.runtime.kernels import kernel_cache

def make(ic):
    dims = {"src": (1, ic, 5, 5), "weights": (16, ic, 3, 3), "dst": (1, 16, 3, 3)}
    desc = dnn.ConvolutionForward(**{name: dnn.MemoryDesc(d, dnn.f32, "any") for name, d in dims.items()})
    return dnn.Primitive(dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx2", threads=1)))

def report():
    perf = f"/tmp/perf-{os.getpid()}.map"
    if os.path.exists(perf):
        os.rename(perf, os.path.join(os.environ["JITDUMPDIR"], os.path.basename(perf)))
    kernels = [[k.name, k.address, bytes(ffi.buffer(ffi.cast("char *", k.address), k.size)).hex()]
               for k in kernel_cache()._loaded.values()]
    print(json.dumps([os.getpid(), kernels]), flush=True)

made = [make(8), make(12)]
if "drop" in sys.argv:
    del made
    addresses = [kernel.address for kernel in kernel_cache()._loaded.values()]
    kept = dict(profiling._session.kernels)
    kernel_cache.cache_clear()
    gc.collect()
    maps = [line.split()[0].split("-") for line in open("/proc/self/maps")]
    mapped = all(any(int(a, 16) <= k < int(b, 16) for a, b in maps) for k in addresses)
    print(json.dumps([mapped, sorted(kept) == sorted(addresses)]))
else:
    report()
if "fork" in sys.argv:
    sys.stdout.flush()
    if not os.fork():
        report()
        os._exit(0)
    os.wait()
"""


def run(folder: Path, words: str, *arguments: str, **environment: str) -> list[list[object]]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "ASMDNN_JIT_PROFILE": words, "JITDUMPDIR": str(folder)}
        | environment,
        capture_output=True, text=True, timeout=60, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def named(kernels: object) -> dict[int, tuple[str, int]]:
    assert isinstance(kernels, list)
    return {address: (name, len(code) // 2) for name, address, code in kernels}


def perf_map(folder: Path, pid: object) -> dict[int, tuple[str, int]]:
    lines = [line.split(" ", 2) for line in (folder / f"perf-{pid}.map").read_text().splitlines()]
    return {int(address, 16): (name, int(size, 16)) for address, size, name in lines if not name.startswith("py::")}


@pytest.mark.isa("avx2")
def test_the_perf_map_names_live_kernels_also_in_a_child(tmp_path: Path) -> None:
    parent, child = run(tmp_path, "perf_map", "fork")
    assert parent[0] != child[0]
    for pid, kernels in (parent, child):
        assert perf_map(tmp_path, pid) == named(kernels)
        assert len(named(kernels)) >= 3
    assert sorted(os.listdir(tmp_path)) == sorted(f"perf-{pid}.map" for pid, _ in (parent, child))


@pytest.mark.isa("avx2")
def test_announced_kernels_stay_mapped(tmp_path: Path) -> None:
    """Otherwise another kernel could come to lie where a name says something else."""
    assert run(tmp_path, "gdb", "drop") == [[True, True]]


@pytest.mark.isa("avx2")
def test_jitdump(tmp_path: Path) -> None:
    ((pid, kernels),) = run(tmp_path, "jitdump")
    data = (tmp_path / f"jit-{pid}.dump").read_bytes()
    assert data[:4] == b"DTiJ"
    assert int.from_bytes(data[20:24], "little") == pid
    at, found, kinds = int.from_bytes(data[8:12], "little"), [], []
    while at < len(data):
        kind, size = (int.from_bytes(data[at + i : at + i + 4], "little") for i in (0, 4))
        body = data[at + 16 : at + size]
        kinds.append(kind)
        if kind == 0:
            address, code_bytes = (int.from_bytes(body[i : i + 8], "little") for i in (16, 24))
            name, _, code = body[40:].partition(b"\0")
            assert len(code) == code_bytes
            found.append([name.decode(), address, code.hex()])
        at += size
    assert at == len(data)
    assert found == kernels
    assert kinds == [4, 0] * len(found), "unwind information stands in front of its code"


@pytest.mark.isa("avx2")
def test_the_file_for_gdb(tmp_path: Path) -> None:
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("readelf is not installed")
    ((pid, kernels),) = run(tmp_path, "gdb")
    assert os.listdir(tmp_path) == [f"asmdnn-{pid}.elf"]
    command = [readelf, "-W", "--symbols", "--debug-dump=frames", str(tmp_path / f"asmdnn-{pid}.elf")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    rows = [line.split() for line in done.stdout.splitlines()]
    symbols = {int(row[1], 16): (row[7], int(row[2])) for row in rows if row[3:4] == ["FUNC"]}
    assert symbols == named(kernels)
    ranges = [row[5].removeprefix("pc=").split("..") for row in rows if row[3:4] == ["FDE"]]
    assert {int(a, 16): int(b, 16) - int(a, 16) for a, b in ranges} == {a: n for a, (_, n) in symbols.items()}


@pytest.mark.isa("avx2")
def test_without_the_variable_nothing_is_written(tmp_path: Path) -> None:
    ((pid, _),) = run(tmp_path, "none")
    assert os.listdir(tmp_path) == []
    assert not Path(f"/tmp/perf-{pid}.map").exists()


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("words", "what"), [("jitdump,gdb", "its file cannot be written"), ("perfmap", "'perfmap'")])
def test_what_cannot_be_written_costs_a_warning(words: str, what: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "fork"],
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "ASMDNN_JIT_PROFILE": words, "JITDUMPDIR": str(tmp_path / "none")},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    warned = [line for line in done.stderr.splitlines() if "RuntimeWarning" in line]
    expected = 2 * len(words.split(",")) if "jitdump" in words else 1
    assert len(warned) == expected, "one for each file of each process"
    assert all(what in line for line in warned)
    assert os.listdir(tmp_path) == []


def test_a_leftover_of_an_earlier_process_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from asmdnn.jit import perf_map as module

    monkeypatch.setattr(module, "path", lambda: str(tmp_path / "perf.map"))
    old, young = tmp_path / "perf.map", 0.0
    for age, stays in ((10**6, False), (young, True)):
        old.write_text("1000 10 somebody_else\n")
        started = module._start_of_process()
        os.utime(old, (started - age, started - age))
        module._remove_leftover()
        assert old.exists() == stays


@pytest.mark.slow
@pytest.mark.isa("avx2")
def test_gdb_unwinds_from_a_kernel_to_python(tmp_path: Path) -> None:
    gdb = shutil.which("gdb")
    if gdb is None:
        pytest.skip("gdb is not installed")
    script = (
        SCRIPT
        + """
memories = {name: dnn.Memory(desc) for name, desc in made[0].pd.plan.tensors.items()}
run = made[0].bind(**memories)
import time
end = time.time() + 30
while time.time() < end:
    run()
"""
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "ASMDNN_JIT_PROFILE": "gdb", "JITDUMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline(), "it ended early"
        symbols = tmp_path / f"asmdnn-{process.pid}.elf"
        kernel = "conv_f32_"
        commands = [
            "set confirm off", "set demangle-style none", f"add-symbol-file {symbols}", f"rbreak ^{kernel}",
            "continue", "backtrace", "stepi", "backtrace 3", "kill",
        ]  # fmt: skip
        words = [gdb, "-q", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-p", str(process.pid)]
        for command in commands:
            words += ["-ex", command]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        finally:
            process.kill()
    if "ptrace" in done.stderr and "not permitted" in done.stderr:
        pytest.skip("this machine forbids to attach a debugger")
    frames = [line for line in done.stdout.splitlines() if line.startswith("#")]
    assert kernel in frames[0], done.stdout
    assert "executor_" in frames[1]
    assert any("_PyEval_EvalFrameDefault" in frame or "PyEval" in frame for frame in frames), done.stdout
    assert any("main" in frame for frame in frames)
